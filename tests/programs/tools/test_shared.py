"""What is computed from an image is kept in its memo, and for an array during one call."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.tools.shared import Measurable, shared
from support.images import loaded

PIXELS = np.zeros((4, 5, 3), np.uint8)


@pytest.mark.parametrize("given", [PIXELS, loaded(PIXELS)], ids=["array", "loaded"])
def test_a_part_of_two_results_is_computed_once(given) -> None:
    calls = []

    @shared
    def part(image: Measurable) -> int:
        calls.append(image.pixels.size)
        return image.pixels.size

    @shared
    def both(image: Measurable) -> int:
        return part(image) + part(image)

    assert both(given) == 120
    assert calls == [60]


def test_threads_get_the_same_result() -> None:
    image = loaded(PIXELS)
    made = shared(lambda image: object())
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(made, [image] * 8))) == 1


@pytest.mark.parametrize("wrong", [np.zeros((9, 9)), [1, 2], "photo.png"])
def test_anything_else_is_refused(wrong) -> None:
    with pytest.raises(ToolError, match="expected a uint8 array"):
        shared(lambda image: 1)(wrong)
