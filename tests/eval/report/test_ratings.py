"""A run's figures from its rows: scorers and their images, counts of the others, and the report's notes."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agenticiqa.eval.datasets import MosScale
from agenticiqa.eval.metrics import plcc, srcc
from agenticiqa.eval.report import rating_report, summarize
from agenticiqa.eval.report.columns import ABOUT, PAPER, WITHOUT_PROFILE, columns_of
from agenticiqa.eval.report.model import ROWS
from agenticiqa.eval.report.scorer_columns import chosen_on_other_images, scorer_columns
from agenticiqa.programs.cli import render
from agenticiqa.programs.fusion.formula import ScoreFusion, default_fusion
from agenticiqa.programs.fusion.interval import fused_score
from agenticiqa.programs.tools import TOOLS
from agenticiqa.programs.tools.tool_curves import read_tool_curves
from agenticiqa.signatures.types import ExecutorOutput
from support.profiles import TYPICAL, Halfway

SURE = {"1": 0.0, "2": 0.0, "3": 0.25, "4": 0.5, "5": 0.25}  # what a model thinks that is sure of level 4
CALIBRATED = {name: replace(tool, curve=read_tool_curves("default").get(name)) for name, tool in TOOLS.items()}


def call(tool: str, value: float, region: str = "Global") -> dict[str, Any]:
    return {"tool": tool, "region": region, "distortion": "Overall", "calibrated": value, "error": None, "ms": 1.0}


def row(number: int, score: float | None, tools: dict[str, float], **changes: Any) -> dict[str, Any]:
    """Return the row of an assessed image."""
    return {
        "name": f"{number}.png",
        "content": f"{number}.png",
        "mos": number,
        "quality_score": score,
        "quality_reasoning": "seen" if score is not None else "VLM output parsing failed",
        "probability_source": "measurements" if score is not None else None,
        "executor_evidence": {
            "quality_scores": {"Global": {tool: [tool, value] for tool, value in tools.items()}},
            "tool_log": [call(tool, value) for tool, value in tools.items()],
        },
        "timings_ms": {"planner": 10.0, "executor": 30.0},
        **changes,
    }


def thought(number: int, source: str | None = "logprobs", tool: float = 3.0, **changes: Any) -> dict[str, Any]:
    """A row of a model that is sure of level 4."""
    probabilities = {"quality_probs": SURE if source else None, "probability_source": source}
    return row(number, 3.5, {"SSIM": tool}, **{**probabilities, **changes})


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


OURS_OF_EIGHT = [1, 1.25, 1.5, 1, 2, 2.25]


def systems(rows: list[dict[str, Any]], tools: Any = TOOLS) -> dict[str, dict[str, Any]]:
    return {system["name"]: system for system in summarize(rows, tools)["systems"]}


def sentences(rows: list[dict[str, Any]], tools: Any = TOOLS) -> list[str]:
    return [*rating_report(named(rows, tools)).sentences]


def named(rows: list[dict[str, Any]], tools: Any = TOOLS) -> dict[str, Any]:
    return {**summarize(rows, tools), "data": "labels.csv", "split": None, "backend": "offline"}


def values(rows: list[dict[str, Any]], fusion: ScoreFusion | None = None) -> dict[str, np.ndarray]:
    return {each.name: each.values for each in scorer_columns(columns_of(rows, fusion))}


def test_every_scorer_is_measured_on_images_with_its_values() -> None:
    found = systems(run_of_eight())
    counts = {"AgenticIQA": 6, "tools only": 7, "best single tool": 7, "SSIM": 7, "NIQE": 3}
    assert {name: system["n"] for name, system in found.items()} == counts
    assert found["NIQE"]["srcc"]["value"] == pytest.approx(-1)
    assert found["AgenticIQA"]["srcc"]["value"] == pytest.approx(srcc(OURS_OF_EIGHT, range(6)))
    assert {name: system["partial"] for name, system in found.items() if system["kind"] == "tool"} == {
        "SSIM": False,
        "NIQE": True,  # it ran only where it was chosen
    }


def test_unscored_images_are_counted_by_reason_and_run_counts_are_reported() -> None:
    summary = summarize(run_of_eight())
    assert (summary["images"], summary["scored"], summary["unscored"]) == (8, 6, 2)
    assert summary["unscored_reasons"] == {"VLM output parsing failed": 1, "ImageError": 1}
    assert summary["probability_sources"] == {"measurements": 5, "logprobs": 1}
    assert (summary["images_with_rejected_answers"], summary["rejected_answers"]) == (1, {"scoring": 2})
    assert (summary["replanned"], summary["ms_per_image"]) == (1, {"median": 40, "mean": 40})


def test_the_tool_mean_uses_calibrated_scores_and_a_tools_score_is_the_mean_over_regions() -> None:
    rows = [row(n, 3.0, {"SSIM": 1 + n / 2, "GMSD": 5 - n**2 / 4}) for n in range(4)]
    mean = systems(rows)["tools only"]
    assert mean["srcc"]["value"] == pytest.approx(srcc([3 + n / 4 - n**2 / 8 for n in range(4)], range(4)))
    for each, other in zip(rows, (5.0, 1.0, 1.0, 1.0), strict=True):
        each["executor_evidence"]["tool_log"].append(call("SSIM", other, "sky"))
    means = [(1 + n / 2 + other) / 2 for n, other in enumerate((5.0, 1.0, 1.0, 1.0))]
    assert systems(rows)["SSIM"]["plcc"]["value"] == pytest.approx(plcc(means, range(4)))


@pytest.mark.slow
def test_the_best_single_tool_measured_at_least_half_of_the_images() -> None:
    rows = run_of_eight()
    for number in (0, 1, 2):
        rows[number]["executor_evidence"]["tool_log"] = [call("SSIM", 3.0 - number / 10), call("NIQE", 1 + number)]
    found = systems(rows)
    assert found["NIQE"]["srcc"]["value"] == pytest.approx(1)  # on 3 of 8
    assert found["SSIM"]["srcc"]["value"] < 1
    assert summarize(rows)["best_tool"] == "SSIM"
    assert any("SSIM" in line and "on these same images" in line for line in sentences(rows))


def test_every_system_has_an_interval_or_a_note() -> None:
    found = systems([row(n, 1 + n / 4, {"SSIM": 1 + (n ^ 1) / 3, "NIQE": 4 - n % 3}) for n in range(9)])
    assert list(found) == ["AgenticIQA", "tools only", "best single tool", "SSIM", "NIQE"]
    assert all(found[name]["srcc"]["low"] is not None for name in ("tools only", "SSIM", "NIQE"))
    assert found["AgenticIQA"]["srcc"]["note"] == "no interval: the correlation is perfect"
    assert found["best single tool"]["srcc"]["note"] == "too few scenes to choose a tool (9, at least 10)"


def test_differences_are_taken_on_shared_images_and_shown_with_their_sign() -> None:
    difference = summarize(run_of_eight())["srcc_differences"]["tools only"]
    tools = [2.75, 29 / 12, 25 / 12, 2, 7 / 3, 8 / 3]
    assert difference["value"] == pytest.approx(srcc(OURS_OF_EIGHT, range(6)) - srcc(tools, range(6)))
    assert (difference["n"], difference["value"] > 0) == (6, True)
    table = next(table for table in rating_report(named(run_of_eight())).tables if "other scorer" in table.headings)
    assert table.lines[0][:2] == ["tools only", "6"]
    assert table.lines[0][2].startswith(f"+{difference['value']:.3f} [")
    assert table.records[0]["difference"] == difference["value"], "unrounded"


def test_model_tools_average_and_the_papers_fusion_come_from_the_kept_rows() -> None:
    found = values([thought(0, tool=2.0)])
    paper = ScoreFusion().fuse_scores([2.0], {int(level): p for level, p in SURE.items()})
    made = {"model only": 4.0, "tools only": 2.0, "plain average of tools and model": 3.0, PAPER: paper}
    assert {name: found[name].item() for name in made} == pytest.approx(made)


def test_the_papers_fusion_has_the_plain_mean_of_quality_tools_and_needs_a_model() -> None:
    tools = {"HaarPSI": (2.0, 0.9), "DEEP-SIM": (4.0, 0.1), "BLUR-EXTENT": (5.0, 0.0)}
    log = [
        {
            "region": "Global",
            "ms": 1.0,
            "error": None,
            "tool": tool,
            "distortion": tool,
            "calibrated": score,
            "weight": weight,
        }
        for tool, (score, weight) in tools.items()
    ]
    compared = {**log[0], "tool": "NIQE", "distortion": "Overall", "calibrated": 1.0, "weight": 0.0}
    scores = {"Global": {tool: (tool, score) for tool, (score, _) in tools.items()}}
    evidence = {"quality_scores": scores, "tool_log": [*log, compared]}
    found = values([thought(0, executor_evidence=evidence)])
    assert found["tools only"] == pytest.approx([2.2])
    paper = ScoreFusion().fuse_scores([3.0], {int(level): p for level, p in SURE.items()})
    assert found[PAPER] == pytest.approx([paper])
    assert PAPER not in values([thought(0, "learned", executor_evidence=evidence)])


def test_the_score_without_a_profile_is_reported_beside_that_with_one() -> None:
    evidence = ExecutorOutput(quality_scores={"Global": {"Overall": ("SSIM", 2.0)}})
    probabilities = {int(level): p for level, p in SURE.items()}
    default = fused_score(default_fusion(), evidence, probabilities, "logprobs").score
    rated = thought(0, quality_score=2.5, executor_evidence=evidence.model_dump(), fusion={"model": "m"})
    assert values([rated], ScoreFusion(profile=TYPICAL))[WITHOUT_PROFILE] == pytest.approx([default])
    assert WITHOUT_PROFILE not in values([rated], ScoreFusion()), "it is the score itself"
    half = values([rated], Halfway(profile=TYPICAL))[WITHOUT_PROFILE]
    assert half == pytest.approx([3.0]), "the rule is that of the program: the mean of 2 and 4"


def test_the_program_comes_first_and_each_row_between_it_and_the_tools_is_explained_everywhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [thought(n, tool=1 + n / 4, score_without_model=2.0) for n in range(4)]
    report = rating_report(named([*rows, *(thought(n, "measurements", 1 + n / 4) for n in range(4, 8))]))
    listed = [system["name"] for system in report.figures["systems"] if system["kind"] != "tool"]
    assert listed == ["AgenticIQA", *(name for name in ABOUT if name != WITHOUT_PROFILE), "best single tool"]
    report.write(tmp_path)
    report.show(kept=tmp_path / "report.md")
    for text in (capsys.readouterr().out, (tmp_path / "report.md").read_text()):
        lines = text.splitlines()
        assert all(any(line.startswith(f"- {name}: ") for line in lines) for name in listed[1:])
    assert all(table.lines[0][0] == "AgenticIQA" for table in report.tables if "scorer" in table.headings)


def test_a_report_without_the_fusion_of_the_program_says_what_it_omits() -> None:
    rated = thought(0, fusion={"model": "m"})
    said = "The score without a fusion profile is omitted"
    about = {"data": "labels.csv", "split": None, "backend": "vllm.m"}
    unknown, known = (rating_report(summarize([rated], fusion=one) | about) for one in (None, ScoreFusion()))
    assert [said in " ".join(report.sentences) for report in (unknown, known)] == [True, False]


def test_sources_of_probabilities_are_listed_separately_and_missing_answers_have_none() -> None:
    found = values([thought(0), thought(1, "uniform"), thought(2, None)])
    assert np.isfinite(found["model only"]).tolist() == [True, False, False]
    assert np.isfinite(found["plain average of tools and model"]).tolist() == [True, False, False]
    mixed = values([thought(0), thought(1, "reasoning")])
    assert np.isfinite(mixed["model only"]).tolist() == [True, True]
    assert np.isfinite(mixed["model only, reasoning"]).tolist() == [False, True]
    offline = values([thought(0, "learned")])
    assert "model only" not in offline
    assert offline["offline rules only"] == pytest.approx([4.0])


def test_the_best_tool_is_chosen_on_other_contents() -> None:
    """Of twenty tools of pure noise the best on these images looks useful; the one chosen on others does not."""
    rng = np.random.default_rng(0)
    contents, mos = [f"{number}" for number in range(60)], rng.normal(size=60)
    tools = {f"T{number}": rng.normal(size=60) for number in range(20)}
    chosen = chosen_on_other_images(tools, mos, contents)
    assert chosen is not None
    assert max(srcc(values, mos) for values in tools.values()) > 0.2 > 0.1 > srcc(chosen.values, mos)
    tools["good"] = mos + 0.1 * rng.normal(size=60)
    good = chosen_on_other_images(tools, mos, contents)
    assert good is not None
    assert good.values == pytest.approx(tools["good"])
    assert good.used(3) == {"good"}
    assert chosen_on_other_images({"T": np.arange(5.0)}, np.arange(5.0), ["scene"] * 5) is None


def test_breakdowns_and_the_scores_own_interval() -> None:
    """Opinions of 0 to 7 on a scale of 0 to 100, so all lie near level 1."""
    rows = [
        thought(
            number,
            distortion="blur" if number % 2 else "noise",
            level=1,
            quality_score=None if number == 0 else 1 + number / 4,
            score_interval={"80": [1.0, 1.2], "95": [1.0, 1.3]} if number else None,
        )
        for number in range(8)
    ]
    assert summarize(rows)["scale"] is None, "they fill less than a quarter of 0 to 100"
    summary = summarize(rows, scale=MosScale(0, 100))
    keys = ("group", "images", "n", "unscored")
    blur, noise = summary["breakdowns"]["distortion"]
    assert [[each[key] for key in keys] for each in (blur, noise)] == [["blur", 4, 4, 0], ["noise", 4, 3, 1]]
    assert blur["srcc"]["value"] == pytest.approx(1)
    assert "level" not in summary["breakdowns"]
    assert summary["scale"] == {"low": 0.0, "high": 100.0}
    counts = {share: (each["inside"], each["n"]) for share, each in summary["interval_coverage"].items()}
    assert counts == {"80": (5, 7), "95": (7, 7)}


def test_the_raw_error_is_on_the_labels_scale() -> None:
    rows = [row(number, 1.4 + number % 4, {}, mos=25.0 * (number % 4)) for number in range(8)]
    ours = systems(rows)["AgenticIQA"]
    assert ours["rmse"]["value"] == pytest.approx(10)
    assert ours["rmse_fitted"]["value"] < 2


def test_equal_scores_have_no_correlation_and_a_failed_run_has_a_report(tmp_path: Path) -> None:
    expected = "SRCC, KRCC, PLCC raw, PLCC fitted, PLCC fitted (5), RMSE fitted, RMSE fitted (5) of AgenticIQA: "
    expected += "the predictions are all the same."
    assert expected in sentences([row(n, 3.0, {}) for n in range(5)])
    report = rating_report(named([failed(1), failed(2)]))
    report.write(tmp_path)
    assert "0 of 2 images scored, 2 unscored (ImageError 2)." in report.sentences
    assert "| AgenticIQA | 0 of 2 | - | - | - | - | - |" in (tmp_path / "report.md").read_text()


def test_the_report_is_kept_as_json_and_as_markdown_and_the_terminal_shows_its_cells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report = rating_report(named(run_of_eight()))
    report.write(tmp_path)
    assert json.loads((tmp_path / "report.json").read_text()) == report.figures
    text = (tmp_path / "report.md").read_text()
    assert "| AgenticIQA | 6 of 8 |" in text
    assert "| SSIM (best on these images) | 7 of 8 |" in text
    monkeypatch.setattr(render, "REPORT_WIDTH", 180)
    report.show()
    shown = capsys.readouterr().out
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    cells = [cell.strip() for line in lines for cell in line.strip("|").split("|") if "---" not in cell]
    assert len(cells) == 6 * (7 + 7) + 4 * 4, "scorers in two tables, and the differences to three of them"
    assert all(cell in shown for cell in cells)


def test_labels_in_markdown_are_neither_html_nor_sequences_for_a_terminal_nor_links(tmp_path: Path) -> None:
    label = "<b>x</b>|[y](http://z)\x1b[31m\nw"
    report = rating_report(named([row(n, n % 5, {}, distortion=label if n % 2 else "b") for n in range(12)]))
    report.write(tmp_path)
    text = (tmp_path / "report.md").read_text()
    assert "| &lt;b&gt;x&lt;/b&gt;\\|[y]\\(http://z) [31m w |" in text
    assert "<b>" not in text
    assert "\x1b" not in text


def test_a_terminal_has_five_notes_and_those_about_rows_and_the_file_has_all_in_groups(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Eight images on which every scorer agrees completely, so that none has an interval."""
    tools = [{"SSIM": 1 + n / 3, "GMSD": 1 + n / 4, "VIF": 1 + n / 5} for n in range(8)]
    rows = [row(n, 1 + n / 4, tools[n], training_parts=[("clive", "train")]) for n in range(8)]
    report = rating_report(named(rows, CALIBRATED))
    report.write(tmp_path)
    report.show(kept=tmp_path / "report.md")
    shown = [line for line in capsys.readouterr().out.splitlines() if line.startswith("- ")]
    assert len(shown) - len(report.notes[ROWS]) <= 5
    assert shown[0] == "- 8 of 8 images scored, 0 unscored."
    assert shown[-1].endswith(f"more notes are in {tmp_path / 'report.md'}.")
    text = (tmp_path / "report.md").read_text()
    assert all(f"- {sentence}" in text for sentence in report.sentences)
    assert all(f"{title}:" in text for title in ("Read this first", "About the results", "About the run"))
    (complete,) = (sentence for sentence in report.sentences if "the correlation is perfect" in sentence)
    assert complete.startswith("SRCC, PLCC raw, ")
    assert "SSIM, GMSD, VIF: no interval: the correlation is" in complete


def test_figures_on_images_that_a_tool_was_fitted_on_are_marked_everywhere(tmp_path: Path) -> None:
    """Four of six images were used for training, two of them in the split that NIQE's curve was fitted on."""
    parts = [[("clive", "train")], [("clive", "train")], [("clive", "dev")], [("clive", "dev")], [], []]
    rows = [
        row(n, 1 + n / 4, {"LEARNED-IQA": 1 + n / 3, "NIQE": 4 - n / 3, "PSNR": 2 + n / 5}, training_parts=parts[n])
        for n in range(6)
    ]
    counts = {name: system["fitted_on"] for name, system in systems(rows, CALIBRATED).items()}
    assert counts["LEARNED-IQA"]["model"] == counts["AgenticIQA"]["model"] == counts["tools only"]["model"] == 4
    assert (counts["NIQE"], counts["PSNR"]) == ({"model": 0, "curve": 2}, {"model": 0, "curve": 0})
    rating_report(named(rows, CALIBRATED)).write(tmp_path)
    text = (tmp_path / "report.md").read_text()
    lines = text.splitlines()
    assert any(line.startswith("| NIQE | 6 |") and line.endswith("| curve 2 |") for line in lines)
    assert any(line.startswith("| PSNR | 6 |") and line.endswith("| - |") for line in lines)
    assert "- Not held out: AgenticIQA, tools only, best single tool, LEARNED-IQA, NIQE." in text
    differences = text.partition("## SRCC of AgenticIQA minus SRCC of other scorers")[2].splitlines()[4:]
    assert len(differences) == 3
    assert all(line.endswith("| not held out |") for line in differences)
    assert not any("held out" in sentence for sentence in sentences(run_of_eight())), "on new images"


@pytest.mark.parametrize(("scorer", "model"), [("NIQE", 0), ("LEARNED-IQA", 6)])
def test_a_curve_that_was_not_applied_is_not_counted_as_fitted(scorer: str, model: int) -> None:
    """A scorer's raw value has no curve; a model that was trained on the images is marked all the same."""
    rows = [row(n, 1 + n / 4, {}, scorer=scorer, training_parts=[("clive", "train")]) for n in range(6)]
    assert systems(rows, CALIBRATED)[scorer]["fitted_on"] == {"model": model, "curve": 0}
