"""A run's figures from its rows: who is measured on what, and what is counted instead of measured."""

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from agenticiqa.eval import report
from agenticiqa.eval.metrics import plcc, srcc
from agenticiqa.programs.tools import TOOLS
from agenticiqa.programs.tools.calibration import load_profile


def row(number: int, score: float | None, tools: dict[str, float], **changes: Any) -> dict[str, Any]:
    """A judged image; its opinion score is its number."""
    log = [
        {"tool": tool, "region": "Global", "distortion": "Overall", "calibrated": value, "error": None}
        for tool, value in tools.items()
    ]
    return {
        "name": f"{number}.png",
        "content": f"{number}.png",
        "mos": number,
        "quality_score": score,
        "quality_reasoning": "seen" if score is not None else "VLM output parsing failed",
        "probability_source": "measurements" if score is not None else None,
        "executor_evidence": {
            "quality_scores": {"Global": {tool: [tool, value] for tool, value in tools.items()}},
            "tool_log": log,
        },
        "rejected_answers": {},
        "iteration_count": 0,
        "timings_ms": {"planner": 10.0, "executor": 30.0},
        **changes,
    }


def failed(number: int) -> dict[str, Any]:
    name = f"{number}.png"
    return {"name": name, "content": name, "mos": number, "error": "ImageError: broken: damaged or truncated"}


def run_of_eight() -> list[dict[str, Any]]:
    """Eight images: one failed, one unparsed; SSIM follows the labels, NIQE runs against them on three images only."""
    rows = [row(n, 1 + n / 4, {"SSIM": 1 + n / 3, **({"NIQE": 4.5 - n} if n < 3 else {})}) for n in range(6)]
    rows[3]["quality_score"] = 1.0  # our one mistake
    rows[4]["rejected_answers"] = {"scoring": ["no JSON", "no JSON again"]}
    rows[5] |= {"iteration_count": 1, "probability_source": "logprobs"}
    return [*rows, row(6, None, {"SSIM": 3.0}), failed(7)]


def by_name(summary: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {system["name"]: system for system in summary["systems"]}


def test_every_predictor_is_measured_on_the_images_that_it_has_a_value_for() -> None:
    systems = by_name(report.summarize(run_of_eight()))
    assert {name: system["n"] for name, system in systems.items()} == {
        "AgenticIQA": 6,
        "tool mean": 7,
        "best single tool": 7,
        "SSIM": 7,
        "NIQE": 3,
    }
    assert systems["NIQE"]["srcc"]["value"] == pytest.approx(-1)
    ours = [1, 1.25, 1.5, 1, 2, 2.25]
    assert systems["AgenticIQA"]["srcc"]["value"] == pytest.approx(srcc(ours, range(6)))


def test_what_has_no_score_is_counted_by_reason_and_never_filled_in() -> None:
    summary = report.summarize(run_of_eight())
    assert (summary["images"], summary["scored"], summary["unscored"]) == (8, 6, 2)
    assert summary["unscored_reasons"] == {"VLM output parsing failed": 1, "ImageError": 1}


def test_the_tool_mean_is_the_mean_of_the_calibrated_scores() -> None:
    rows = [row(n, 3.0, {"SSIM": 1 + n / 2, "GMSD": 5 - n**2 / 4}) for n in range(4)]
    mean = by_name(report.summarize(rows))["tool mean"]
    assert mean["srcc"]["value"] == pytest.approx(srcc([3 + n / 4 - n**2 / 8 for n in range(4)], range(4)))


def test_the_best_single_tool_has_to_have_measured_half_of_the_images() -> None:
    rows = run_of_eight()
    for number in (0, 1, 2):
        rows[number]["executor_evidence"]["tool_log"][1]["calibrated"] = 1 + number  # NIQE perfect, on 3 of 8
        rows[number]["executor_evidence"]["tool_log"][0]["calibrated"] = 3.0 - number / 10
    summary = report.summarize(rows)
    systems = by_name(summary)
    assert systems["NIQE"]["srcc"]["value"] == pytest.approx(1)
    assert systems["SSIM"]["srcc"]["value"] < 1
    assert summary["best_tool"] == "SSIM"
    assert any("SSIM" in line and "on these very images" in line for line in report.sentences(summary))


def test_a_tool_that_measured_several_regions_has_their_mean() -> None:
    rows = [row(n, 3.0, {"SSIM": 1 + n / 2}) for n in range(4)]
    for number, other in enumerate((5.0, 1.0, 1.0, 1.0)):
        rows[number]["executor_evidence"]["tool_log"].append(
            {"tool": "SSIM", "region": "sky", "distortion": "Noise", "calibrated": other, "error": None}
        )
    means = [(1 + n / 2 + other) / 2 for n, other in enumerate((5.0, 1.0, 1.0, 1.0))]
    assert by_name(report.summarize(rows))["SSIM"]["plcc"]["value"] == pytest.approx(plcc(means, range(4)))


def test_every_system_has_an_interval() -> None:
    rows = [row(n, 1 + n / 4, {"SSIM": 1 + (n ^ 1) / 3, "NIQE": 4 - n % 3}) for n in range(9)]
    summary = report.summarize(rows)
    assert summary["best_tool"] == "SSIM"
    systems = by_name(summary)
    assert list(systems) == ["AgenticIQA", "tool mean", "best single tool", "SSIM", "NIQE"]
    assert all(system["srcc"]["low"] is not None for name, system in systems.items() if name != "AgenticIQA")
    assert systems["AgenticIQA"]["srcc"]["note"] == "no interval: the agreement is complete"


def test_differences_are_taken_on_shared_images() -> None:
    summary = report.summarize(run_of_eight())
    difference = summary["srcc_differences"]["tool mean"]
    ours, tools = [1, 1.25, 1.5, 1, 2, 2.25], [2.75, 29 / 12, 25 / 12, 2, 7 / 3, 8 / 3]
    assert difference["n"] == 6
    assert difference["value"] == pytest.approx(srcc(ours, range(6)) - srcc(tools, range(6)))


def test_the_conduct_of_the_run_is_counted() -> None:
    summary = report.summarize(run_of_eight())
    assert summary["probability_sources"] == {"measurements": 5, "logprobs": 1}
    assert (summary["images_with_rejected_answers"], summary["rejected_answers"]) == (1, {"scoring": 2})
    assert summary["replanned"] == 1
    assert summary["ms_per_image"] == {"median": 40, "mean": 40}


def test_a_run_in_which_everything_failed_still_reports(tmp_path: Path) -> None:
    summary = named(report.summarize([failed(1), failed(2)]))
    report.write(summary, tmp_path)
    assert "0 of 2 images scored, 2 unscored (ImageError 2)." in report.sentences(summary)
    assert summary["best_tool"] is None
    assert "| AgenticIQA | 0 of 2 | - | - | - | - | - |" in (tmp_path / "report.md").read_text()


def test_equal_scores_have_no_correlation_and_the_report_says_why() -> None:
    summary = report.summarize([row(n, 3.0, {}) for n in range(5)])
    expected = "AgenticIQA: the predictions are all the same (SRCC, KRCC, PLCC raw, PLCC fitted, "
    expected += "PLCC fitted (5), RMSE fitted, RMSE fitted (5))."
    assert expected in report.sentences(summary)


def test_the_table_on_the_terminal_has_the_cells_of_the_markdown_table(tmp_path: Path) -> None:
    summary = named(report.summarize(run_of_eight()))
    report.write(summary, tmp_path)
    console = Console(width=180, record=True, file=io.StringIO())
    for cells in (report.headline(summary), report.further(summary)):
        console.print(report.terminal(cells))
    shown = console.export_text()
    lines = [line for line in (tmp_path / "report.md").read_text().splitlines() if line.startswith("| ")]
    cells = [cell.strip() for line in lines for cell in line.strip("|").split("|") if "---" not in cell]
    assert len(cells) == 6 * (7 + 7)
    assert all(cell in shown for cell in cells)


def test_differences_are_shown_with_their_sign() -> None:
    summary = report.summarize(run_of_eight())
    value = summary["srcc_differences"]["tool mean"]["value"]
    assert value > 0
    expected = f"SRCC of AgenticIQA minus tool mean on the 6 images with both: +{value:.3f} ["
    assert any(sentence.startswith(expected) for sentence in report.sentences(summary))


def test_the_report_is_kept_as_json_and_as_markdown(tmp_path: Path) -> None:
    summary = named(report.summarize(run_of_eight()))
    report.write(summary, tmp_path)
    assert json.loads((tmp_path / "report.json").read_text()) == summary
    text = (tmp_path / "report.md").read_text()
    assert "| AgenticIQA | 6 of 8 |" in text
    assert "| SSIM (best here) | 7 of 8 |" in text


def test_figures_on_images_that_a_tool_was_fitted_on_are_marked_everywhere(tmp_path: Path) -> None:
    """Of six images four were trained on, of which two were in the split that NIQE's curve was fitted on."""
    parts = [[("clive", "train")], [("clive", "train")], [("clive", "dev")], [("clive", "dev")], [], []]
    rows = [
        row(n, 1 + n / 4, {"LEARNED-IQA": 1 + n / 3, "NIQE": 4 - n / 3, "PSNR": 2 + n / 5}, training_parts=parts[n])
        for n in range(6)
    ]
    tools = {name: replace(tool, calibration=load_profile("default").get(name)) for name, tool in TOOLS.items()}
    summary = named(report.summarize(rows, tools))
    counts = {name: system["fitted_on"] for name, system in by_name(summary).items()}
    assert counts["LEARNED-IQA"]["model"] == counts["AgenticIQA"]["model"] == counts["tool mean"]["model"] == 4
    assert counts["NIQE"] == {"model": 0, "curve": 2}
    assert counts["PSNR"] == {"model": 0, "curve": 0}
    report.write(summary, tmp_path)
    text = (tmp_path / "report.md").read_text()
    assert "| NIQE | 6 | curve 2 |" in text
    assert "| PSNR | 6 | - |" in text
    assert "- Not held out: AgenticIQA, tool mean, best single tool, LEARNED-IQA, NIQE." in text
    assert all("(not held out)" in line for line in text.splitlines() if line.startswith("- SRCC of AgenticIQA minus"))
    console = Console(width=180, record=True, file=io.StringIO())
    console.print(report.terminal(report.headline(summary)))
    assert "curve 2" in console.export_text()


def test_a_curve_that_was_not_applied_is_no_mark() -> None:
    """A scorer's raw value has no curve; a model that was trained on the images is marked all the same."""
    tools = {name: replace(tool, calibration=load_profile("default").get(name)) for name, tool in TOOLS.items()}
    for scorer, counts in {"NIQE": {"model": 0, "curve": 0}, "LEARNED-IQA": {"model": 6, "curve": 0}}.items():
        rows = [row(n, 1 + n / 4, {}, scorer=scorer, training_parts=[("clive", "train")]) for n in range(6)]
        first = report.summarize(rows, tools)["systems"][0]
        assert (first["name"], first["fitted_on"]) == (scorer, counts)


def test_a_report_on_new_images_has_no_such_mark() -> None:
    assert not any("held out" in sentence for sentence in report.sentences(report.summarize(run_of_eight())))


def named(summary: dict[str, Any]) -> dict[str, Any]:
    return {**summary, "data": "labels.csv", "split": None, "backend": "offline"}
