"""What the data named to ``agenticiqa calibrate`` are: labels, rows of finished runs, or photos."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from agenticiqa.eval.tasks.reading import names_labels
from agenticiqa.programs.errors import UserError

OF_A_ROW = {"image", "query"}  # what every row of a finished run has, and no labels have


class Given(NamedTuple):
    """The data by kind; ``labels`` is of a form that ``labeled_images`` reads."""

    labels: Path | None
    rows: list[Path]
    photos: list[Path]


def sorted_by_kind(data: Sequence[Path]) -> Given:
    """The data by kind: a ``.jsonl`` file is told by its first line. Raises UserError for labels named twice."""
    rows = [path for path in data if path.suffix.lower() == ".jsonl" and not _has_labels(path)]
    labels = [path for path in data if path not in rows and names_labels(path)]
    if len(labels) > 1:
        raise UserError(f"expected one labels file, got {len(labels)}: join them into one")
    photos = [path for path in data if path not in rows and path not in labels]
    return Given(labels[0] if labels else None, rows, photos)


def _has_labels(file: Path) -> bool:
    """Whether a file of JSON lines begins with a row of labels; what cannot be read is left to who reads rows."""
    try:
        with file.open(encoding="utf-8-sig") as lines:
            first = json.loads(next(filter(str.strip, lines), ""))
    except (OSError, ValueError):
        return False
    return isinstance(first, dict) and not first.keys() >= OF_A_ROW
