"""Styles keep the shape of the image and depend only on their generator."""

from pathlib import Path

import numpy as np
import pytest

from agenticiqa.eval.research.styles import STYLES
from agenticiqa.programs.images import load


@pytest.mark.slow
def test_a_style_keeps_the_shape_and_depends_only_on_its_generator(examples: Path) -> None:
    photo = load(examples / "chelsea.webp").pixels[::2, ::2]
    for name, style in STYLES.items():
        styled, again = (style(photo, np.random.default_rng(4)) for _ in range(2))
        assert (styled.shape, styled.dtype) == (photo.shape, photo.dtype), name
        assert np.array_equal(styled, again), name
        assert not np.array_equal(styled, photo), name
