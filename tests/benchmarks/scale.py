"""Measure time and memory of the steps of large runs: open and match kept rows, assess, report, jackknife.

    python tests/benchmarks/scale.py [--rows 100000] [--step resume]

Each step runs in a new process, so that its peak memory is its own. "MB more" is the increase over the memory for
libraries, labels and the images to find. Rows are ratings of about 4,500 bytes, each with other numbers. "loop" and
"evaluate" assess the same images, at most 10,000.
"""

import argparse
import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from agenticiqa.eval.datasets import LabeledImage
from agenticiqa.eval.intervals import interval
from agenticiqa.eval.metrics import srcc
from agenticiqa.eval.report import summarize
from agenticiqa.eval.report.columns import columns_of
from agenticiqa.eval.scorers.rows import assess_set, row_identity
from agenticiqa.eval.scorers.scorer import Scorer
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.batch.plan_run import row_identifier
from agenticiqa.programs.batch.results_file import Identity, ResultsFile, kept_rows, resume
from agenticiqa.programs.images import load

Step = Callable[[], None]
TOOLS = ("HaarPSI", "VIF", "SSIMULACRA2", "PSNR")


def synthetic_row(number: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return a row of a rating like those of ``evaluate``, with as many bytes."""
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
                    "ms": 100.0,
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


def labels_of(file: Path, rows: int) -> list[LabeledImage]:
    """Return the labels of the rows; their images do not exist, and no step opens them."""
    folder = file.parent
    return [
        LabeledImage(f"{n:06d}.png", folder / f"{n:06d}.png", None, 3.0, None, None, None, None, None, f"{n // 5}")
        for n in range(rows)
    ]


def wanted_of(labels: Sequence[LabeledImage]) -> dict[LabeledImage, Identity]:
    """Return the identities of the results, with hashes that are not computed."""
    query = "Rate the perceptual quality of this image."
    return {
        label: Identity(label.name, f"{number:064x}", label.content, None, query, None)
        for number, label in enumerate(labels)
    }


def step_open(file: Path, rows: int) -> Step:
    """Open the file, as every run does; the first time its index is made."""

    def step() -> None:
        with ResultsFile(file) as results:
            assert results.length == rows

    return step


def step_resume(file: Path, rows: int) -> Step:
    """Open the file and match all rows to the images of ``evaluate``."""
    wanted = wanted_of(labels_of(file, rows))

    def step() -> None:
        with ResultsFile(file) as results:
            assert len(resume(results.outlines(), wanted, row_identity).finished) == rows

    return step


def step_assess(file: Path, rows: int) -> Step:
    """Match rows to the paths of ``assess --resume``, which may be relative to two folders."""
    os.chdir(file.parent)
    wanted = {
        identity: identity._replace(image=os.path.abspath(f"images/{identity.image}"), reference=None)
        for identity in wanted_of(labels_of(file, rows)).values()
    }

    def step() -> None:
        with ResultsFile(file) as results:
            identify = row_identifier(wanted.values(), results)
            assert len(resume(results.outlines(), wanted, identify).finished) == rows

    return step


def step_run(file: Path, rows: int) -> Step:
    """Run the runner with a scorer that costs nothing and gives rows of the same size; no figures."""
    labels, row = labels_of(file, rows), synthetic_row(0, np.random.default_rng(0))
    scorer = Given("given", lambda: 0.0, made_of=row)

    def step() -> None:
        with ResultsFile(file.with_name("run.jsonl")) as results:
            assert len(assess_set(scorer, labels, results, query="")) == rows

    return step


class Given(Scorer):
    """A scorer that returns a given row and opens no image."""

    def __call__(self, job: Job) -> dict[str, Any]:
        """Return the row."""
        return dict(self.made_of)


def step_columns(file: Path, rows: int) -> Step:
    """Read the columns of a report, row by row."""

    def step() -> None:
        assert len(columns_of(row for _, row in kept_rows(file))) == rows

    return step


def step_report(file: Path, rows: int) -> Step:
    """Compute every figure of a report."""

    def step() -> None:
        assert summarize(row for _, row in kept_rows(file))["systems"]

    return step


def step_jackknife(file: Path, rows: int) -> Step:
    """Compute five jackknife intervals of the SRCC of 10,000 images, with 1,000 contents in 200 blocks."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=10_000)
    y, contents = x + rng.normal(size=10_000), [str(number % 1000) for number in range(10_000)]

    def step() -> None:
        for _ in range(5):
            interval(srcc, x, y, contents)

    return step


def step_loop(file: Path, rows: int, seconds: float = 0.0) -> Step:
    """Decode real images in a plain loop, and work ``seconds`` on each."""
    labels = pictures(file.parent, min(rows, MOST_PICTURES))

    def step() -> None:
        for label in labels:
            work(load(label.image).pixels, seconds)

    return step


def step_evaluate(file: Path, rows: int, seconds: float = 0.0) -> Step:
    """Assess the images of ``step_loop`` with the runner, which keeps each row; the difference is its overhead."""
    scorer = Scorer("work", partial(work, seconds=seconds))
    labels = pictures(file.parent, min(rows, MOST_PICTURES))

    def step() -> None:
        with ResultsFile(file.with_name("evaluated.jsonl")) as results:
            assess_set(scorer, labels, results, query="")

    return step


def work(image: NDArray[np.uint8], seconds: float) -> float:
    """Return a score after ``seconds`` without processor time."""
    time.sleep(seconds)
    return float(image[0, 0, 0])


def pictures(folder: Path, count: int) -> list[LabeledImage]:
    """Return JPEG images of 512 x 384 with different bytes, made once from 50 pictures."""
    made, rng = folder / "pictures", np.random.default_rng(0)
    made.mkdir(exist_ok=True)
    if not (made / f"{count - 1:06d}.jpg").exists():
        coarse = [Image.fromarray(rng.integers(0, 256, (24, 32, 3), dtype=np.uint8)) for _ in range(50)]
        drawn = []
        for each in coarse:
            buffer = io.BytesIO()
            each.resize((512, 384), Image.Resampling.BICUBIC).save(buffer, "JPEG", quality=90)
            drawn.append(buffer.getvalue())
        for number in range(count):
            (made / f"{number:06d}.jpg").write_bytes(drawn[number % 50] + f"{number}".encode())
    return [LabeledImage.of(made / f"{number:06d}.jpg", 3.0, content=str(number // 5)) for number in range(count)]


Make = Callable[[Path, int], Step]
STEPS: dict[str, Make] = {"first open": step_open, "open": step_open, "resume": step_resume, "assess": step_assess}
STEPS |= {"run": step_run, "columns": step_columns, "report": step_report, "jackknife": step_jackknife}
STEPS |= {"loop": step_loop, "evaluate": step_evaluate}
WORKING = {"loop 50 ms": partial(step_loop, seconds=0.05), "evaluate 50 ms": partial(step_evaluate, seconds=0.05)}
MOST_PICTURES = 10_000


def main() -> int:
    """Make the file, run each step on it in a new process, and print its seconds and megabytes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument(
        "--step",
        choices=STEPS | WORKING,
        action="append",
        help="only this step; repeatable (default: all but those of 50 ms)",
    )
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)  # for the process of a step
    args = parser.parse_args()
    if args.file:
        step = (STEPS | WORKING)[args.step[0]](args.file, args.rows)
        before, started, wall = megabytes(), time.process_time(), time.perf_counter()
        step()
        seconds, wall = time.process_time() - started, time.perf_counter() - wall
        print(
            f"{args.step[0]:15s} {seconds:6.2f} s of CPU, {wall:6.2f} s in all, "
            f"{megabytes() - before:5.0f} MB more, peak {megabytes():5.0f} MB"
        )
        return 0
    with tempfile.TemporaryDirectory() as folder:
        file, rng = Path(folder) / "results.jsonl", np.random.default_rng(0)
        with file.open("w") as out:
            for number in range(args.rows):
                out.write(json.dumps(synthetic_row(number, rng)) + "\n")
        print(f"{args.rows:,} rows, {file.stat().st_size / args.rows:,.0f} bytes each", flush=True)
        for step in args.step or STEPS:
            own = [sys.executable, __file__, "--step", step, "--rows", str(args.rows), "--file", file]
            subprocess.run(own, check=True)
    return 0


def megabytes() -> float:
    """Return the peak memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    sys.exit(main())
