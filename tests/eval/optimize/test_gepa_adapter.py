"""The program as GEPA sees it: which predictor is next, what a reflection is shown, and what a resumed run keeps."""

from typing import Any

import dspy
from gepa import EvaluationBatch

from agenticiqa.configs import Config
from agenticiqa.eval.optimize.gepa_adapter import GepaAdapter, Reflected, Trajectory, with_instructions
from agenticiqa.eval.optimize.judging import Judged, ModelCall
from agenticiqa.programs.assess import AgenticIQA

CANDIDATE = {"planner": "Plan it.", "score": "Rate it.", "answer": "Answer it."}


def adapter(*reflections: str, proposals: Any = None) -> GepaAdapter:
    made = GepaAdapter(None, None, proposals or (lambda *given: ("New.", [])))  # type: ignore[arg-type]
    made.reflections = [Reflected(name, True, []) for name in reflections]
    return made


def trajectory(*names: str) -> Trajectory:
    calls = tuple(ModelCall(name, {"number": number}, {"out": name}) for number, name in enumerate(names))
    return Trajectory(Judged(answered=frozenset(names), calls=calls), "too kind")


def chosen(made: GepaAdapter, *trajectories: Trajectory) -> list[str]:
    return made.choose(None, list(trajectories), [], 0, CANDIDATE)


def test_of_those_that_answered_the_one_reflected_on_least_is_next() -> None:
    batch = trajectory("planner"), trajectory("score")
    assert chosen(adapter(), *batch) == ["planner"]
    assert chosen(adapter("planner"), *batch) == ["score"]
    assert chosen(adapter("planner", "score", "score"), *batch) == ["planner"]
    assert chosen(adapter("planner", "planner"), trajectory("planner")) == ["planner"]


def test_where_none_answered_nothing_is_reflected_on() -> None:
    made = adapter()
    assert chosen(made, trajectory()) == []
    assert made.make_reflective_dataset(CANDIDATE, EvaluationBatch([], [], [trajectory()]), []) == {}
    assert made.propose_new_texts(CANDIDATE, {}, []) == {}
    assert made.reflections == []


def test_a_reflection_is_shown_the_last_call_about_each_image_that_reached_the_predictor() -> None:
    batch = EvaluationBatch(outputs=[], scores=[], trajectories=[trajectory("score", "score"), trajectory("planner")])
    shown = adapter().make_reflective_dataset(CANDIDATE, batch, ["score"])
    assert shown == {
        "score": [{"Inputs": {"number": 1}, "Generated Outputs": {"out": "score"}, "Feedback": "too kind"}]
    }


def test_refused_proposals_are_counted_and_kept_for_a_resumed_run() -> None:
    answers = iter([(None, ["the same", "empty"]), ("New.", ["empty"])])
    made = adapter(proposals=lambda *given: next(answers))
    assert made.propose_new_texts(CANDIDATE, {"score": []}, ["score"]) == {}
    assert made.in_vain == 1
    assert made.propose_new_texts(CANDIDATE, {"score": []}, ["score"]) == {"score": "New."}
    assert made.in_vain == 0
    resumed = adapter()
    resumed.set_adapter_state(made.get_adapter_state())
    assert (
        resumed.reflections
        == made.reflections
        == [
            Reflected("score", False, ["the same", "empty"]),
            Reflected("score", True, ["empty"]),
        ]
    )


def test_a_candidate_is_a_copy_of_the_program_with_its_instructions() -> None:
    program = AgenticIQA.from_config(Config().with_backend("vllm.test", "http://127.0.0.1:9/v1"))
    name = "summarizer.score.ask.predict"
    before = dict(program.named_predictors())[name].signature.instructions
    copy = with_instructions(program, {name: "Rate it."})
    instructions = {key: predictor.signature.instructions for key, predictor in copy.named_predictors()}
    assert instructions.pop(name) == "Rate it."
    assert instructions == {
        key: predictor.signature.instructions for key, predictor in program.named_predictors() if key != name
    }
    assert dict(program.named_predictors())[name].signature.instructions == before
    assert isinstance(copy, dspy.Module)
