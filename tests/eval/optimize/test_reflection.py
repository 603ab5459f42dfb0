"""The answers of the reflection model that are accepted, and those that break the form of the answer."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import dspy
import pytest

from agenticiqa.configs import Config
from agenticiqa.eval.datasets import MosScale
from agenticiqa.eval.labels.own_data import read_labels
from agenticiqa.eval.optimize.items import Assessed, TuningQuestion, rating
from agenticiqa.eval.optimize.reflection import Reflection, broken, quoted
from agenticiqa.eval.optimize.search import Proposal
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.batch.results_file import ResultsFile
from agenticiqa.signatures.executor import AnalyzeDistortions
from agenticiqa.signatures.summarizer import ScoreQuality
from support.engine import ScriptedEngine
from support.loopback import Body

NAME = "executor.analyze.ask.predict"
CURRENT = AnalyzeDistortions.instructions
BETTER = f"{CURRENT}\nAlways weigh blockiness."


@pytest.fixture
def question(make_labels: Callable[..., Path]) -> TuningQuestion:
    (label,) = read_labels(make_labels(scenes=1, levels=(1,)))
    return rating(label, MosScale(10, 90))


def said(instruction: str) -> str:
    return json.dumps({"new_instruction": instruction})


def reflect(
    question: TuningQuestion, *answers: str | Exception, path: Path | None = None
) -> tuple[Proposal, list[str]]:
    """The proposal, and the prompts."""
    engine = ScriptedEngine(answers)
    model = dspy.LM("test/reflection", engine=engine, cache=False)
    assessed = Assessed(calls={NAME: {"inputs": {"query": "Rate it."}, "outputs": {"analysis": "none"}}})
    with ResultsFile(path) if path else nullcontext() as kept:
        made = Reflection(model, {NAME: AnalyzeDistortions}, kept)
        proposal = made(NAME, {NAME: CURRENT, "other": "Stay."}, [assessed], [question], ["2.0 too kind."], [])
    return proposal, [json.dumps(body) for body in engine.bodies]


def test_a_better_instruction_is_taken_at_once_and_never_asked_for_again(
    question: TuningQuestion, tmp_path: Path
) -> None:
    for prompts_sent in (1, 0):
        proposal, prompts = reflect(question, said(BETTER), path=tmp_path / "proposed.jsonl")
        assert proposal == Proposal({NAME: BETTER, "other": "Stay."}, NAME)
        assert len(prompts) == prompts_sent
        assert all("2.0 too kind." in prompt and "image" in prompt for prompt in prompts)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("I would rather not.", "held no instruction"),
        (said("  "), "was empty"),
        (said(f"  {CURRENT}\n"), "was the same"),
        (said(f'{CURRENT} Answer as {{"rating": 4}}.'), "asks for JSON with rating"),
        (said(f"{CURRENT} scene0_1 is a good one."), "names the file of an example"),
    ],
)
def test_a_useless_answer_is_refused_and_the_next_prompt_says_why(
    question: TuningQuestion, answer: str, reason: str
) -> None:
    proposal, prompts = reflect(question, answer, said(BETTER))
    assert proposal.texts == {NAME: BETTER, "other": "Stay."}
    (refused,) = proposal.refused
    assert reason in refused
    assert refused in prompts[1]
    assert refused not in prompts[0]


def test_two_useless_answers_are_no_instruction(question: TuningQuestion) -> None:
    proposal, prompts = reflect(question, said(CURRENT))
    assert (proposal.texts, len(proposal.refused), len(prompts)) == (None, 2, 2)


def test_an_outage_ends_the_run(question: TuningQuestion) -> None:
    with pytest.raises(dspy.LMError):
        reflect(question, dspy.LMError("gone"))


def test_the_configured_model_of_the_caller_is_not_asked(question: TuningQuestion) -> None:
    never: Callable[[Body], str] = lambda body: pytest.fail("the wrong model was asked")  # noqa: E731
    with dspy.context(lm=dspy.LM("test/judge", engine=ScriptedEngine(never), cache=False)):
        assert reflect(question, said(BETTER))[0].texts is not None


def test_mos_and_questions_of_the_examples_are_not_quoted() -> None:
    rated = [TuningQuestion(Path("a.png"), "Rate it.", "a", target=target) for target in (2.13, 3.4, 4.6)]
    assert "quotes the opinion scores of examples (2.1, 3.4)" in str(quoted("A boat is 2.1, a hill 3.4.", "", rated))
    assert quoted("Between 2.5 and 3.0 it is fair. Say 2.1 for blur.", "", rated) is None
    assert quoted("Levels are 2.1 and 3.4.", "Levels are 2.1 and 3.4.", rated) is None
    asked = [TuningQuestion(Path("a.png"), "How sharp is the left edge of the boat?", "a", answer="A")]
    assert "quotes a question" in str(quoted("If asked how SHARP is the left edge of it, say B.", "", asked))
    assert quoted("Look at the left edge first.", "", asked) is None


ORIGINAL = ScoreQuality.instructions


def test_every_instruction_of_the_program_keeps_its_own_form() -> None:
    program = AgenticIQA.from_config(Config().with_backend("vllm.test", "http://127.0.0.1:9/v1"))
    predictors = program.named_predictors()
    assert len(predictors) == 8
    for name, predictor in predictors:
        text = predictor.signature.instructions
        assert broken(text, predictor.signature) is None, name
        assert broken(f"{text}\nAlways weigh blockiness.", predictor.signature) is None, name


@pytest.mark.parametrize(
    ("proposed", "message"),
    [
        (f'{ORIGINAL}\nAnswer as {{"score": 4, "rationale": "..."}}.', "JSON with rationale, score"),
        (f"{ORIGINAL}\n[[ ## assessment ## ]]", "marks parts of a request"),
        (f"{ORIGINAL}\n<<CUSTOM-TYPE-START-IDENTIFIER>>", "marks parts of a request"),
    ],
)
def test_a_proposal_that_breaks_the_form_is_refused_by_name(proposed: str, message: str) -> None:
    assert message in (broken(proposed, ScoreQuality) or "")


def test_a_proposal_may_leave_out_the_form_of_the_answer_or_use_its_names() -> None:
    written = 'Give {"quality_level": "Good", "quality_probs": {"1": -9}, "quality_reasoning": "..."}.'
    assert broken(written, ScoreQuality) is None
    assert broken("Assess the photo like an expert.", ScoreQuality) is None
