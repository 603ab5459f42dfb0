"""Gray or sepia photos have no "Color distortions"; answers to questions about missing color say that they are gray."""

import pytest
import skimage.data
from PIL import Image, ImageOps

from agenticiqa.eval.research.distort import distort
from agenticiqa.programs import AgenticIQA
from agenticiqa.programs.images import load
from agenticiqa.programs.offline.measured.distortions import findings_of
from support.images import loaded

# Loaded once, because the findings are cached in the image.
COFFEE = loaded(skimage.data.coffee())
PLANE = Image.fromarray(COFFEE.pixels).convert("L")
GRAY, SEPIA = load(PLANE), load(ImageOps.colorize(PLANE, "#1a0f00", "#fff3d6", "#a07850"))
COLOR = "Color distortions"


@pytest.fixture(scope="module")
def program() -> AgenticIQA:
    return AgenticIQA.offline()


@pytest.mark.parametrize("picture", [GRAY, SEPIA], ids=["gray", "sepia"])
def test_gray_is_neither_in_the_findings_nor_in_the_evidence(program, picture):
    assert findings_of(picture)[COLOR].severity == 0
    evidence = program(picture).executor_evidence
    assert all(COLOR not in names for names in evidence.distortion_set.values())
    assert COLOR not in evidence.model_dump_json()


@pytest.mark.parametrize(("picture", "word"), [(GRAY, "gray"), (SEPIA, "toned")], ids=["gray", "sepia"])
def test_the_result_says_that_gray_does_not_count_as_a_distortion(program, picture, word):
    reasoning = program(picture).quality_reasoning
    assert f"The picture is {word}" in reasoning
    assert "This may be intended, so it does not count as a distortion." in reasoning
    assert "not count as a distortion" not in program(COFFEE).quality_reasoning
    assert "not count as a distortion" not in program(picture, reference=COFFEE).quality_reasoning


@pytest.mark.parametrize("photo", [skimage.data.coffee(), skimage.data.astronaut(), skimage.data.chelsea()])
def test_lost_color_is_the_worst_finding_with_a_reference(photo):
    found = findings_of(loaded(distort(photo, "desaturate", 5)), loaded(photo))
    assert max(found, key=lambda name: found[name].severity) == COLOR
    assert (found[COLOR].word, found[COLOR].subtype) == ("extreme", "desaturation")


@pytest.mark.parametrize(
    ("picture", "question", "answer"),
    [
        (GRAY, "Are there color distortions?", "No"),
        (GRAY, "Is there a color cast?", "No"),
        (GRAY, "Are the colors oversaturated?", "No"),
        (GRAY, "Is it desaturated?", "Yes"),
        (GRAY, "Is color missing?", "Yes"),
        (SEPIA, "Are there color distortions?", "No"),
        (SEPIA, "Is there a color cast?", "Yes"),
        (SEPIA, "Are the colors oversaturated?", "No"),
    ],
)
def test_a_question_about_the_color_of_a_gray_picture_is_answered(program, picture, question, answer):
    answered = str(program(picture, question).final_answer)
    assert answered.startswith(answer)
    assert ("gray picture" if picture is GRAY else "toned picture") in answered


def test_a_gray_picture_has_none_of_the_offered_distortions(program):
    offered = ["noise", "color distortion", "blur", "none"]
    assert program(GRAY, "Which distortion is worst?", options=offered).final_answer == "D"
    assert program(GRAY, "How are the colors?", options=["vivid", "natural", "faded"]).final_answer == "C"
