"""Define the files in a folder of shards, and recognize results among other files and folders."""

import os
from contextlib import suppress
from pathlib import Path

SUCCESS, RUN, PLAN, LOCK = "_SUCCESS", "run.json", "plan.jsonl", "lock"
SHARDS = "shard-*.parquet"
STAMP = b"agenticiqa.shard"  # the key in the footer of a shard's file


def run_folder(place: str) -> str:
    """Return the folder of the files that describe a run, beside its shards: Polars reads a folder of Parquet alone."""
    return f"{place}.run"


def is_shard_folder(place: str | Path) -> bool:
    """Return whether this is a folder of shards, by the footer of the first one; an address counts as one."""
    if "://" in str(place):
        return True
    first = min(Path(place).glob(SHARDS), default=None)
    return first is not None and STAMP in _footer(first)


def _footer(file: Path) -> bytes:
    """Return the footer of a Parquet file; nothing if it cannot be read."""
    with suppress(OSError), file.open("rb") as opened:
        end = opened.seek(-8, os.SEEK_END)  # the size of the footer, and PAR1
        size = int.from_bytes(opened.read(4), "little")
        opened.seek(max(end - size, 0))
        return opened.read(size)
    return b""


def written_in(place: str) -> list[Path]:
    """Return the files that a run writes for a folder, as far as they are known before; none for an address."""
    if "://" in place:
        return []
    folder = Path(os.path.abspath(place))
    return [*(Path(run_folder(str(folder)), name) for name in (SUCCESS, RUN, PLAN)), *folder.glob(SHARDS)]


def holds_results(place: str | Path) -> bool:
    """Return whether this is a folder of shards, or a file of JSON lines as ``assess --jsonl`` writes them."""
    if not os.path.isfile(place):
        return is_shard_folder(place)
    with open(place, "rb") as file:
        return file.read(1) == b"{"
