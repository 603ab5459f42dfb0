"""``agenticiqa gate``: which photos are refused for which reason; undecodable files are never accepted."""

import html
import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from agenticiqa.eval.cli import main
from agenticiqa.programs.batch.gate import GateResult
from agenticiqa.programs.cli.gate import verdicts
from agenticiqa.programs.cli.status import BELOW, USAGE

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


def test_the_page_has_the_refused_photos_first_with_their_reasons(
    uploads: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A phone shows no tooltip. Nothing looked for a distortion, and levels say nothing about a verdict."""
    Path("policy.yaml").write_text("min_short_side: 150\nmin_effective_side: 200\naspect: [0.5, 1.2]\nmin_score: 1\n")
    main(["gate", "uploads", "--policy", "policy.yaml", "--html", "gate.html", "--jsonl", "rows.jsonl"])
    text = Path("gate.html").read_text()
    cards = [card.partition("</li>")[0] for card in text.split("<li ")[1:]]
    verdicts = [card.partition("<b>")[2].partition("</b>")[0] for card in cards]
    assert verdicts == sorted(verdicts, key=lambda verdict: verdict == "accepted")
    assert "accepted" in verdicts
    for row in map(json.loads, Path("rows.jsonl").read_text().splitlines()):
        card = next(card for card in cards if f">{os.path.basename(row['image'])}<" in card)
        assert all(html.escape(reason).replace("&#x27;", "&#39;") in card for reason in row["reasons"].values())
    assert not any(word in text for word in ("Excellent", "Good 0", "distortion", "Scores from", "worst first"))


def test_scores_in_the_table_have_four_decimals_as_in_that_of_assess() -> None:
    table = verdicts([GateResult("a.png", measured={"score": 2.33422132831672, "width": 512})])
    assert table.records[0]["score"] == 2.3342
    assert table.records[0]["width"] == 512


def test_pipes_are_read_and_written(
    uploads: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"min_short_side: 150")))
    ends = os.pipe()
    photo, pipe = str(uploads / "small.png"), f"/dev/fd/{ends[1]}"
    try:
        assert main(["gate", photo, "--policy", "-", "--csv", pipe, "--markdown", "/dev/stdout"]) == BELOW
        assert b"small.png,false" in os.read(ends[0], 1000)
        assert "| refused: small |" in capsys.readouterr().out
        assert main(["assess", photo, "--jsonl", pipe]) == USAGE
        assert "needs a file, but this is a pipe" in capsys.readouterr().err
    finally:
        os.close(ends[0])
        os.close(ends[1])


def test_a_pattern_leaves_out_system_folders(uploads: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (uploads / "@eaDir").mkdir()
    (uploads / "good.jpg").rename(uploads / "@eaDir" / "good.jpg")
    _, found = checked(capsys, "uploads/**/*.jpg", "--policy", "policy.yaml")
    assert found.keys() - {""} == {"low.jpg", "large.jpg", "cut.jpg", "empty.jpg"}
    _, found = checked(capsys, "uploads/**/*.jpg", "--policy", "policy.yaml", "--system-folders")
    assert "good.jpg" in found
