"""Run ``assess`` against every server fault of ``support.faulty``, then ``--resume``, and grade the outcome.

    python tests/benchmarks/fault_sweep.py [--fault NAME...] [--family F...] [--sample N --seed DATE]
                                           [--jobs 2] [--wall 45] [--json OUT]

Each trial runs ``assess --jsonl`` on 10 small photos against the faulty server, with short timeouts and one retry. If
photos remain, ``--resume`` runs against the healthy server at the same address. "good" means: no row differs from the
healthy run (missing rows are completed by ``--resume``); no output has a traceback, control character or key; the exit
status is not 0 if a photo was not assessed; requests, time, memory, output and USD are within limits. "poor" means that
all of this holds, but answers are discarded, rows stay degraded, or the trial takes long.

``--json OUT`` keeps each result at once, and skips the faults of an earlier run. Ctrl-C keeps finished results. The
exit status is 1 if there is a defect.
"""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from support.faulty.exchange import Profile
from support.faulty.profiles import FAMILIES, HEALTHY, PROFILES
from support.faulty.trial import make_photos, run_trial
from support.faulty.verdict import Baseline, judge
from support.faulty_server import faulty_server

Result = dict[str, Any]

PHOTOS = 10
TIMEOUT = 2.5  # seconds, of a request
WALL = 45.0
COLUMNS = "{name:34} {verdict:7} {requests:>8} {seconds:>7} {mb:>6}  {reason}"


class Sweep:
    """Trials in one folder; the healthy run for each number of photos is made once, when it is needed."""

    def __init__(self, folder: Path, wall: float = WALL, timeout: float = TIMEOUT) -> None:
        self.folder, self.wall, self.timeout = folder, wall, timeout
        self._baselines: dict[int, Baseline] = {}
        self._lock = threading.Lock()

    def baseline(self, count: int) -> Baseline:
        """Return the healthy run. Raises RuntimeError if it fails."""
        with self._lock:
            if count not in self._baselines:
                photos = make_photos(self.folder / f"photos-{count}", count)
                with faulty_server() as server:
                    trial = run_trial(server, HEALTHY, self.folder / f"healthy-{count}", photos, 0.0, 120.0, 30.0)
                if trial.first.status != 0 or len(trial.rows) != count:
                    raise RuntimeError(f"the healthy run failed:\n{trial.first.err}")
                rows = {row["image"]: row for row in trial.rows}
                self._baselines[count] = Baseline(rows, len(trial.seen), trial.usd, trial.first.rss)
            return self._baselines[count]

    def run(self, profile: Profile, number: int = 0) -> Result:
        """Try one fault and grade the outcome; ``number`` names the folder."""
        count = profile.photos or PHOTOS
        healthy = self.baseline(count)
        folder = self.folder / f"trial-{number}"
        with faulty_server() as server:
            photos = self.folder / f"photos-{count}"
            trial = run_trial(server, profile, folder, photos, healthy.usd, self.wall, self.timeout)
        verdict = judge(trial, profile, healthy)
        return {
            "fault": profile.name,
            "family": profile.family,
            "what": profile.what,
            "verdict": verdict.word,
            "reason": verdict.reason,
            "rows": dict(verdict.counts),
            "requests": len(trial.seen),
            "seconds": trial.first.seconds,
            "mb": trial.first.rss,
            "usd": round(trial.usd, 5),
            "limit_usd": trial.limit and round(trial.limit, 5),
            "status": trial.first.status,
            "stderr": shortened(trial.first.err),
            "resume_status": trial.again and trial.again.status,
            "resume_stderr": trial.again and shortened(trial.again.err),
        }


def run_all(sweep: Sweep, profiles: Sequence[Profile], jobs: int, done: Callable[[Result], None]) -> None:
    """Try faults, ``jobs`` at a time, and call ``done`` with each result. Ctrl-C abandons the running trials."""
    upcoming = iter(profiles)
    lock, stopped = threading.Lock(), threading.Event()

    def work(number: int) -> None:
        while not stopped.is_set():
            with lock:
                profile = next(upcoming, None)
            if profile is None:
                return
            try:
                result = sweep.run(profile, number)
            except Exception as error:  # the trial itself failed; other faults continue
                result = {"fault": profile.name, "family": profile.family, "what": profile.what, "verdict": "defect"}
                result |= {"reason": f"the trial failed: {error!r}", "requests": 0, "seconds": 0, "mb": 0}
            with lock:
                done(result)

    with ThreadPoolExecutor(jobs) as pool:
        working = [pool.submit(work, number) for number in range(jobs)]
        try:
            # The timeout of a second handles a Ctrl-C that comes just before the wait.
            running = set(working)
            while running:
                finished, running = wait(running, 1, FIRST_EXCEPTION)
                for each in finished:
                    each.result()
        except KeyboardInterrupt:
            stopped.set()
            raise


def drawn(count: int, seed: str, among: Sequence[Profile]) -> list[Profile]:
    """Return a seeded sample of the faults, without those that never end."""
    return random.Random(seed).sample([profile for profile in among if not profile.slow], count)


def shortened(text: str, lines: int = 15, width: int = 300) -> str:
    """Return the first and last lines of an output, each shortened."""
    every = [
        each if len(each) <= width else f"{each[:width]} ... ({len(each)} characters)" for each in text.split("\n")
    ]
    return "\n".join(every if len(every) <= 2 * lines else [*every[:lines], "...", *every[-lines:]])


def line(result: Mapping[str, Any]) -> str:
    return COLUMNS.format(
        name=result["fault"],
        verdict=result["verdict"],
        requests=result["requests"],
        seconds=f"{result['seconds']:.1f}",
        mb=f"{result['mb']:.0f}",
        reason=result["reason"],
    )


def table(results: Sequence[Result]) -> str:
    """Return a table of all results, family by family, with counts."""
    parts = [COLUMNS.format(name="fault", verdict="", requests="requests", seconds="seconds", mb="MB", reason="")]
    for family in FAMILIES:
        of_family = sorted((r for r in results if r["family"] == family), key=lambda r: [*PROFILES].index(r["fault"]))
        if of_family:
            parts += ["", f"{family}: {counted(of_family)}", *map(line, of_family)]
    return "\n".join([*parts, "", f"{len(results)} faults: {counted(results)}"])


def counted(results: Sequence[Result]) -> str:
    counts = Counter(result["verdict"] for result in results)
    return ", ".join(f"{counts[word]} {word}" for word in ("good", "poor", "defect"))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--fault", nargs="+", choices=PROFILES, metavar="NAME", default=[])
    parser.add_argument("--family", nargs="+", choices=FAMILIES, default=[])
    parser.add_argument("--sample", type=int, metavar="N", help="only N faults, chosen by the seed")
    parser.add_argument("--seed", default=time.strftime("%Y-%m-%d"), help="seed of the sample (default: the date)")
    parser.add_argument("--jobs", type=int, default=2, help="number of concurrent trials")
    parser.add_argument("--wall", type=float, default=WALL, help="time limit of a run in seconds")
    parser.add_argument("--json", type=Path, metavar="OUT")
    args = parser.parse_args()
    # A background job of a shell ignores Ctrl-C, and so would the processes under test.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    wanted = [PROFILES[name] for name in args.fault] + [p for p in PROFILES.values() if p.family in args.family]
    wanted = wanted or [*PROFILES.values()]
    if args.sample:
        wanted = drawn(args.sample, args.seed, wanted)
    kept: dict[str, Result] = {}
    if args.json and args.json.exists():
        kept = {result["fault"]: result for result in json.loads(args.json.read_text(encoding="utf-8"))}

    def done(result: Result) -> None:
        kept[result["fault"]] = result
        print(line(result), flush=True)
        if args.json:
            part = args.json.with_suffix(".part")
            part.write_text(json.dumps([*kept.values()], indent=1), encoding="utf-8")
            os.replace(part, args.json)

    interrupted = False
    with tempfile.TemporaryDirectory(prefix="fault-sweep-") as folder:
        try:
            run_all(Sweep(Path(folder), args.wall), [p for p in wanted if p.name not in kept], args.jobs, done)
        except KeyboardInterrupt:
            interrupted = True
    results = [kept[profile.name] for profile in wanted if profile.name in kept]
    print(f"\n{table(results)}")
    if interrupted:
        print(f"interrupted: {len(wanted) - len(results)} faults were not tried", file=sys.stderr)
        return 130
    return int(any(result["verdict"] == "defect" for result in results))


if __name__ == "__main__":
    sys.exit(main())
