"""Files that commands write."""

import json
from pathlib import Path
from typing import Any


def json_lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a file that has one on each line."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def rows_of(run: Path) -> list[dict[str, Any]]:
    """Return the rows in the folder of a run."""
    return json_lines(run / "results.jsonl")


def report_of(run: Path) -> dict[str, Any]:
    """Return the figures in the folder of a run."""
    return json.loads((run / "report.json").read_text(encoding="utf-8"))
