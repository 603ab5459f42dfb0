"""``assess folder/ --fuse auto``: a fusion is fitted to a folder, and the result is reproducible."""

import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agenticiqa.programs import AgenticIQA, assess_many, load_config
from agenticiqa.programs.batch.fit_fusion import fit_auto, fit_rows, fuse_row
from agenticiqa.programs.batch.fit_inputs import rows_with_fit_inputs
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.cli import outputs
from agenticiqa.programs.cli.main import main
from agenticiqa.programs.fusion.formula import ScoreFusion
from agenticiqa.programs.fusion.interval import fused_score
from agenticiqa.programs.fusion.profile import read_fusion_profile
from agenticiqa.signatures.types import ExecutorOutput
from support.fake_server import Server, fake_server
from support.rated_album import Rater, make_album, rating_configuration

IMAGES = 52


@pytest.fixture(scope="module")
def album(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """52 photos, and beside them their qualities."""
    folder = tmp_path_factory.mktemp("auto") / "album"
    qualities = make_album(folder, IMAGES)
    (folder.parent / "qualities.json").write_text(json.dumps(qualities))
    return folder


@pytest.fixture
def server(album: Path) -> Iterator[Server]:
    """A model that rates these photos."""
    with fake_server(Rater(album, json.loads((album.parent / "qualities.json").read_text()))) as running:
        yield running


def rows_of(file: Path) -> dict[str, dict[str, Any]]:
    """The rows by the name of their image; every image once."""
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    by_name = {Path(row["image"]).name: row for row in rows}
    assert len(by_name) == len(rows)
    return by_name


def scores_of(file: Path) -> dict[str, tuple[Any, ...]]:
    """All that a fit determines, to the last digit."""
    keys = ("score_default", "score_fitted", "shown", "profile")
    return {
        name: (row["quality_score"], row["quality_reasoning"], *(row["fusion"][key] for key in keys))
        for name, row in rows_of(file).items()
    }


@pytest.mark.slow
def test_the_same_folder_gives_the_same_digits_after_workers_order_limits_and_ctrl_c(
    album: Path, server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = rating_configuration(tmp_path, server.url)
    options = ["--config", str(config), "--fuse", "auto"]
    whole = tmp_path / "whole.jsonl"
    assert main(["assess", str(album), *options, "--jsonl", str(whole), "--workers", "1"]) == 0
    said = capsys.readouterr().err
    assert f"fusion: a fusion profile for vllm.test and LEARNED-IQA was fitted to {IMAGES} images" in said
    assert "the fitted score is shown; the profile was written to" in said
    before = scores_of(whole)
    assert {row[4] for row in before.values()} == {"fitted"}
    assert len({row[5] for row in before.values()}) == 1, "one profile"

    one = rows_of(whole)["photo003.png"]
    fusion = one["fusion"]
    assert one["quality_score"] == one["final_answer"] == one["summarizer_result"]["quality_score"]
    assert one["quality_score"] == fusion["score_fitted"] != fusion["score_default"]
    assert f"Score {one['quality_score']:.2f}" in one["quality_reasoning"]
    assert f"Score {fusion['score_default']:.2f}" not in one["quality_reasoning"]
    profile = read_fusion_profile(f"{whole}.fusion.yaml")
    summary = json.loads(Path(f"{whole}.summary.json").read_text())
    assert summary["fusion"] == {"images": IMAGES, "profile": fusion["profile"], "file": "whole.jsonl.fusion.yaml"}
    assert (profile.images, profile.backend, profile.toolset) == (IMAGES, "vllm.test", ("LEARNED-IQA",))
    p = {int(level): share for level, share in one["quality_probs"].items()}
    evidence = ExecutorOutput.model_validate(one["executor_evidence"])
    assert one["quality_score"] == fused_score(ScoreFusion(profile=profile), evidence, p, "quality_probs").score

    parts, names = tmp_path / "parts.jsonl", [str(path) for path in album.iterdir()]
    random.Random(7).shuffle(names)
    in_parts = ["assess", *names, *options, "--jsonl", str(parts)]
    assert main([*in_parts, "--max-calls", "40", "--workers", "1", "--no-cache"]) == 1
    assert "nothing was fitted, because 32 images were not assessed" in capsys.readouterr().err
    kept, append = [], outputs.Appending.__call__

    def interrupted(self: outputs.Appending, job: Job, row: dict[str, Any]) -> None:
        append(self, job, row)
        kept.append(row)
        if len(kept) == 10:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(outputs.Appending, "__call__", interrupted)
        assert main([*in_parts, "--resume", "--workers", "3"]) == 130
    assert len(kept) < 32
    assert all("score_fitted" not in row["fusion"] for row in rows_of(parts).values())
    assert main([*in_parts, "--resume", "--workers", "4"]) == 0
    assert scores_of(parts) == before
    content, asked = parts.read_bytes(), len(server.requests)
    assert main([*in_parts, "--resume"]) == 0
    assert (parts.read_bytes(), len(server.requests)) == (content, asked), "nothing is left to do"

    without = [each for each in in_parts if each not in ("--fuse", "auto")]
    capsys.readouterr()
    assert main([*without, "--resume"]) == 0
    assert f"{IMAGES} rows were changed back to the default score" in capsys.readouterr().err
    assert len(server.requests) == asked
    shown = rows_of(parts)
    assert all(row["quality_score"] == row["fusion"]["score_default"] for row in shown.values())
    assert {row["fusion"]["shown"] for row in shown.values()} == {"default"}
    plain = tmp_path / "plain.jsonl"
    assert main([*without[:-1], str(plain)]) == 0
    for name, row in rows_of(plain).items():
        for key in ("quality_score", "quality_reasoning", "quality_level", "summarizer_result", "run_fingerprint"):
            assert row[key] == shown[name][key]
    assert main([*in_parts, "--resume"]) == 0
    assert scores_of(parts) == before


def test_fewer_than_fifty_images_are_reported_and_keep_the_default_scores(
    album: Path, server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few, out = tmp_path / "few", tmp_path / "few.jsonl"
    few.mkdir()
    for path in sorted(album.iterdir())[:12]:
        shutil.copy(path, few)
    config = str(rating_configuration(tmp_path, server.url))
    assert main(["assess", str(few), "--config", config, "--fuse", "auto", "--jsonl", str(out)]) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("fusion:")]
    assert said == [
        "fusion: no profile was fitted, so the default score is shown: vllm.test rated 12 images, but a fit needs 50"
    ]
    assert {(row["fusion"]["shown"], row["fusion"]["score_fitted"]) for row in rows_of(out).values()} == {
        ("default", None)
    }
    assert not Path(f"{out}.fusion.yaml").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--fuse", "auto"], "--fuse auto saves its scores at the end of the run"),
        (["--fuse", "auto", "--jsonl", "-"], "add --jsonl FILE"),
        (["--fuse", "auto", "--jsonl", "x.jsonl", "--save-maps", "maps"], "after --save-maps has drawn them"),
    ],
)
def test_options_that_need_final_scores_are_refused(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["assess", "examples/chelsea_noise.png", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_offline_and_with_a_profile_nothing_is_fitted(
    album: Path, server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    photo, out = str(album / "photo000.png"), tmp_path / "scores.jsonl"
    assert main(["assess", photo, "--fuse", "auto", "--jsonl", str(out)]) == 0
    assert "fusion: nothing to fit, because no model gives a score" in capsys.readouterr().err
    (tmp_path / "mine.yaml").write_text("backend: vllm.test\nmodel_error: 0.6\ntool_error: 0.5\n")
    config = str(rating_configuration(tmp_path, server.url, fusion="mine.yaml"))
    asked = ["assess", photo, "--fuse", "auto", "--config", config, "--jsonl", str(tmp_path / "b.jsonl")]
    assert main(asked) == 0
    assert (
        "fusion: nothing was fitted, because the configuration names a profile, which is used"
        in capsys.readouterr().err
    )


@pytest.mark.slow
def test_in_python_rows_are_fused_as_on_the_command_line(album: Path, server: Server, tmp_path: Path) -> None:
    config, out = rating_configuration(tmp_path, server.url), tmp_path / "scores.jsonl"
    assert main(["assess", str(album), "--config", str(config), "--fuse", "auto", "--jsonl", str(out)]) == 0
    program = AgenticIQA.from_config(load_config(config))
    paths = sorted(map(str, album.iterdir()), reverse=True)
    rows: list[Any] = [row for _, row in assess_many(program, paths, 3, rows_with_fit_inputs(program))]
    fit, _ = fit_auto(rows)
    fused = [fuse_row(row, fit, program.summarizer.fusion) for row in rows]
    assert fit is not None
    assert fit.profile == read_fusion_profile(f"{out}.fusion.yaml")
    expected = {name: row["quality_score"] for name, row in rows_of(out).items()}
    assert {Path(row["image"]).name: row["quality_score"] for row in fused} == expected
    other = [{**row, "fusion": {**row["fusion"], "prompts": "other"}} for row in rows[:9]]
    mixed, message = fit_auto([*rows[9:], *other], fewest=40)
    assert "(not used: 9 with a different model, prompts or tools than most rows)" in message
    shown = [fuse_row(row, mixed, program.summarizer.fusion)["fusion"]["shown"] for row in [*rows[9:], *other]]
    assert shown == ["fitted"] * (IMAGES - 9) + ["default"] * 9
    assert fit_rows(rows, dict.fromkeys((row["image_sha256"] for row in rows[:5]), 3.0)).profile.images == IMAGES
