"""A finished run as its report needs it: the figures, what it was made with, and a few fields of each image."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from agenticiqa.eval.report.table import title_of
from agenticiqa.programs.backends.ledger import Spent
from agenticiqa.programs.batch.results_file import kept_rows
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.files import printable_path
from agenticiqa.programs.page.entry import Entry, entry_of
from agenticiqa.signatures.types import LEVEL_KEYS

UNFINISHED = "the same `agenticiqa evaluate` command finishes it"


@dataclass(frozen=True, slots=True)
class Point:
    """One labeled image of a run.

    ``probabilities`` are those of the levels 1..5, ``ms`` is the wall time of each stage in milliseconds, ``offset`` is
    where its row begins.
    """

    name: str
    mos: float
    content: str
    entry: Entry
    probabilities: tuple[float, ...] | None
    ms: Mapping[str, float]
    offset: int


@dataclass
class AnyRun:
    """A run's folder, read: ``figures`` is its ``report.json``, ``made_with`` its ``run.json``.

    ``spent`` is the usage of models by stage, ``timings`` the milliseconds of each stage, by image or question.
    """

    folder: Path
    figures: dict[str, Any]
    made_with: dict[str, Any]
    spent: dict[str, Spent] = field(default_factory=dict)
    timings: list[Mapping[str, float]] = field(default_factory=list)

    @property
    def title(self) -> str:
        """The data and the backend."""
        return title_of(self.figures)

    def add_spent(self, row: Mapping[str, Any]) -> None:
        """Add what a row says of the usage of models; every row counts, also one that was replaced later."""
        for stage, spent in (row.get("usage_by_stage") or {}).items():
            self.spent.setdefault(stage, Spent()).add(Spent(**spent))


@dataclass
class Run(AnyRun):
    """A run of images with opinion scores; ``points`` has each image once, by its last row."""

    points: list[Point] = field(default_factory=list)

    @property
    def scored(self) -> list[Point]:
        """The images with a score."""
        return [point for point in self.points if point.entry.score is not None]

    def row(self, point: Point) -> dict[str, Any]:
        """The whole row of an image, read again from the file."""
        with open(self.folder / "results.jsonl", "rb") as file:
            file.seek(point.offset)
            row: dict[str, Any] = json.loads(file.readline())
        return row


def read_run(folder: Path) -> Run:
    """Read the run in a folder that ``agenticiqa evaluate`` wrote.

    One row is in memory at a time. Raises UserError for a folder without a finished run, and for files in it that
    cannot be read.
    """
    shown = printable_path(folder)
    run = Run(*opened(folder))
    if not {"systems", "breakdowns", "scale"} <= run.figures.keys():
        raise UserError(f"{shown}/report.json: the figures are of another version; {UNFINISHED}")
    latest: dict[str, Point] = {}
    try:
        for offset, row in kept_rows(folder / "results.jsonl"):
            name = row["name"]
            if "error" not in row or name not in latest:
                latest[name] = _point(row, offset)
            run.add_spent(row)
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{shown}/results.jsonl: a row is none of a rating run ({type(error).__name__})") from error
    run.points = [*latest.values()]
    run.timings = [point.ms for point in run.points]
    return run


def opened(folder: Path) -> tuple[Path, dict[str, Any], dict[str, Any]]:
    """A run's folder, its figures and what it was made with. Raises UserError for a folder without a finished run."""
    shown = printable_path(folder)
    if not (folder / "results.jsonl").is_file():
        raise UserError(f"{shown}: expected the folder of a run of `agenticiqa evaluate`, found no results.jsonl in it")
    if not (folder / "report.json").is_file():
        raise UserError(f"{shown}: the run has no report.json yet; {UNFINISHED}")
    return folder, _json(folder / "report.json"), _json(folder / "run.json")


def times(run: AnyRun) -> list[tuple[str, tuple[float, float, float]]]:
    """Median, mean and 95th percentile of the seconds of each stage, and of all together."""
    judged = [ms for ms in run.timings if ms]
    stages = dict.fromkeys(stage for ms in judged for stage in ms)
    found = {stage: np.array([ms.get(stage, 0.0) for ms in judged]) / 1000 for stage in stages}
    if found:
        found["all"] = np.sum([*found.values()], axis=0)
    return [(stage, (float(np.median(s)), float(s.mean()), float(np.quantile(s, 0.95)))) for stage, s in found.items()]


def _point(row: Mapping[str, Any], offset: int) -> Point:
    probabilities = row.get("quality_probs")
    mos = float(row["mos"])
    if not math.isfinite(mos):
        raise ValueError("mos is no number")
    return Point(
        name=row["name"],
        mos=mos,
        content=row["content"],
        entry=entry_of(row),
        probabilities=tuple(probabilities.get(key, 0.0) for key in LEVEL_KEYS) if probabilities else None,
        ms=row.get("timings_ms") or {},
        offset=offset,
    )


def _json(file: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{printable_path(file)}: cannot be read ({error}); {UNFINISHED}") from error
    return content
