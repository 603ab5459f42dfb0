"""Kill a run over shards at random moments, repeat the command, and compare with a run that nobody interrupted.

::

    python tests/benchmarks/shard_kills.py [--kills 3] [--what worker driver cluster local]

``worker`` kills the process of one worker of Ray, ``driver`` the command, ``cluster`` every process of Ray on this
machine that the command started, and the command; ``local`` is the command without Ray. Only processes below those that
this script started are killed, by their numbers. Images are judged by their bytes, each in ``--ms`` milliseconds. A
line for each of these: kills, rows missing, rows twice, rows that differ, finished shards that were written again.
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
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

if __name__ == "__main__":
    sys.path[:1] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).parent)]

from agenticiqa.configs import Config
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.ledger import Limits
from agenticiqa.programs.images import ImageSource
from agenticiqa.programs.images.sources import read_source
from agenticiqa.programs.result import Assessment
from agenticiqa.programs.scale.inputs import SharedQuestion
from agenticiqa.programs.scale.judging import ShardRun
from agenticiqa.programs.scale.names import PLAN
from agenticiqa.programs.scale.run import judge_here, run_shards
from agenticiqa.programs.scale.table import shard_rows
from support.instant import InstantIQA, judged_once

WHAT = ("worker", "driver", "cluster", "local")
MS = "SHARD_KILLS_MS"


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


def judge(output: str, on_ray: bool) -> int:
    """The command of which processes are killed: judge ``album`` into ``output``; 1 where it is not all done."""
    from shard_kills import slowly  # by its name, so that other processes find it

    run = ShardRun(
        Config(), {}, SharedQuestion("Rate the perceptual quality of this image."), output, 2, ("album",), make=slowly
    )
    if on_ray:
        from agenticiqa.programs.scale.on_ray import ray_engine

        with ray_engine(Limits(), 2, None) as engine:
            ended = run_shards(run, engine, 20)
    else:
        ended = run_shards(run, judge_here, 20)
    return int(bool(ended.unfinished or ended.set_aside))


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
        chosen = {
            "worker": workers and [draw.choice(workers)],
            "cluster": [process.pid, *(pid for pid, _ in known)],
        }.get(what, [process.pid])
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
    parser.add_argument("--judge", nargs=2, metavar=("OUTPUT", "RAY"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.judge:
        return judge(args.judge[0], args.judge[1] == "ray")
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
        print("moment   kills  files at each  missing  twice  different  judged again", flush=True)
        for what in args.what:
            output, before, kept, again = Path(f"scores-{what}"), list[int](), dict[str, int](), 0
            once = [*command, str(output), "local" if what == "local" else "ray"]
            while attempt(once, what, output, args.kills - len(before), draw, before):
                again += sum(kept.get(path, moment) != moment for path, moment in finished(output).items())
                kept = finished(output)
            again += sum(kept.get(path, moment) != moment for path, moment in finished(output).items())
            found = rows(output)
            images = Counter(image for image, _ in found)
            missing, twice = len(expected.keys() - images.keys()), sum(count - 1 for count in images.values())
            different = sum(expected.get(image) != row for image, row in found)
            wrong += missing + twice + different + again
            files = ", ".join(map(str, before))
            print(
                f"{what:8} {len(before):4}  {files:13}  {missing:7}  {twice:5}  {different:9}  {again:12}", flush=True
            )
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
