"""Kill ``agenticiqa`` at random moments, continue, and compare with an uninterrupted run.

::

    python benchmarks/kills.py LABELS.csv --kills 20 --workers 1      # and other options of evaluate
    python benchmarks/kills.py FOLDER --kills 20 --shard-images 4     # and other options of assess --parquet

Each kill (SIGKILL) comes at a random moment within the time of an uninterrupted run: during the start, the assessment
or the report. The next attempt continues. A finished run is compared and a new one starts, until ``--kills`` kills have
hit a running process. Rows (by image) and reports are compared without times. The exit status is 1 if anything differs.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

NOT_COMPARED = ("timings_ms", "usage_by_stage", "ms", "ms_per_image", "command")  # times, and the folder of the run


def main() -> int:
    """Run the comparison, print a line for each run and the totals, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images", type=Path, help="labels for evaluate, or a folder for assess --parquet")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    args, options = parser.parse_known_args()
    draw = random.Random(args.seed)
    command = [sys.executable, "-m", "agenticiqa"]
    if args.images.is_dir():
        command += ["assess", str(args.images), *options, "--parquet"]
    else:
        command += ["evaluate", str(args.images), *options, "--out"]
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        subprocess.run([*command, f"{folder}/whole"], check=True, capture_output=True)
        seconds = time.perf_counter() - began
        expected = outcome(Path(folder) / "whole")
        print(f"uninterrupted: {len(expected)} rows in {seconds:.1f} s")
        kills, runs, differing, repeated = 0, 0, 0, 0
        while kills < args.kills:
            run, runs = Path(folder) / f"run{runs}", runs + 1
            kept: list[int] = []
            while kills < args.kills and killed([*command, str(run)], draw.uniform(0, seconds)):
                kills += 1
                kept.append(len(rows_of(run)))
            subprocess.run([*command, str(run)], check=True, capture_output=True)
            same = outcome(run) == expected
            differing += not same
            repeated += sum(count - 1 for count in Counter(row["image"] for row in rows_of(run)).values())
            print(f"run {runs}: killed {len(kept)} times, with {kept} rows kept; {'the same' if same else 'DIFFERENT'}")
    print(f"{kills} kills in {runs} runs: {differing} runs differ, {repeated} images have more than one row")
    return 1 if differing or repeated else 0


def killed(command: list[str], seconds: float) -> bool:
    """Start a process and kill it with its children after some seconds; return False if it ended before."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return True
    return False


def rows_of(run: Path) -> list[dict[str, Any]]:
    """Return all complete rows of a run."""
    if (run / "results.jsonl").exists():
        lines = (run / "results.jsonl").read_bytes().split(b"\n")[:-1]
        return [json.loads(line) for line in lines]
    from agenticiqa.programs.scale.table import ShardFolder

    return [*ShardFolder(run).rows()] if [*run.glob("shard-*.parquet")] else []


def outcome(run: Path) -> dict[str, Any]:
    """Return the rows of a run by image, and its report if it has one, without times."""
    found = {row["image"]: without_times(row) for row in rows_of(run)}
    if (run / "report.json").exists():
        found["report"] = without_times(json.loads((run / "report.json").read_text(encoding="utf-8")))
    return found


def without_times(value: Any) -> Any:
    """Return the JSON value without measured times."""
    if isinstance(value, list):
        return [without_times(item) for item in value]
    if isinstance(value, dict):
        return {name: without_times(inner) for name, inner in value.items() if name not in NOT_COMPARED}
    return value


if __name__ == "__main__":
    sys.exit(main())
