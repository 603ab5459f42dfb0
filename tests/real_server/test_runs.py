"""Runs of several images at a server with one slot: they queue, and nothing is lost if the server or the run stops."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.llama_server import ONE_REQUEST, SHARP, LlamaServer

pytestmark = pytest.mark.real_server

PATIENCE = 120  # seconds
ALL_ASSESSED = (0, 3)  # exit statuses without a failed image; 3: an answer was not usable, which is no matter here


def rows_of(file: Path) -> list[dict[str, Any]]:
    """Return the complete rows of a results file."""
    lines = file.read_bytes().split(b"\n")[:-1] if file.exists() else []
    return [json.loads(line) for line in lines]


def wait_until(is_true: Callable[[], bool]) -> None:
    began = time.monotonic()
    while not is_true():
        assert time.monotonic() - began < PATIENCE
        time.sleep(0.05)


def test_images_that_wait_for_the_only_slot_are_all_answered(
    server: LlamaServer, run: Any, configure: Any, examples: Path, tmp_path: Path
) -> None:
    """The time-out is too short for the fourth of four requests at once, so fewer are sent at a time."""
    began = time.monotonic()
    first = run("assess", examples / "coffee_jpeg.jpg", "--query", SHARP, "--config", configure(server, **ONE_REQUEST))
    assert first.status in ALL_ASSESSED, first.err
    timeout = max(2.5 * (time.monotonic() - began), 2.0)
    rows = tmp_path / "rows.jsonl"
    file = configure(server, timeout=timeout, **ONE_REQUEST)
    ran = run("assess", examples, "--query", SHARP, "--config", file, "--workers", 4, "--jsonl", rows)
    assert ran.status in ALL_ASSESSED, ran.err
    assert sorted(Path(row["image"]).name for row in rows_of(rows)) == sorted(file.name for file in examples.iterdir())


def test_a_killed_server_and_a_killed_run_lose_nothing(
    start: Any, run: Any, configure: Any, examples: Path, tmp_path: Path
) -> None:
    rows = tmp_path / "rows.jsonl"
    server = start()
    asked = ["assess", str(examples), "--query", SHARP, "--workers", "1", "--jsonl", str(rows)]
    asked += ["--config", configure(server, **ONE_REQUEST)]
    running = subprocess.Popen([sys.executable, "-m", "agenticiqa", *asked], cwd=tmp_path, stderr=subprocess.PIPE)
    try:
        wait_until(lambda: len(rows_of(rows)) >= 1)
        server.kill()
        start(port=server.port)
        wait_until(lambda: len(rows_of(rows)) >= 3 or running.poll() is not None)
        assert running.poll() is None, "the requests to the killed server are repeated"
    finally:
        running.kill()
        running.communicate()
    kept = rows_of(rows)
    assert 3 <= len(kept) < 6
    resumed = run(*asked, "--resume")
    assert resumed.status in ALL_ASSESSED, resumed.err
    assert [row for row in kept if row["final_answer"] in ("A", "B") and row not in rows_of(rows)] == []
    assert sorted(Path(row["image"]).name for row in rows_of(rows)) == sorted(file.name for file in examples.iterdir())
