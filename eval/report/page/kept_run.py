"""Read a finished run for its report: the figures, the settings, and a few fields of each image."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agenticiqa.configs.user_files import read_text
from agenticiqa.configs.yaml_json import json_value
from agenticiqa.eval.report.model import title_of
from agenticiqa.eval.report.page.samples import steps_of
from agenticiqa.programs.backends.usage import Spent
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.files import printable_path
from agenticiqa.programs.page.entry import Entry, entry_of
from agenticiqa.programs.result_row import checked_rows
from agenticiqa.signatures.types import LEVEL_KEYS

UNFINISHED = "run the same `agenticiqa evaluate` command again"
OF_A_QUESTION = (
    *("name", "rotation", "image", "image_sha256", "query", "options", "truth", "answer", "correct"),
    *("unparsed", "error"),
)


@dataclass(frozen=True, slots=True)
class Point:
    """One labeled image of a run.

    ``probabilities`` are those of the levels 1..5, ``ms`` is the wall time of each stage in milliseconds, ``offset`` is
    the position of its row. ``group`` determines its color: the labeled distortion or generator, else the distortion
    that was found. ``steps`` come from ``samples.steps_of``.
    """

    name: str
    mos: float
    content: str
    entry: Entry
    probabilities: tuple[float, ...] | None
    ms: Mapping[str, float]
    offset: int
    group: str = ""
    steps: Sequence[tuple[str, str]] = ()


@dataclass
class KeptRun:
    """A run from its folder: ``figures`` is its ``report.json``, ``made_with`` its ``run.json``, ``name`` its title.

    ``spent`` is the usage of models by stage. A run of labeled images has ``points``, a run of questions
    ``questions``: the fields on the page for each question and rotation. The last row of each counts.
    """

    folder: Path
    figures: dict[str, Any]
    made_with: dict[str, Any]
    name: str = ""
    spent: dict[str, Spent] = field(default_factory=dict)
    points: list[Point] = field(default_factory=list)
    questions: list[dict[str, Any]] = field(default_factory=list)

    @property
    def about(self) -> str:
        """Return the data, the program or scorer, and the date."""
        date = self.figures.get("date")
        return title_of(self.figures) + (f", {date}" if date else "")

    @property
    def asks_questions(self) -> bool:
        """Return whether it is a run of questions."""
        return "kind" in self.figures

    @property
    def scored(self) -> list[Point]:
        """Return the images with a score."""
        return [point for point in self.points if point.entry.score is not None]

    @property
    def timings(self) -> list[Mapping[str, float]]:
        """Return the milliseconds of each stage, by assessed image or question."""
        return [ms for ms in (*(p.ms for p in self.points), *(q["ms"] for q in self.questions)) if ms]

    def row(self, point: Point) -> dict[str, Any]:
        """Return the whole row of an image, read again from the file."""
        with open(self.folder / "results.jsonl", "rb") as file:
            file.seek(point.offset)
            row: dict[str, Any] = json_value(file.readline())
        return row


def open_run(folder: Path, name: str | None = None) -> KeptRun:
    """Return a run without its rows. Raises UserError for a folder without a finished run."""
    label = printable_path(folder)
    if not os.path.isfile(folder / "results.jsonl"):
        raise UserError(f"{label}: no results.jsonl found; name a folder that `agenticiqa evaluate --out` wrote")
    if not os.path.isfile(folder / "report.json"):
        raise UserError(f"{label}: the run has no report.json yet; {UNFINISHED}")
    return KeptRun(folder, _json(folder / "report.json"), _json(folder / "run.json"), name or folder.resolve().name)


def read_run(folder: Path, name: str | None = None) -> KeptRun:
    """Read the run in a folder that ``agenticiqa evaluate`` wrote; its name is ``name`` or that of the folder.

    One row is in memory at a time. Raises UserError for a folder without a finished run, and for files in it that
    cannot be read.
    """
    label, run = printable_path(folder), open_run(folder, name)
    if not run.asks_questions and not {"systems", "breakdowns", "scale"} <= run.figures.keys():
        raise UserError(f"{label}/report.json was written by another version; {UNFINISHED}")
    latest: dict[Any, Any] = {}
    needs = ("name", "rotation", "correct") if run.asks_questions else ("name", "image", "content", "mos")
    try:
        for offset, row in checked_rows(folder / "results.jsonl", lambda _: needs):
            key = (row["name"], row["rotation"]) if run.asks_questions else row["name"]
            if "error" not in row or key not in latest:
                latest[key] = _question(row) if run.asks_questions else _point(row, offset)
            # Every row was paid for, also one that was replaced later.
            for stage, spent in (row.get("usage_by_stage") or {}).items():
                run.spent.setdefault(stage, Spent()).add(Spent(**spent))
    except UserError as error:
        raise UserError(f"{error}; expected a run of {'questions' if run.asks_questions else 'images'}") from error
    except (ValueError, KeyError, TypeError) as error:
        kind = "a run of questions" if run.asks_questions else "a rating run"
        raise UserError(
            f"{label}/results.jsonl: a row does not have the values of {kind} ({type(error).__name__}); "
            "evaluate into a new folder"
        ) from error
    (run.questions if run.asks_questions else run.points).extend(latest.values())
    return run


def _question(row: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: row.get(name) for name in OF_A_QUESTION}
    return {**kept, "said": _said(row), "ms": row.get("timings_ms") or {}}


def _said(row: Mapping[str, Any]) -> str:
    """Return the answer of a row, and its reasoning if that adds anything; "" without an answer."""
    if "error" in row or row.get("final_answer") is None:
        return ""
    answer, reasoning = str(row["final_answer"]).strip(), str(row.get("quality_reasoning") or "").strip()
    return answer if reasoning in answer else f"{answer} {reasoning}".strip()


def _point(row: Mapping[str, Any], offset: int) -> Point:
    probabilities = row.get("quality_probs")
    entry = entry_of(row)
    return Point(
        name=row["name"],
        mos=float(row["mos"]),
        content=row["content"],
        entry=entry,
        probabilities=tuple(probabilities.get(key, 0.0) for key in LEVEL_KEYS) if probabilities else None,
        ms=row.get("timings_ms") or {},
        offset=offset,
        group=str(row.get("distortion") or row.get("generator") or entry.main),
        steps=steps_of(row),
    )


def _json(file: Path) -> dict[str, Any]:
    try:
        content = json_value(read_text(file))
        if not isinstance(content, dict):
            raise ValueError("not a JSON object")
    except (OSError, ValueError) as error:
        raise UserError(f"{printable_path(file)}: cannot be read ({error}); {UNFINISHED}") from error
    return content
