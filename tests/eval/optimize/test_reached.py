"""Which predictors a first pass reached."""

from agenticiqa.configs import Config
from agenticiqa.eval.optimize.judging import Judged, unreached
from agenticiqa.programs.assess import AgenticIQA

PLANNER, DETECTOR, SCORER = "planner.ask.predict", "executor.detect.ask.predict", "summarizer.score.ask.predict"


def skipped(*first_pass: Judged) -> dict[str, str]:
    program = AgenticIQA.from_config(Config().with_backend("vllm.test", "http://127.0.0.1:9/v1"))
    return unreached(program, [PLANNER, DETECTOR, SCORER], first_pass)


def test_what_never_answered_is_skipped_with_its_reason() -> None:
    first = Judged(answered=frozenset({SCORER}), asked=frozenset({"planner", "scoring"}))
    reasons = skipped(first, Judged(failure="no JSON"))
    assert set(reasons) == {PLANNER, DETECTOR}
    assert "none was valid" in reasons[PLANNER]
    assert "never asked about the 2 images" in reasons[DETECTOR]


def test_what_answered_once_is_tuned() -> None:
    assert skipped(Judged(answered=frozenset({SCORER, PLANNER})), Judged(answered=frozenset({DETECTOR}))) == {}


def test_a_first_pass_without_any_answer_skips_nothing() -> None:
    assert skipped(Judged(failure="no JSON")) == {}
