"""Read the scores of a run, by image or by question of a benchmark, from its folder row by row."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unicodedata import normalize

from agenticiqa.configs.user_files import read_text
from agenticiqa.configs.yaml_json import json_value
from agenticiqa.eval.report.columns import OURS
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.result_row import checked_rows

RESULTS = "results.jsonl"
OF_A_RUN = ("baseline-", "without-")  # prefixes of the runs inside the folder of another run


@dataclass
class RunScores:
    """The values of a run by item. ``kind`` is "rating" or "choice" (questions with options).

    The value of a rating is the score; that of a question is 1 if it is right by ``count_alike``, else 0 (an unparsed
    answer is wrong). ``mos`` is empty for questions. ``unscored`` are the items without a value, which are excluded
    from differences. ``rotated`` records by question and rotation of its options whether the answer was right, and
    ``options`` the number of options.
    """

    name: str
    kind: str
    assessed_by: str = OURS
    values: dict[str, float] = field(default_factory=dict)
    mos: dict[str, float] = field(default_factory=dict)
    contents: dict[str, str] = field(default_factory=dict)
    rotated: dict[str, dict[int, bool]] = field(default_factory=dict)
    options: dict[str, int] = field(default_factory=dict)
    figure: str = "accuracy"  # name of the share of right answers
    part: str | None = None  # the part of its set, if it is not complete

    @property
    def circular(self) -> bool:
        """Return whether every question was asked with its options in all rotations."""
        return bool(self.options) and all(len(self.rotated[item]) == count for item, count in self.options.items())

    @property
    def unscored(self) -> int:
        """Return how many items have no value."""
        return len(self.contents) - len(self.values)


def count_alike(runs: Sequence[RunScores]) -> None:
    """Set the values of questions in all runs by one rule: right with the options in all rotations.

    If any run lacks rotations, only the answers in the original order of the options count, in all runs.
    """
    circular = all(run.circular for run in runs)
    for run in runs:
        if run.kind == "choice":
            run.figure = "circular accuracy" if circular else "accuracy"
        for item, right in run.rotated.items():
            run.values[item] = float(all(right.values()) if circular else right.get(0, False))


def is_run(path: Path) -> bool:
    """Return whether a path is a folder with kept results."""
    return os.path.isfile(path / RESULTS)


def runs_below(folder: Path) -> dict[str, Path]:
    """Return the runs of several sets in a folder, by set; an empty mapping if the folder itself is a run."""
    if is_run(folder) or not os.path.isdir(folder):
        return {}
    return {below.name: below for below in sorted(folder.iterdir()) if is_run(below)}


def names_of(folders: Sequence[Path], chosen: Sequence[str] = ()) -> list[str]:
    """Return the name of each run: the given one, or its folder's with as many parents as make it unique.

    Raises UserError if the numbers of names and runs differ.
    """
    if chosen:
        if len(chosen) != len(folders):
            raise UserError(f"{len(folders)} runs have {len(chosen)} names: give --name once for each run, in order")
        return [*chosen]
    parts = [folder.resolve().parts for folder in folders]
    for depth in range(1, max(map(len, parts)) + 1):
        names = ["/".join(path[-depth - path[-1].startswith(OF_A_RUN) :]) for path in parts]
        if len(set(names)) == len(set(parts)):
            return names
    return names


def read_scores(folder: Path, name: str | None = None) -> RunScores:
    """Read a run; the last row of an item counts, but an error does not replace a result.

    Questions get their values by ``count_alike``. Raises UserError for a folder without results, and for results that
    are neither ratings with MOS nor marked answers.
    """
    if not is_run(folder):
        raise UserError(f"{folder}: no {RESULTS} found; name folders that `agenticiqa evaluate --out` wrote")
    run: RunScores | None = None
    file = folder / RESULTS
    for _, row in checked_rows(file, lambda row: ("name", "content", "mos" if _kind(row) == "rating" else "correct")):
        run = run or RunScores(name or folder.resolve().name, _kind(row), part=_reported(folder, "part"))
        if _kind(row) != run.kind:
            raise UserError(f"{file}: has rows of ratings and choices mixed; name a run of one kind")
        _add(run, row)
    if run is None:
        raise UserError(f"{file}: no results found; finish the run first")
    if prompts := _reported(folder, "prompts"):
        run.assessed_by += f", prompts {prompts}"
    count_alike([run])
    return run


def rating_scores(rows: Iterable[dict[str, Any]], name: str) -> RunScores:
    """Return the scores of a run of ratings from its rows."""
    run = RunScores(name, "rating")
    for row in rows:
        _add(run, row)
    return run


def _kind(row: dict[str, Any]) -> str:
    return "choice" if "truth" in row else "rating"


def _reported(folder: Path, key: str) -> str | None:
    try:
        value = json_value(read_text(folder / "report.json")).get(key)
    except (OSError, ValueError, AttributeError):  # no report, or an unreadable one
        return None
    return None if value is None else str(value)


def _add(run: RunScores, row: dict[str, Any]) -> None:
    item = normalize("NFC", str(row["name"]))  # names from a Mac may be decomposed
    run.contents[item] = str(row["content"])
    run.assessed_by = str(row.get("scorer") or row.get("backend") or run.assessed_by)
    if run.kind != "rating":
        rotation, right = int(row.get("rotation") or 0), run.rotated.setdefault(item, {})
        if "error" not in row or rotation not in right:
            right[rotation] = bool(row["correct"])
        run.options[item] = len(row.get("options") or ()) or 1
        return
    run.mos[item] = float(row["mos"])
    score = row.get("quality_score")
    if score is not None:
        run.values[item] = float(score)
    elif "error" not in row:
        run.values.pop(item, None)
