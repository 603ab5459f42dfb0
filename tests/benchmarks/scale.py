"""Time and memory of what is done with many kept rows: open and match them, report on them, leave out contents.

    python tests/benchmarks/scale.py [--rows 100000]

Each step runs in a process of its own, so that its peak memory is its own. Rows are those of a rating, of about 5,000
bytes, with other numbers in each.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from agenticiqa.eval.intervals import interval
from agenticiqa.eval.metrics import srcc
from agenticiqa.eval.report import summarize
from agenticiqa.eval.report.columns import columns_of
from agenticiqa.eval.scorers.rows import row_identity
from agenticiqa.programs.batch.results_file import ResultsFile, resume

TOOLS = ("HaarPSI", "VIF", "SSIMULACRA2", "PSNR")


def synthetic_row(number: int, rng: np.random.Generator) -> dict[str, Any]:
    """A row of a rating as ``evaluate`` keeps it, with as many bytes."""
    mos = float(rng.uniform(0, 100))
    score = float(np.clip(1 + mos / 25 + rng.normal(0, 0.4), 1, 5))
    shares = rng.dirichlet(np.ones(5))
    return {
        "image": f"images/{number:06d}.png",
        "image_sha256": f"{number:064x}",
        "reference": None,
        "reference_sha256": None,
        "query": "Rate the perceptual quality of this image.",
        "query_type": "scoring",
        "quality_score": score,
        "score_interval": {"80": [score - 0.4, score + 0.4], "95": [score - 0.7, score + 0.7]},
        "quality_reasoning": "Blurs, slight: edges are wider than in most photos. " * 8,
        "quality_probs": {str(level): float(share) for level, share in enumerate(shares, 1)},
        "probability_source": "learned",
        "executor_evidence": {
            "quality_scores": {"Global": {"Overall": ["HaarPSI", score]}},
            "tool_log": [
                {
                    "tool": tool,
                    "region": "Global",
                    "distortion": "Overall",
                    "raw": float(rng.random()),
                    "calibrated": float(np.clip(score + rng.normal(0, 0.5), 1, 5)),
                    "error": None,
                }
                for tool in TOOLS
            ],
            "measurements": {"Global": {f"measure_{each}": float(rng.random()) for each in range(60)}},
            "notes": ["A sentence of evidence about this image. " * 12],
        },
        "rejected_answers": {},
        "iteration_count": 0,
        "timings_ms": {"planner": 15.0, "executor": 900.0},
        "name": f"{number:06d}.png",
        "content": f"{number // 5}",
        "mos": mos,
        "mos_std": 5.0,
        "distortion": f"kind {number % 10}",
        "level": str(number % 5),
    }


def step_open(file: Path) -> None:
    """Open the file, as every run does."""
    with ResultsFile(file) as results:
        assert results.length


def step_resume(file: Path) -> None:
    """Open it, and match all of its rows."""
    with ResultsFile(file) as results:
        wanted = {number: row_identity(row) for number, row in enumerate(results.rows)}
        assert len(resume(results.rows, wanted, row_identity).finished) == len(wanted)


def step_columns(file: Path) -> None:
    """Read what a report needs, row by row."""
    with file.open("rb") as lines:
        assert len(columns_of(map(orjson.loads, lines)))


def step_report(file: Path) -> None:
    """Every figure of a report."""
    with file.open("rb") as lines:
        assert summarize(map(orjson.loads, lines))["systems"]


def step_jackknife(file: Path) -> None:
    """SRCC of 10,000 images, as often as the jackknife of 1,000 contents in 200 blocks five times over."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=10_000)
    y, contents = x + rng.normal(size=10_000), [str(number % 1000) for number in range(10_000)]
    for _ in range(5):
        interval(srcc, x, y, contents)


STEPS = {"open": step_open, "resume": step_resume, "columns": step_columns, "report": step_report}
STEPS |= {"jackknife": step_jackknife}


def main() -> int:
    """Make the file, run each step on it in a new process, and print the seconds and megabytes of each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--step", choices=STEPS, action="append", help="only this step; may be repeated")
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)  # in the process of a step
    args = parser.parse_args()
    if args.file:
        before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
        STEPS[args.step[0]](args.file)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(
            f"{args.step[0]:10s} {time.process_time() - started:6.1f} s of CPU, {(peak - before) / 1024:6.0f} MB more"
        )
        return 0
    with tempfile.TemporaryDirectory() as folder:
        file, rng = Path(folder) / "results.jsonl", np.random.default_rng(0)
        with file.open("w") as out:
            for number in range(args.rows):
                out.write(json.dumps(synthetic_row(number, rng)) + "\n")
        print(f"{args.rows:,} rows, {file.stat().st_size / args.rows:,.0f} bytes each", flush=True)
        for step in args.step or STEPS:
            subprocess.run([sys.executable, __file__, "--step", step, "--file", file], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
