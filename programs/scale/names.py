"""Define the files in a folder of shards, and recognize results among other files and folders."""

import os
from pathlib import Path

import orjson

from agenticiqa.programs.data_sets.kinds import is_address
from agenticiqa.programs.images.own import RUN, SHARDS, is_shard_folder, run_folder

SUCCESS, PLAN, LOCK = "_SUCCESS", "plan.jsonl", "lock"
OF_RESULTS = {"quality_score", "error"}  # keys of which every row of results has one


def written_in(place: str) -> list[Path]:
    """Return the files that a run writes for a folder, as far as they are known before; none for an address."""
    if "://" in place:
        return []
    folder = Path(os.path.abspath(place))
    return [*(Path(run_folder(str(folder)), name) for name in (SUCCESS, RUN, PLAN)), *folder.glob(SHARDS)]


def holds_results(place: str | Path) -> bool:
    """Return whether this is a folder of shards, or a file of JSON lines as ``assess --jsonl`` writes them.

    A file of JSON lines that only name images is a list of jobs. Raises UserError for an address that cannot be opened.
    """
    if is_address(str(place)):
        from agenticiqa.programs.data_sets.places import open_place  # an import of fsspec

        fs, path = open_place(str(place))
        return bool(fs.exists(f"{run_folder(path.rstrip('/'))}/{RUN}"))
    if not os.path.isfile(place):
        return is_shard_folder(place)
    with open(place, "rb") as file:
        first = file.readline() if file.read(1) == b"{" else b""
    try:
        return bool(first) and bool(orjson.loads(b"{" + first).keys() & OF_RESULTS)
    except ValueError:  # the reader of results names the line
        return True
