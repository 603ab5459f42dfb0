"""Questions to the offline program with answers that follow from how the image was made."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from agenticiqa.eval.research.distort import distort
from agenticiqa.programs import AgenticIQA
from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.offline.answers.measured_image import MeasuredImage
from agenticiqa.programs.offline.answers.parts import with_local_damage
from agenticiqa.programs.offline.measured.findings import Finding, LocalDamage
from agenticiqa.signatures.types import UNABLE
from agenticiqa.signatures.vocabulary import DETECTABLE, DetectableDistortion
from support.images import loaded

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture(scope="module")
def program() -> AgenticIQA:
    return AgenticIQA.offline()


# Findings are cached in the image, so that a question does not measure it again.
@pytest.fixture(scope="module")
def pristine() -> LoadedImage:
    return loaded(np.asarray(Image.open(EXAMPLES / "coffee.webp").convert("RGB")))


@pytest.fixture(scope="module")
def noisy(pristine: LoadedImage) -> LoadedImage:
    return loaded(distort(pristine.pixels, "white_noise", 4))


@pytest.fixture(scope="module")
def left_noisy(pristine: LoadedImage, noisy: LoadedImage) -> LoadedImage:
    half = pristine.width // 2
    return loaded(np.concatenate([noisy.pixels[:, :half], pristine.pixels[:, half:]], axis=1))


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Is it noisy? Answer yes or no.", "Yes"),
        ("Rate the noise from 1 to 5.", "4."),
        ("On a scale where 5 = no noise and 1 = extreme noise, rate the noise.", "1."),
        ("Is the woman's face blurred?", UNABLE),
    ],
)
def test_answers_about_a_noisy_photo(program: AgenticIQA, noisy: LoadedImage, question: str, answer: str) -> None:
    assert str(program(noisy, question).final_answer).startswith(answer)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Is the reference noisy?", "No"),
        ("Is the image noisier than the reference?", "Yes"),
        ("Is the reference noisier than the image?", "No"),
        ("Which is noisier, the image or the reference?", "The image"),
        ("Which one is cleaner? A. The image B. The reference", UNABLE),
        ("What is the PSNR?", "PSNR 1"),
    ],
)
def test_answers_about_an_image_and_its_reference(
    program: AgenticIQA, noisy: LoadedImage, pristine: LoadedImage, question: str, answer: str
) -> None:
    assert str(program(noisy, question, pristine).final_answer).startswith(answer)


@pytest.mark.parametrize("asked", ["{question}", "{question} according to the {name} metric?", "{question} by {name}?"])
def test_the_name_of_a_metric_is_not_what_a_question_is_about(
    program: AgenticIQA, noisy: LoadedImage, pristine: LoadedImage, asked: str
) -> None:
    for name in ("BLOCKINESS", "EDGE-SHARPNESS", "NOISE-SIGMA", "BLUR-EXTENT", "GMSD"):
        for question, answer in (("Is it noisy", "Yes, extreme Gaussian noise"), ("Is it blurry", "No, no visible")):
            result = program(noisy, asked.format(question=question, name=name), reference=pristine)
            assert str(result.final_answer).startswith(answer), name


def test_the_value_of_a_metric_has_its_unit(program: AgenticIQA, noisy: LoadedImage, pristine: LoadedImage) -> None:
    assert " dB" in str(program(noisy, "Compute the PSNR.", pristine).final_answer)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Which half is noisier?", "The left half"),
        ("Is the right half noisy?", "No"),
        ("Which side has more noise? A. Right side B. Left side", "B"),
    ],
)
def test_answers_about_a_photo_with_one_noisy_half(
    program: AgenticIQA, left_noisy: LoadedImage, question: str, answer: str
) -> None:
    assert str(program(left_noisy, question).final_answer).startswith(answer)


def test_a_rating_is_on_the_scale_that_the_question_states(program: AgenticIQA, noisy: LoadedImage) -> None:
    result = program(noisy, "Rate the quality of this image out of 100.")
    assert result.quality_score is not None
    assert str(result.final_answer).startswith(f"{(result.quality_score - 1) * 25:.0f} of 100")
    assert isinstance(program(noisy, "Rate the quality from 1 to 5.").final_answer, float)


def test_damage_in_less_than_half_of_a_part_affects_that_part() -> None:
    found: dict[DetectableDistortion, Finding] = {name: Finding(0.0, "", "") for name in DETECTABLE}
    damage = LocalDamage(4.0, (200, 200, 400, 400), "center", 0.11)
    whole = found | {"Noise": Finding(2.0, "Gaussian noise", "", local=damage)}
    part = MeasuredImage(found, 4.0)
    assert with_local_damage(part, whole, (150, 150, 450, 450)).findings["Noise"].severity > 3
    assert with_local_damage(part, whole, (0, 0, 600, 300)).findings["Noise"].severity == 0
