"""What shards cost beside the judging: processor time over JSON lines, peak memory by rows, the time to resume.

::

    python tests/benchmarks/shard_costs.py [--images 5000] [--rows 1000 20000] [--shards 1000]

Images are judged by their bytes, which takes no time, so all that is measured is around the judging. Each step runs in
a process of its own.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

if __name__ == "__main__":
    sys.path[:1] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).parent)]

from shard_kills import UndecodedIQA

from agenticiqa.configs import Config
from agenticiqa.programs.batch.find_jobs import find_jobs
from agenticiqa.programs.batch.judge_many import judge_many
from agenticiqa.programs.batch.results_file import ResultsFile
from agenticiqa.programs.result import Assessment
from agenticiqa.programs.scale.inputs import SharedQuestion
from agenticiqa.programs.scale.judging import ShardRun
from agenticiqa.programs.scale.run import judge_here, run_shards

QUERY = "Rate the perceptual quality of this image."


def shards(name: str, images: int) -> None:
    """Judge what a name leads to in shards, on this machine."""
    question = SharedQuestion(QUERY)
    run = ShardRun(Config(), {}, question, "scores", 2, (name,), make=UndecodedIQA.from_config)
    assert not run_shards(run, judge_here, images).unfinished


def lines(name: str, images: int) -> None:
    """The same with JSON lines."""
    with ResultsFile("lines.jsonl") as results:
        for _, row in judge_many(
            UndecodedIQA.from_config(Config()), find_jobs([name], QUERY).jobs, 2, Assessment.to_dict
        ):
            assert isinstance(row, dict)
            results.append(row)


STEPS: dict[str, Callable[[str, int], None]] = {"shards": shards, "lines": lines}


def step(kind: str, name: str, images: int) -> None:
    """Run one and print its times and its peak memory."""
    began, used = time.perf_counter(), time.process_time()
    STEPS[kind](name, images)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{time.process_time() - used:.2f} s of processor, {time.perf_counter() - began:.1f} s, peak {peak:.0f} MB",
        flush=True,
    )


def main() -> None:
    """Run the steps, a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--rows", type=int, nargs="+", default=(1000, 20000))
    parser.add_argument("--shards", type=int, default=1000)
    parser.add_argument("--step", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.step:
        step(args.step[0], args.step[1], int(args.step[2]))
        return
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("album").mkdir()
        for number in range(args.images):
            Path(f"album/{number:06d}.png").write_bytes(f"image {number}".encode())
        run([("lines", "album", 256), ("shards", "album", 256)], args.images)
        for rows in args.rows:
            images = pa.array([{"bytes": f"image {each}".encode(), "path": None} for each in range(rows)])
            pq.write_table(pa.table({"image": images}), f"{rows}.parquet", row_group_size=1024)
            run([("shards", f"{rows}.parquet", 256)], rows)
        subprocess.run(["rm", "-rf", "scores"], check=True)
        Path("few").mkdir()
        for number in range(args.shards):
            os.link(f"album/{number:06d}.png", f"few/{number:06d}.png")
        run([("shards", "few", 1)], args.shards, keep=True)
        run([("shards", "few", 1)], args.shards)


def run(steps: list[tuple[str, str, int]], images: int, keep: bool = False) -> None:
    """Run steps in processes of their own; what they wrote is removed, but where it is kept for the next one."""
    for kind, name, each in steps:
        print(f"{kind:6} {images:6} images, {each:3} a shard: ", end="", flush=True)
        subprocess.run([sys.executable, __file__, "--step", kind, name, str(each)], check=True)
        if not keep:
            subprocess.run(["rm", "-rf", "scores", "lines.jsonl"], check=True)


if __name__ == "__main__":
    main()
