"""``agenticiqa calibrate fusion`` fits a fusion profile with a model or to the rows of a finished run."""

import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from agenticiqa.eval.cli import main
from agenticiqa.eval.optimize.measurements import with_instructions
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.batch.fit_fusion import fit_rows
from agenticiqa.programs.cli.sinks import Appending
from agenticiqa.programs.fusion.profile import FusionProfile, read_fusion_profile
from agenticiqa.programs.stages.scorer import RATINGS
from agenticiqa.signatures.summarizer import ScoreQuality
from support.fake_server import Server, fake_server
from support.files import json_lines
from support.rated_album import Rater, make_album, rating_configuration
from support.simulated_tuning import SCORER

pytestmark = pytest.mark.slow

IMAGES = 14


@pytest.fixture(scope="module")
def qualities(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, float]:
    """14 photos with their qualities, 1..5, by path."""
    folder = tmp_path_factory.mktemp("calibrate") / "photos"
    return {folder / name: quality for name, quality in make_album(folder, IMAGES).items()}


@pytest.fixture
def photos(qualities: dict[Path, float]) -> Path:
    """The folder of the photos."""
    return next(iter(qualities)).parent


@pytest.fixture
def server(photos: Path, qualities: dict[Path, float]) -> Iterator[Server]:
    """A server with a model that rates the photos."""
    with fake_server(Rater(photos, {path.name: quality for path, quality in qualities.items()})) as running:
        yield running


@pytest.fixture
def labels(tmp_path: Path, qualities: dict[Path, float]) -> Path:
    """A labels.csv of the photos with MOS on 0..100."""
    with (tmp_path / "labels.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["image", "mos"])
        writer.writerows([path, 20 * quality] for path, quality in qualities.items())
    return tmp_path / "labels.csv"


def calibrate(*arguments: object) -> int:
    return main(["calibrate", "fusion", *map(str, arguments)])


def numbers_of(profile: FusionProfile) -> dict[str, Any]:
    return profile.model_dump(exclude={"fitted_on"})


def test_photos_are_rated_after_the_cost_is_printed_and_the_profile_is_used(
    photos: Path, server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, config = tmp_path / "profile.yaml", rating_configuration(tmp_path, server.url)
    assert calibrate("--config", config, photos, "--out", out, "--dry-run") == 0
    shown, remark = capsys.readouterr()
    assert "14 questions about 14 images, for vllm.test" in shown
    assert "Nothing was sent. Calls and tokens are estimated" in remark
    assert server.requests == []
    assert not out.exists()

    assert calibrate("--config", config, photos, "--out", out) == 0
    printed, remarks = capsys.readouterr()
    assert printed.startswith(shown), "the cost is printed first, as with --dry-run"
    assert remark.partition("Nothing was sent. ")[2] in remarks
    assert "Nothing was sent" not in remarks
    assert f"{out}: a fusion profile for vllm.test and LEARNED-IQA was fitted to 14 images, without MOS" in printed
    assert "Use 50 or more images" in printed
    assert f"To use it, add --fusion {out} to commands with --backend vllm.test, or fusion: {out} to" in printed
    profile = read_fusion_profile(out)
    assert (profile.backend, profile.toolset, profile.images, profile.labels) == ("vllm.test", ("LEARNED-IQA",), 14, 0)
    assert profile.fitted_on is not None
    rows = json_lines(tmp_path / "profile.rows.jsonl")
    assert numbers_of(profile) == numbers_of(fit_rows(rows).profile)

    used = rating_configuration(tmp_path, server.url, fusion="profile.yaml")
    scores = tmp_path / "scores.jsonl"
    assert main(["assess", str(photos), "--config", str(used), "--jsonl", str(scores)]) == 0
    by_image = {row["image"]: row["quality_score"] for row in rows}
    after = {row["image"]: row["quality_score"] for row in json_lines(scores)}
    assert after.keys() == by_image.keys()
    assert after != by_image
    assert "warn" not in capsys.readouterr().err.lower()


def test_a_profile_depends_only_on_the_prompt_of_the_score(
    photos: Path,
    server: Server,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is fitted with a model in all stages, and used where only the summarizer asks that model."""
    monkeypatch.chdir(tmp_path)
    asked, photo = ("--backend", "vllm.test", "--api-base", server.url), str(min(photos.iterdir()))
    only_score = {"summarizer": {"backend": "vllm.test", "api_base": server.url}}
    with_instructions(AgenticIQA.from_config(only_score), {SCORER: "Weigh the blur."}).save("tuned.json")
    tuned = ("--prompts", "tuned.json")
    for name, prompts in (("shipped.yaml", ()), ("tuned.yaml", tuned)):
        assert calibrate(photos, *asked, *prompts, "--out", name) == 0
        Path(f"with_{name}").write_text(yaml.safe_dump({**only_score, "fusion": name}))

    def reported(*command: str) -> tuple[int, str]:
        capsys.readouterr()
        return main(["assess", photo, *command]), capsys.readouterr().err

    same = ["--config", "with_shipped.yaml"], [*asked, "--fusion", "shipped.yaml"]
    for command in (*same, ["--config", "with_tuned.yaml", *tuned]):
        status, usual = reported(*command)
        assert (status, "fitted with" in usual) == (0, False)
    status, refused = reported("--config", "with_tuned.yaml")
    assert (status, "fitted with another tuned scoring prompt" in refused) == (2, True)
    other_release = replace(RATINGS["level"], signature=ScoreQuality.with_instructions("Rate the image."))
    monkeypatch.setitem(RATINGS, "level", other_release)  # type: ignore[arg-type]
    for command in (*same, [*same[0], *tuned]):
        status, warned = reported(*command)
        assert (status, warned.count("shipped.yaml: fitted with another scoring prompt")) == (0, 1)


def test_a_finished_run_is_fitted_without_a_model_and_its_scores_change_without_one(
    photos: Path, server: Server, tmp_path: Path
) -> None:
    config, scores = rating_configuration(tmp_path, server.url), tmp_path / "scores.jsonl"
    assert main(["assess", str(photos), "--config", str(config), "--jsonl", str(scores)]) == 0
    requests_before = len(server.requests)
    assert calibrate(scores, "--out", tmp_path / "a.yaml") == 0
    assert len(server.requests) == requests_before
    assert calibrate("--config", config, photos, "--out", tmp_path / "b.yaml") == 0
    a, b = (read_fusion_profile(tmp_path / name) for name in ("a.yaml", "b.yaml"))
    assert numbers_of(a) == numbers_of(b)
    before = {row["image"]: row["quality_score"] for row in json_lines(scores)}
    used, asked = rating_configuration(tmp_path, server.url, fusion="a.yaml"), len(server.requests)
    assert main(["assess", str(photos), "--config", str(used), "--jsonl", str(scores), "--resume"]) == 0
    assert len(server.requests) == asked, "the answers of the model come from the cache"
    after = {row["image"]: row["quality_score"] for row in json_lines(scores)}  # the last row of each image
    assert after.keys() == before.keys()
    assert after != before


def test_mos_are_read_from_labels_and_from_rows_of_evaluate(
    labels: Path, photos: Path, server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, run = rating_configuration(tmp_path, server.url), tmp_path / "run"
    assert calibrate("--config", config, labels, "--out", tmp_path / "a.yaml") == 0
    assert "MOS 0..100 are mapped to 1..5" in capsys.readouterr().err
    evaluate = ["evaluate", str(labels), "--config", str(config), "--out", str(run)]
    assert main(evaluate) == 0
    results = run / "results.jsonl"
    assert calibrate(results, "--out", tmp_path / "b.yaml") == 0
    assert calibrate(results, "--no-labels", "--out", tmp_path / "c.yaml") == 0
    assert main(["assess", str(photos), "--config", str(config), "--jsonl", str(tmp_path / "s.jsonl")]) == 0
    assert calibrate(tmp_path / "s.jsonl", labels, "--out", tmp_path / "d.yaml") == 0
    a, b, c, d = (read_fusion_profile(tmp_path / f"{name}.yaml") for name in "abcd")
    assert numbers_of(a) == numbers_of(b) == numbers_of(d)
    assert (a.labels, c.labels) == (14, 0)
    assert a.reliability["labels"] > 0.9 > c.reliability["model"]


def test_ctrl_c_and_a_limit_lose_nothing(
    photos: Path, server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config, out = rating_configuration(tmp_path, server.url), tmp_path / "profile.yaml"
    command = ("--config", config, photos, "--out", out, "--no-cache")
    assert calibrate(*command, "--max-calls", 10, "--workers", 1) == 1, "2 for each of 5 images"
    assert "9 images were not rated; run the same command again to continue" in capsys.readouterr().err
    assert calibrate(*command, "--max-usd", 0) == 1
    assert not out.exists()
    append = Appending.write

    def interrupted(*given: Any) -> None:
        append(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Appending, "write", interrupted)
        assert calibrate(*command, "--workers", 1) == 130
    assert "run the same command again to continue from the results in" in capsys.readouterr().err
    kept = len(json_lines(tmp_path / "profile.rows.jsonl"))
    assert 6 <= kept < IMAGES
    before = len(server.of("assessment"))
    assert calibrate(*command) == 0
    printed = capsys.readouterr()
    assert f"{IMAGES - kept} questions about {IMAGES - kept} images" in printed.out, "the cost of the remaining images"
    assert f"{kept} of {IMAGES} were already rated" in printed.err
    assert len(server.of("assessment")) - before == IMAGES - kept
