"""Outputs are checked before the first image, written even if another output fails, and never assessed."""

import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from agenticiqa import configs
from agenticiqa.configs import Config
from agenticiqa.eval.cli import COMMANDS, main
from agenticiqa.programs.batch.results_file import ResultsFile
from agenticiqa.programs.cli.output_paths import check_outputs
from agenticiqa.programs.cli.parser import parse
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.fusion.profile import write_fusion_profile
from agenticiqa.programs.images import search_images
from agenticiqa.programs.page.forms import FORMS
from agenticiqa.programs.pictures.canvas import Canvas
from agenticiqa.programs.pictures.draw import mark_of, picture_paths
from support.profiles import TYPICAL

LONG = "é" * 123 + "ab.jpeg"  # a name of 253 bytes, which .png would make too long once it is numbered


@pytest.fixture
def album(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two photos of one name in two folders, and one of a long name, in the current folder."""
    monkeypatch.chdir(tmp_path)
    for number, name in enumerate((f"album/{LONG}", "album/a.jpg", "album/below/a.jpg")):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        noise = np.random.default_rng(number).integers(0, 255, (40, 50, 3), np.uint8)
        Image.fromarray(noise).resize((200, 160)).save(name)
    return Path("album")


def printed(capsys: pytest.CaptureFixture[str]) -> str:
    """The lines on stderr since the last call."""
    return capsys.readouterr().err


def test_a_closed_stdout_loses_only_stdout(
    album: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Closed:
        encoding = "utf-8"

        def write(self, text: str) -> int:
            raise BrokenPipeError

        def isatty(self) -> bool:
            return False

        def flush(self) -> None: ...

    monkeypatch.setattr("agenticiqa.programs.cli.main._close_stdout", lambda: None)
    for output in (["--json"], ["--jsonl", "-"]):
        with monkeypatch.context() as closed:
            closed.setattr(sys, "stdout", Closed())
            assert main(["assess", "album", *output, "--html", "s.html"]) == 0
        assert Path("s.html").read_text().count('<img src="s_files/') == 3
        Path("s.html").unlink()


def test_a_results_file_that_is_deleted_during_the_run_is_written_again(
    album: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    append = ResultsFile.append

    def and_delete(results: ResultsFile, row: dict[str, object]) -> int:
        number = append(results, row)
        shutil.rmtree("out", ignore_errors=True)
        return number

    monkeypatch.setattr(ResultsFile, "append", and_delete)
    assert main(["assess", "album", "--jsonl", "out/s.jsonl", "--csv", "t.csv"]) == 0
    assert "out/s.jsonl: another program deleted the file during the run; rows written again: 1" in printed(capsys)
    assert len(Path("t.csv").read_text().splitlines()) == 4
    assert len(Path("out/s.jsonl").read_text().splitlines()) == 3


# --- pictures -------------------------------------------------------------------------------------------------------


def drawn(maps: Path, *images: str) -> list[str]:
    """Where the pictures of these images are drawn in one run, below ``maps``; stand-ins are written there."""
    paths = picture_paths(maps, images, images)
    for image, path in paths.items():
        Canvas(1, 1, 10).save(path, mark_of(image))
    return [str(path.relative_to(maps)) for path in paths.values()]


NAMED = ["adapter.npz", "profile.yaml", "curves.yaml", "tuned/prompts.json", "tuned/fusion.yaml"]


@pytest.mark.parametrize("option", ["csv", "html", "log", "jsonl", *FORMS])
@pytest.mark.parametrize("link", [None, os.link, os.symlink])
@pytest.mark.parametrize("name", NAMED)
def test_what_a_configuration_names_is_no_output(name: str, link: Any, option: str, tmp_path: Path) -> None:
    (tmp_path / "tuned").mkdir()
    for file in NAMED:
        (tmp_path / file).write_text("read")
    adapter, profile, curves, *_ = (str(tmp_path / file) for file in NAMED)
    config = Config(adapter=adapter, prompts=str(tmp_path / "tuned"), tool_curves=curves, fusion={"profile": profile})
    output = tmp_path / name
    if link:
        output = tmp_path / "output"
        link(tmp_path / name, output)
    _, args = parse(["assess", "photo.jpg", f"--{option}", str(output)], COMMANDS)
    with pytest.raises(UserError, match=f"--{option} would overwrite a file that the command reads"):
        check_outputs(args, (), config)


@pytest.mark.parametrize(
    "command",
    [
        "assess a.png --csv a.png",
        "assess a.png --jsonl hard.png",
        "assess a.png --log hard.png",
        "assess a.png --log link.png",
        "assess --jobs labels.csv --html labels.csv",
        "assess --jobs labels.csv --csv a.png",
        "assess a.png --reference link.png --csv b.png",
        "assess a.png --config curves.yaml --csv curves.yaml",
        "assess a.png --config curves.yaml --log default.yaml",
        "assess a.png --config curves.yaml --parquet out --log default.yaml",
        "gate a.png --policy policy.yaml --csv policy.yaml",
        "gate a.png --jsonl a.png",
        "compare a.png b.png --html b.png",
        "compare runs/one runs/two --csv runs/two/results.jsonl",
        "report runs/one --markdown runs/one/run.json",
        "measure niqe a.png --csv hard.png",
        "rate . --out hard.png",
        "evaluate labels.csv --out out --log labels.csv",
        "evaluate runs/one/results.jsonl --out runs/one",
        "calibrate adapter labels.csv --out labels.csv --force",
        "calibrate adapter labels.csv --out b.png --force",
        "calibrate adapter labels.csv --mos-out labels.csv --force",
        "calibrate adapter pairs.csv labels.csv --out a.npz --mos-out labels.csv --force",
        "calibrate adapter . --mos-out labels.csv --force",
        "calibrate adapter labels.csv --mos-out link.png --force",
        "calibrate adapter pairs.csv --out a.png --force",
        "calibrate fusion runs/one/results.jsonl --out runs/one/results.jsonl --force",
        "calibrate fusion a.png labels.csv --backend vllm.x --api-base http://127.0.0.1:9/v1 --out a.png --force",
        "optimize labels.csv --config fusion.yaml --reflection-backend vllm.x --reflection-api-base "
        "http://127.0.0.1:9/v1 --out out",
    ],
)
def test_no_command_overwrites_what_it_reads(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for number, name in enumerate(("a.png", "b.png")):
        Image.fromarray(np.full((40, 50, 3), 40 * number, np.uint8)).save(name)
    os.link("a.png", "hard.png")
    os.symlink("b.png", "link.png")
    Path("labels.csv").write_text("image,mos\na.png,1\nb.png,5\n")
    Path("pairs.csv").write_text("better,worse\na.png,b.png\n")
    shutil.copy(f"{configs.__path__[0]}/gate.yaml", "policy.yaml")
    shutil.copy(f"{configs.__path__[0]}/tool_curves/default.yaml", "default.yaml")
    Path("curves.yaml").write_text(f"tool_curves: {tmp_path / 'default.yaml'}\n")
    Path("out").mkdir()
    stage = "{backend: vllm.x, api_base: http://127.0.0.1:9/v1}"
    stages = "".join(f"{name}: {stage}\n" for name in ("planner", "executor", "summarizer", "replan"))
    Path("fusion.yaml").write_text(f"fusion: out/fusion.yaml\n{stages}")
    write_fusion_profile(Path("out/fusion.yaml"), TYPICAL)
    for run in ("one", "two"):
        Path("runs", run).mkdir(parents=True)
        Path("runs", run, "results.jsonl").write_text('{"image": "../../a.png", "mos": 1}\n')
        Path("runs", run, "run.json").write_text("{}")
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    assert main(command.split()) == 2
    message = printed(capsys)
    assert re.search("would overwrite a file that the command reads|is not a log", message), message
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before


def test_subfolders_of_images_are_repeated_for_pictures(album: Path, tmp_path: Path) -> None:
    maps = tmp_path / "maps"
    assert drawn(maps, "y/a.jpg") == ["y/a.png"]
    assert drawn(maps, "x/a.jpg", "x/a.webp", "x/A.tif") == ["x/a.png", "x/a-2.png", "x/A-3.png"]
    assert drawn(maps, "x/a.webp") == ["x/a-2.png"], "in a later run it keeps its name"
    assert drawn(maps, "x/a.bmp") == ["x/a-3.png"], "no picture of another image is replaced"
    assert drawn(maps, f"{tmp_path}/y/a.jpg", "/elsewhere/z/a.jpg") == ["y/a.png", "z/a.png"]
    assert drawn(maps, "<stdin>", "../up.jpg") == ["stdin.png", f"{tmp_path.parent.name}/up.png"]


def test_pictures_of_images_with_long_names_have_valid_and_distinct_names(album: Path, tmp_path: Path) -> None:
    names = [f"{'é' * 125}{end}" for end in (".jpeg", "a.jpg", "b.jpg")] + [f"{'日' * 83}ab.tiff", "\\xff" * 200 + ".j"]
    found = drawn(tmp_path / "maps", *names)
    assert len(set(found)) == len(names)
    assert max(len(name.encode()) for name in found) <= 255


def test_files_that_are_not_drawn_pictures_are_not_overwritten(album: Path, tmp_path: Path) -> None:
    Path("b.png").write_bytes((album / "a.jpg").read_bytes())
    with pytest.raises(UserError, match=r"b\.png: the file exists and is not a picture"):
        picture_paths(Path(), ["b.jpg"])


@pytest.mark.slow
def test_rows_name_their_pictures_and_drawn_pictures_are_not_assessed(
    album: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = ["--html", "album/sheet.html", "--save-maps", "album/maps"]
    assert main(["assess", "album", *outputs, "--jsonl", "s.jsonl", "--csv", "t.csv"]) == 0
    rows = [json.loads(line) for line in Path("s.jsonl").read_text().splitlines()]
    assert all(Path(row["map"]).is_file() for row in rows)
    assert len({row["map"] for row in rows}) == 3
    assert rows[-1]["map"] in Path("t.csv").read_text()
    assert main(["compare", "album/a.jpg", "album/below/a.jpg", "--html", "album/both.html"]) == 0
    capsys.readouterr()
    own = len([*album.rglob("*.png"), *album.rglob("*.webp")])
    assert own == 3 + 3 + 4
    assert main(["assess", "album", "--csv", "t.csv"]) == 0
    assert len(Path("t.csv").read_text().splitlines()) == 4
    assert printed(capsys).splitlines()[0] == f"agenticiqa: skipped {own} images written by this program"
    assert main(["gate", "album", "--policy", policy(min_short_side=10)]) == 0, "they are no reason to refuse an album"
    named = str(next((album / "maps").rglob("*.png")))
    assert main(["assess", named, "--json"]) == 0, "a picture that is named is assessed"


def policy(**conditions: int) -> str:
    """A file with a policy of these conditions."""
    Path("policy.yaml").write_text("".join(f"{name}: {value}\n" for name, value in conditions.items()))
    return "policy.yaml"


def test_a_photo_that_only_mentions_the_program_is_assessed(album: Path) -> None:
    text = PngInfo()
    text.add_text("Comment", "for AgenticIQA")
    Image.new("RGB", (8, 8)).save(album / "photo.png", pnginfo=text)
    Image.new("RGB", (8, 8)).save(album / "photo.jpg", comment="for AgenticIQA")
    assert {album / "photo.png", album / "photo.jpg"} <= {*search_images([album]).images}


def test_every_option_that_writes_a_file_or_folder_is_checked_as_an_output() -> None:
    unmarked = {
        option.form
        for command in COMMANDS.values()
        for option in command.options
        if option.metavar in ("FILE", "DIR") and re.match("(also )?(write|append|draw|save) |file to wr", option.help)
        if option.writes is None
    }
    assert unmarked == set()


def test_no_output_overwrites_a_photo_that_a_limit_leaves_out(album: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for photo in sorted(album.rglob("*.jpg")):
        assert main(["assess", "album", "--limit", "1", "--csv", str(photo)]) == 2
        assert "would overwrite a file that the command reads" in printed(capsys)
