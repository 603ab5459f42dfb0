"""The headline table, the further figures and the breakdowns as cells, and the forms that these are printed in."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.markup import escape
from rich.table import Table

from agenticiqa.eval.intervals import Interval
from agenticiqa.eval.report.figures import FIGURES

FITTED_ON = "fitted on"
HEADLINE = ("srcc", "krcc", "plcc", "plcc_fitted")
FURTHER = ("plcc_fitted5", "rmse", "rmse_fitted", "rmse_fitted5", "pairs")
LATEX = {"&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}"}
LATEX |= {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}"}


@dataclass(frozen=True)
class Cells:
    """A table of text: its title, headings and lines; ``bold`` is the number of the line that stands out."""

    title: str
    headings: Sequence[str]
    lines: Sequence[Sequence[str]]
    bold: int | None = None


def headline(report: Mapping[str, Any]) -> Cells:
    """The predictors with their number of images, what they were fitted on, and the correlations."""
    lines = [
        [
            label(system, report["best_tool"]),
            counted(system),
            ", ".join(f"{way} {count}" for way, count in system["fitted_on"].items() if count) or "-",
            *(f"{Interval(**system[key]):.3f}" for key in HEADLINE),
        ]
        for system in report["systems"]
    ]
    headings = ["predictor", "n", FITTED_ON, *(FIGURES[key] for key in HEADLINE)]
    return Cells(title_of(report), headings, lines, bold=0)


def further(report: Mapping[str, Any]) -> Cells:
    """The errors on the labels' own scale, PLCC after the 5-parameter curve, and the pairs in order."""
    lines = [
        [label(system, report["best_tool"]), counted(system), *(_shown(key, system[key]) for key in FURTHER)]
        for system in report["systems"]
    ]
    return Cells("Further figures", ["predictor", "n", *(FIGURES[key] for key in FURTHER)], lines, bold=0)


def breakdown(report: Mapping[str, Any], by: str) -> Cells:
    """The agreement of our score by the groups of one column of the labels."""
    lines = [[each["group"], counted(each), f"{Interval(**each['srcc']):.3f}"] for each in report["breakdowns"][by]]
    return Cells(f"{report['systems'][0]['name']} by {by}", [by, "n", "SRCC"], lines)


def label(system: Mapping[str, Any], best: str | None) -> str:
    """A predictor's name, with what has to be known of it to read its figures."""
    sources = ", ".join(f"{source} {count}" for source, count in system["sources"].items())
    notes = [
        sources if len(system["sources"]) > 1 else ", ".join(system["sources"]),
        "on other images" if system["about"] else "",
        "only where chosen" if system["partial"] else "",
        "best here" if system["name"] == best and system["kind"] == "tool" else "",
    ]
    shown = "; ".join(filter(None, notes))
    return f"{system['name']} ({shown})" if shown else str(system["name"])


def counted(figures: Mapping[str, Any]) -> str:
    """The number of images that figures are of, and of how many, where some have no score."""
    n, unscored = figures["n"], figures["unscored"]
    return f"{n} of {n + unscored}" if unscored else str(n)


def title_of(report: Mapping[str, Any]) -> str:
    """The data and what judged them."""
    return f"{report['data']}, {report['backend']}"


def terminal(cells: Cells) -> Table:
    """A table for a terminal."""
    result = Table(*cells.headings, title=escape(cells.title))
    for number, line in enumerate(cells.lines):
        result.add_row(*map(escape, line), style="bold" if number == cells.bold else None)
    return result


def markdown(cells: Cells) -> str:
    """A table in Markdown, without its title."""
    rows = (cells.headings, ["---"] * len(cells.headings), *cells.lines)
    escaped = ([cell.replace("|", r"\|") for cell in row] for row in rows)
    return "\n".join(f"| {' | '.join(row)} |" for row in escaped) + "\n"


def latex(cells: Cells) -> str:
    """A table in LaTeX, a ``tabular`` with rules of the package booktabs."""
    rows = [
        " & ".join("".join(LATEX.get(c, c) for c in cell) for cell in row) for row in (cells.headings, *cells.lines)
    ]
    body = [rf"\begin{{tabular}}{{l{'r' * (len(cells.headings) - 1)}}}", r"\toprule", rf"{rows[0]} \\", r"\midrule"]
    body += [*(rf"{row} \\" for row in rows[1:]), r"\bottomrule", r"\end{tabular}"]
    return "\n".join(body) + "\n"


def comma_separated(cells: Cells) -> str:
    """A table as CSV."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([cells.headings, *cells.lines])
    return file.getvalue()


FORMS = {"markdown": markdown, "latex": latex, "csv": comma_separated}


def _shown(key: str, figure: Mapping[str, Any]) -> str:
    found = Interval(**figure)
    if not key.startswith("rmse") or found.value is None:
        return f"{found:.3f}"
    return f"{found:.2f}" if found.value >= 1 else f"{found:.3f}"
