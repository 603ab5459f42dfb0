"""Kill a run over shards at random moments, repeat the command, and compare with an uninterrupted run.

::

    python tests/benchmarks/shard_kills.py [--kills 3] [--what worker node driver cluster local]

``worker`` kills one worker of Ray, ``node`` all processes of one of two nodes of a simulated cluster, ``driver`` the
command, and ``cluster`` the command with all processes of Ray that it started. ``local`` is the command without Ray.
Only child processes of this script are killed, by process ID. Images are assessed by their bytes, each in ``--ms``
milliseconds. The command is repeated until all images are assessed, then for a new folder, until ``--kills`` is
reached. The output has a line for each kind: kills, missing rows, duplicate rows, different rows, finished shards that
were written again, and commands that ended without a kill but with unfinished work.
"""

import argparse
import copy
import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[:1] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).parent)]

from agenticiqa.configs import Config
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.ledger import Limits
from agenticiqa.programs.images import ImageSource
from agenticiqa.programs.images.sources import read_source
from agenticiqa.programs.result import Assessment
from agenticiqa.programs.scale.names import PLAN
from agenticiqa.programs.scale.plan_shards import SharedQuestion
from agenticiqa.programs.scale.run_shards import assess_here, run_shards
from agenticiqa.programs.scale.shard_assessor import ShardRun
from agenticiqa.programs.scale.table import shard_rows
from support.instant import InstantIQA, assessed_once

WHAT = ("worker", "node", "driver", "cluster", "local")
MS = "SHARD_KILLS_MS"
TRIES = 5
COUNTED = ("missing", "duplicate", "different", "assessed again", "unfinished")
NODE = "node.pid"  # file with the ID of the parent of all processes of the second node


class UndecodedIQA(InstantIQA):
    """A program that scores by the hash of the bytes, which need not be an image."""

    def forward(self, image: ImageSource, query: str | None = None, *args: object, **kwargs: object) -> Assessment:
        """Return the result for the bytes of the image."""
        given = read_source(image)
        assert isinstance(given.content, bytes)
        result, digest = assessed_once().copy(), hashlib.sha256(given.content).hexdigest()
        time.sleep(self.seconds)
        result.image = copy.copy(result.image)
        vars(result.image).update(source=given.source, sha256=digest)
        score = 1 + 4 * int(digest[:8], 16) / 0xFFFFFFFF
        result.summarizer_result = result.summarizer_result.model_copy(
            update={"final_answer": score, "quality_score": score}
        )
        return result


def slowly(config: Config) -> AgenticIQA:
    """Return a program that takes ``$SHARD_KILLS_MS`` milliseconds for an image."""
    program = UndecodedIQA.from_config(config)
    program.seconds = float(os.environ[MS]) / 1000
    return program


def assess(output: str, what: str) -> int:
    """Assess ``album`` into ``output``, as the command to kill; return 1 if images remain."""
    from shard_kills import slowly  # imported by name, so that other processes find it

    if what == "node":
        with two_nodes() as pid:
            Path(NODE).write_text(str(pid))
            return assess(output, "worker")

    run = ShardRun(
        Config(), {}, SharedQuestion("Rate the perceptual quality of this image."), output, 2, ("album",), make=slowly
    )
    if what != "local":
        from agenticiqa.programs.scale.on_ray import ray_engine

        with ray_engine(Limits(), 2, None) as engine:
            ended = run_shards(run, engine, 20)
    else:
        ended = run_shards(run, assess_here, 20)
    return int(bool(ended.unfinished or ended.set_aside))


def patiently(start: Callable[[], Any]) -> Any:
    """Start a node of Ray, again if it fails: on a busy machine it may take more than its limit of 30 s."""
    for _ in range(TRIES - 1):
        with suppress(Exception):  # Ray raises plain ones
            return start()
    return start()


@contextmanager
def two_nodes(cpus: int = 1) -> Iterator[int]:
    """Simulate a cluster of two nodes with ``cpus`` processors each on this machine, and set ``$RAY_ADDRESS``.

    Yields the ID of the parent of all processes of the second node.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    size = {"num_cpus": cpus, "num_gpus": 0, "object_store_memory": 128 * 2**20, "include_dashboard": False}
    cluster = patiently(lambda: Cluster(initialize_head=True, head_node_args=size))
    try:
        node = patiently(lambda: cluster.add_node(**size))
        cluster.wait_for_nodes()
        os.environ["RAY_ADDRESS"] = cluster.address
        yield next(each.process.pid for each in node.all_processes["raylet"])
    finally:
        os.environ.pop("RAY_ADDRESS", None)
        cluster.shutdown()


def below(pid: int) -> Iterator[tuple[int, str]]:
    """Yield the IDs and commands of all descendants of a process."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
    waiting = [pid]
    while waiting:
        for child in parents.get(waiting.pop(), ()):
            waiting.append(child)
            try:
                yield child, (Path("/proc") / str(child) / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue


def kill(pids: Iterable[int]) -> None:
    """Kill processes by ID; ignore those that have ended."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def attempt(command: list[str], what: str, output: Path, kills: int, draw: random.Random, before: list[int]) -> int:
    """Run the command once, kill it once (workers up to ``kills`` times), and return its exit status.

    A kill comes after up to two more files and up to .4 s.
    """
    process = subprocess.Popen(command, start_new_session=True)
    known: list[tuple[int, str]] = []
    while process.poll() is None and kills:
        target = len(finished(output)) + draw.randrange(0, 3)
        while process.poll() is None and not (len(finished(output)) >= target and (output / PLAN).exists()):
            time.sleep(0.05)
        time.sleep(draw.uniform(0, 0.4))
        known = [*below(process.pid)]
        workers = [pid for pid, command_line in known if "MapWorker" in command_line]
        if what == "worker" and not workers:
            time.sleep(0.2)
            continue
        if what == "worker":
            chosen = [draw.choice(workers)]
        elif what == "node":
            raylet = int(Path(NODE).read_text())
            chosen = [raylet, *(pid for pid, _ in below(raylet))]
        else:
            chosen = [process.pid, *(pid for pid, _ in known if what == "cluster")]
        if process.poll() is None:
            kill(chosen)
            kills -= 1
            before.append(len(finished(output)))
        if what != "worker":
            break
    status = process.wait()
    time.sleep(2 if known else 0)
    kill(pid for pid, _ in known)  # remaining processes of Ray
    return status


def finished(output: Path) -> dict[str, int]:
    """Return the files of shards with their modification times."""
    return {path.name: path.stat().st_mtime_ns for path in output.glob("shard-*.parquet")}


def rows(output: Path) -> list[tuple[str, str]]:
    """Return image and row of each result, without times."""
    times = ("timings_ms", "usage_by_stage", "executor_evidence", "summarizer_result")
    return [(row["image"], str({k: v for k, v in row.items() if k not in times})) for row in shard_rows(output)]


def main() -> int:
    """Run the comparison; return 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--what", nargs="+", choices=WHAT, default=WHAT)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--images", type=int, default=400)
    parser.add_argument("--ms", default="20")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--assess", nargs=2, metavar=("OUTPUT", "WHAT"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.assess:
        return assess(*args.assess)
    draw, wrong = random.Random(args.seed), 0
    os.environ[MS] = args.ms
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("album").mkdir()
        for number in range(args.images):
            Path(f"album/{number:05d}.png").write_bytes(f"image {number}".encode())
        command = [sys.executable, str(Path(__file__).resolve()), "--assess"]
        subprocess.run([*command, "whole", "local"], check=True)
        expected = dict(rows(Path("whole")))
        for what in args.what:
            before, counts = list[int](), Counter[str]()
            while len(before) < args.kills:
                output, kept = Path(f"scores-{what}-{len(before)}"), dict[str, int]()
                once = [*command, str(output), what]
                status = -1
                while status:
                    status = attempt(once, what, output, args.kills - len(before), draw, before)
                    counts["assessed again"] += sum(kept.get(p, at) != at for p, at in finished(output).items())
                    counts["unfinished"] += status > 0
                    kept = finished(output)
                found = rows(output)
                images = Counter(image for image, _ in found)
                counts["missing"] += len(expected.keys() - images.keys())
                counts["duplicate"] += sum(count - 1 for count in images.values())
                counts["different"] += sum(expected.get(image) != row for image, row in found)
            wrong += counts.total() - counts["unfinished"]
            shown = ", ".join(f"{counts[each]} {each}" for each in COUNTED)
            print(f"{what:8} {len(before):2} kills, after {before} files: {shown}", flush=True)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
