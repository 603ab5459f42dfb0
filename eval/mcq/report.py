"""The figures of a run of questions as a table, as Markdown and in sentences."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from agenticiqa.eval.intervals import Interval
from agenticiqa.programs.images.files import write_atomically

Report = Mapping[str, Any]
Cells = list[list[str]]  # the headings, and the lines


def write(report: Report, folder: Path, name: str = "report") -> None:
    """Write ``report.json`` and ``report.md``, or files of another ``name``, into the folder of the run."""
    write_atomically(folder / f"{name}.json", json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    headings, *lines = cells(report)
    rows = [f"| {' | '.join(line)} |" for line in (headings, ["---"] * len(headings), *lines)]
    text = [f"# {_title(report)}", "", *rows, "", *(f"- {sentence}" for sentence in sentences(report))]
    write_atomically(folder / f"{name}.md", "\n".join(text) + "\n")


def table(report: Report) -> Table:
    """The figures, for a terminal."""
    headings, *lines = cells(report)
    result = Table(*headings, title=escape(_title(report)))
    for line in lines:
        result.add_row(*map(escape, line), style="bold" if line[0] in ("all", "whole plan", "sum (0 to 6)") else None)
    return result


def cells(report: Report) -> Cells:
    """The headings and the lines of the table, as text."""
    return {"choice": _choice, "planning": _planning, "explanation": _explanation}[report["kind"]](report)


def sentences(report: Report) -> list[str]:
    """What the table leaves out: what was not parsed or left out, and how the figures were computed."""
    return [f"{line}." for line in _sentences(report)]


def _sentences(report: Report) -> Iterator[str]:
    if report["kind"] == "explanation":
        yield f"{report['described']} of {report['questions']} questions were answered in words and given to the judge"
        yield (
            f"Judge: {report['judge']}, {report['rounds']} rounds; {report['unusable_verdicts']} verdicts were "
            "unusable and are in no figure"
        )
        yield f"Brackets: 95 % intervals, a jackknife over {report['contents']} contents"
    else:
        reasons = ", ".join(f"{reason} {count}" for reason, count in report["unparsed_reasons"].items())
        yield (
            f"{report['unparsed']} of {report['questions']} answers are unparsed{f' ({reasons})' if reasons else ''}: "
            f"wrong in every accuracy{' but that of the answered' if report['kind'] == 'choice' else ''}"
        )
        yield f"Brackets: 95 % intervals (Wilson), clustered by {report['contents']} contents"
    if report["kind"] == "choice":
        yield "Chance: guessing among the options offered; p: the probability that guessing gets as many right (exact)"
        if report["circular"]:
            yield "Circular: right only if the question is right in every rotation of its options"
    if report["kind"] == "planning":
        yield "Always: what a planner gets that always gives the most frequent value of the field"
    if report["left_out"]:
        yield f"{report['left_out']} questions of the set cannot be asked or marked and are left out"


def _choice(report: Report) -> Cells:
    circular = report["circular"] is not None
    headings = ["questions", "n", "accuracy", "of the answered", "unparsed", "chance", "p"]
    lines = [_choice_line("all", report["vanilla"], report["circular"])]
    for key, groups in report["by"].items():
        lines += [
            _choice_line(f"{key}: {name}", each["vanilla"], each["circular"]) for name, each in sorted(groups.items())
        ]
    return [headings + (["circular", "chance"] if circular else []), *lines]


def _choice_line(name: str, vanilla: Report, circular: Report | None) -> list[str]:
    line = [
        name,
        str(vanilla["n"]),
        _percent(vanilla["accuracy"]),
        _percent(vanilla["accuracy_of_answered"]),
        str(vanilla["unparsed"]),
        f"{100 * vanilla['chance']:.1f}",
        _p(vanilla["p_of_chance"]),
    ]
    return line + ([_percent(circular["accuracy"]), f"{100 * circular['chance']:.1f}"] if circular else [])


def _planning(report: Report) -> Cells:
    lines = [["whole plan", str(report["questions"]), _percent(report["whole"]), "-"]]
    for name, field in report["fields"].items():
        lines.append([name, str(field["accuracy"]["n"]), _percent(field["accuracy"]), f"{100 * field['always']:.1f}"])
    for key, groups in report["by"].items():
        lines += [
            [f"whole plan, {key}: {name}", str(share["n"]), _percent(share), "-"]
            for name, share in sorted(groups.items())
        ]
    return [["field", "n", "accuracy", "always"], *lines]


def _explanation(report: Report) -> Cells:
    lines = [
        [
            name,
            str(each["mean"]["n"]),
            f"{Interval(**each['mean']):.2f}",
            *("-" if share is None else f"{100 * share:.1f}" for share in each["shares"].values()),
            str(each["unscored"]),
        ]
        for name, each in report["dimensions"].items()
    ]
    total = report["sum"]
    lines.append(
        [
            "sum (0 to 6)",
            str(total["mean"]["n"]),
            f"{Interval(**total['mean']):.2f}",
            *["-"] * 3,
            str(total["unscored"]),
        ]
    )
    return [["dimension (0 to 2)", "n", "mean", "% 0", "% 1", "% 2", "unscored"], *lines]


def _percent(share: Mapping[str, Any]) -> str:
    found = Interval(**share)
    scaled: Sequence[float | None] = [
        None if each is None else 100 * each for each in (found.value, found.low, found.high)
    ]
    return f"{Interval(scaled[0], scaled[1], scaled[2], found.n):.1f}"


def _p(probability: float) -> str:
    return "<.001" if probability < 0.001 else f"{probability:.3f}"


def _title(report: Report) -> str:
    return f"{report['data']}, {report['backend']}"
