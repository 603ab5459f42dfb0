"""The report on styles: what it counts are the judgments of the program, and real damage is compared photo by photo."""

import numpy as np
import pytest
from PIL import Image

from agenticiqa.eval.research import styles_report
from agenticiqa.eval.research.distorted import PLAIN
from agenticiqa.eval.research.styles_report import InStyle, damage_table, main, shift_table
from agenticiqa.programs.offline.findings import Finding
from agenticiqa.signatures.vocabulary import DETECTABLE
from tests.support.distortion_levels import scene

FOG, GRAIN = "fog", "film grain"


@pytest.fixture
def two_styles(monkeypatch):
    monkeypatch.setattr(styles_report, "STYLES", {name: styles_report.STYLES[name] for name in (FOG, GRAIN)})


def cells(table: list[str], name: str) -> list[str]:
    return next(line for line in table if line.startswith(f"| {name} |")).strip("| ").split(" | ")


def test_shifts_are_from_the_plain_photo_and_names_are_counted_by_image(two_styles):
    judgments = [
        InStyle(style, content, score, named)
        for content, plain in (("one", 4.0), ("two", 3.0))
        for style, score, named in ((PLAIN, plain, ()), (FOG, plain - 0.5, ("Noise", "Blurs")), (GRAIN, plain, ()))
    ]
    table = shift_table(judgments)
    assert cells(table, FOG)[1:6] == ["2", "-0.50", "0.50", "0.50", "100%"]
    assert cells(table, GRAIN)[1:6] == ["2", "+0.00", "0.00", "0.00", "0%"]
    assert cells(table, "all styles")[1:6] == ["4", "-0.25", "0.25", "0.50", "50%"]


def test_damage_is_compared_with_the_same_damage_of_the_same_photo(two_styles, monkeypatch):
    foggy = styles_report.STYLES[FOG]

    def found(image):
        is_pale = image.pixels[:20].mean() > pale
        return {name: Finding(0.0 if is_pale else 3.0, "", "") for name in DETECTABLE}

    photo = np.full((80, 90, 3), 40, np.uint8)
    pale = (foggy(photo, np.random.default_rng(0))[:20].mean() + 40) / 2
    monkeypatch.setattr(styles_report, "findings_of", found)
    monkeypatch.setattr(styles_report, "distort", lambda pixels, kind, level, seed: pixels)
    table = damage_table({"one": photo})
    each = str(styles_report.DAMAGED_EACH)
    assert cells(table, FOG)[1:] == [each, "0.00", "1.00", "-1.00"]
    assert cells(table, GRAIN)[1:] == [each, "1.00", "1.00", "+0.00"]


@pytest.mark.slow
def test_the_command_judges_the_photos_marked_test(two_styles, tmp_path, capsys):
    manifest = tmp_path / "photos.csv"
    manifest.write_text("content,file,package,split\none,one.png,made,test\ntwo,two.png,other,train\n")
    assert main([str(tmp_path), "--manifest", str(manifest)]) == 2
    assert "unpack made there" in capsys.readouterr().err
    Image.fromarray(scene(96, 128)).save(tmp_path / "one.png")
    assert main([str(tmp_path), "--manifest", str(manifest)]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [cells(printed, name)[1] for name in (FOG, GRAIN, "all styles", PLAIN)] == ["1", "1", "2", "1"]
    assert cells(printed, PLAIN)[2:5] == ["+0.00", "0.00", "0.00"]
