"""Kill a run over shards at random moments, repeat the command, and compare with a run that nobody interrupted.

::

    python tests/benchmarks/shard_kills.py [--kills 3] [--what worker node driver cluster local]

``worker`` kills the process of one worker of Ray, ``node`` every process of one of the two nodes of a simulated
cluster, ``driver`` the command, ``cluster`` every process of Ray on this machine that the command started, and the
command; ``local`` is the command without Ray. Only processes below those that this script started are killed, by their
numbers. Images are judged by their bytes, each in ``--ms`` milliseconds. The command is given until all is judged, and
then anew for another folder, until there were so many kills. A line for each of these: kills, rows missing, rows twice,
rows that differ, finished shards that were written again, commands that ended by themselves with work left undone.
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
from support.instant import InstantIQA, judged_once

WHAT = ("worker", "node", "driver", "cluster", "local")
MS = "SHARD_KILLS_MS"
TRIES = 5
COUNTED = ("missing", "twice", "different", "judged again", "undone")
NODE = "node.pid"  # a file with the process that all others of the second node are below


class UndecodedIQA(InstantIQA):
    """A program that judges by the hash of the bytes, which need not be an image."""

    def forward(self, image: ImageSource, query: str | None = None, *args: object, **kwargs: object) -> Assessment:
        """See the class."""
        given = read_source(image)
        assert isinstance(given.content, bytes)
        result, digest = judged_once().copy(), hashlib.sha256(given.content).hexdigest()
        time.sleep(self.seconds)
        result.image = copy.copy(result.image)
        vars(result.image).update(source=given.source, sha256=digest)
        score = 1 + 4 * int(digest[:8], 16) / 0xFFFFFFFF
        result.summarizer_result = result.summarizer_result.model_copy(
            update={"final_answer": score, "quality_score": score}
        )
        return result


def slowly(config: Config) -> AgenticIQA:
    """A program that takes so many milliseconds for an image."""
    program = UndecodedIQA.from_config(config)
    program.seconds = float(os.environ[MS]) / 1000
    return program


def assess(output: str, what: str) -> int:
    """The command of which processes are killed: judge ``album`` into ``output``; 1 where it is not all done."""
    from shard_kills import slowly  # by its name, so that other processes find it

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
    """A node of Ray has 30 s to start, which a busy machine may not give it."""
    for _ in range(TRIES - 1):
        with suppress(Exception):  # Ray raises plain ones
            return start()
    return start()


@contextmanager
def two_nodes(cpus: int = 1) -> Iterator[int]:
    """A cluster of two nodes of so many processors each, simulated on this machine, which ``$RAY_ADDRESS`` names.

    Yields the process that all others of the second node are below.
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
    """The processes below one, with their commands."""
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
    """Kill processes by their numbers; those that have ended are left out."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def attempt(command: list[str], what: str, output: Path, kills: int, draw: random.Random, before: list[int]) -> int:
    """Give the command once, and kill up to so many times (but a worker, once); returns its exit status.

    The moment: some files after those that are there, and up to .4 s.
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
    kill(pid for pid, _ in known)  # what Ray has left behind
    return status


def finished(output: Path) -> dict[str, int]:
    """The files of shards, with the moments at which they were written."""
    return {path.name: path.stat().st_mtime_ns for path in output.glob("shard-*.parquet")}


def rows(output: Path) -> list[tuple[str, str]]:
    """Image, and what was found, without times."""
    times = ("timings_ms", "usage_by_stage", "executor_evidence", "summarizer_result")
    return [(row["image"], str({k: v for k, v in row.items() if k not in times})) for row in shard_rows(output)]


def main() -> int:
    """Run the comparison; 1 where anything differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--what", nargs="+", choices=WHAT, default=WHAT)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--images", type=int, default=400)
    parser.add_argument("--ms", default="20")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--judge", nargs=2, metavar=("OUTPUT", "WHAT"), help=argparse.SUPPRESS)
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
        command = [sys.executable, str(Path(__file__).resolve()), "--judge"]
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
                    counts["judged again"] += sum(kept.get(p, at) != at for p, at in finished(output).items())
                    counts["undone"] += status > 0
                    kept = finished(output)
                found = rows(output)
                images = Counter(image for image, _ in found)
                counts["missing"] += len(expected.keys() - images.keys())
                counts["twice"] += sum(count - 1 for count in images.values())
                counts["different"] += sum(expected.get(image) != row for image, row in found)
            wrong += counts.total() - counts["undone"]
            shown = ", ".join(f"{counts[each]} {each}" for each in COUNTED)
            print(f"{what:8} {len(before):2} kills, when {before} files were there: {shown}", flush=True)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
