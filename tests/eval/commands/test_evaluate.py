"""``agenticiqa evaluate``: every image is assessed once, no result is lost, and runs are not mixed."""

import csv
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dspy
import pytest
from PIL import Image

from agenticiqa.eval.cli import main
from agenticiqa.eval.labels.own_data import read_labels
from agenticiqa.eval.optimize.measurements import with_instructions
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.batch.results_file import ResultsFile
from agenticiqa.programs.cli.status import UNSCORED
from agenticiqa.programs.tools import training_images
from support.fake_server import bad_json, bad_key, by_stage, fake_server, server_error
from support.files import report_of, rows_of
from support.loopback import Body, Reply
from support.scripted_answers import ASSESSMENT, RATED
from support.simulated_tuning import PHRASE, SCORER, model_at, simulated_models
from support.training_digests import write_digests

MakeLabels = Callable[..., Path]
EVALUATE = ("evaluate", "--workers", "1")  # one worker runs in this process, so tests can patch it


@contextmanager
def assessed_images(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Count how often each image is assessed."""
    assessed: Counter[str] = Counter()
    forward = AgenticIQA.forward

    def counted(self: AgenticIQA, image: Path, *args: Any, **kwargs: Any) -> dspy.Prediction:
        assessed[Path(image).name] += 1
        return forward(self, image, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(AgenticIQA, "forward", counted)
        yield assessed


@contextmanager
def interruption_after(rows: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Simulate Ctrl-C after this number of rows."""
    append = ResultsFile.append
    written = []

    def interrupted(self: ResultsFile, row: dict[str, Any]) -> None:
        append(self, row)
        written.append(row)
        if len(written) == rows:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ResultsFile, "append", interrupted)
        yield


def test_every_image_is_assessed_offline_and_the_agreement_is_reported(
    make_labels: MakeLabels, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels, run = make_labels(references=True), tmp_path / "run"
    assert main([*EVALUATE, str(labels), "--out", str(run)]) == 0
    rows = rows_of(run)
    assert sorted(row["name"] for row in rows) == sorted(f"scene{n}_{level}.png" for n in (0, 1) for level in (0, 2, 4))
    assert all(1 <= row["quality_score"] <= 5 and row["backend"] == "offline" for row in rows)
    assert {row["content"] for row in rows} == {"scene0.png", "scene1.png"}
    report = report_of(run)
    assert (report["images"], report["scored"], report["contents"]) == (6, 6, 2)
    ours = report["systems"][0]
    assert ours["srcc"]["value"] > 0.5
    assert ours["srcc"]["low"] is None
    assert ours["srcc"]["note"] == "too few scenes for an interval (2, at least 4)"
    out = capsys.readouterr().out
    assert "6 of 6 images scored, 0 unscored" in out
    assert "- tools only: the weighted mean of the tool scores, to show" in out, "each row is explained"
    assert f"more notes are in {run / 'report.md'}." in out
    assert "the best single tool on these same images" in (run / "report.md").read_text()


@pytest.mark.parametrize(
    ("blocked", "message"),
    [
        ("run", "--out needs a folder, but this is a file"),
        ("run/report.md/", "--out needs a file, but this is a folder"),
        ("run/report.json/", "--out needs a file, but this is a folder"),
        ("run/results.jsonl/", "--out needs a file, but this is a folder"),
        ("run/combined.json/", "--out needs a file, but this is a folder"),
        ("run/data-more", "cannot be written there"),
        ("run/data-more/results.jsonl", "there are results but no run.json"),
        ("runs", "cannot be written there"),
    ],
)
def test_outputs_are_checked_before_the_first_image(
    blocked: str,
    message: str,
    make_labels: MakeLabels,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    tasks = [make_labels()]
    if "more" in blocked or "combined" in blocked:
        tasks.append(shutil.copy(tasks[0], tasks[0].with_name("more.csv")))
    if blocked.endswith("/"):
        Path(blocked).mkdir(parents=True)
    else:
        Path(blocked).parent.mkdir(parents=True, exist_ok=True)
        Path(blocked).write_text("{}")
    out = [] if blocked == "runs" else ["--out", "run"]
    with assessed_images(monkeypatch) as assessed:
        assert main([*EVALUATE, *map(str, tasks), *out]) == 2
    assert not assessed
    assert message in capsys.readouterr().err


def test_training_images_are_recognized_in_another_format(
    make_labels: MakeLabels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """LEARNED-IQA is marked as trained on scene0, and the files of scene0 are then saved as BMP."""
    labels = make_labels()
    trained = tmp_path / "clive"
    shutil.copytree(labels.parent, trained)
    rows = (trained / "labels.csv").read_text().splitlines()
    (trained / "labels.csv").write_text("\n".join(line for line in rows if not line.startswith("scene1")))
    digests = write_digests(tmp_path / "digests.csv", trained / "labels.csv")
    for image in labels.parent.glob("scene0_*.png"):
        with Image.open(image) as pixels:
            pixels.save(image, "BMP")
    monkeypatch.setattr(training_images, "FILE", digests)
    assert main([*EVALUATE, str(labels), "--out", str(tmp_path / "run")]) == 0
    out = capsys.readouterr().out
    systems = {each["name"]: each for each in report_of(tmp_path / "run")["systems"]}
    assert systems["LEARNED-IQA"]["fitted_on"]["model"] == systems["AgenticIQA"]["fitted_on"]["model"] == 3
    assert "Not held out: AgenticIQA, offline rules only, tools only" in out
    assert "model 3" in (tmp_path / "run" / "report.md").read_text()


@pytest.mark.parametrize("name", ["live_r2", "clive", "biq2021", "avt_ai"])
def test_training_images_of_shipped_tools_are_recognized(shared_data: Path, name: str) -> None:
    items = read_labels(shared_data / name / "labels.csv")[::40]
    found = {part for item in items for part in training_images.parts_of(item.image)}
    assert all(training_images.parts_of(item.image) for item in items)
    assert {part.set for part in found} - {"biq2021_train"} == {name}


def test_an_interrupted_run_loses_nothing_and_repeats_nothing(
    make_labels: MakeLabels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    command = [*EVALUATE, str(make_labels()), "--out", str(run), "--workers", "2"]
    with interruption_after(3, monkeypatch):
        assert main(command) == 130
    assert "to continue from the results" in capsys.readouterr().err
    kept = rows_of(run)
    assert len(kept) == 3
    with assessed_images(monkeypatch) as assessed:
        assert main(command) == 0
    names = [row["name"] for row in rows_of(run)]
    assert rows_of(run)[:3] == kept
    assert sorted(names) == sorted({*names})
    assert assessed == dict.fromkeys(names[3:], 1)
    assert len(names) == 6


@pytest.mark.slow
def test_a_finished_run_repeats_only_an_incomplete_last_line(
    make_labels: MakeLabels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    command = [*EVALUATE, str(make_labels()), "--out", str(run)]
    assert main(command) == 0
    before, report = rows_of(run), (run / "report.json").read_text()
    with assessed_images(monkeypatch) as assessed:
        assert main(command) == 0
    assert not assessed
    assert (run / "report.json").read_text() == report
    (run / "results.jsonl").write_bytes((run / "results.jsonl").read_bytes()[:-40])
    with assessed_images(monkeypatch) as assessed:
        assert main(command) == 0
    assert list(assessed) == [before[-1]["name"]]
    assert [row["quality_score"] for row in rows_of(run)] == [row["quality_score"] for row in before]


def test_a_second_run_in_the_same_folder_is_refused_while_the_first_one_writes(
    make_labels: MakeLabels, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    with ResultsFile(run / "results.jsonl"):
        assert main([*EVALUATE, str(make_labels()), "--out", str(run)]) == 2
    assert "is writing to it" in capsys.readouterr().err
    assert not rows_of(run)
    assert not (run / "run.json").exists(), "the running command writes its own description"


@pytest.mark.slow
def test_a_limited_run_continues_without_the_limit_and_keeps_larger_reports(
    make_labels: MakeLabels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    command = [*EVALUATE, str(make_labels()), "--out", str(run)]
    for limit in (2, 3):
        assert main([*command, "--limit", str(limit)]) == 0
        assert report_of(run)["images"] == limit
    with assessed_images(monkeypatch) as assessed:
        assert main(command) == 0
    assert len(assessed) == 3
    on_all = {name: (run / name).read_bytes() for name in ("report.json", "report.md")}
    assert main([*command, "--limit", "2"]) == 0
    assert {name: (run / name).read_bytes() for name in on_all} == on_all
    assert json.loads((run / "report-first-2.json").read_text())["images"] == 2
    assert (run / "report-first-2.md").exists()
    assert "report-first-2.json" in capsys.readouterr().out
    assert main([*command, "--limit", "1000"]) == 0
    assert not (run / "report-first-1000.json").exists(), "the limit includes all rows"
    (run / "report.json").write_text("[]")
    assert main([*command, "--limit", "2"]) == 0
    assert report_of(run)["limit"] == 2


def test_a_broken_image_is_unscored_and_retried_after_it_is_repaired(
    make_labels: MakeLabels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    labels, run = make_labels(scenes=1), tmp_path / "run"
    image = labels.parent / "scene0_2.png"
    whole = image.read_bytes()
    image.write_bytes(whole[: len(whole) // 2])
    command = [*EVALUATE, str(labels), "--out", str(run)]
    assert main(command) == 1
    (row,) = [row for row in rows_of(run) if "error" in row]
    assert row["name"] == "scene0_2.png"
    assert row["error"].startswith(f"ImageError: {image}: ")
    assert row["error"].count("scene0_2.png") == 1
    assert "quality_score" not in row
    assert "2 of 3 images scored, 1 unscored (ImageError 1)" in capsys.readouterr().out
    image.write_bytes(whole)
    with assessed_images(monkeypatch) as assessed:
        assert main(command) == 0
    assert list(assessed) == ["scene0_2.png"]


@pytest.mark.parametrize(("fault", "most"), [(server_error(), 10), (bad_key(), 3)], ids=["down", "refused"])
def test_an_unreachable_model_ends_the_run_without_scores(
    make_labels: MakeLabels, tmp_path: Path, fault: Reply, most: int, capsys: pytest.CaptureFixture[str]
) -> None:
    config, run = tmp_path / "remote.yaml", tmp_path / "run"
    with fake_server(fault) as server:
        config.write_text(f"summarizer: {{backend: vllm.down, api_base: '{server.url}', max_retries: 0}}\n")
        labels = make_labels(scenes=6)
        assert main([*EVALUATE, str(labels), "--out", str(run), "--config", str(config)]) == 1
    assert "to continue from the results" in capsys.readouterr().err
    rows = rows_of(run)
    assert 0 < len(rows) <= most < 18
    assert all(row["error"].startswith("LM") and "quality_score" not in row for row in rows)
    assert not (run / "report.json").exists()


def test_an_outage_loses_nothing_and_the_same_command_continues(
    make_labels: MakeLabels, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, run, labels = tmp_path / "remote.yaml", tmp_path / "run", make_labels(scenes=6)
    answers = by_stage({"assessment": RATED})
    broken, answered = False, 0

    def four_times(request: Body) -> Reply | str:
        nonlocal broken, answered
        if broken:
            return server_error()
        answered += 1
        broken = answered == 4
        return answers(request)

    with fake_server(four_times) as server:
        config.write_text(f"summarizer: {{backend: vllm.ill, api_base: '{server.url}', max_retries: 0}}\n")
        command = [*EVALUATE, str(labels), "--out", str(run), "--config", str(config)]
        assert main(command) == 1
        assert "to continue from the results" in capsys.readouterr().err
        kept = rows_of(run)
        assert [("quality_score" in row) for row in kept] == [True] * 4 + [False] * 7
        assert not (run / "report.json").exists()
        requests_before, broken = len(server.requests), False
        assert main(command) == 0
        assert len(server.requests) == requests_before + 14
    assert "4 of 18 were already assessed" in capsys.readouterr().err
    assert rows_of(run)[: len(kept)] == kept
    assert report_of(run)["scored"] == 18


def test_images_without_a_usable_answer_are_unscored_and_retried(
    make_labels: MakeLabels, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, run, labels = tmp_path / "remote.yaml", tmp_path / "run", make_labels(scenes=1)
    answers = by_stage({"assessment": [*[bad_json()] * 3, ASSESSMENT]})
    with fake_server(answers) as server:
        config.write_text(f"summarizer: {{backend: vllm.ill, api_base: '{server.url}'}}\n")
        command = [*EVALUATE, str(labels), "--out", str(run), "--config", str(config)]
        assert main(command) == UNSCORED
        shown = "1 of 3 images have no score or answer, because the model gave no usable answer; "
        shown += "run the same command to assess them again\n"
        assert shown in capsys.readouterr().err
        assert report_of(run)["unscored"] == 1
        assert main(command) == 0
        assert len(server.requests) == 3 + 2 + 1
    assert "2 of 3 were already assessed" in capsys.readouterr().err
    assert report_of(run)["scored"] == 3
    assert [row["quality_score"] is None for row in rows_of(run)] == [True, False, False, False]


def test_scores_from_incomplete_answers_are_counted_and_excluded_if_strict(
    make_labels: MakeLabels, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, labels = tmp_path / "remote.yaml", make_labels(scenes=1)
    level_alone = {"quality_level": "Poor", "quality_reasoning": "Soft edges."}  # without log-probabilities
    with fake_server(by_stage({"assessment": [*[level_alone] * 4, RATED]})) as server:
        config.write_text(f"summarizer: {{backend: vllm.ill, api_base: '{server.url}'}}\n")
        command = [*EVALUATE, str(labels), "--config", str(config), "--out"]
        assert main([*command, str(tmp_path / "run")]) == 0
    shown = capsys.readouterr()
    assert "1 score from incomplete answers of the model; a run with --strict" in shown.err
    assert "Scores from incomplete answers of the model: 1" in (tmp_path / "run" / "report.md").read_text()
    counted = report_of(tmp_path / "run")
    assert (counted["scored"], counted["unscored"], counted["incomplete"]) == (3, 0, 1)
    with fake_server(by_stage({"assessment": [*[level_alone] * 4, RATED]})) as server:
        config.write_text(f"summarizer: {{backend: vllm.ill, api_base: '{server.url}'}}\n")
        assert main([*command, str(tmp_path / "strict"), "--strict"]) == UNSCORED
    counted = report_of(tmp_path / "strict")
    assert (counted["scored"], counted["unscored"], counted["incomplete"]) == (2, 1, 0)
    assert counted["systems"][0]["n"] == 2


@pytest.mark.slow
def test_compare_names_the_tuned_prompts_of_a_run(
    make_labels: MakeLabels, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = make_labels(scenes=3, levels=(0, 2, 4))
    with simulated_models(labels) as server:
        config = {"summarizer": {"backend": model_at(server), "api_base": server.url}}
        (tmp_path / "config.yaml").write_text(json.dumps(config))  # JSON is YAML
        tuned = with_instructions(AgenticIQA.from_config(config), {SCORER: f"Rate the quality. Always {PHRASE}."})
        tuned.save(tmp_path / "mine.json")
        usual = ["evaluate", str(labels), "--config", str(tmp_path / "config.yaml"), "--out"]
        assert main([*usual, str(tmp_path / "plain")]) == 0
        assert main([*usual, str(tmp_path / "tuned"), "--prompts", str(tmp_path / "mine.json")]) == 0
    capsys.readouterr()
    assert main(["compare", str(tmp_path / "plain"), str(tmp_path / "tuned"), "--csv", "-"]) == 0
    table = capsys.readouterr().out.split("\n\n")[0]
    assessed = {row["run"]: row["assessed by"] for row in csv.DictReader(table.splitlines())}
    made = json.loads((tmp_path / "tuned" / "run.json").read_text())["prompts"]
    assert assessed["tuned"] == f"{assessed['plain']}, prompts {tmp_path.name}/mine.json ({made[:8]})"


def test_a_scorer_takes_the_options_of_a_run_but_not_those_of_the_program(
    make_labels: MakeLabels, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["evaluate", str(make_labels()), "--scorer", "RMS-CONTRAST", "--out", str(tmp_path / "run")]
    assert main([*command, "--workers", "1", "-v", "--no-cache"]) == 0
    capsys.readouterr()
    for option, value in (("--mode", "fast"), ("--max-calls", "1")):
        assert main([*command, option, value]) == 2
        assert f"--scorer replaces the program, so {option} has no effect: remove it" in capsys.readouterr().err
