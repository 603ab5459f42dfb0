"""Tables of assessed images: for people, by score with the main finding, and as plain values."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agenticiqa.programs.page.entry import Entry
from agenticiqa.programs.page.findings import placed
from agenticiqa.programs.page.table import UNDEFINED, Cell, Table, data_table, number, rounded
from agenticiqa.signatures.vocabulary import SEVERITIES

# The columns of --csv; each has the name of its column in Parquet.
COLUMNS: Mapping[str, Callable[[Entry], Any]] = {
    "image": lambda entry: entry.image,
    "quality_score": lambda entry: entry.score,
    "score_low_80": lambda entry: entry.low,
    "score_high_80": lambda entry: entry.high,
    "quality_level": lambda entry: entry.level,
    "main_distortion": lambda entry: entry.main_distortion,
    "severity": lambda entry: entry.severity,
    "distortions": lambda entry: "; ".join(map(_in_words, entry.distortions)),
    "caveats": lambda entry: entry.caveat,
    "final_answer": lambda entry: entry.final_answer,
    "map": lambda entry: entry.shown.get("map"),
    "reference": lambda entry: entry.shown.get("reference"),
}


def ranking(entries: Sequence[Entry]) -> Table:
    """Return a line for each image: score, its 80 % interval, the image, the main distortion; or the answer."""
    if all(entry.answer for entry in entries):
        return with_caveats(entries, Table(("answer", "image"), [[entry.answer, entry.image] for entry in entries]))
    lines = [
        [number(entry.score, ".2f"), interval_cell(entry, "{:.1f} to {:.1f}"), entry.image, entry.summary]
        for entry in entries
    ]
    return with_caveats(entries, Table(("score", "80 % interval", "image", "main finding"), lines))


def lowest(entries: Sequence[Entry]) -> Table:
    """Return a line for each image: score, image, main distortion."""
    lines = [[number(entry.score, ".2f"), entry.image, entry.finding] for entry in entries]
    return with_caveats(entries, Table(("score", "image", "main distortion"), lines))


def results_data(entries: Sequence[Entry]) -> Table:
    """Return the fields of each entry as plain values, with scores in 1..5."""
    return data_table(COLUMNS, [[rounded(cell(entry)) for cell in COLUMNS.values()] for entry in entries])


def interval_cell(entry: Entry, form: str) -> str:
    """Return the 80 % interval of an entry as a cell, by a form for both ends; "-" without one."""
    if entry.low is None or entry.high is None:
        return UNDEFINED
    return Cell(form.format(entry.low, entry.high), {"low": entry.low, "high": entry.high})


def with_caveats(entries: Sequence[Entry], table: Table) -> Table:
    """Return a table with one line per entry, with a last column for caveats if an entry has one."""
    if not any(entry.caveat for entry in entries):
        return table
    lines = [[*line, entry.caveat] for entry, line in zip(entries, table.lines, strict=True)]
    return replace(table, headings=[*table.headings, "caveat"], lines=lines)


def _in_words(distortion: Mapping[str, Any]) -> str:
    return placed(f"{SEVERITIES[distortion['strength']]} {distortion['category']}", distortion["region"])
