"""An image with the pixels of its reference scores 5, for any file, region and model answer."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from agenticiqa.programs import AgenticIQA
from support.fake_server import by_stage, fake_server
from support.scripted_answers import SCRIPT, program_for


@pytest.fixture(scope="module")
def offline() -> AgenticIQA:
    return AgenticIQA.offline()


@pytest.mark.slow
@pytest.mark.parametrize("container", ["PNG", "BMP", "TIFF", "WEBP", None])
def test_the_same_pixels_in_any_container_and_of_any_size_score_five(
    offline: AgenticIQA, examples: Path, container: str | None
) -> None:
    image, file = Image.open(examples / "coffee_jpeg.jpg").convert("RGB"), io.BytesIO()
    if container:
        image.save(file, container, **({"lossless": True} if container == "WEBP" else {}))
    given = file.getvalue() if container else examples / "coffee_jpeg.jpg"
    result = offline(given, reference=examples / "coffee_jpeg.jpg")
    assert result.quality_score == result.final_answer == 5
    assert "same pixels as its reference" in result.quality_reasoning
    assert result.to_dict()["quality_level"] == "Excellent"
    for side in (1, 8, 40):
        small = np.random.default_rng(1).integers(0, 256, (side, side, 3), dtype=np.uint8)
        assert offline(small, reference=small.copy()).quality_score == 5


def test_one_gray_level_in_one_pixel_is_a_difference(offline: AgenticIQA, examples: Path) -> None:
    pixels = np.asarray(Image.open(examples / "coffee.webp").convert("RGB"))
    changed = pixels.copy()
    changed[200, 300, 1] ^= 1
    result = offline(changed, reference=pixels)
    assert result.quality_score < 5
    assert "same pixels" not in result.quality_reasoning


def test_identical_pixels_affect_ratings_of_regions_but_no_other_question(offline: AgenticIQA, examples: Path) -> None:
    image = examples / "coffee.webp"
    assert offline(image, "Rate the quality of the left half", reference=image).quality_score == 5
    assert offline(image, "Which is worse? A. Noise B. Blur", reference=image).quality_score is None


def test_a_model_cannot_lower_the_score_of_identical_pixels(examples: Path) -> None:
    image = examples / "coffee_jpeg.jpg"
    with fake_server(by_stage(SCRIPT)) as server:
        assert program_for(server)(image, reference=image).quality_score == 5
