"""Paths of ``assess``: missing, skipped, unprintable or not writable; stdin and stdout."""

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageFilter

from agenticiqa.programs.cli.main import main
from agenticiqa.programs.images import extra_formats
from support.fake_server import fake_server
from support.files import json_lines
from support.loopback import Body, Reply

pytestmark = pytest.mark.slow

NOT_UTF_8 = b"caf\xe9.png"
ESCAPED = r"caf\xe9.png"

COFFEE = Path(__file__).parents[3] / "examples" / "coffee.webp"


def picture(path: Path, seed: int = 0, cells: int = 8) -> Path:
    random = np.random.default_rng(seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    colors = random.integers(0, 256, (cells, cells, 3), dtype=np.uint8)
    Image.fromarray(colors).resize((8 * cells, 8 * cells)).save(path, "PNG")
    return path


@pytest.fixture
def album(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two images, in a folder of the current one."""
    monkeypatch.chdir(tmp_path)
    for number, name in enumerate(("a.png", "b.png")):
        picture(Path("album") / name, number)
    return Path("album")


def command(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    """Run the command here, on streams that refuse what they cannot write as those of a process do."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", "strict") for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(["assess", *map(str, arguments)])
    out.seek(0), err.seek(0)
    return subprocess.CompletedProcess(arguments, status, out.read(), err.read())


def in_a_process(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    whole = [sys.executable, "-m", "agenticiqa", "assess", *map(str, arguments)]
    return subprocess.run(whole, capture_output=True, text=True, timeout=120, check=False)


# --- missing --------------------------------------------------------------------------------------------------------


# --- skipped --------------------------------------------------------------------------------------------------------


def test_skipped_files_of_a_folder_are_counted(
    album: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(extra_formats, "find_spec", lambda package: None)
    for name in ("1.heic", "2.HEIC", "3.heic", "4.cr2", "5.CR2", "notes.txt"):
        (album / name).touch()
    (album / "link.jpg").symlink_to("nowhere")
    assert main(["assess", str(album), "--jsonl", "scores.jsonl"]) == 0
    shown = "agenticiqa: skipped 3 .heic (pip install 'agenticiqa[heic]'), 2 .cr2, 1 broken link"
    assert capsys.readouterr().err.splitlines()[0] == shown
    summary = json.loads(Path("scores.jsonl.summary.json").read_text())
    assert summary["skipped"] == {".heic": 3, ".cr2": 2, "broken link": 1}


def test_a_heic_photo_is_assessed_like_any_other(album: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pillow_heif = pytest.importorskip("pillow_heif", reason="the extra heic is not installed")
    Image.open(COFFEE).convert("RGB").save(album / "a.png")
    pillow_heif.from_pillow(Image.open(album / "a.png")).save(album / "photo.HEIC", quality=90)
    assert main(["assess", str(album), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [Path(row["image"]).name for row in rows] == ["a.png", "b.png", "photo.HEIC"]
    assert abs(rows[2]["quality_score"] - rows[0]["quality_score"]) < 0.5


# --- said once ------------------------------------------------------------------------------------------------------


# --- names that are not UTF-8 ---------------------------------------------------------------------------------------


@pytest.fixture
def unprintable(album: Path) -> Path:
    path = album / os.fsdecode(NOT_UTF_8)
    (album / "b.png").rename(path)
    return path


def test_a_failed_image_with_a_name_that_is_not_utf_8_is_one_line(unprintable: Path) -> None:
    unprintable.write_bytes(b"")
    done = command("album", os.fsdecode(b"gone\xff.png"))
    assert done.returncode == 1
    first, second, counts = done.stderr.splitlines()
    assert counts == "1 assessed, 2 failed"
    assert first.startswith(r"agenticiqa: gone\xff.png: expected an image, but there is no such file")
    assert second.startswith(f"agenticiqa: album/{ESCAPED}: expected an image, found an empty file")


def test_a_reference_and_a_results_file_with_names_that_are_not_utf_8_are_named(unprintable: Path) -> None:
    file = os.fsdecode(b"s\xff.jsonl")
    with Image.open(unprintable) as original:
        original.filter(ImageFilter.BoxBlur(1)).save("album/a.png")
    done = command("album/a.png", "--reference", unprintable, "--jsonl", file)
    assert (done.returncode, done.stderr.splitlines()) == (0, [r"1 assessed, saved in s\xff.jsonl"])
    (row,) = json_lines(Path(file))
    assert row["reference"] == f"album/{ESCAPED}"


def test_a_warning_escapes_the_name_of_a_reference_that_is_not_utf_8(unprintable: Path) -> None:
    for number, path in enumerate((Path("album/a.png"), unprintable)):
        picture(path, number, cells=16)
    done = command("album/a.png", "--reference", unprintable, "--jsonl", "scores.jsonl")
    warning, kept = done.stderr.splitlines()
    assert warning.startswith(f"album/a.png: The reference album/{ESCAPED} shows another picture")
    assert (done.returncode, kept) == (0, "1 assessed, saved in scores.jsonl")


# --- where results cannot be written --------------------------------------------------------------------------------


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_folder_without_permission_is_one_line(album: Path) -> None:
    Path("locked").mkdir(0o500)
    done = command("album", "--jsonl", "locked/scores.jsonl")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "Permission denied" in done.stderr


@pytest.mark.parametrize("workers", [1, 2])
def test_on_a_full_disk_finished_results_are_printed_and_the_run_ends(album: Path, workers: int) -> None:
    """A limit of the file's size stands in for the disk; it is larger than two rows."""
    for number in range(14):
        picture(album / f"{number:02}.png", number)
    limited = f"ulimit -f 16; exec {sys.executable} -m agenticiqa assess album --jsonl scores.jsonl --workers {workers}"
    done = subprocess.run(["bash", "-c", limited], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    shown = "agenticiqa: scores.jsonl: cannot be written (File too large); results are printed to stdout from here on"
    assert done.stderr.count(shown) == 1
    kept = json_lines(Path("scores.jsonl"))
    printed = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(kept) >= 1
    assert 1 <= len(printed) <= 1 + 3 * workers
    assert len({row["image"] for row in (*kept, *printed)}) == len(kept) + len(printed)
    assert f"stopped; {16 - len(kept) - len(printed)} images were not assessed" in done.stderr
    assert main(["assess", "album", "--jsonl", "scores.jsonl", "--resume"]) == 0
    assert len(json_lines(Path("scores.jsonl"))) == 16


# --- stdin and stdout -----------------------------------------------------------------------------------------------


# --- interrupted ----------------------------------------------------------------------------------------------------


def wait_for_rows(count: int) -> None:
    for _ in range(1200):
        time.sleep(0.02)
        if Path("scores.jsonl").exists() and Path("scores.jsonl").read_text().count("\n") >= count:
            break
    time.sleep(0.03)  # until the row is written and the next is waited for


def test_ctrl_c_offline_waits_for_images_that_have_begun(album: Path) -> None:
    for number in range(60):
        picture(album / f"{number:02}.png", number, cells=48)  # large, so that images are under way at any time
    command = [sys.executable, "-m", "agenticiqa", "assess", "album", "--jsonl", "scores.jsonl", "--workers", "2"]
    for rows in (2, 6, 10):  # the signal may fall between two images
        run = subprocess.Popen([*command, "--resume"], stderr=subprocess.PIPE, text=True, start_new_session=True)
        wait_for_rows(rows)
        os.killpg(run.pid, signal.SIGINT)
        _, shown = run.communicate(timeout=30)
        assert (run.returncode, shown.splitlines()[-1]) == (130, "agenticiqa: interrupted")
        assert "sent" not in shown
        assert "Traceback" not in shown
        if "interrupted: waiting for the " in shown:
            break
    assert "images under way; press Ctrl-C again to abort" in shown
    summary = json.loads(Path("scores.jsonl.summary.json").read_text())
    assert summary["assessed"] == summary["rows"] == len(json_lines(Path("scores.jsonl")))
    assert summary["not_assessed"] == 62 - summary["assessed"] > 0


@pytest.mark.slow
def test_a_second_ctrl_c_ends_at_once_and_keeps_finished_results(album: Path) -> None:
    for number in range(60):
        picture(album / f"{number:02}.png", number, cells=96)  # larger still, so that the second signal comes in time
    command = [sys.executable, "-m", "agenticiqa", "assess", "album", "--jsonl", "scores.jsonl", "--workers", "2"]
    run = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert run.stderr is not None
    wait_for_rows(2)
    kept = json_lines(Path("scores.jsonl"))
    os.killpg(run.pid, signal.SIGINT)
    assert any("press Ctrl-C again to abort" in line for line in run.stderr)
    os.killpg(run.pid, signal.SIGINT)
    run.wait(timeout=10)
    assert run.returncode == 130
    assert json_lines(Path("scores.jsonl"))[: len(kept)] == kept


def test_ctrl_c_gives_up_the_images_that_wait_for_a_model(album: Path) -> None:
    """At once, and none of them is called failed."""
    asked = threading.Event()

    def slow(request: Body) -> Reply:
        asked.set()
        return Reply("late", delay=60.0)

    with fake_server(slow) as server:
        command = [sys.executable, "-m", "agenticiqa", "assess", "album", "--jsonl", "scores.jsonl"]
        model = ["--backend", "vllm.m", "--api-base", server.url]
        run = subprocess.Popen([*command, *model], stderr=subprocess.PIPE, text=True, start_new_session=True)
        assert asked.wait(60)
        time.sleep(0.5)
        began = time.monotonic()
        os.killpg(run.pid, signal.SIGINT)
        _, shown = run.communicate(timeout=30)
    assert time.monotonic() - began < 15
    assert run.returncode == 130
    _, given_up, counts, last = shown.splitlines()
    assert re.fullmatch(
        r"interrupted: \d images under way are given up, and the answers .* are not waited for", given_up
    )
    assert re.match(r"agenticiqa: 0 of \d+ images are assessed; run the same command with --resume", counts)
    assert last == "agenticiqa: interrupted"
