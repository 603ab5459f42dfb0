"""What the reasoning of an answer quotes."""

import skimage.data

from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.offline.language.evidence_text import scores_in_words
from agenticiqa.signatures.types import GLOBAL, ExecutorOutput


def test_a_score_is_given_once_for_all_that_it_is_about() -> None:
    both = {"Noise": ("LEARNED-IQA", 2.5), "Overall": ("LEARNED-IQA", 2.5)}
    scores = {GLOBAL: both, "the car": {"Overall": ("NIQE", 3.0)}}
    assert scores_in_words(ExecutorOutput(quality_scores=scores)) == [
        "LEARNED-IQA scores 2.50 of 5 for the image, Noise and Overall",
        "NIQE scores 3.00 of 5 for the car, Overall",
    ]
    reasoning = AgenticIQA.offline()(skimage.data.coffee(), query="Is there a color cast?").quality_reasoning
    assert reasoning.count("LEARNED-IQA scores") <= 1
