"""The command line: stdout and stderr, exit statuses, resuming, one-line messages."""

import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from argparse import Namespace
from types import SimpleNamespace

import pytest
from PIL import Image

from agenticiqa.programs.cli import sinks
from agenticiqa.programs.cli.commands import Command
from agenticiqa.programs.cli.main import main
from agenticiqa.programs.result_row import AssessedRow
from support.files import json_lines


@pytest.fixture
def album(tmp_path, examples):
    """Three judgeable images in a folder, small ones."""
    folder = tmp_path / "album"
    folder.mkdir()
    for name in ("coffee_jpeg.jpg", "astronaut_blur.png", "chelsea_noise.png"):
        Image.open(examples / name).resize((180, 120)).save(folder / name)
    return folder


def test_one_image_is_one_json_object_with_the_keys_of_a_result(examples, capsys):
    assert main(["assess", str(examples / "coffee_jpeg.jpg"), "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert list(row) == list(AssessedRow.model_fields)
    assert row["query_type"] == "scoring"
    assert row["final_answer"] == row["quality_score"]
    assert 1 <= row["quality_score"] <= 5
    assert row["backend"] == "offline"
    assert row["usage"] == {}


def test_a_degraded_copy_scores_below_its_original(examples, capsys):
    original = str(examples / "coffee.webp")
    scores = []
    for name in ("coffee.webp", "coffee_jpeg.jpg"):
        assert main(["assess", str(examples / name), "--reference", original, "--json"]) == 0
        scores.append(json.loads(capsys.readouterr().out)["quality_score"])
    assert scores[0] > 4 > 3 > scores[1]


def test_an_interrupted_run_reports_its_progress_and_how_to_continue(album, tmp_path, capsys, monkeypatch):
    assess_many = sinks.assess_many

    def interrupted(*given):
        yield next(assess_many(*given))
        raise KeyboardInterrupt

    monkeypatch.setattr(sinks, "assess_many", interrupted)
    file = tmp_path / "scores.jsonl"
    assert main(["assess", str(album), "--jsonl", str(file)]) == 130
    assert len(json_lines(file)) == 1
    shown = capsys.readouterr().err.splitlines()
    assert shown[-2:] == [
        f"agenticiqa: 1 of 3 images are assessed; run the same command with --resume to continue {file}",
        "agenticiqa: interrupted",
    ]
    monkeypatch.undo()
    assert main(["assess", str(album), "--jsonl", str(file), "--resume"]) == 0
    assert len(json_lines(file)) == 3


def test_a_real_ctrl_c_keeps_finished_results_and_leaves_no_process(album, examples, tmp_path):
    """With two workers: test_assess_paths.py."""
    for copy in range(60):
        shutil.copy(examples / "coffee_jpeg.jpg", album / f"copy{copy}.jpg")
    file = tmp_path / "scores.jsonl"
    command = [sys.executable, "-m", "agenticiqa", "assess", str(album), "--jsonl", str(file)]
    run = subprocess.Popen([*command, "--workers", "1"], stderr=subprocess.PIPE, text=True, start_new_session=True)
    for _ in range(1200):
        time.sleep(0.05)
        if file.exists() and file.read_text().count("\n") >= 2:
            break
    os.killpg(run.pid, signal.SIGINT)  # as a terminal does it
    _, error = run.communicate(timeout=30)  # stderr is closed when the last process that has it is gone
    assert run.returncode == 130
    assert error.splitlines()[-1] == "agenticiqa: interrupted"
    assert "Traceback" not in error
    assert 2 <= len(json_lines(file)) < 63


def test_a_closed_pipe_is_no_error(album):
    command = f"{sys.executable} -m agenticiqa assess {album} | head -c 10; echo status ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    assert "status 0" in done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no device that is always full")
def test_a_full_disk_prints_nothing_more_when_the_process_ends(album):
    command = f"{sys.executable} -m agenticiqa assess {album} > /dev/full"
    ended = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == "agenticiqa: output: No space left on device"
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("statement", "heavy"),
    [
        (
            "import agenticiqa.programs.assess",
            "datasets litellm torch onnxruntime pandas httpx httpcore aiohttp scipy.fft scipy.ndimage tenacity tornado "
            "agenticiqa.signatures.executor",
        ),
        ("from agenticiqa.eval.cli import main; main(sys.argv[1:])", "dspy numpy scipy PIL pydantic rich aiohttp"),
    ],
)
def test_the_program_and_the_parsers_load_no_unused_packages(statement, heavy):
    """With the help of each command in one process, since all parsers are in one place."""
    code = f"import sys, atexit\natexit.register(lambda: print('heavy:', set({heavy!r}.split()) & set(sys.modules)))\n"
    done = subprocess.run(
        [sys.executable, "-c", code + statement, "optimize", "--help"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "heavy: set()"


def test_garbage_is_collected_again_once_the_modules_of_a_command_are_loaded(monkeypatch):
    monkeypatch.setitem(sys.modules, "a_command", SimpleNamespace(run=lambda args: gc.isenabled()))
    gc.disable()
    try:
        assert Command("help", [], "a_command").run(Namespace())
    finally:
        gc.enable()
        gc.unfreeze()
