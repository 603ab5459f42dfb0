"""Run ``assess`` against every server fault of ``support.faulty``, then ``--resume``, and grade the outcome.

    python benchmarks/fault_sweep.py [FAULT or FAMILY ...] [--jobs 2] [--wall 75] [--json OUT]

Each trial runs ``assess --jsonl`` on 10 small photos against the faulty server, with short timeouts and one retry. If
photos remain, ``--resume`` runs against the healthy server at the same address. "good" means: no row differs from the
healthy run (missing rows are completed by ``--resume``); no output has a traceback, control character or key; the exit
status is not 0 if a photo was not assessed; requests, time, memory, output and USD are within limits. "poor" means that
all of this holds, but answers are discarded, rows stay degraded, or the trial takes long.

``--json OUT`` keeps each result at once. The exit status is 1 if there is a defect.
"""

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1] / "tests")

from support.faulty.exchange import Profile
from support.faulty.profiles import FAMILIES, HEALTHY, PROFILES
from support.faulty_server import FaultyServer, faulty_server

Row = Mapping[str, Any]
Result = dict[str, Any]

PHOTOS = 10
KEY = "sk-sweep-1f6e0d9c8b7a5948372615"
PRICE = (2.0, 10.0)  # USD per million tokens, input and output
TIMEOUT, HEALTHY_TIMEOUT = 2.5, 30.0  # seconds of a request
AFTER_CTRL_C = 8.0  # seconds until a process is killed
LONG = 60.0  # seconds for a run that no fault makes endless
MANY_REQUESTS, TOO_MANY_REQUESTS = 3.0, 6.0  # times those of the healthy run
MOST_OUTPUT = 100_000  # characters
MOST_RSS = 900  # MB, where a process is ended
MORE_MEMORY, PER_WORKER = 200, 5  # MB above the healthy run of 4 workers, and for each of more workers
OFF = 0.02  # of a probability, and of a score
TRACEBACK = "Traceback (most recent call last)"
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
MARK = re.compile(r"img-[0-9a-f]{8}")
COLUMNS = "{fault:34} {verdict:7} {requests:>8} {seconds:>7} {mb:>6}  {reason}"

CONFIG = """\
planner: &model
  backend: vllm.sweep
  api_base: {url}
  api_key_env: FAULT_SWEEP_KEY
  timeout: {timeout}
  max_retries: 1
  price: {{input: {price[0]}, output: {price[1]}}}
executor: *model
summarizer: *model
replan: *model
"""


@dataclass
class Ran:
    """One process: exit status, outputs, seconds, peak memory in MB, and why it was ended from outside, if it was."""

    status: int
    out: str
    err: str
    seconds: float
    rss: float
    ended: str = ""


@dataclass
class Healthy:
    """The healthy run of the same photos: its rows by image, requests, USD and memory in MB."""

    rows: dict[str, Row]
    requests: int
    usd: float
    rss: float


class Sweep:
    """Trials in one folder; the healthy run for each number of photos is made once, when it is needed."""

    def __init__(self, folder: Path, wall: float) -> None:
        self.folder, self.wall = folder, wall
        self._healthy: dict[int, Healthy] = {}
        self._lock = threading.Lock()

    def healthy(self, count: int) -> Healthy:
        """Return the healthy run. Raises RuntimeError if it fails."""
        with self._lock:
            if count not in self._healthy:
                photos = _make_photos(self.folder / f"photos-{count}", count)
                with faulty_server() as server:
                    folder = self.folder / f"healthy-{count}"
                    ran = _run(_command(server, folder, photos, HEALTHY_TIMEOUT), folder, 120.0)
                    rows = _rows(folder)
                    if ran.status != 0 or len(rows) != count:
                        raise RuntimeError(f"the healthy run failed:\n{ran.err}")
                    self._healthy[count] = Healthy(rows, len(server.tokens), _usd(server), ran.rss)
            return self._healthy[count]

    def run(self, fault: Profile) -> Result:
        """Try one fault and grade the outcome."""
        count = fault.photos or PHOTOS
        healthy, folder = self.healthy(count), self.folder / fault.name
        limit = healthy.usd * fault.budget if fault.budget else None
        with faulty_server(fault.name) as server:
            command = _command(server, folder, self.folder / f"photos-{count}", TIMEOUT, fault.workers or 4)
            limited = [] if limit is None else ["--max-usd", f"{limit:.6f}"]
            first = _run([*command, *limited], folder, self.wall)
            requests, usd, rows = len(server.tokens), _usd(server), _rows(folder)
            server.set(HEALTHY.name)
            runs = {"": first}
            if first.status != 0 or _incomplete(rows, count):
                runs["resume: "] = _run([*command, "--resume"], folder, self.wall)
        detectable = fault.expect != "undetectable"
        states = _states(rows, healthy)
        defects, blemishes = _defects_of_rows(states, first.status, detectable), []
        if len(runs) == 2:
            healed = _states(_rows(folder), healthy)
            defects += _defects_of_resume(healed, runs["resume: "], detectable)
            if healed["degraded"]:
                blemishes.append(f"{healed['degraded']} degraded rows kept by --resume")
        for name, ran in runs.items():
            defects += [name + defect for defect in _defects_of(ran)]
            if not ran.ended and not fault.slow and ran.seconds > LONG:
                blemishes.append(f"{name}{ran.seconds:.0f} s")
        if leaks := [str(path) for path in folder.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]:
            defects.append(f"the key in {', '.join(leaks)}")
        share = requests / healthy.requests
        if share > MANY_REQUESTS:
            found = defects if share > TOO_MANY_REQUESTS else blemishes
            found.append(f"{requests} requests, {share:.1f} times the healthy run's")
        if limit is not None and usd > limit * 1.005:
            defects.append(f"limit of {limit:.4f} USD, {usd:.4f} spent")
        if not first.ended and first.rss > healthy.rss + MORE_MEMORY + PER_WORKER * (fault.workers or 0):
            blemishes.append(f"{first.rss:.0f} MB, healthy {healthy.rss:.0f}")
        if fault.expect == "assessed" and states["right"] < count:
            blemishes.append(f"{count - states['right']} of {count} answers thrown away or not got")
        shutil.rmtree(folder)
        verdict = "poor" if blemishes else "good"
        return {
            "fault": fault.name,
            "verdict": "defect" if defects else verdict,
            "reason": "; ".join(defects + blemishes),
            "rows": dict(states),
            "requests": requests,
            "seconds": f"{first.seconds:.1f}",
            "mb": f"{first.rss:.0f}",
            "status": first.status,
            "stderr": {name: ran.err[-3000:] for name, ran in runs.items()},
        }


def _make_photos(folder: Path, count: int) -> Path:
    """Write this many different PNG files; the same ones each time."""
    folder.mkdir()
    for number in range(count):
        corners = np.random.default_rng(number).integers(0, 256, (2, 2, 3), dtype=np.uint8)
        Image.fromarray(corners).resize((48, 48), Image.Resampling.BILINEAR).save(folder / f"{number:02}.png")
    return folder


def _command(server: FaultyServer, folder: Path, photos: Path, timeout: float, workers: int = 4) -> list[str]:
    folder.mkdir()
    config = folder / "config.yaml"
    config.write_text(CONFIG.format(url=server.url, price=PRICE, timeout=timeout))
    outputs = ["--jsonl", str(folder / "rows.jsonl"), "--workers", str(workers)]
    return [sys.executable, "-m", "agenticiqa", "assess", str(photos), "--config", str(config), *outputs]


def _run(command: list[str], folder: Path, wall: float) -> Ran:
    """Run a command, and end it if it takes too much memory, or more than ``wall`` seconds (with Ctrl-C first)."""
    secret = ("_API_KEY", "_PROXY", "_proxy")
    environment = {name: value for name, value in os.environ.items() if not name.endswith(secret)}
    environment |= {"FAULT_SWEEP_KEY": KEY, "DSPY_CACHEDIR": str(folder / "dspy"), "PYTHONIOENCODING": "utf-8"}
    environment |= {"AGENTICIQA_CACHE": str(folder / "cache"), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    began, peak, ended = time.perf_counter(), 0.0, ""
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment, start_new_session=True
        )
        while process.poll() is None:
            peak = max(peak, _peak(process.pid))
            if peak > MOST_RSS:
                ended = f"took {peak:.0f} MB"
                process.kill()
            elif time.perf_counter() - began > wall:
                ended = f"did not end in {wall:.0f} s (ended by Ctrl-C)"
                process.send_signal(signal.SIGINT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(AFTER_CTRL_C)
                if process.poll() is None:
                    ended = f"did not end in {wall:.0f} s (killed after Ctrl-C)"
                    process.kill()
            time.sleep(0.05)
    texts = [(folder / name).read_bytes().decode("utf-8", "replace") for name in ("out", "err")]
    return Ran(process.wait(), *texts, time.perf_counter() - began, peak, ended)


def _peak(pid: int) -> float:
    """Return a process's peak memory so far, in MB. (The value of ``wait4`` includes the parent's.)"""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/status").read_text().partition("VmHWM:")[2].split()[0]) / 1024
    return 0.0


def _usd(server: FaultyServer) -> float:
    return sum(tokens[0] * PRICE[0] + tokens[1] * PRICE[1] for tokens in server.tokens) / 1e6


def _rows(folder: Path) -> dict[str, Row]:
    """Return the latest row of each image. Raises ValueError for a line that is not JSON."""
    file = folder / "rows.jsonl"
    lines = file.read_text(encoding="utf-8").split("\n") if file.exists() else []
    rows = [json.loads(line) for line in lines if line]
    return {row["image"]: row for row in rows}


def _incomplete(rows: Mapping[str, Row], count: int) -> bool:
    """Return whether an image has no score, or a row reports a doubt."""
    assessed = [row for row in rows.values() if isinstance(row.get("quality_score"), float)]
    doubts = any(row.get("rejected_answers") or row["executor_evidence"]["failures"] for row in rows.values())
    return doubts or len(assessed) < count


def _states(rows: Mapping[str, Row], healthy: Healthy) -> Counter[str]:
    """Count the images by state: right, degraded (differs and reports a problem), unscored, wrong, foreign, missing."""
    states = [_state(rows[image], good) if image in rows else "missing" for image, good in healthy.rows.items()]
    return Counter(states)


def _state(row: Row, good: Row) -> str:
    if set(MARK.findall(str(row))) - set(MARK.findall(good["quality_reasoning"])):
        return "foreign"  # it has an answer about another image
    if not isinstance(row.get("quality_score"), int | float):
        return "unscored"
    evidence, probs = row["executor_evidence"], row["quality_probs"] or {}
    near = all(abs(probs.get(level, 0) - share) <= OFF for level, share in good["quality_probs"].items())
    if near and abs(row["quality_score"] - good["quality_score"]) <= OFF and _found(row) == _found(good):
        return "right"
    shown = row["rejected_answers"] or evidence["failures"] or evidence["notes"]
    return "degraded" if shown or row["probability_source"] not in ("logprobs", "quality_probs") else "wrong"


def _found(row: Row) -> list[Any]:
    """Return the findings of the stages before the score, without explanations."""
    evidence = row["executor_evidence"]
    analyses = {
        region: [(item["type"], item["severity"]) for item in items]
        for region, items in (evidence["distortion_analysis"] or {}).items()
    }
    return [evidence["distortion_set"], analyses, evidence["selected_tools"]]


def _defects_of_rows(states: Counter[str], status: int, detectable: bool) -> list[str]:
    defects = []
    if detectable and (states["wrong"] or states["foreign"]):
        defects.append(f"{states['wrong']} wrong rows, {states['foreign']} about another image")
    if status == 0 and (states["missing"] or states["unscored"]):
        defects.append(f"exit status 0 with {states['unscored']} unscored and {states['missing']} missing")
    return defects


def _defects_of_resume(states: Counter[str], again: Ran, detectable: bool) -> list[str]:
    defects, bad = [], ["unscored", "missing"]
    if detectable:
        bad += ["wrong", "foreign"]
    if left := ", ".join(f"{states[state]} {state}" for state in bad if states[state]):
        defects.append(f"not healed by --resume: {left}")
    if again.status != 0 and not again.ended:
        defects.append(f"resume: exit status {again.status}")
    return defects


def _defects_of(ran: Ran) -> list[str]:
    """Return the defects of a process and its outputs."""
    text = ran.out + ran.err
    defects = [ran.ended] if ran.ended else []
    if TRACEBACK in text:
        last = re.findall(r"(?m)^[\w.]+(?:Error|Exception|Warning|Interrupt)\b.*", ran.err)
        defects.append(f"traceback ({last[-1][:80] if last else 'no error line'})")
    if not ran.ended and ran.status not in (0, 1, 2, 3):
        defects.append(f"exit status {ran.status}")
    if len(text) > MOST_OUTPUT:
        defects.append(f"{len(text):,} characters of output")
    if found := CONTROL.search(text):
        defects.append(f"control character {found[0]!r} in the output")
    if KEY[: len(KEY) // 2] in text:
        defects.append("the key in the output")
    return defects


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("wanted", nargs="*", metavar="FAULT or FAMILY", help="default: all")
    parser.add_argument("--jobs", type=int, default=2, help="number of concurrent trials")
    parser.add_argument("--wall", type=float, default=75.0, help="time limit of a run in seconds")
    parser.add_argument("--json", type=Path, metavar="OUT")
    args = parser.parse_args()
    if unknown := set(args.wanted) - {*PROFILES, *FAMILIES}:
        parser.error(f"no fault or family is named {', '.join(sorted(unknown))}: see tests/support/faulty")
    faults = [
        fault
        for fault in PROFILES.values()
        if fault is not HEALTHY and (not args.wanted or {fault.name, fault.family} & set(args.wanted))
    ]
    # A background job of a shell ignores Ctrl-C, and so would the processes under test.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    results: list[Result] = []
    print(COLUMNS.format(fault="fault", verdict="", requests="requests", seconds="seconds", mb="MB", reason=""))
    with tempfile.TemporaryDirectory(prefix="fault-sweep-") as folder, ThreadPoolExecutor(args.jobs) as pool:
        sweep = Sweep(Path(folder), args.wall)
        trials = [pool.submit(sweep.run, fault) for fault in faults]
        try:
            for trial in as_completed(trials):
                results.append(trial.result())
                print(COLUMNS.format(**results[-1]), flush=True)
                if args.json:
                    args.json.write_text(json.dumps(results, indent=1), encoding="utf-8")
        finally:
            pool.shutdown(cancel_futures=True)
    counts = Counter(result["verdict"] for result in results)
    print(f"{len(results)} faults: {', '.join(f'{counts[word]} {word}' for word in ('good', 'poor', 'defect'))}")
    return int(counts["defect"] > 0)


if __name__ == "__main__":
    sys.exit(main())
