"""Which questions a whole run compares, with results that depend only on the prompt."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.utils import DummyLM

from agenticiqa.eval.optimize.before_after import Tuned
from agenticiqa.eval.optimize.items import Assessed, TuningQuestion, split_by_content
from agenticiqa.eval.optimize.measurements import Measurements
from agenticiqa.eval.optimize.price import also_compared
from agenticiqa.eval.optimize.search import FIRST
from agenticiqa.eval.optimize.settings import TuningSettings
from agenticiqa.eval.optimize.tuning import optimize
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.limits import LimitReached
from agenticiqa.programs.saving import prompts_of
from agenticiqa.signatures.summarizer import ScoreQuality

PHRASE = "Look for blocks first."
SETTINGS = TuningSettings(budget=60, starts=1)


def tuned_within(most: int, examples: Path, monkeypatch: pytest.MonkeyPatch) -> Tuned:
    """Tune on 80 questions; after ``most`` assessments a limit is reached. Only with the phrase are ratings right."""
    left = iter(range(most))

    def answers(measured: Measurements, program: AgenticIQA, questions: Mapping[Any, TuningQuestion]) -> Iterator[Any]:
        knows = PHRASE in str(prompts_of(program))
        for number, (key, question) in enumerate(questions.items()):
            if next(left, None) is None:
                raise LimitReached("the limit is reached")
            level = question.target if knows else 1.0 + number % 5
            call = {"summarizer.score.ask.predict": {"inputs": {}, "outputs": {}}}
            yield key, Assessed(expectation=level, fused=level, calls=call, answered=tuple(call))

    monkeypatch.setattr(Measurements, "_answers", answers)
    program = AgenticIQA.from_config({"mode": "fast", "summarizer": {"backend": "dspy"}})
    instruction = f"{ScoreQuality.instructions} {PHRASE}"
    writer = DummyLM([{"new_instruction": instruction}] * 50, adapter=dspy.JSONAdapter())
    return optimize(program, questions_about(examples), SETTINGS, reflection=writer)


def questions_about(examples: Path) -> list[TuningQuestion]:
    image = examples / "coffee_jpeg.jpg"
    return [TuningQuestion(image, f"Rate it, {i}.", str(i), target=1 + i % 9 / 2) for i in range(80)]


def test_questions_that_the_search_did_not_use_are_compared_too_as_far_as_limits_allow(
    examples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuned = tuned_within(1000, examples, monkeypatch)
    assert (tuned.kept, tuned.why) == (True, "the probability of an improvement is 99.9 % (97.5 % is required)")
    assert tuned.counts["to tune on"] - FIRST == 18
    assert tuned.figures["images"] == tuned.counts["held-out"] + 18 == 50
    pool, held_out = split_by_content(questions_about(examples), held_out=SETTINGS.held_out, seed=SETTINGS.seed)
    assert len(also_compared(SETTINGS, pool, len(held_out))) == 18, "the plan announces them"
    limited = tuned_within(tuned.spent["assessed"] - 5, examples, monkeypatch)
    assert (limited.figures["images"], limited.found.ended) == (45, "the limit is reached")
    assert limited.kept
