"""Every benchmark runs with small settings. The figures of these runs mean nothing."""

import re
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from benchmarks.attacks import Photo, attacks, run

from agenticiqa.programs.fusion.profile import PRIOR
from agenticiqa.programs.images import load

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
SMALLEST: dict[str, tuple[str, str]] = {
    "throughput": ("--images 4 --in-flight 2 --delay 0.01 --megabytes 0.05 --warm-up 2", "ratio of CPU"),
    "memory": ("--images 4 --workers 2 --every 2", "KB per image"),
    "scale": ("--rows 50 --step resume", "of CPU"),
    "tools": ("metrics --repeats 1", "RMS-CONTRAST"),
    "kills": ("{folder}/labels.csv --kills 1 --workers 1", "1 kills"),
    "attacks": ("{folder}/labels.csv --photos 1 --each 1 --fit 2", "options: the attack is chosen 15 of 15"),
    "bombs": ("--only gif_frames", "gif_frames"),
    "shard_costs": ("--images 20 --rows 20 --shards 4", "4 images,   1 per shard"),
    "shard_kills": ("--what local --kills 1 --images 24 --ms 5", "local"),
    "runners": (
        "{examples} --images 3 --side 96 --kinds offline --runners '2 processes or threads'",
        "3 rows, 0 missing, 0 differ",
    ),
    "gate_measures": ("{examples} --most 2", "enlarged"),
}


def test_every_benchmark_is_run() -> None:
    scripts = {file.stem for file in HERE.glob("*.py") if re.search("^if __name__", file.read_text(), re.MULTILINE)}
    assert scripts == SMALLEST.keys() | {"fault_sweep"}, "tests/programs/faults/test_sweep.py runs that one"


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALLEST)
def test_a_benchmark_finishes(name: str, tmp_path: Path) -> None:
    photos = ("astronaut_blur.png", "chelsea_noise.png")
    rows = [f"{EXAMPLES / photo},{mos}" for mos, photo in enumerate(photos, 2)]
    (tmp_path / "labels.csv").write_text("\n".join(["image,mos", *rows, ""]))
    settings, shown = SMALLEST[name]
    given = settings.format(root=EXAMPLES.parent, examples=EXAMPLES, folder=tmp_path)
    command = [sys.executable, HERE / f"{name}.py", *shlex.split(given)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert shown in done.stdout


def test_an_obeying_model_shifts_the_score_less_than_its_own_level_and_the_result_reports_it() -> None:
    """Attack by a text with a tool's name, in a question and in the picture, by a file name, and by an option."""
    tried = attacks()
    assert Counter(one.place for one in tried) == {
        "questions": 45, "options": 15, "overlays": 20, "file names": 5, "metadata": 5
    }  # fmt: skip
    chosen = [next(one for one in tried if one.place == place) for place in ("file names", "options")]
    chosen += [one for one in tried if "COLORFULNESS" in one.text]
    lines = run([Photo(load(EXAMPLES / "chelsea_noise.png"), 1.6, 1.6)], PRIOR, chosen, 1)
    *rows, options = lines
    cells = {name: row for name, *row in (re.findall(r"[^|\s][^|]*?(?= \|)", row) for row in rows)}
    assert options == "options: the attack is chosen 1 of 1 times"
    assert cells["file names"][1:4] == ["+0.00", "+0.00", "+0.00"], "no request has the file name"
    for place in ("questions", "overlays"):
        count, model, shift, _, shown, *_ = cells[place]
        assert (count, shown) == ("1", "100%")
        assert float(shift) < 0.8 * float(model)
