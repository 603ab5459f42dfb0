"""Images outside of the training set: a remark, a key and a wide spread, but not with a reference."""

import numpy as np
import pytest
import skimage.data
from PIL import Image

from agenticiqa.eval.research.drawn_pictures import drawn
from agenticiqa.programs import AgenticIQA
from agenticiqa.programs.offline.measured.distortions import findings_of
from agenticiqa.programs.offline.measured.mos_estimate import RESIDUAL_STD, estimate_mos
from agenticiqa.programs.tools.outside_training import LEAST_SPREAD
from support.images import loaded

RANDOM = np.random.default_rng(2)
NOISE_8 = RANDOM.integers(0, 256, (8, 8, 3), dtype=np.uint8)
STRIP = RANDOM.integers(0, 256, (2, 600, 3), dtype=np.uint8)
# Loaded once, because the findings are cached in the image.
WINDOW = loaded(drawn("window", 1002))
GRAY = loaded(np.asarray(Image.fromarray(skimage.data.coffee()).convert("L").convert("RGB")))


@pytest.fixture(scope="module")
def program() -> AgenticIQA:
    return AgenticIQA.offline()


@pytest.mark.parametrize(
    ("image", "reason", "words"),
    [
        (loaded(NOISE_8), "too small", "The image has only 8 x 8 pixels"),
        (loaded(STRIP), "thin", "The image is a strip of 600 x 2 pixels"),
        (WINDOW, "graphic", "This looks like a screenshot or a drawing"),
        (GRAY, "gray", "The picture is gray"),
    ],
    ids=["8x8", "2x600", "window", "gray"],
)
def test_the_score_has_a_remark_a_key_and_a_wide_spread(program, image, reason, words):
    result = program(image)
    assert words in result.quality_reasoning
    assert result.to_dict()["outside_training"] == result.outside_training == [reason]
    low, high = result.summarizer_result.score_interval["95"]
    whole_scale = reason in ("too small", "thin")
    assert (low, high) == (1, 5) if whole_scale else high - low >= (1.9 if reason == "gray" else 2.7)
    assert estimate_mos(image, None, findings_of(image)).spread >= LEAST_SPREAD[reason]
    assert max(result.summarizer_result.quality_probs.values()) < (0.75 if reason == "gray" else 0.6)


def test_a_photo_has_no_such_remark(program):
    result = program(skimage.data.coffee())
    assert result.to_dict()["outside_training"] == []
    assert "looks like" not in result.quality_reasoning


def test_with_a_reference_there_is_no_such_remark(program):
    result = program(WINDOW.pixels // 2 + 60, reference=WINDOW)
    assert result.to_dict()["outside_training"] == []
    assert "looks like" not in result.quality_reasoning
    small = loaded(NOISE_8)
    assert estimate_mos(small, small, findings_of(small, small)).spread == RESIDUAL_STD


def test_answers_about_screenshots_but_not_gray_photos_have_the_remark(program):
    assert "screenshot" in program(WINDOW, "Is it noisy?").quality_reasoning
    assert "hardly any gray" not in program(GRAY, "Is it noisy?").quality_reasoning
    assert "screenshot" not in program(WINDOW, "Is the cat happy?").quality_reasoning
