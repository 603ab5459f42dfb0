"""Which answers of the reflection model are taken for an instruction, and which break the form of the answer."""

import json
from collections.abc import Callable

import dspy
import pytest

from agenticiqa.configs import Config
from agenticiqa.eval.optimize.reflection import Reflection, Stopped, broken, names_of_answer
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.signatures.executor import AnalyzeDistortions
from agenticiqa.signatures.summarizer import ScoreQuality
from support.engine import ScriptedEngine
from support.loopback import Body

NAME = "executor.analyze.ask.predict"
CURRENT = AnalyzeDistortions.instructions
BETTER = f"{CURRENT}\nAlways weigh blockiness."
EXAMPLES = [{"Inputs": {"query": "Rate it."}, "Generated Outputs": {"analysis": "none"}, "Feedback": "2.0 too kind."}]


def said(instruction: str) -> str:
    return json.dumps({"new_instruction": instruction})


def reflect(*answers: str | Exception) -> tuple[str | None, list[str], list[str]]:
    """The instruction, why proposals were refused, and the prompts."""
    engine = ScriptedEngine(answers)
    model = dspy.LM("test/reflection", engine=engine, cache=False)
    text, refused = Reflection(model, {NAME: AnalyzeDistortions})(NAME, CURRENT, EXAMPLES)
    return text, refused, [json.dumps(body) for body in engine.bodies]


def test_a_better_instruction_is_taken_at_once() -> None:
    text, refused, prompts = reflect(said(BETTER))
    assert (text, refused) == (BETTER, [])
    assert len(prompts) == 1
    assert "2.0 too kind." in prompts[0]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("I would rather not.", "held no instruction"),
        (said("  "), "was empty"),
        (said(f"  {CURRENT}\n"), "was the same"),
        (said("Look hard at the picture."), "no longer names distortion_analysis, extreme, moderate"),
    ],
)
def test_a_useless_answer_is_refused_and_the_next_prompt_says_why(answer: str, reason: str) -> None:
    text, refused, prompts = reflect(answer, said(BETTER))
    assert text == BETTER
    assert len(refused) == 1
    assert reason in refused[0]
    assert refused[0] in prompts[1]
    assert refused[0] not in prompts[0]


def test_two_useless_answers_are_no_instruction() -> None:
    text, refused, prompts = reflect(said(CURRENT))
    assert (text, len(refused), len(prompts)) == (None, 2, 2)


def test_an_outage_ends_the_run() -> None:
    with pytest.raises(Stopped) as caught:
        reflect(dspy.LMError("gone"))
    assert isinstance(caught.value.__cause__, dspy.LMError)
    assert not isinstance(caught.value, Exception)  # GEPA would count it as no proposal


def test_the_configured_model_of_the_caller_is_not_asked() -> None:
    never: Callable[[Body], str] = lambda body: pytest.fail("the wrong model was asked")  # noqa: E731
    with dspy.context(lm=dspy.LM("test/judge", engine=ScriptedEngine(never), cache=False)):
        assert reflect(said(BETTER))[0] == BETTER


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
