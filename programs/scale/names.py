"""Define the files in a folder of shards, and recognize results among other files and folders."""

from pathlib import Path

SUCCESS, RUN, PLAN = "_SUCCESS", "_run.json", "_plan.jsonl"


def is_shard_folder(place: str | Path) -> bool:
    """Return whether this is a folder of shards, with ``_run.json``; an address counts as one."""
    return "://" in str(place) or (Path(place) / RUN).is_file()


def written_in(place: str) -> list[Path]:
    """Return the files that a run writes into a folder, as far as they are known before; none for an address."""
    if "://" in place:
        return []
    folder = Path(place)
    return [*(folder / name for name in (SUCCESS, RUN, PLAN)), *folder.glob("shard-*.parquet")]


def holds_results(place: str | Path) -> bool:
    """Return whether this is a folder of shards, or a file of JSON lines as ``assess --jsonl`` writes them."""
    path = Path(place)
    if not path.is_file():
        return is_shard_folder(place)
    with path.open("rb") as file:
        return file.read(1) == b"{"
