"""Kill ``agenticiqa evaluate`` at random moments, resume it, and compare with an uninterrupted run.

::

    python tests/benchmarks/kills.py LABELS.csv --kills 20 --workers 1   # and other options of evaluate

Each kill (SIGKILL) comes at a random moment within the time of an uninterrupted run: during the start, the assessment
or the report. The next attempt resumes. A finished run is compared and a new one starts, until ``--kills`` kills have
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
from pathlib import Path
from typing import Any

TIMES = ("timings_ms", "usage_by_stage")
OF_THE_REPORT = ("ms_per_image", "command")  # the command names the folder of the run


def main() -> int:
    """Run the comparison, print a line for each run and the totals, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labels", type=Path)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    args, options = parser.parse_known_args()  # all others are options of evaluate
    draw = random.Random(args.seed)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "agenticiqa", "evaluate", str(args.labels), *options, "--out"]
        began = time.perf_counter()
        subprocess.run([*command, f"{folder}/whole"], check=True, capture_output=True)
        seconds = time.perf_counter() - began
        expected = outcome(Path(folder) / "whole")
        print(f"uninterrupted: {len(expected[0])} rows in {seconds:.1f} s")
        kills, runs, differing, cut_short, assessed_twice = 0, 0, 0, 0, 0
        while kills < args.kills:
            run, runs = Path(folder) / f"run{runs}", runs + 1
            kept: list[int] = []
            while kills < args.kills and killed([*command, str(run)], draw.uniform(0, seconds)):
                kills += 1
                lines = (run / "results.jsonl").read_bytes() if (run / "results.jsonl").exists() else b""
                kept.append(lines.count(b"\n"))
                cut_short += bool(lines) and not lines.endswith(b"\n")
            subprocess.run([*command, str(run)], check=True, capture_output=True)
            same, rows = outcome(run) == expected, (run / "results.jsonl").read_bytes().count(b"\n")
            differing += not same
            assessed_twice += rows - len(expected[0])
            print(f"run {runs}: killed {len(kept)} times, with {kept} rows kept; {'the same' if same else 'DIFFERENT'}")
    found = f"{differing} runs differ, {cut_short} lines cut short, {assessed_twice} images assessed twice"
    print(f"{kills} kills in {runs} runs: {found}")
    return 1 if differing or assessed_twice else 0


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


def outcome(run: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the rows of a run by image, and its report, without times."""
    rows = [json.loads(line) for line in (run / "results.jsonl").read_text(encoding="utf-8").splitlines()]
    by_image = {row["name"]: without_times(row) for row in rows}
    report = json.loads((run / "report.json").read_text(encoding="utf-8"))
    return by_image, {name: value for name, value in report.items() if name not in OF_THE_REPORT}


def without_times(value: Any) -> Any:
    """Return the JSON value without measured times."""
    if isinstance(value, list):
        return [without_times(item) for item in value]
    if isinstance(value, dict):
        return {name: without_times(inner) for name, inner in value.items() if name not in (*TIMES, "ms")}
    return value


if __name__ == "__main__":
    sys.exit(main())
