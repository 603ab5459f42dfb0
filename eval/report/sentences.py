"""What the tables leave out: coverage, how the figures were computed, their bias, how the run went."""

from collections.abc import Mapping
from typing import Any

from agenticiqa.eval.intervals import FEWEST_CONTENTS, Interval
from agenticiqa.eval.report.columns import OURS
from agenticiqa.eval.report.figures import FIGURES
from agenticiqa.eval.report.predictors import BEST_TOOL
from agenticiqa.eval.report.table import FITTED_ON

SHOWN_SEPARATELY = ("pairs",)  # whose note is the number of pairs


def sentences(report: Mapping[str, Any]) -> list[str]:
    """The sentences of a report, each with its full stop."""
    ours = report["systems"][0]["name"]
    lines = [f"{report['scored']} of {report['images']} images scored, {report['unscored']} unscored" + _counts(report)]
    few = "" if report["contents"] >= FEWEST_CONTENTS else f" (too few: at least {FEWEST_CONTENTS})"
    lines.append(f"Brackets: 95 % intervals, a jackknife over {report['contents']} contents{few}")
    lines.append(
        "Fitted: after a monotone 4-parameter logistic, (5): after a logistic and a line, fitted once, on all images; "
        "pairs in order: of those whose opinions differ by more than their deviation, where the labels have one"
    )
    found = Interval(**report["systems"][0]["srcc"])
    if found.high is not None and found.high < 0:
        lines.append(
            f"SRCC of {ours} is below zero with its whole interval: the labels may be lower-is-better, as a DMOS is; "
            "then add --lower-is-better"
        )
    if report["scale"]:
        low, high = report["scale"]["low"], report["scale"]["high"]
        ends = f"{low:g} to {high:g}"
        lines.append(f"RMSE is on the labels' scale, {ends}; raw: 1..5 is mapped to its ends, nothing fitted")
    else:
        lines.append("RMSE raw is missing, as the ends of the labels' scale are unknown")
    lines += _about_tools(report)
    lines += [_coverage(ours, share, found) for share, found in report["interval_coverage"].items()]
    flattered = [system["name"] for system in report["systems"] if any(system["fitted_on"].values())]
    for name, difference in report["srcc_differences"].items():
        mark = " (not held out)" if {ours, name} & {*flattered} else ""
        value = f"{Interval(**difference):+.3f}{mark}"
        lines.append(f"SRCC of {ours} minus {name} on the {difference['n']} images with both: {value}")
    if flattered:
        lines.append(
            f"Not held out: {', '.join(flattered)}. '{FITTED_ON}' counts the images that a trained model, or a "
            "calibration curve, in the predictor was fitted on; on new images a trained model agrees less with people"
        )
    lines += _conduct(report, of_program=ours == OURS)
    notes: dict[str, list[str]] = {}
    for system in report["systems"]:
        for key, heading in FIGURES.items():
            figure = system[key]
            shown = key in SHOWN_SEPARATELY and figure["low"] is not None
            if figure["note"] and not shown and not (key == "rmse" and report["scale"] is None):
                notes.setdefault(f"{system['name']}: {figure['note']}", []).append(heading)
    lines += [f"{note} ({', '.join(headings)})" for note, headings in notes.items()]
    return [f"{sentence}." for sentence in lines]


def _about_tools(report: Mapping[str, Any]) -> list[str]:
    lines = []
    chosen = next((system["about"] for system in report["systems"] if system["name"] == BEST_TOOL), None)
    if chosen:
        lines.append(
            f"Best single tool: of every fifth of the contents the tool that is best on the others ({chosen} images)"
        )
    if report["best_tool"]:
        lines.append(
            f"{report['best_tool']} is the best single tool on these very images, so its figures are biased upward"
        )
    if report.get("baselines"):
        lines.append(
            f"Measured beside, on the whole of every image: {', '.join(report['baselines'])}. Their values here are "
            "those of their curves, which are flat beyond 1 and 5; the runs baseline-NAME have the raw ones"
        )
    if any(system["partial"] for system in report["systems"]):
        lines.append(
            "A tool marked 'only where chosen' measured a part of the images, chosen by their damage, so its figures "
            "do not compare with those of others"
        )
    return lines


def _coverage(ours: str, share: str, found: Mapping[str, Any]) -> str:
    ends = f"{found['low']:.2f}, {found['high']:.2f}"
    return (
        f"The {share} % interval of {ours}'s score holds the opinion of {found['inside']} of {found['n']} images: "
        f"{found['value']:.2f} [{ends}]"
    )


def _conduct(report: Mapping[str, Any], *, of_program: bool) -> list[str]:
    sources = ", ".join(f"{source} {count}" for source, count in report["probability_sources"].items())
    stages = ", ".join(f"{stage} {count}" for stage, count in report["rejected_answers"].items())
    rejected = f"Images with rejected answers: {report['images_with_rejected_answers']}"
    of_it = [
        f"Sources of the level probabilities: {sources or 'none'}",
        rejected + (f" ({stages})" if stages else ""),
        f"Replanned: {report['replanned']}; failed tool calls: {report['failed_tool_calls']}",
    ]
    lines = of_it if of_program else []
    if report["ms_per_image"]:
        median, mean = (report["ms_per_image"][key] / 1000 for key in ("median", "mean"))
        lines.append(f"Time per image: median {median:.2f} s, mean {mean:.2f} s")
    return lines


def _counts(report: Mapping[str, Any]) -> str:
    reasons = ", ".join(f"{reason} {count}" for reason, count in report["unscored_reasons"].items())
    return f" ({reasons})" if reasons else ""
