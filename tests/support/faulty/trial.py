"""One trial of a fault: ``agenticiqa assess`` in another process against the faulty server, then ``--resume``
against the healthy one at the same address."""

import contextlib
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.faulty.exchange import Profile
from support.faulty_server import Entry, FaultyServer

KEY = "sk-sweep-1f6e0d9c8b7a5948372615"
PRICE = (2.0, 10.0)  # USD per million tokens, input and output
SIDE = 48  # pixels of a photo
MOST_RSS = 900  # MB, where a process is ended
TICK = 0.05  # seconds between looks at a running process
AFTER_CTRL_C = 8.0  # seconds
OUTPUT_KEPT = 200_000  # characters of a stream

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
    """One process: its exit status (``None`` if it was ended), output, seconds, peak memory in MB.

    ``ended`` is why it was ended from outside, ``ctrl_c`` the seconds until Ctrl-C made it end, if it did.
    """

    status: int | None
    out: str
    err: str
    seconds: float
    rss: float
    output: int  # characters, of both streams
    ended: str = ""
    ctrl_c: float | None = None


@dataclass
class Trial:
    """A fault's two runs; ``again`` is missing if the first one was complete."""

    first: Ran
    again: Ran | None
    rows: list[dict[str, Any]]  # after the first run
    healed: list[dict[str, Any]]  # after both
    seen: list[Entry]
    usd: float  # the true price of what the first run sent
    limit: float | None
    leaks: list[str] = field(default_factory=list)  # the files with the key in them

    @property
    def names(self) -> set[str]:
        return {row["image"] for row in self.healed}


def make_photos(folder: Path, count: int) -> Path:
    """Write this many different PNG files; the same ones each time."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        chance = random.Random(number)
        corners = [[chance.randrange(256) for _ in range(3)] for _ in range(4)]
        rows = [
            b"\0"
            + bytes(
                min(
                    255,
                    (a * (SIDE - x) + b * x) // SIDE * (SIDE - y) // SIDE
                    + (c * x + d * (SIDE - x)) // SIDE * y // SIDE,
                )
                for x in range(SIDE)
                for a, b, c, d in zip(*corners, strict=True)
            )
            for y in range(SIDE)
        ]
        (folder / f"{number:02}.png").write_bytes(_png(b"".join(rows)))
    return folder


def run_trial(
    server: FaultyServer, profile: Profile, folder: Path, photos: Path, healthy_usd: float, wall: float, timeout: float
) -> Trial:
    """Make a trial in an empty folder. ``wall`` is in seconds, for each of the two runs."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    config, rows_file = folder / "config.yaml", folder / "rows.jsonl"
    config.write_text(CONFIG.format(url=server.url, price=PRICE, timeout=timeout))
    limit = healthy_usd * profile.budget if profile.budget else None
    command = [sys.executable, "-m", "agenticiqa", "assess", str(photos), "--config", str(config)]
    command += ["--jsonl", str(rows_file), "--workers", str(profile.workers or 4)]
    server.fault = profile.name
    server.clear()
    first = _run([*command, *(["--max-usd", f"{limit:.6f}"] if limit else [])], folder, wall)
    seen = server.clear()
    server.fault = "healthy"
    rows = read_rows(rows_file)
    again = None
    if first.status != 0 or unlike_complete(rows, photos):
        again = _run([*command, "--resume"], folder, wall)
    usd = sum(e.tokens[0] * PRICE[0] + e.tokens[1] * PRICE[1] for e in seen) / 1e6
    return Trial(first, again, rows, read_rows(rows_file), seen, usd, limit, _leaks(folder))


def unlike_complete(rows: list[dict[str, Any]], photos: Path) -> bool:
    """Return whether a run is incomplete: an image has no row, or a row reports a doubt."""
    assessed = {Path(row["image"]).name for row in rows if isinstance(row.get("quality_score"), float)}
    doubts = any(row.get("rejected_answers") or row["executor_evidence"]["failures"] for row in rows)
    return doubts or assessed != {file.name for file in photos.iterdir()}


def read_rows(file: Path) -> list[dict[str, Any]]:
    """Return the latest row of each image. Raises ValueError for a line that is not JSON."""
    lines = file.read_text(encoding="utf-8").split("\n") if file.exists() else []
    rows = [json.loads(line) for line in lines if line]
    return [*{row["image"]: row for row in rows}.values()]


def _run(command: list[str], folder: Path, wall: float) -> Ran:
    environment = {
        name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_PROXY", "_proxy"))
    }
    environment |= {
        "FAULT_SWEEP_KEY": KEY,
        "DSPY_CACHEDIR": str(folder / "dspy"),
        "AGENTICIQA_CACHE": str(folder / "cache"),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "PYTHONIOENCODING": "utf-8",
    }
    began = time.perf_counter()
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment, start_new_session=True
        )
        with _killed_at_the_end(process):
            status, peak, ended, ctrl_c = _watched(process, wall)
    seconds = time.perf_counter() - began
    texts = [(folder / name).read_bytes().decode("utf-8", "replace") for name in ("out", "err")]
    kept = [text if len(text) < OUTPUT_KEPT else text[:OUTPUT_KEPT] for text in texts]
    return Ran(status, *kept, round(seconds, 1), round(peak), sum(map(len, texts)), ended, ctrl_c)


def _watched(process: "subprocess.Popen[bytes]", wall: float) -> tuple[int | None, float, str, float | None]:
    """Wait for the end of a process; end it at its limits, first with Ctrl-C if it takes too long.

    Return status, peak memory in MB, why it was ended, and the seconds from Ctrl-C to its end.
    """
    began, peak, ended, interrupted = time.perf_counter(), 0.0, "", 0.0
    while process.poll() is None:
        now = time.perf_counter()
        peak = max(peak, _peak(process.pid))
        if not ended and peak > MOST_RSS:
            ended = "memory"
            process.kill()
        elif not ended and now - began > wall:
            ended, interrupted = "time", now
            process.send_signal(signal.SIGINT)
        elif ended == "time" and now - interrupted > AFTER_CTRL_C:
            process.kill()
        time.sleep(TICK)
    left = ended == "time" and process.returncode == 130
    return (
        None if ended else process.returncode,
        peak,
        ended,
        round(time.perf_counter() - interrupted, 1) if left else None,
    )


@contextlib.contextmanager
def _killed_at_the_end(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    try:
        yield
    finally:
        if process.returncode is None:
            process.kill()
            with contextlib.suppress(ChildProcessError):
                process.wait()


def _peak(pid: int) -> float:
    """Return a process's peak memory so far, in MB. (The value of ``wait4`` includes the parent's.)"""
    with contextlib.suppress(OSError, ValueError, IndexError):
        text = Path(f"/proc/{pid}/status").read_text()
        return int(text.partition("VmHWM:")[2].split()[0]) / 1024
    return 0.0


def _leaks(folder: Path) -> list[str]:
    key = KEY.encode()
    return [
        str(file.relative_to(folder))
        for file in sorted(folder.rglob("*"))
        if file.is_file() and key in file.read_bytes()
    ]


def _png(rows: bytes) -> bytes:
    """Return a PNG file of RGB rows, each with its filter byte."""

    def part(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", zlib.compress(rows)) + part(b"IEND", b"")
