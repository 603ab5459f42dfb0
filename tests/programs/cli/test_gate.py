"""``agenticiqa gate``: which photos are refused for which reason; undecodable files are never accepted."""

import csv
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from agenticiqa.eval.cli import main
from agenticiqa.programs.cli.status import BELOW, OK, SOME_FAILED, USAGE

POLICY = """
min_short_side: 150
max_long_side: 1000
aspect: [0.5, 2]
min_effective_side: 200
min_jpeg_quality: 50
"""


@pytest.fixture
def uploads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, examples: Path) -> Path:
    """A photo of 256 x 256 that passes, and a copy for each reason to refuse it."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "uploads"
    folder.mkdir()
    photo = Image.open(examples / "astronaut.webp").convert("RGB").resize((256, 256), Image.Resampling.LANCZOS)
    photo.save(folder / "good.jpg", quality=90)
    photo.save(folder / "low.jpg", quality=30)
    Image.open(folder / "low.jpg").save(folder / "once_low.png")
    Image.open(folder / "low.jpg").save(folder / "low_again.jpg", quality=95)
    photo.crop((0, 0, 140, 140)).save(folder / "small.png")
    photo.crop((0, 0, 256, 100)).resize((512, 200)).save(folder / "wide.png")
    photo.resize((64, 64)).resize((256, 256), Image.Resampling.BICUBIC).save(folder / "enlarged.png")
    photo.resize((1200, 1100)).save(folder / "large.jpg", quality=90)
    (folder / "cut.jpg").write_bytes((folder / "good.jpg").read_bytes()[:9000])
    (folder / "text.png").write_text("no image")
    (folder / "empty.jpg").touch()
    Path("policy.yaml").write_text(POLICY)
    return folder


def checked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    status = main(["gate", *words, "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["accepted"] + found["refused"] == len(found["images"])
    return status, {os.path.basename(row["image"]): row for row in found["images"]} | {"": found}


def test_each_photo_is_refused_with_its_reason(uploads: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, found = checked(capsys, "uploads", "--policy", "policy.yaml")
    assert status == BELOW
    assert {name: [*row["reasons"]] for name, row in found.items() if name} == {
        "good.jpg": [],
        "low.jpg": ["compressed"],
        "once_low.png": ["compressed"],
        "low_again.jpg": ["compressed"],
        "small.png": ["small"],
        "wide.png": ["aspect"],
        "enlarged.png": ["upscaled"],
        "large.jpg": ["large"],
        "cut.jpg": ["undecodable"],
        "text.png": ["undecodable"],
        "empty.jpg": ["undecodable"],
    }
    assert found[""]["reasons"]["undecodable"] == found[""]["reasons"]["compressed"] == 3
    assert found["once_low.png"]["measured"]["jpeg_quality"] == pytest.approx(30, abs=8)
    assert "of an earlier save" in found["once_low.png"]["reasons"]["compressed"]
    assert found["good.jpg"]["measured"] == {"width": 256, "height": 256, "jpeg_quality": 90, "effective_side": 256}


def test_a_photo_that_lies_on_its_side_is_checked_upright(uploads: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exif = Image.Exif()
    exif[274] = 6
    Image.open(uploads / "good.jpg").crop((0, 0, 256, 160)).save("turned.jpg", quality=95, exif=exif)
    _, found = checked(capsys, "turned.jpg")
    assert (found["turned.jpg"]["measured"]["width"], found["turned.jpg"]["measured"]["height"]) == (160, 256)


def test_score_distortions_and_kind_are_checked_last(uploads: Path, capsys: pytest.CaptureFixture[str]) -> None:
    noise = np.random.default_rng(0).normal(0, 40, (256, 256, 3))
    noisy = np.clip(np.asarray(Image.open(uploads / "good.jpg")) + noise, 0, 255).astype(np.uint8)
    Image.fromarray(noisy).save("noisy.png")
    Image.new("RGB", (256, 256), "white").save("blank.png")
    Path("strict.yaml").write_text(
        "min_score: 1.0\ndistortions: {grainy: moderate}\nrefuse_kinds: [blank]\nmin_jpeg_quality: 50\n"
    )
    images = ["noisy.png", "blank.png", "uploads/good.jpg", "uploads/low.jpg"]
    status, found = checked(capsys, *images, "--policy", "strict.yaml")
    assert status == BELOW
    assert [*found["noisy.png"]["reasons"]] == ["noise"]
    assert [*found["blank.png"]["reasons"]] == ["kind"]
    assert found["good.jpg"]["accepted"]
    assert "score" in found["good.jpg"]["measured"]
    assert "score" not in found["low.jpg"]["measured"], "a photo that is already refused is not assessed"
    Path("strict.yaml").write_text("min_score: 4.9")
    assert [*checked(capsys, "noisy.png", "--policy", "strict.yaml")[1]["noisy.png"]["reasons"]] == ["score"]


def test_a_table_and_the_exit_status(uploads: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gate", "uploads/good.jpg", "--policy", "policy.yaml"]) == OK
    assert main(["gate", "uploads/good.jpg", "uploads/small.png", "--policy", "policy.yaml"]) == BELOW
    shown = capsys.readouterr()
    lines = shown.out.splitlines()[2:]
    assert [line.split("\t")[0] for line in lines] == ["verdict", "refused: small", "accepted"]
    assert shown.err.splitlines()[-1] == "1 accepted, 1 refused: 1 small"
    assert main(["gate", "none.jpg", "uploads/good.jpg", "--policy", "policy.yaml"]) == SOME_FAILED
    assert main(["gate", "none.jpg"]) == USAGE


def test_verdicts_are_written_as_a_table_as_lines_and_as_a_sheet(
    uploads: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["gate", "uploads", "--policy", "policy.yaml"]
    assert main([*asked, "--csv", "t.csv", "--html", "s.html", "--jsonl", "-"]) == BELOW
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    with open("t.csv", newline="") as file:
        table = {row["image"]: row for row in csv.DictReader(file)}
    assert {row["image"]: ", ".join(row["reasons"]) for row in rows} == {
        image: row["reasons"] for image, row in table.items()
    }
    assert table["uploads/good.jpg"]["accepted"] == "true"
    assert table["uploads/wide.png"]["width"] == "512"
    page = Path("s.html").read_text()
    assert page.count('<img src="s_files/') == len(rows) - 3, "but for what cannot be decoded"
    assert "refused: compressed" in page
    assert main([*asked, "--csv", "uploads/good.jpg"]) == USAGE
    assert main([*asked, "--csv", "-", "--json"]) == USAGE


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("", "it has no condition"),
        ("# min_score: 3\ndistortions: {}", "it has no condition"),
        ("aspect: [3, 0.5]", "got [3.0, 0.5]"),
        ("{min_short_side: 900, max_long_side: 800}", "min_short_side exceeds max_long_side"),
        ("{min_short_side: 9, distortions: {blur: sever}}", "'sever'"),
        ("min_size: 3", "unknown key 'min_size', expected one of min_short_side"),
        ("min_score: 9", "less than or equal to 5"),
        ("distortions: {ugliness: severe}", "unknown distortion 'ugliness'"),
        ("distortions: {blur: very}", None),
        ("distortions: {blur: none}", "invalid severity 'none' of blur"),
        ("refuse_kinds: [cat]", "unknown kind 'cat'; use graphic"),
        ("- a list", "the file"),
        ("a: [", "not valid YAML"),
        (None, "no such file"),
    ],
)
def test_an_invalid_policy_is_reported(
    uploads: Path, capsys: pytest.CaptureFixture[str], policy: str | None, said: str | None
) -> None:
    if policy is not None:
        Path("p.yaml").write_text(policy)
    status = main(["gate", "uploads/good.jpg", "--policy", "p.yaml"])
    out, err = capsys.readouterr()
    assert (out == "") is (said is not None), "nothing is printed before"
    assert (status == USAGE) is (said is not None)
    assert said is None or (said in err and err.count("\n") == 1)
