"""Define the files in a folder of shards, and recognize results among other files and folders."""

import os
from pathlib import Path

from agenticiqa.programs.images.own import RUN, is_shard_folder

SUCCESS, PLAN = "_SUCCESS", "_plan.jsonl"


def written_in(place: str) -> list[Path]:
    """Return the files that a run writes into a folder, as far as they are known before; none for an address."""
    if "://" in place:
        return []
    folder = Path(place)
    return [*(folder / name for name in (SUCCESS, RUN, PLAN)), *folder.glob("shard-*.parquet")]


def holds_results(place: str | Path) -> bool:
    """Return whether this is a folder of shards, or a file of JSON lines as ``assess --jsonl`` writes them."""
    if not os.path.isfile(place):
        return is_shard_folder(place)
    with open(place, "rb") as file:
        return file.read(1) == b"{"
