"""Each benchmark runs, with its smallest settings, so that none rots. What they measure so says nothing."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
SMALLEST: dict[str, tuple[str, str]] = {
    "throughput": ("--images 4 --in-flight 2 --delay 0.01 --megabytes 0.05 --warm-up 2", "ratio of CPU"),
    "memory": ("--images 4 --workers 2 --every 2", "KB per image"),
    "scale": ("--rows 50 --step resume", "of CPU"),
    "tools": ("metrics --repeats 1", "RMS-CONTRAST"),
    "two_checkouts": ("{root} {root} {examples}/astronaut_blur.png --size 64x48 --rounds 1", "largest difference"),
    "kills": ("{folder}/labels.csv --kills 1 --workers 1", "1 kills"),
    "fault_sweep": ("--fault status-418", "1 faults: "),
    "gate_measures": ("{examples} --most 2", "enlarged"),
}


def test_none_is_left_out() -> None:
    scripts = {file.stem for file in HERE.glob("*.py") if re.search("^if __name__", file.read_text(), re.MULTILINE)}
    assert scripts == SMALLEST.keys()


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALLEST)
def test_a_benchmark_runs_to_its_end(name: str, tmp_path: Path) -> None:
    photos = ("astronaut_blur.png", "chelsea_noise.png")
    rows = [f"{EXAMPLES / photo},{mos}" for mos, photo in enumerate(photos, 2)]
    (tmp_path / "labels.csv").write_text("\n".join(["image,mos", *rows, ""]))
    settings, told = SMALLEST[name]
    given = settings.format(root=EXAMPLES.parent, examples=EXAMPLES, folder=tmp_path).split()
    command = [sys.executable, HERE / f"{name}.py", *given]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert told in done.stdout
