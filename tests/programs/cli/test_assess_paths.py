"""Paths of ``assess``: missing, skipped, unprintable or not writable; stdin and stdout."""

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image, ImageFilter

from agenticiqa.programs.cli.main import main
from agenticiqa.programs.images import extra_formats
from support.files import json_lines

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


def test_one_missing_path_is_named_and_the_others_are_assessed(album: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["assess", "gone.png", str(album), "http://x.org/c.png", "--jsonl", "scores.jsonl"]) == 1
    assert [Path(row["image"]).name for row in json_lines(Path("scores.jsonl"))] == ["a.png", "b.png"]
    shown = capsys.readouterr().err.splitlines()
    assert shown[0] == "agenticiqa: gone.png: expected an image, but there is no such file; check the path"
    assert shown[1].startswith("agenticiqa: http://x.org/c.png: expected a local image")
    assert shown[2] == "2 assessed, 2 failed, saved in scores.jsonl"


def test_a_question_in_place_of_an_image_gets_a_hint_to_query(album: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["assess", str(album / "a.png"), "Is it sharp?"]) != 0
    assert "there is no such file; give a question as the query (--query)" in capsys.readouterr().err


def test_only_missing_paths_are_wrong_usage(album: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["assess", "gone.png", "lost.png", "--jsonl", "scores.jsonl"]) == 2
    assert [line.split(": ")[1] for line in capsys.readouterr().err.splitlines()] == ["gone.png", "lost.png"]
    assert not Path("scores.jsonl").exists()


def test_json_is_a_list_even_if_only_one_of_several_images_is_assessed(
    album: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["assess", "gone.png", str(album / "a.png"), "--json"]) == 1
    gone, assessed = sorted(json.loads(capsys.readouterr().out), key=lambda row: row["image"], reverse=True)
    assert (assessed["image"], gone["image"]) == ("album/a.png", "gone.png")
    assert "no such file" in gone["error"]


def test_a_missing_reference_in_a_folder_fails_only_its_image(album: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture(Path("originals/a.png"), 5)
    command = ["assess", str(album), "--reference", "originals", "--jsonl", "scores.jsonl"]
    assert main(command) == 1
    assert [row["reference"] for row in json_lines(Path("scores.jsonl"))] == ["originals/a.png"]
    shown = "agenticiqa: album/b.png: expected a reference named b.* in originals, found none"
    assert shown in capsys.readouterr().err.splitlines()
    shutil.move("originals/a.png", "originals/z.png")
    assert main([*command, "--resume"]) == 2
    assert capsys.readouterr().err.count("expected a reference named") == 2


def test_a_missing_reference_for_all_images_is_one_line_of_usage(
    album: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["assess", str(album), "--reference", "gone.png"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_dry_run_estimates_the_images_that_exist(album: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["assess", "gone.png", str(album), "--dry-run"]) == 1
    printed = capsys.readouterr()
    assert "about 2 images" in printed.out
    assert "gone.png" in printed.err


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


def test_a_failure_names_its_image_once(album: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("zero.jpg").touch()
    assert main(["assess", "zero.jpg", str(album / "a.png")]) == 1
    shown = "agenticiqa: zero.jpg: expected an image, found an empty file; give a JPEG, PNG or WebP file"
    assert capsys.readouterr().err.splitlines() == [shown]


def test_a_failed_reference_is_named_with_its_image(album: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("zero.jpg").touch()
    assert main(["assess", str(album / "a.png"), "--reference", "zero.jpg"]) == 2
    assert capsys.readouterr().err.startswith("agenticiqa: album/a.png: zero.jpg: expected an image, found an empty")


def test_a_dry_run_names_each_image_once(album: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("zero.jpg").touch()
    assert (
        main(
            [
                "assess",
                "zero.jpg",
                str(album),
                "--backend",
                "vllm.m",
                "--api-base",
                "http://127.0.0.1:9/v1",
                "--dry-run",
            ]
        )
        == 0
    )
    (shown,) = [line for line in capsys.readouterr().err.splitlines() if "zero.jpg" in line]
    assert shown.count("zero.jpg") == 1


# --- names that are not UTF-8 ---------------------------------------------------------------------------------------


@pytest.fixture
def unprintable(album: Path) -> Path:
    path = album / os.fsdecode(NOT_UTF_8)
    (album / "b.png").rename(path)
    return path


def test_an_image_with_a_name_that_is_not_utf_8_is_assessed_and_written_escaped(unprintable: Path) -> None:
    done = command("album", "--jsonl", "scores.jsonl", "--save-maps", "maps", "--log", "log.jsonl")
    assert (done.returncode, done.stderr.splitlines()[0]) == (0, "2 assessed, saved in scores.jsonl")
    assert [row["image"] for row in json_lines(Path("scores.jsonl"))] == ["album/a.png", f"album/{ESCAPED}"]
    assert f"album/{ESCAPED}" in {row.get("image") for row in json_lines(Path("log.jsonl"))}
    assert sorted(os.listdir("maps/album")) == ["a.png", ESCAPED]
    again = command("album", "--jsonl", "scores.jsonl", "--resume")
    assert again.stderr.splitlines() == ["2 of 2 images were already assessed", "0 assessed, saved in scores.jsonl"]


@pytest.mark.parametrize("output", [[], ["--json"], ["--jsonl", "-"]], ids=["lines", "document", "jsonl"])
def test_a_name_that_is_not_utf_8_is_printed_escaped(unprintable: Path, output: list[str]) -> None:
    done = (command if output else in_a_process)(os.fsdecode(b"album/" + NOT_UTF_8), *output)
    assert (done.returncode, done.stderr) == (0, "")
    image = json.loads(done.stdout)["image"] if output else done.stdout.split("\t")[1]
    assert image == f"album/{ESCAPED}"


def test_a_failed_image_with_a_name_that_is_not_utf_8_is_one_line(unprintable: Path) -> None:
    unprintable.write_bytes(b"")
    done = command("album", os.fsdecode(b"gone\xff.png"))
    assert done.returncode == 1
    first, second = done.stderr.splitlines()
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


@pytest.mark.parametrize("file", ["album", "album/a.png/scores.jsonl", "/dev/null", "/proc/scores.jsonl", "x" * 300])
def test_a_file_that_cannot_be_written_is_one_line(album: Path, file: str) -> None:
    done = command("album", "--jsonl", file)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"agenticiqa: {file}: ")
    assert sorted(os.listdir("album")) == ["a.png", "b.png"]


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


def test_an_image_is_read_from_stdin(
    album: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        stdin = SimpleNamespace(buffer=io.BytesIO((album / "a.png").read_bytes()))
        monkeypatch.setattr(sys, "stdin", stdin)
        assert main(["assess", "-", str(album / "a.png"), "--jsonl", "s.jsonl", "--resume", "--save-maps", "m"]) == 0
    first, second = json_lines(Path("s.jsonl"))
    assert (first["image"], second["image"]) == ("<stdin>", "album/a.png")
    assert first["image_sha256"] == second["image_sha256"]
    assert first["quality_score"] == second["quality_score"]
    assert sorted(map(str, Path("m").rglob("*.png"))) == ["m/album/a.png", "m/stdin.png"]
    assert "2 of 2 images were already assessed" in capsys.readouterr().err


def test_stdin_that_is_no_image_is_one_line(album: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"nothing of an image")))
    done = command("-")
    assert done.returncode == 2
    assert done.stderr.startswith("agenticiqa: <stdin>: expected an image, found text that begins with")
    assert done.stderr.count("\n") == 1


def test_json_lines_are_printed_to_stdout(album: Path) -> None:
    done = command("album", "--jsonl", "-", "--workers", "1")
    assert (done.returncode, done.stderr) == (0, "")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["image"] for row in rows] == ["album/a.png", "album/b.png"]
    assert not Path("-").exists()


# --- interrupted ----------------------------------------------------------------------------------------------------


def test_ctrl_c_offline_waits_for_images_that_have_begun(album: Path) -> None:
    for number in range(60):
        picture(album / f"{number:02}.png", number, cells=48)  # large, so that images are under way at any time
    command = [sys.executable, "-m", "agenticiqa", "assess", "album", "--jsonl", "scores.jsonl", "--workers", "2"]
    for rows in (2, 6, 10):  # the signal may fall between two images
        run = subprocess.Popen([*command, "--resume"], stderr=subprocess.PIPE, text=True, start_new_session=True)
        for _ in range(1200):
            time.sleep(0.02)
            if Path("scores.jsonl").exists() and Path("scores.jsonl").read_text().count("\n") >= rows:
                break
        time.sleep(0.03)  # until the row is written and the next is waited for
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
