"""A text that is no path (base64, a data URI, thousands of slashes) is refused in one line, and ends no run."""

import base64
import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from agenticiqa.eval.cli import main
from agenticiqa.eval.datasets import labeled, refuse_unusable
from agenticiqa.programs.batch.find_jobs import read_jobs
from agenticiqa.programs.errors import ImageError, UserError
from agenticiqa.programs.images import load
from agenticiqa.programs.images.files import make_folder
from agenticiqa.programs.images.finding import search_images
from agenticiqa.programs.images.loading import size_of
from agenticiqa.programs.images.named_files import NamedFiles

DEEP = 1500  # folders; Python's limit is 1000 calls


def encoded(kind: str, side: int = 300) -> str:
    pixels = np.random.default_rng(0).integers(0, 256, (side, side, 3), np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind)
    return base64.b64encode(file.getvalue()).decode()


TEXTS = {
    **{kind: (encoded(kind), "found base64 text") for kind in ("PNG", "JPEG", "WEBP", "TIFF", "BMP", "GIF", "AVIF")},
    "short": (encoded("PNG", 2), "found base64 text"),
    "in lines": (base64.encodebytes(base64.b64decode(encoded("PNG"))).decode(), "found base64 text"),
    "base64 as Python shows bytes": (str(encoded("PNG").encode()), "found base64 text"),
    "base64 for addresses": (encoded("JPEG").replace("/", "_").replace("+", "-"), "found content"),
    "bytes as Python shows them": (str(base64.b64decode(encoded("PNG"))), "found content"),
    "an answer in JSON": (json.dumps({"image": encoded("PNG")}), "found content"),
    "hexadecimal digits": ("ffd8ffe0" * DEEP, "found content"),
    "slashes": ("a/" * DEEP, "no such file"),
    "a pattern": ("*/" * DEEP + "?", "no file matches"),
    "an address": ("https://host/" + "a/" * DEEP + "?x", "got an address"),
    "SVG in a data URI": ("data:image/svg+xml,<?xml?>" + "<p/>" * DEEP, "found a data URI"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_that_is_no_path_is_one_problem(tmp_path: Path, name: str) -> None:
    text, problem = TEXTS[name]
    Image.new("RGB", (9, 9)).save(tmp_path / "a.png")
    search = search_images([text, str(tmp_path / "a.png")])
    assert search.images == [tmp_path / "a.png"]
    jobs = tmp_path / "jobs.jsonl"
    jobs.write_text("".join(json.dumps({"image": image}) + "\n" for image in (text, "a.png")))
    table = tmp_path / "jobs.csv"
    with table.open("w", newline="") as file:
        csv.writer(file).writerows([("image",), (text,), ("a.png",)])
    assert len(read_jobs(str(table), "q").jobs) == 1
    found = read_jobs(str(jobs), "q")
    assert len(found.jobs) == 1
    for error in (*search.problems, *found.problems):
        assert problem in str(error)
        assert len(str(error)) < 300
        assert "\n" not in str(error)
    if not text.startswith("data:"):
        for read in (load, size_of):
            with pytest.raises(ImageError):
                read(text)


def test_a_text_for_an_image_ends_neither_gate_nor_compare(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Image.new("RGB", (500, 500)).save("a.png")
    text = encoded("JPEG", 100)
    main(["gate", text, "a.png"])
    shown = capsys.readouterr()
    assert "a.png" in shown.out
    assert "found base64 text" in shown.err
    main(["compare", text, "a.png"])
    assert "found base64 text" in capsys.readouterr().err


def test_missing_labels_are_named_by_their_beginning(tmp_path: Path) -> None:
    files = NamedFiles("labels.csv", tmp_path)
    label = labeled(files, "line 2", {"image": encoded("PNG"), "mos": "3"})
    with pytest.raises(UserError, match=r"\.\.\. \(\d+ characters\)\. Paths are relative to"):
        refuse_unusable(files, [label], ["line 2"])


def test_deep_folders_are_made_and_searched_without_recursion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # a path has at most 4096 characters
    deep = Path("a/" * DEEP)
    make_folder(deep)
    (deep / "x.png").touch()
    Path("link").symlink_to("a")
    found = search_images([Path()])
    assert found.images == [deep / "x.png"]
    assert found.skipped == {"linked folder": 1}
    (deep / "x.png").unlink()
    while deep.parts:  # shutil.rmtree is recursive, too
        deep.rmdir()
        deep = deep.parent
