"""Which proposed instructions break the form of the answer."""

import pytest

from agenticiqa.configs import Config
from agenticiqa.eval.optimize.reflection import broken, names_of_answer
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.signatures.summarizer import ScoreQuality

ORIGINAL = ScoreQuality.instructions


def fault(proposed: str) -> str | None:
    return broken(proposed, ORIGINAL, ScoreQuality)


def test_every_instruction_of_the_program_keeps_its_own_form() -> None:
    program = AgenticIQA.from_config(Config().with_backend("vllm.test", "http://127.0.0.1:9/v1"))
    predictors = program.named_predictors()
    assert len(predictors) == 8
    for name, predictor in predictors:
        text = predictor.signature.instructions
        assert broken(text, text, predictor.signature) is None, name
        assert broken(f"{text}\nAlways weigh blockiness.", text, predictor.signature) is None, name


def test_the_names_of_an_answer_are_its_keys_and_the_words_to_choose_from() -> None:
    keys, words = names_of_answer(ScoreQuality)
    assert {"quality_level", "quality_probs", "quality_reasoning"} <= keys
    assert words == {"Excellent", "Good", "Fair", "Poor", "Bad"}


@pytest.mark.parametrize(
    ("proposed", "message"),
    [
        ("Rate the image from 1 to 5.", "no longer names"),
        (ORIGINAL.replace("quality_probs", "the probabilities"), "no longer names quality_probs,"),
        (ORIGINAL.replace("Excellent", "Perfect"), "no longer names Excellent,"),
        (f'{ORIGINAL}\nAnswer as {{"score": 4, "rationale": "..."}}.', "JSON with rationale, score"),
        (f"{ORIGINAL}\n[[ ## assessment ## ]]", "marks parts of a request"),
        (f"{ORIGINAL}\n<<CUSTOM-TYPE-START-IDENTIFIER>>", "marks parts of a request"),
    ],
)
def test_a_proposal_that_breaks_the_form_is_refused_by_name(proposed: str, message: str) -> None:
    assert message in (fault(proposed) or "")


def test_the_names_may_stand_in_other_words_order_and_case() -> None:
    rewritten = (
        'Give {"quality_level": "Good", "quality_probs": {"1": -9}, "quality_reasoning": "..."}. '
        "Levels are EXCELLENT, good, fair, poor and bad."
    )
    assert fault(rewritten) is None
