"""Questions about the size of the image, and about the best of several images."""

import pytest

from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.offline.answers.fixed_words import UserQuestion, fixed_answer
from agenticiqa.programs.offline.answers.rule_answer import RuleAnswer
from agenticiqa.signatures.types import UNABLE
from support.distortion_levels import scene


def fixed(query: str, size: tuple[int, int], *, alone: bool = True) -> RuleAnswer | None:
    return fixed_answer(UserQuestion(query, size=size, alone=alone), lambda name: None)


@pytest.mark.parametrize(
    "query",
    [
        "How many megapixels is it?",
        "How many mega pixels does this photo have?",
        "How many pixels are there in the image?",
        "What's the resolution?",
        "What\u2019s the resolution of this image?",
        "Can you tell me what is the resolution?",
        "What are the dimensions in pixels?",
        "What is the width and height of the picture?",
        "What is the image size in pixels?",
        "How large is the picture?",
    ],
)
def test_the_size_of_the_image_is_reported(query: str) -> None:
    verdict = fixed(query, (6000, 4000))
    assert verdict is not None
    assert verdict.answer == "6000 x 4000 pixels (24.0 megapixels)"


def test_a_small_image_has_a_fraction_of_a_megapixel() -> None:
    verdict = fixed("How many megapixels?", (512, 384))
    assert verdict is not None
    assert verdict.answer == "512 x 384 pixels (0.2 megapixels)"


@pytest.mark.parametrize(
    "query",
    ["Which of these is sharpest?", "Which photo is the best?", "Which of these two photos has less noise?",
     "Which one looks better?", "which of my 5 shots is the least blurry"],
)  # fmt: skip
def test_questions_about_several_images_name_compare(query: str) -> None:
    verdict = fixed(query, (512, 384))
    assert verdict is not None
    assert verdict.answer is None
    assert "agenticiqa compare" in verdict.in_words
    assert fixed(query, (512, 384), alone=False) is None, "it may be about the reference"


@pytest.mark.parametrize(
    "query",
    [
        "How many pixels are clipped?",
        "How many pixels are damaged in the image?",
        "Is the resolution high enough?",
        "What is the resolution problem here?",
        "What is the size of the blurred region?",
        "How large is the damaged part?",
        "How big is the blur?",
        "Which of these is worse, noise or blur?",
        "Noise, blur, banding. Which of these is the main problem?",
        "Which of these is most visible: noise, blur?",
        "Which of these regions is sharpest?",
        "Which part is sharpest?",
        "Which half of the photo is noisier?",
        "Which distortion is the worst?",
        "Which photo is better, the image or the reference?",
    ],
)
def test_other_questions_are_left_to_the_measurements(query: str) -> None:
    assert fixed(query, (512, 384)) is None


def test_the_program_answers_with_the_size() -> None:
    program, image = AgenticIQA.offline(), scene()
    size = f"{image.shape[1]} x {image.shape[0]} pixels"
    result = program(image, query="What's the resolution?")
    assert str(result.final_answer).startswith(size)
    assert result.quality_reasoning == "This is the size of the image after decoding.", "no gap of unneeded evidence"
    result = program(image, query="Which of these is sharpest?")
    assert result.final_answer == UNABLE
    assert "`agenticiqa compare IMAGE IMAGE...`" in result.quality_reasoning
