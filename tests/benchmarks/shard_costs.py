"""Measure the cost of shards: processor time compared with JSON lines, peak memory by rows, and time to resume.

::

    python tests/benchmarks/shard_costs.py [--images 5000] [--rows 1000 20000] [--shards 1000] [--ray] [--photos DIR]

An assessment by the bytes of an image takes no time, so all measured costs are overhead. ``--ray`` also measures
workers of Ray, and compares two workers with one for assessments that wait 100 ms, which other load hardly affects.
``--photos`` assesses real photos, by threads and by Ray. Each step runs in a new process. Its processor time includes
all child processes; the memory is that of the command.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

if __name__ == "__main__":
    sys.path[:1] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).parent)]

from shard_kills import MS, UndecodedIQA, below, slowly

from agenticiqa.configs import Config
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.ledger import Limits
from agenticiqa.programs.batch.assess_many import assess_many
from agenticiqa.programs.batch.find_jobs import find_jobs
from agenticiqa.programs.batch.results_file import ResultsFile
from agenticiqa.programs.result import Assessment
from agenticiqa.programs.scale.plan_shards import SharedQuestion
from agenticiqa.programs.scale.run_shards import assess_here, run_shards
from agenticiqa.programs.scale.shard_assessor import ShardRun

QUERY = "Rate the perceptual quality of this image."


def shards(name: str, images: int, make: Callable[[Config], AgenticIQA] = UndecodedIQA.from_config) -> None:
    """Assess the images of a folder or table in shards, on this machine."""
    run = ShardRun(Config(), {}, SharedQuestion(QUERY), "scores", 2, (name,), make=make)
    assert not run_shards(run, assess_here, images).unfinished


def photos(name: str, images: int) -> None:
    """Assess them in shards with the real program."""
    shards(name, images, AgenticIQA.from_config)


def on_ray(name: str, images: int, workers: int, make: Callable[[Config], AgenticIQA]) -> None:
    """Assess them in shards with workers of Ray."""
    from agenticiqa.programs.scale.on_ray import ray_engine

    run = ShardRun(Config(), {}, SharedQuestion(QUERY), "scores", 1, (name,), make=make)
    with ray_engine(Limits(), workers, None) as engine:
        used = processor_time()
        assert not run_shards(run, engine, images).unfinished
        written = sorted(path.stat().st_mtime for path in Path("scores").glob("shard-*.parquet"))
        rate = images * (len(written) - 1) / (written[-1] - written[0])  # the start of the first shard is unknown
        print(f"{processor_time() - used:.2f} s including Ray's processes, {rate:.1f} images/s, ", end="", flush=True)


def processor_time() -> float:
    """Return the processor seconds of this process and all of its children, also ended ones."""
    ticks = 0
    for pid in (os.getpid(), *(pid for pid, _ in below(os.getpid()))):
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def lines(name: str, images: int) -> None:
    """Assess them with JSON lines as the output."""
    with ResultsFile("lines.jsonl") as results:
        for _, row in assess_many(
            UndecodedIQA.from_config(Config()), find_jobs([name], QUERY).jobs, 2, Assessment.to_dict
        ):
            assert isinstance(row, dict)
            results.append(row)


STEPS: dict[str, Callable[[str, int], None]] = {
    "shards": shards,
    "lines": lines,
    "photos": photos,
    **{f"ray {n}": partial(on_ray, workers=n, make=UndecodedIQA.from_config) for n in (1, 2)},
    **{f"waiting {n}": partial(on_ray, workers=n, make=slowly) for n in (1, 2)},
    **{f"photos {n}": partial(on_ray, workers=n, make=AgenticIQA.from_config) for n in (1, 2)},
}


def step(kind: str, name: str, images: int) -> None:
    """Run one step and print its times and peak memory."""
    began, used = time.perf_counter(), time.process_time()
    STEPS[kind](name, images)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{time.process_time() - used:.2f} s of processor, {time.perf_counter() - began:.1f} s, peak {peak:.0f} MB",
        flush=True,
    )


def main() -> None:
    """Run the steps and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--rows", type=int, nargs="+", default=(1000, 20000))
    parser.add_argument("--shards", type=int, default=1000)
    parser.add_argument("--ray", action="store_true")
    parser.add_argument("--photos", type=Path)
    parser.add_argument("--step", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.step:
        step(args.step[0], args.step[1], int(args.step[2]))
        return
    photos_of = args.photos and str(args.photos.resolve())
    os.environ |= {MS: "100", "PYTHONPATH": os.pathsep.join(sys.path)}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("album").mkdir()
        for number in range(args.images):
            Path(f"album/{number:06d}.png").write_bytes(f"image {number}".encode())
        run([("lines", "album", 256), ("shards", "album", 256)], args.images)
        for rows in args.rows:
            images = pa.array([{"bytes": f"image {each}".encode(), "path": None} for each in range(rows)])
            pq.write_table(pa.table({"image": images}), f"{rows}.parquet", row_group_size=1024)
            run([("ray 2" if args.ray else "shards", f"{rows}.parquet", 256)], rows)
        if photos_of:
            steps = [("photos", photos_of, 16), ("photos 1", photos_of, 16), ("photos 2", photos_of, 16)]
            run(steps, len([*Path(photos_of).iterdir()]))
        if args.ray:
            run([("ray 1", "album", 256), ("ray 2", "album", 256)], args.images)
            for number in range(600):
                Path("some").mkdir(exist_ok=True)
                os.link(f"album/{number:06d}.png", f"some/{number:06d}.png")
            run([("waiting 1", "some", 10), ("waiting 2", "some", 10)], 600)
            return
        Path("few").mkdir()
        for number in range(args.shards):
            os.link(f"album/{number:06d}.png", f"few/{number:06d}.png")
        run([("shards", "few", 1)], args.shards, keep=True)
        run([("shards", "few", 1)], args.shards)


def run(steps: list[tuple[str, str, int]], images: int, keep: bool = False) -> None:
    """Run each step in a new process; remove its outputs unless ``keep``, for the next step."""
    for kind, name, each in steps:
        print(f"{kind:9} {images:6} images, {each:3} per shard: ", end="", flush=True)
        subprocess.run([sys.executable, __file__, "--step", kind, name, str(each)], check=True)
        if not keep:
            subprocess.run(["rm", "-rf", "scores", "lines.jsonl"], check=True)


if __name__ == "__main__":
    main()
