"""Embedded metrics as baselines: their choice, their rows in the table, and no repeated measurements."""

import json
from pathlib import Path
from typing import Any

import pytest

from agenticiqa.eval import report
from agenticiqa.eval.cli import main
from agenticiqa.eval.commands.baselines import baseline_tools, not_measured, price_text
from agenticiqa.eval.datasets import LabeledImage
from agenticiqa.programs.batch.results_file import ResultsFile
from agenticiqa.programs.tools import toolbox

LABELS = [LabeledImage.of("a.png", 3.0), LabeledImage.of("b.png", 4.0)]
REFERENCED = [LabeledImage.of("a.png", 3.0, reference="r.png")]


def names(labels: list[LabeledImage], *besides: str) -> set[str]:
    return {tool.name for tool in baseline_tools(labels, toolbox(), besides)}


def test_baselines_are_metrics_of_overall_quality_without_the_scorer_itself() -> None:
    assert names(LABELS) == {"LEARNED-IQA", "NIQE", "BRISQUE", "PIQE"}
    assert names(LABELS, "niqe") == {"LEARNED-IQA", "BRISQUE", "PIQE"}
    assert names(LABELS, "pyiqa:niqe") == names(LABELS)
    assert {"SSIM", "FR-FUSION", "PSNR", "NIQE"} < names(REFERENCED)


def row_of(number: int, called: float, baselines: dict[str, float]) -> dict[str, Any]:
    call = {"tool": "NIQE", "region": "Global", "distortion": "Overall", "calibrated": called, "error": None}
    return {
        "name": f"{number}.png",
        "content": f"{number}.png",
        "mos": float(number),
        "quality_score": 3.0 + (number % 3) / 10,
        "executor_evidence": {"tool_log": [call] if number < 3 else []},
        "baselines": baselines,
    }


def test_a_baseline_replaces_values_of_chosen_images_and_may_be_the_best_tool() -> None:
    rows = [row_of(n, 5.0 - n / 4, {"NIQE": 1 + n / 4, "PIQE": 3.0 + (n % 2)}) for n in range(12)]
    systems = {each["name"]: each for each in report.summarize(rows)["systems"]}
    assert (systems["NIQE"]["n"], systems["NIQE"]["partial"]) == (12, False)
    assert systems["NIQE"]["srcc"]["value"] == pytest.approx(1.0)
    assert systems["best single tool"]["about"] == "NIQE 12"
    without = report.summarize([{**row, "baselines": {}} for row in rows])["systems"]
    assert {each["name"]: each["n"] for each in without}["NIQE"] == 3


def test_metrics_measured_on_every_image_are_not_measured_again() -> None:
    tools = baseline_tools(LABELS, toolbox(), [])
    everywhere = [row_of(n, 3.0, {}) for n in range(3)]
    assert "NIQE" not in {tool.name for tool in not_measured(tools, everywhere)}
    assert not_measured(tools, [row_of(n, 3.0, {}) for n in range(4)]) == tools
    assert price_text(tools, LABELS, 2) == "baselines: up to 4 metrics on 2 images, about 1 min (2 in parallel)"


@pytest.mark.slow
def test_baselines_are_saved_and_resumed_and_need_the_option(
    make_labels: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    labels, run = make_labels(), tmp_path / "run"
    command = ["evaluate", str(labels), "--out", str(run)]
    assert main([*command, "--dry-run", "--baselines"]) == 0
    assert "baselines: up to 4 metrics on 6 images" in capsys.readouterr().err
    assert not run.exists()
    assert main(command) == 0
    assert not list(run.glob("baseline-*"))
    assert main([*command, "--baselines"]) == 0
    found = json.loads((run / "report.json").read_text())
    baselines = {"NIQE", "BRISQUE", "PIQE"}
    assert set(found["baselines"]) == baselines
    counts = {each["name"]: each["n"] for each in found["systems"]}
    assert (counts["BRISQUE"], counts["PIQE"], "NIQE" in counts) == (6, 6, False), (
        "NIQE cannot measure images of 64 x 80"
    )
    assert {path.name for path in run.glob("baseline-*")} == {f"baseline-{name}" for name in baselines}
    report = (run / "report.md").read_text()
    assert "Baselines, measured on all images: " in report
    assert "The raw values are in the runs baseline-NAME" in report
    (run / "baseline-PIQE" / "results.jsonl").unlink()  # as if it had been interrupted before this metric
    appended: list[str] = []
    append = ResultsFile.append
    monkeypatch.setattr(ResultsFile, "append", lambda self, row: appended.append(row["scorer"]) or append(self, row))
    assert main([*command, "--baselines"]) == 0
    assert [name for name in appended if name != "NIQE"] == ["PIQE"] * 6
    assert json.loads((run / "report.json").read_text())["systems"] == found["systems"]
    for name in baselines - {"NIQE"}:
        baseline = json.loads((run / f"baseline-{name}" / "report.json").read_text())
        assert (baseline["systems"][0]["name"], baseline["backend"], baseline["scored"]) == (name, name, 6)
        assert baseline["command"] == found["command"]
    capsys.readouterr()
    assert main(["report", str(run), str(run / "baseline-PIQE")]) == 0
    assert "run/baseline-PIQE: data/labels.csv, PIQE, " in capsys.readouterr().out
