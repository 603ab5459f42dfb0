"""Styles keep the shape of the image, depend only on their generator, and have the effect that they are named for."""

from pathlib import Path

import numpy as np
import pytest

from agenticiqa.eval.research.styles import STYLES
from agenticiqa.programs.images import load
from agenticiqa.programs.tools.statistics.tonal import Tone, monochrome

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


@pytest.fixture(scope="module")
def photo():
    return load(EXAMPLES / "chelsea.webp").pixels[::2, ::2]


@pytest.mark.slow
@pytest.mark.parametrize("name", STYLES)
def test_a_style_keeps_the_shape_and_depends_only_on_its_generator(name, photo):
    before = photo.copy()
    styled, again = (STYLES[name](photo, np.random.default_rng(4)) for _ in range(2))
    assert styled.shape == photo.shape
    assert styled.dtype == np.uint8
    assert np.array_equal(styled, again)
    assert np.array_equal(photo, before)
    assert not np.array_equal(styled, photo)
    assert not np.array_equal(styled, STYLES[name](photo, np.random.default_rng(5)))


@pytest.mark.parametrize("name", STYLES)
def test_a_style_takes_an_image_of_any_size(name):
    assert STYLES[name](np.full((3, 70, 3), 90, np.uint8), np.random.default_rng(0)).shape == (3, 70, 3)


def test_gray_and_sepia_have_one_hue(photo):
    assert monochrome(Tone(STYLES["black and white"](photo, np.random.default_rng(0)))) == "gray"
    assert monochrome(Tone(STYLES["sepia"](photo, np.random.default_rng(0)))) == "toned"


def test_the_subject_is_unchanged_on_another_background(photo):
    height, width = photo.shape[:2]
    inside = slice(height // 2 - 5, height // 2 + 5), slice(width // 2 - 5, width // 2 + 5)
    for name in ("shallow focus", "bokeh", "cut-out on white"):
        styled = STYLES[name](photo, np.random.default_rng(0))
        assert np.abs(styled[inside].astype(int) - photo[inside]).max() <= 1
        assert (styled != photo).any(axis=2).mean() > 0.1
