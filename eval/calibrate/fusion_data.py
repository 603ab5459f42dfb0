"""Sort the data to which a fusion is fitted by kind: labels, results of a finished run, or photos."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from agenticiqa.configs.yaml_json import json_value
from agenticiqa.eval.tasks.labeled_set import names_labels
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.scale.names import is_shard_folder

OF_A_ROW = {"image", "query"}  # keys that every row of a finished run has, and labels never have


class FusionData(NamedTuple):
    """The data by kind; ``labels`` has a form that ``labeled_images`` reads."""

    labels: Path | None
    rows: list[Path]
    photos: list[Path]


def sorted_by_kind(data: Sequence[Path]) -> FusionData:
    """Sort the data by kind; the first line of a ``.jsonl`` file decides. A folder of shards holds rows.

    Raises UserError for two or more files of labels.
    """
    lines = [path for path in data if path.suffix.lower() == ".jsonl" and not _has_labels(path)]
    rows = [path for path in data if path in lines or is_shard_folder(path)]
    labels = [path for path in data if path not in rows and names_labels(path)]
    if len(labels) > 1:
        raise UserError(f"expected one labels file, got {len(labels)}: join them into one")
    photos = [path for path in data if path not in rows and path not in labels]
    return FusionData(labels[0] if labels else None, rows, photos)


def _has_labels(file: Path) -> bool:
    """Return whether a file of JSON lines begins with a row of labels; the reader of rows reports unreadable files."""
    try:
        with file.open(encoding="utf-8-sig") as lines:
            first = json_value(next(filter(str.strip, lines), ""))
    except (OSError, ValueError):
        return False
    return isinstance(first, dict) and not first.keys() >= OF_A_ROW
