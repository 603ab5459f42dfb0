"""The files of a folder of shards, and how one is told from other folders."""

from pathlib import Path

SUCCESS, RUN, PLAN = "_SUCCESS", "_run.json", "_plan.jsonl"


def is_shard_folder(place: str | Path) -> bool:
    """Whether it is a folder of shards, by its ``_run.json``; an address is taken for one."""
    return "://" in str(place) or (Path(place) / RUN).is_file()
