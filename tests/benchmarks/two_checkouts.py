"""Processor time per photo of two checkouts, judged in turn: how much slower or faster a change makes the program.

    git worktree add ../old d8518df
    python tests/benchmarks/two_checkouts.py ../old . PHOTO... [--size 512x384] [--rounds 3]

Each checkout has a process of its own, on one core (on Linux; two threads at once slow each other down), and gets every
photo, resized and as PNG, right before or after the other, so that what else the machine does meets both alike.
Printed: seconds of processor time per photo (each photo's fastest round), the ratio with a 95 % interval over photos
(bootstrap), and the largest difference of a score. Both run on the packages that are installed.
"""

import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Iterator
from pathlib import Path

SERVE = "--serve"


def serve(checkout: Path) -> None:
    """Judge each path that comes on stdin, with the program in a checkout; answer seconds and score on stdout."""
    answers, sys.stdout = sys.stdout, sys.stderr
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    package = types.ModuleType("agenticiqa")
    package.__path__ = [str(checkout)]
    sys.modules["agenticiqa"] = package
    from agenticiqa.programs.assess import AgenticIQA

    program = AgenticIQA.offline()
    for line in sys.stdin:
        started = time.process_time()
        score = program(line.rstrip("\n")).quality_score
        print(json.dumps([time.process_time() - started, score]), file=answers, flush=True)


@contextlib.contextmanager
def worker(checkout: Path) -> Iterator["subprocess.Popen[str]"]:
    """A process that serves a checkout."""
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    command = [sys.executable, __file__, SERVE, str(checkout.resolve())]
    with subprocess.Popen(
        command, env={**os.environ, **one_thread}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def ask(process: "subprocess.Popen[str]", photo: Path) -> tuple[float, float]:
    """Seconds of processor time, and the score."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{photo}\n")
    process.stdin.flush()
    seconds, score = json.loads(process.stdout.readline())
    return seconds, score


def resized(photos: list[Path], size: tuple[int, int], folder: Path) -> list[Path]:
    """The photos at one size, as PNG in a folder."""
    from PIL import Image

    made = [folder / f"{number}.png" for number in range(len(photos))]
    for photo, file in zip(photos, made, strict=True):
        Image.open(photo).convert("RGB").resize(size, Image.Resampling.LANCZOS).save(file)
    return made


def compare(old: Path, new: Path, photos: list[Path], rounds: int) -> str:
    """The result in words."""
    import numpy as np

    seconds = np.full((2, rounds, len(photos)), np.inf)
    scores = np.zeros((2, len(photos)))
    with worker(old) as first, worker(new) as second:
        for process in (first, second):
            ask(process, photos[0])  # loads what is loaded once
        for turn in range(rounds):
            for number, photo in enumerate(photos):
                pair = [(0, first), (1, second)]
                for which, process in pair if (turn + number) % 2 == 0 else pair[::-1]:
                    seconds[which, turn, number], scores[which, number] = ask(process, photo)
    before, after = seconds.min(axis=1)
    drawn = np.random.default_rng(0).integers(0, len(photos), (2000, len(photos)))
    low, high = np.percentile(after[drawn].sum(axis=1) / before[drawn].sum(axis=1), (2.5, 97.5))
    return (
        f"{before.mean():.4f} s before, {after.mean():.4f} s after, n={len(photos)} photos, {rounds} rounds\n"
        f"ratio {after.sum() / before.sum():.3f} [{low:.3f}, {high:.3f}]\n"
        f"largest difference of a score {np.abs(scores[0] - scores[1]).max():.4g}"
    )


def main() -> None:
    """Compare two checkouts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("photos", type=Path, nargs="+")
    parser.add_argument("--size", default="512x384")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    width, height = map(int, args.size.split("x"))
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
        print(compare(args.old, args.new, resized(args.photos, (width, height), Path(folder)), args.rounds))


if __name__ == "__main__":
    if sys.argv[1:2] == [SERVE]:
        serve(Path(sys.argv[2]))
    else:
        main()
