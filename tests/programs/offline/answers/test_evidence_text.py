"""The measurements and scores that the reasoning of an answer quotes."""

import skimage.data

from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.offline.answers.answer import quoting
from agenticiqa.programs.offline.answers.measured_image import MeasuredImage
from agenticiqa.programs.offline.answers.rule_answer import scores_in_words
from agenticiqa.programs.offline.measured.findings import Finding
from agenticiqa.signatures.types import GLOBAL, ExecutorOutput

NEUTRAL = "Neutral colors are 2 CIELAB units away from gray."
VIVID = "The colorfulness is 60."


def colors(severity: float) -> MeasuredImage:
    each = {"oversaturation": VIVID, "color cast": NEUTRAL}
    return MeasuredImage({"Color distortions": Finding(severity, "oversaturation", VIVID, explanations=each)}, 4.0)


def quoted(severity: float, question: str) -> str:
    return quoting(colors(severity), question).findings["Color distortions"].explanation


def test_the_kind_in_question_is_quoted() -> None:
    for question in (
        "Is the white balance right?",
        "Is there a color cast?",
        "Is it too yellow?",
        "colour balance ok?",
    ):
        assert quoted(0.1, question) == NEUTRAL
        assert quoted(2.0, question) == f"{VIVID} {NEUTRAL}", "what is there stays"
    for question in ("Are the colors right?", "Is it oversaturated?"):
        assert quoted(0.1, question) == VIVID


def test_white_balance_is_answered_from_neutral_colors() -> None:
    program = AgenticIQA.offline()
    for photo in (skimage.data.astronaut(), skimage.data.coffee(), skimage.data.chelsea()):
        reasoning = program(photo, query="Is the white balance right?").quality_reasoning
        assert "Neutral colors are" in reasoning
        assert "colorfulness" not in reasoning


def test_a_score_for_several_distortions_is_quoted_once() -> None:
    both = {"Noise": ("LEARNED-IQA", 2.5), "Overall": ("LEARNED-IQA", 2.5)}
    scores = {GLOBAL: both, "the car": {"Overall": ("NIQE", 3.0)}}
    assert scores_in_words(ExecutorOutput(quality_scores=scores)) == [
        "LEARNED-IQA scores 2.50 of 5 for the image (Noise, Overall)",
        "NIQE scores 3.00 of 5 for the car (Overall)",
    ]
    reasoning = AgenticIQA.offline()(skimage.data.coffee(), query="Is there a color cast?").quality_reasoning
    assert reasoning.count("LEARNED-IQA scores") <= 1
