"""Faults drawn by the date, each tried against ``assess`` as users run it: none may be a defect.

``python tests/benchmarks/fault_sweep.py`` tries all of them.
"""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from benchmarks.fault_sweep import Sweep, drawn, line, run_all, table

from support.faulty.profiles import PROFILES

HERE = Path(__file__).parent
SCRIPT = HERE.parents[1] / "benchmarks/fault_sweep.py"
DRAWN, JOBS = 10, 2


def test_a_seed_draws_the_same_faults_and_none_that_is_endless() -> None:
    among = [*PROFILES.values()]
    assert drawn(DRAWN, "2026-01-01", among) == drawn(DRAWN, "2026-01-01", among)
    assert drawn(DRAWN, "2026-01-01", among) != drawn(DRAWN, "2026-01-02", among)
    days = [drawn(DRAWN, f"2026-{month:02}-{day:02}", among) for month in (1, 2, 3) for day in range(1, 29)]
    assert not any(profile.slow for day in days for profile in day)
    assert len({profile.name for day in days for profile in day}) > 200  # all come up in time


@pytest.mark.slow
def test_faults_of_the_day(tmp_path: Path) -> None:
    seed, results = time.strftime("%Y-%m-%d"), []
    run_all(Sweep(tmp_path), drawn(DRAWN, seed, [*PROFILES.values()]), JOBS, results.append)
    print(f"seed {seed}\n{table(results)}")
    assert len(results) == DRAWN
    defects = [line(result) for result in results if result["verdict"] == "defect"]
    assert not defects, f"seed {seed}"


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
