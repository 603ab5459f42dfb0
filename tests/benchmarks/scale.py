"""Time and memory of what is done with many kept rows: open and match them, judge, report, leave out contents.

    python tests/benchmarks/scale.py [--rows 100000] [--step resume]

Each step runs in a process of its own, so that its peak memory is its own; "more" is what it adds to what is there
before: libraries, labels, and what is wanted of each image. Rows are those of a rating, of about 4,500 bytes, each with
other numbers. "loop" and "evaluate" judge the same images, 10,000 at most.
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
    """The labels that the rows are of; their images are not there, and nothing here opens them."""
    folder = file.parent
    return [
        LabeledImage(f"{n:06d}.png", folder / f"{n:06d}.png", None, 3.0, None, None, None, None, None, f"{n // 5}")
        for n in range(rows)
    ]


def wanted_of(labels: Sequence[LabeledImage]) -> dict[LabeledImage, Identity]:
    """What the images' results belong to, as if their hashes were known; hashing depends on the images alone."""
    query = "Rate the perceptual quality of this image."
    return {
        label: Identity(label.name, f"{number:064x}", label.content, None, query, None)
        for number, label in enumerate(labels)
    }


def step_open(file: Path, rows: int) -> Step:
    """Open the file, as every run does: the first time, when its index is made, or later."""

    def step() -> None:
        with ResultsFile(file) as results:
            assert results.length == rows

    return step


def step_resume(file: Path, rows: int) -> Step:
    """Open it, and match all of its rows to the images of ``evaluate``."""
    wanted = wanted_of(labels_of(file, rows))

    def step() -> None:
        with ResultsFile(file) as results:
            assert len(resume(results.outlines(), wanted, row_identity).finished) == rows

    return step


def step_assess(file: Path, rows: int) -> Step:
    """The same with the paths of ``assess --resume``, which may be relative to two folders."""
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
    """Judge so many images by what costs nothing: the runner alone, with rows of the same size; then no figures."""
    labels, row = labels_of(file, rows), synthetic_row(0, np.random.default_rng(0))
    scorer = Given("given", lambda: 0.0, made_of=row)

    def step() -> None:
        with ResultsFile(file.with_name("run.jsonl")) as results:
            assert len(assess_set(scorer, labels, results, query="")) == rows

    return step


class Given(Scorer):
    """A scorer whose row is given, and no image opened."""

    def __call__(self, job: Job) -> dict[str, Any]:
        """The row."""
        return dict(self.made_of)


def step_columns(file: Path, rows: int) -> Step:
    """Read what a report needs, row by row."""

    def step() -> None:
        assert len(columns_of(row for _, row in kept_rows(file))) == rows

    return step


def step_report(file: Path, rows: int) -> Step:
    """Every figure of a report."""

    def step() -> None:
        assert summarize(row for _, row in kept_rows(file))["systems"]

    return step


def step_jackknife(file: Path, rows: int) -> Step:
    """SRCC of 10,000 images, as often as the jackknife of 1,000 contents in 200 blocks five times over."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=10_000)
    y, contents = x + rng.normal(size=10_000), [str(number % 1000) for number in range(10_000)]

    def step() -> None:
        for _ in range(5):
            interval(srcc, x, y, contents)

    return step


def step_loop(file: Path, rows: int, seconds: float = 0.0) -> Step:
    """The bare loop over real images: decode each, and work for so long."""
    labels = pictures(file.parent, min(rows, MOST_PICTURES))

    def step() -> None:
        for label in labels:
            work(load(label.image).pixels, seconds)

    return step


def step_evaluate(file: Path, rows: int, seconds: float = 0.0) -> Step:
    """The same judged by the runner, with that scorer, each row kept: what it takes longer is its overhead."""
    scorer = Scorer("work", partial(work, seconds=seconds))
    labels = pictures(file.parent, min(rows, MOST_PICTURES))

    def step() -> None:
        with ResultsFile(file.with_name("evaluated.jsonl")) as results:
            assess_set(scorer, labels, results, query="")

    return step


def work(image: NDArray[np.uint8], seconds: float) -> float:
    """A score that takes so long, and no processor time."""
    time.sleep(seconds)
    return float(image[0, 0, 0])


def pictures(folder: Path, count: int) -> list[LabeledImage]:
    """So many JPEG images of 512 x 384, made once; each has other bytes, and they are drawn from 50 pictures."""
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
    """Make the file, run each step on it in a new process, and print the seconds and megabytes of each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument(
        "--step",
        choices=STEPS | WORKING,
        action="append",
        help="only this; may be repeated (all but those of 50 ms)",
    )
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)  # in the process of a step
    args = parser.parse_args()
    if args.file:
        step = (STEPS | WORKING)[args.step[0]](args.file, args.rows)
        before, started, wall = megabytes(), time.process_time(), time.perf_counter()
        step()
        seconds, wall = time.process_time() - started, time.perf_counter() - wall
        print(
            f"{args.step[0]:15s} {seconds:6.2f} s of CPU, {wall:6.2f} s in all, "
            f"{megabytes() - before:5.0f} MB more, {megabytes():5.0f} MB at most"
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
    """The most memory that this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    sys.exit(main())
