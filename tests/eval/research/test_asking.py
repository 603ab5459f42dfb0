"""The command makes the images, asks the program offline, and prints what was right."""

import json
from pathlib import Path

import pytest
from PIL import Image

from agenticiqa.eval.intervals import wilson
from agenticiqa.eval.research.ask import main
from agenticiqa.eval.research.marking import mark
from agenticiqa.eval.research.report import share_text
from support.distortion_levels import scene

WORDINGS = """kind,style,about,truth,text
presence,plain,noise,yes,Is it noisy?
metric,plain,PSNR,with:dB,What is the PSNR?
metric,plain,PSNR,without,What is the PSNR of this image?
"""


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    (tmp_path / "packages").mkdir()
    Image.fromarray(scene(240, 320, 0)).save(tmp_path / "packages/photo.png")
    (tmp_path / "contents.csv").write_text(
        "content,file,package,licence,split,sharp,neutral,shows\nphoto,photo.png,a-package,CC0,dev,yes,yes,\n"
    )
    (tmp_path / "wordings.csv").write_text(WORDINGS)
    return tmp_path


def arguments(photos: Path, *more: str) -> list[str]:
    files = {"--contents": "contents.csv", "--wordings": "wordings.csv", "--cache": "cache", "--out": "rows.jsonl"}
    given = [text for option, name in files.items() for text in (option, str(photos / name))]
    return [str(photos / "packages"), *given, *more]


def test_every_question_is_asked_and_marked(photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments(photos, "--wrong")) == 0
    printed = capsys.readouterr().out
    rows = [json.loads(line) for line in (photos / "rows.jsonl").read_text().splitlines()]
    assert [row["kind"] for row in rows] == ["presence"] * 4 + ["metric"] * 6
    assert all(row["mark"] == mark(row["answer"], row["form"], row["accepted"]) for row in rows)
    assert [row["accepted"] for row in rows[:4]] == [["yes"], ["no"], ["yes"], ["no"]]
    assert rows[0]["mark"] == "right"
    refused = [row for row in rows if row["form"] == "undetermined"]
    assert [row["mark"] for row in refused] == ["right"] * 3
    right = sum(row["mark"] == "right" for row in rows)
    assert f"| all | {len(rows)} | {share_text(right, len(rows))} |" in printed


def test_answers_of_an_earlier_run_are_marked_again(photos: Path) -> None:
    assert main(arguments(photos, "--kind", "presence")) == 0
    kept = [json.loads(line) | {"answer": "Perhaps"} for line in (photos / "rows.jsonl").read_text().splitlines()]
    (photos / "kept.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in kept[:3]))
    assert main(arguments(photos, "--kind", "presence", "--reuse", str(photos / "kept.jsonl"))) == 0
    rows = [json.loads(line) for line in (photos / "rows.jsonl").read_text().splitlines()]
    assert [row["answer"] == "Perhaps" for row in rows] == [True, True, True, False]
    assert [row["mark"] for row in rows[:3]] == ["wrong"] * 3


def test_a_missing_photo_is_named_with_its_package(photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (photos / "packages/photo.png").unlink()
    assert main(arguments(photos)) == 2
    assert "photo.png is missing" in (complaint := capsys.readouterr().err)
    assert "a-package" in complaint


def test_the_wilson_interval_is_the_published_one() -> None:
    # Newcombe, Statistics in Medicine 17 (1998), 857-872, table I, method 3
    for (count, n), published in {
        (81, 263): (0.2553, 0.3662),
        (15, 148): (0.0624, 0.1605),
        (0, 20): (0, 0.1611),
    }.items():
        assert wilson(count, n) == pytest.approx(published, abs=5e-5)
