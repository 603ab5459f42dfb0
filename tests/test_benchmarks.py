"""Every benchmark runs with small settings. The figures of these runs mean nothing."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BENCHMARKS = ROOT / "benchmarks"
EXAMPLES = ROOT / "examples"
SMALLEST: dict[str, tuple[str, str]] = {
    "throughput": ("--images 4 --in-flight 2 --delay 0.01 --megabytes 0.05 --warm-up 2", "ratio of CPU"),
    "memory": ("--images 4 --workers 2 --every 2", "KB per image"),
    "peers": ("--repeats 1", "RMS-CONTRAST"),
    "kills": ("{folder}/labels.csv --kills 1 --workers 1", "1 kills"),
    "kills of shards": ("{folder}/album --kills 1 --workers 1 --shard-images 1", "0 runs differ"),
    "paper_protocol": ("{folder}/labels.csv --out {folder}/runs", "| SRCC | default - paper | 2 |"),
    "agent_steps": ("--images 1", "| whole program | "),
    "interval_coverage": ("--sets 1", "shares from 0.00 to 1.00"),
    "tuning": ("--simulations 1", "| a search with useful sentences | 1 | "),
    "fault_sweep": ("status-401", "1 faults: 1 good, 0 poor, 0 defect"),
}


def test_every_benchmark_is_run() -> None:
    scripts = {
        file.stem for file in BENCHMARKS.glob("*.py") if re.search("^if __name__", file.read_text(), re.MULTILINE)
    }
    by_its_page = {"agreement"}  # tests/docs/test_agreement.py runs that one
    assert scripts == {name.split()[0] for name in SMALLEST} | by_its_page


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALLEST)
def test_a_benchmark_finishes(name: str, tmp_path: Path) -> None:
    (tmp_path / "album").mkdir()
    rows = []
    for mos, photo in enumerate(("astronaut_blur.png", "chelsea_noise.png"), 2):
        (tmp_path / "album" / photo).write_bytes((EXAMPLES / photo).read_bytes())
        rows.append(f"album/{photo},{mos}")
    (tmp_path / "labels.csv").write_text("\n".join(["image,mos", *rows, ""]))
    settings, shown = SMALLEST[name]
    script = BENCHMARKS / f"{name.split()[0]}.py"
    command = [sys.executable, script, *shlex.split(settings.format(folder=tmp_path))]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert shown in done.stdout
