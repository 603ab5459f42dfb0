"""Text of any script is drawn without a warning: in a font that has its letters, or with question marks."""

import logging
import warnings
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.own import is_own
from agenticiqa.programs.pictures import canvas
from agenticiqa.programs.pictures.draw import draw_assessment
from agenticiqa.programs.result import Assessment


def test_text_that_no_font_has_is_drawn_without_a_warning(tmp_path: Path) -> None:
    drawn = canvas.Canvas(3, 1, 100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", DeprecationWarning)  # of older matplotlib beside a newer parser
        drawn.write(0.1, 0.5, "caf\u00e9 \u65e5\u672c \U0001f600 \u0928 \U000f0000")
        drawn.save(tmp_path / "text.png", "a.png")
    with Image.open(tmp_path / "text.png") as image:
        assert np.asarray(image.convert("L")).min() < 100


def test_bold_text_in_a_font_without_bold_is_drawn_without_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(canvas, "families", lambda: ["DejaVu Sans", "cmr10"])  # both are matplotlib's own
    drawn = canvas.Canvas(3, 1, 100)
    drawn.write(0.1, 0.5, "bold", size=7.3, weight="bold")
    drawn.save(tmp_path / "text.png", "a.png")
    assert caplog.messages == []
    logging.getLogger("matplotlib.font_manager").warning("bold for cmr10")
    assert "bold for cmr10" in caplog.text, "only what the canvas draws itself is quiet"


def test_only_characters_without_a_font_become_question_marks() -> None:
    assert canvas.drawable("caf\u00e9 \u2013 x") == "caf\u00e9 \u2013 x"
    assert canvas.drawable("a\U000f0000b") == "a?b"
    assert canvas.drawable("a\x1b\x85\u202eb\nc") == "a   b\nc"
    assert canvas.families()[0] == "DejaVu Sans"


@pytest.mark.parametrize(
    ("name", "expected"), [("m.png", "PNG"), ("m.JPG", "JPEG"), ("m.webp", "WEBP"), ("m.tiff", "TIFF"), ("m.pdf", None)]
)
def test_the_suffix_of_a_picture_decides_its_format(tmp_path: Path, name: str, expected: str | None) -> None:
    path = tmp_path / name
    canvas.Canvas(3, 1, 20).save(path, "a.png")
    if expected:
        with Image.open(path) as image:
            assert (image.format, image.size) == (expected, (60, 20))
        assert is_own(path) == (path.suffix != ".tiff")
    else:
        assert path.read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize("name", ["m.svg", "m.txt", "m", "m.hdf", "m.png.gz"])
def test_a_picture_in_an_unknown_format_is_refused_before_the_work(tmp_path: Path, name: str) -> None:
    result = Assessment()  # without an image, so it cannot be drawn
    with pytest.raises(UserError, match=r"suffix '.*'; name a .png, .jpg or .webp file"):
        draw_assessment(result, tmp_path / name)
    assert not (tmp_path / name).exists()
