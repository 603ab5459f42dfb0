"""The embedded saliency network, and the boxes of subject and background from its mask."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.images import load
from agenticiqa.programs.images.boxes import overlap
from agenticiqa.programs.tools import saliency as module
from agenticiqa.programs.tools.saliency import background_box, largest_rectangle, saliency, subject_box

SIZE = (640, 480)


def mask(*parts: tuple[int, int, int, int]) -> np.ndarray:
    """Return a mask that is 1 in the boxes and 0 elsewhere."""
    seen = np.zeros((320, 320), np.float32)
    for left, top, right, bottom in parts:
        seen[top:bottom, left:right] = 1
    return seen


@pytest.mark.slow
def test_the_cup_is_the_subject_of_the_coffee_photo(examples: Path) -> None:
    image = load(examples / "coffee.webp")
    seen = saliency(image)
    assert (seen.shape, seen.dtype) == ((320, 320), np.float32)
    assert 0 <= seen.min() < 0.01
    assert 0.99 < seen.max() <= 1
    box = subject_box(seen, image.size)
    assert box is not None
    assert overlap(box, (75, 15, 482, 392)) > 0.9  # drawn around cup and saucer by hand
    assert saliency(image) is seen
    assert np.array_equal(saliency(image.pixels), seen)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(8, 8), (9, 700)])
def test_a_flat_image_of_any_shape_has_no_subject_and_so_no_background(shape: tuple[int, int]) -> None:
    seen = saliency(np.full((*shape, 3), 127, np.uint8))
    assert np.isfinite(seen).all()
    assert subject_box(seen, shape[::-1]) is None
    assert background_box(seen, shape[::-1]) is None


def test_a_damaged_network_is_reported_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = bytearray(module.NETWORK.read_bytes())
    content[len(content) // 2] ^= 1
    damaged = tmp_path / "u2netp.onnx"
    damaged.write_bytes(content)
    monkeypatch.setattr(module, "NETWORK", damaged)
    with pytest.raises(ToolError, match=r"u2netp\.onnx is damaged.*reinstall"):
        saliency(np.zeros((32, 32, 3), np.uint8))


def test_the_subject_is_the_largest_part_with_its_companions() -> None:
    assert subject_box(mask((40, 80, 120, 240)), SIZE) == (80, 120, 240, 360)
    assert subject_box(mask((40, 80, 120, 240), (200, 80, 260, 240)), SIZE) == (80, 120, 520, 360)
    assert subject_box(mask((40, 80, 120, 240), (300, 300, 320, 320)), SIZE) == (80, 120, 240, 360)
    assert subject_box(mask((100, 100, 110, 110)), SIZE) is None, "a speck"
    assert subject_box(mask((100, 100, 130, 130)), SIZE) is not None


def test_the_background_is_the_largest_rectangle_beside_the_subject() -> None:
    assert background_box(mask((0, 160, 320, 320)), SIZE) == (0, 0, 640, 240)
    assert background_box(mask((0, 0, 80, 320)), SIZE) == (160, 0, 640, 480)
    assert background_box(mask((64, 64, 256, 256)), SIZE) is None, "less than a quarter of the image"
    assert background_box(mask((0, 88, 320, 320)), SIZE) is not None
    assert background_box(mask((0, 72, 320, 320)), SIZE) is None


@given(free=arrays.arrays(bool, st.tuples(st.integers(1, 6), st.integers(1, 6))))
def test_no_rectangle_is_larger_than_the_one_found(free: np.ndarray) -> None:
    height, width = free.shape
    left, top, right, bottom = largest_rectangle(free)
    assert free[top:bottom, left:right].all()
    best = max(
        (
            (y1 - y0) * (x1 - x0)
            for y0, y1, x0, x1 in product(range(height), range(height + 1), range(width), range(width + 1))
            if y0 < y1 and x0 < x1 and free[y0:y1, x0:x1].all()
        ),
        default=0,
    )
    assert (right - left) * (bottom - top) == best
