"""Faults drawn by the date, each tried against ``assess`` as users run it; what is known to go wrong is listed.

``python tests/benchmarks/fault_sweep.py`` tries all of them. An entry of ``known_defects.yaml`` that goes well has to
be removed; its list only shrinks.
"""

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from benchmarks.fault_sweep import Sweep, drawn, line, run_all, table

from support.faulty.profiles import PROFILES

HERE = Path(__file__).parent
SCRIPT = HERE.parents[1] / "benchmarks/fault_sweep.py"
DRAWN, JOBS = 30, 2
MOST_SECONDS = 420.0  # for all of them
CAUSES: list[dict[str, Any]] = yaml.safe_load((HERE / "known_defects.yaml").read_text(encoding="utf-8"))
MOST_KNOWN = 7

KNOWN = {fault: each["cause"] for each in CAUSES for fault in [*each["faults"], *each.get("sometimes", [])]}
SOMETIMES = {fault for each in CAUSES for fault in each.get("sometimes", [])}


def test_the_known_defects_are_faults_and_become_fewer() -> None:
    listed = [fault for each in CAUSES for fault in [*each["faults"], *each.get("sometimes", [])]]
    assert sorted(listed) == sorted(KNOWN)  # none is listed twice
    assert set(listed) <= set(PROFILES)
    assert len(listed) <= MOST_KNOWN
    assert all(each["cause"] for each in CAUSES)


def test_a_seed_draws_the_same_faults_and_none_that_is_endless() -> None:
    among = [*PROFILES.values()]
    assert drawn(DRAWN, "2026-01-01", among) == drawn(DRAWN, "2026-01-01", among)
    assert drawn(DRAWN, "2026-01-01", among) != drawn(DRAWN, "2026-01-02", among)
    days = [drawn(DRAWN, f"2026-01-{day:02}", among) for day in range(1, 29)]
    assert not any(profile.slow for day in days for profile in day)
    assert len({profile.name for day in days for profile in day}) > 300  # all come up in time


@pytest.mark.slow
def test_faults_of_the_day(tmp_path: Path) -> None:
    seed, began, results = time.strftime("%Y-%m-%d"), time.perf_counter(), []
    run_all(Sweep(tmp_path), drawn(DRAWN, seed, [*PROFILES.values()]), JOBS, results.append)
    seconds = time.perf_counter() - began
    print(f"seed {seed}, {seconds:.0f} s\n{table(results)}")
    assert len(results) == DRAWN
    defects = {result["fault"] for result in results if result["verdict"] == "defect"}
    fresh = [line(result) for result in results if result["fault"] in defects - KNOWN.keys()]
    assert not fresh, f"seed {seed}"
    mended = {result["fault"] for result in results} & KNOWN.keys() - defects - SOMETIMES
    assert not mended, "these go well now: remove them from known_defects.yaml"
    assert seconds < MOST_SECONDS


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_finished_and_the_next_sweep_goes_on(tmp_path: Path) -> None:
    kept = tmp_path / "results.json"
    command = [sys.executable, SCRIPT, "--jobs", "1", "--json", kept, "--fault", "chunked", "status-418", "gzip"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        first = process.stdout.readline()  # type: ignore[union-attr]
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=60)
    assert first.startswith("chunked ")
    assert process.returncode == 130
    assert "1 faults: " in rest or "2 faults: " in rest
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "\nchunked " not in again.stdout.partition("requests")[0]  # it is not tried again
    assert "3 faults: " in again.stdout
