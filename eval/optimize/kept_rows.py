"""Rows that a search keeps as they come, in a file of JSON lines: a killed run loses at most the one it was writing."""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agenticiqa.configs.reading import json_value


def kept_rows(path: Path | None) -> Iterator[dict[str, Any]]:
    """The rows of a file, of none where there is no file; a line that a killed run left unfinished is passed over."""
    if path is None or not path.exists():
        return
    for line in path.read_text(encoding="utf-8").split("\n"):  # not splitlines: JSON may hold U+2028 as it is
        try:
            row = json_value(line)
        except ValueError:
            continue
        yield row


def keep_row(path: Path | None, row: Mapping[str, Any]) -> None:
    """Add a row to a file, which is made with its folder; without a path nothing is kept."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as file:
        cut = b""
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            cut = b"" if file.read(1) == b"\n" else b"\n"  # else the row would be lost with an unfinished line
        file.write(cut + json.dumps(row, ensure_ascii=False).encode() + b"\n")
