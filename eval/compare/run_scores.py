"""What a run gave each image, or each question with options, read from its folder row by row."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from agenticiqa.eval.report.columns import OURS
from agenticiqa.programs.errors import UserError

RESULTS = "results.jsonl"


@dataclass
class RunScores:
    """A run: by item what it gave it. ``kind`` is "rating" or "choice".

    The value of a rating is the score, that of a choice 1 if it is right, else 0 (an answer that cannot be read is
    wrong). ``mos`` is empty for choices. ``unscored`` are the items without a value, which are in no difference.
    """

    name: str
    kind: str
    judged_by: str = OURS
    values: dict[str, float] = field(default_factory=dict)
    mos: dict[str, float] = field(default_factory=dict)
    contents: dict[str, str] = field(default_factory=dict)

    @property
    def unscored(self) -> int:
        """How many items have no value."""
        return len(self.contents) - len(self.values)


def is_run(path: Path) -> bool:
    """Whether a path is a folder with kept results."""
    return (path / RESULTS).is_file()


def read_scores(folder: Path) -> RunScores:
    """Read a run; of several rows of an item the last counts, and one with an error replaces no result.

    Raises UserError for a folder without results, and for results that are neither ratings with opinion scores nor
    marked answers.
    """
    if not is_run(folder):
        raise UserError(f"{folder}: there is no {RESULTS}; name folders that `agenticiqa evaluate` wrote (--out)")
    found: RunScores | None = None
    with (folder / RESULTS).open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                row = orjson.loads(line)
                found = found or RunScores(_name(folder), "choice" if "truth" in row else "rating")
                _add(found, row)
            except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
                if not line.endswith(b"\n"):
                    break  # cut short by an interruption, which resuming the run repairs
                why = f"there is no {error}" if isinstance(error, KeyError) else "it is no row of a run"
                raise UserError(f"{folder / RESULTS}: line {number} cannot be compared: {why}") from error
    if found is None:
        raise UserError(f"{folder / RESULTS}: there are no results in it; let the run finish first")
    return found


def _add(run: RunScores, row: dict[str, Any]) -> None:
    item = f"{row['name']}#{row['rotation']}" if row.get("rotation") else str(row["name"])
    run.contents[item] = str(row["content"])
    run.judged_by = str(row.get("scorer") or row.get("backend") or run.judged_by)
    if run.kind == "choice":
        if "error" not in row or item not in run.values:
            run.values[item] = float(bool(row["correct"]))
        return
    run.mos[item] = float(row["mos"])
    score = row.get("quality_score")
    if score is not None:
        run.values[item] = float(score)
    elif "error" not in row:
        run.values.pop(item, None)


def _name(folder: Path) -> str:
    return folder.resolve().name
