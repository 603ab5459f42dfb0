"""The scenarios of the document summarizer-state-models."""

import json
import logging
from pathlib import Path
from typing import Any, NotRequired, get_origin, get_type_hints

import pytest
from pydantic import ValidationError

from agenticiqa.programs.graph import AgenticIQAState, decide_next_node, executor_node, planner_node, summarizer_node
from agenticiqa.programs.stages.replan import remember
from agenticiqa.signatures.types import SummarizerOutput
from support.fake_server import has_field
from support.nodes import RATE, evidence, plan, scripted, state
from support.specification import ANSWER, ASSESSMENT, PLAN

SAID = {"assessment": ASSESSMENT, "answer": ANSWER}
QA_EXAMPLE: dict[str, Any] = {
    "final_answer": "B",
    "quality_reasoning": "The image shows moderate blur affecting sharpness, consistent with tool score of 2.6.",
    "need_replan": False,
}
REPLAN_EXAMPLE: dict[str, Any] = {
    "final_answer": "Unable to determine",
    "quality_reasoning": "Insufficient evidence for vehicle region.",
    "need_replan": True,
    "replan_reason": "Missing tool scores for vehicle region",
}


def output(**changes: Any) -> SummarizerOutput:
    return SummarizerOutput.model_validate({"final_answer": "B", "quality_reasoning": "Soft.", **changes})


def test_create_summarizeroutput_model_with_required_fields() -> None:
    """Answer and reasoning are required; a new plan, its reason and the evidence used are optional."""
    made = output()
    assert (made.need_replan, made.replan_reason, made.used_evidence) == (False, None, None)
    required = {name for name, field in SummarizerOutput.model_fields.items() if field.is_required()}
    assert required == {"final_answer", "quality_reasoning"}
    assert output(used_evidence={"quality_scores": {"Global": 1}}).used_evidence == {"quality_scores": {"Global": 1}}
    assert output(final_answer="Excellent").final_answer == "Excellent"
    assert isinstance(output(final_answer=2.73).final_answer, float)
    properties = SummarizerOutput.model_json_schema()["properties"]
    assert properties["quality_reasoning"]["minLength"] == 1
    for missing in required:
        with pytest.raises(ValidationError, match=missing):
            SummarizerOutput.model_validate({k: v for k, v in QA_EXAMPLE.items() if k != missing})


def test_validate_quality_reasoning_is_non_empty() -> None:
    """Blanks around a reasoning are removed, and one without a visible character is refused."""
    assert output(quality_reasoning="\n  Soft edges. ").quality_reasoning == "Soft edges."
    for blank in ("", " ", "\n\t"):
        with pytest.raises(ValidationError, match="quality_reasoning"):
            output(quality_reasoning=blank)


@pytest.mark.parametrize(
    "made",
    [
        output(),
        output(**REPLAN_EXAMPLE),
        output(
            final_answer=2.730000000000001,
            quality_score=2.730000000000001,
            quality_probs=dict.fromkeys("12345", 0.2),
            probability_source="uniform",
            used_evidence={"quality_scores": {"Global": {"Blurs": ["SSIM", 2.6]}}},
        ),
    ],
)
def test_serialize_and_deserialize_summarizeroutput(made: SummarizerOutput) -> None:
    """A round trip through JSON keeps every field; numbers stay numbers and letters stay letters."""
    back = SummarizerOutput.model_validate_json(made.model_dump_json())
    assert back == made
    assert type(back.final_answer) is type(made.final_answer)
    assert set(json.loads(made.model_dump_json())) == set(SummarizerOutput.model_fields)


def test_add_summarizer_result_field_to_state() -> None:
    """The result of the summarizer is optional in the state."""
    hints = get_type_hints(AgenticIQAState, include_extras=True)
    assert hints["summarizer_result"] == NotRequired[SummarizerOutput]
    assert "summarizer_result" in AgenticIQAState.__optional_keys__


def test_add_iteration_tracking_fields(photo: Path) -> None:
    """Count, limit and history are optional; the count starts at 0, and the default limit is 2."""
    hints = get_type_hints(AgenticIQAState, include_extras=True)
    assert hints["iteration_count"] == hints["max_replan_iterations"] == NotRequired[int]
    assert get_origin(hints["replan_history"]) is NotRequired
    assert get_type_hints(AgenticIQAState)["replan_history"] == list[str]
    again = output(**REPLAN_EXAMPLE)
    fresh = state(photo)
    fresh["summarizer_result"] = again
    assert decide_next_node(fresh) == "planner"
    assert [decide_next_node({**fresh, "iteration_count": count}) for count in (1, 2)] == ["planner", "__end__"]
    config, _ = scripted(SAID)
    assert summarizer_node(state(photo), config)["iteration_count"] == 0


def test_state_merging_with_summarizer_result(photo: Path) -> None:
    """Merging the update keeps plan and evidence, and counts a new plan if one is needed."""
    config, _ = scripted(SAID)
    for planned, count in ((plan(), 1), (plan(scope=["sky"], analyse=True), 2)):
        given = state(photo, RATE, planned, evidence())
        given["iteration_count"] = 1
        update = summarizer_node(given, config)
        assert {"plan", "executor_evidence"}.isdisjoint(update)
        assert set(update) <= set(AgenticIQAState.__annotations__)
        merged: Any = {**given, **update}
        assert merged["plan"] is given["plan"]
        assert merged["executor_evidence"] is given["executor_evidence"]
        assert merged["iteration_count"] == count
        assert merged["summarizer_result"].need_replan is (count == 2)


def test_validate_final_answer_format() -> None:
    """A text answer is stripped and not blank; a number is on the scale."""
    assert output(final_answer=" B\n").final_answer == "B"
    for bad in ("", "  ", 0.5, 5.5, float("nan"), None):
        with pytest.raises(ValidationError, match="final_answer"):
            output(final_answer=bad)


def test_validate_replan_reason_presence(caplog: pytest.LogCaptureFixture) -> None:
    """A request for a new plan without a reason gets a default reason and a warning."""
    assert output(need_replan=True, replan_reason="The sky").replan_reason == "The sky"
    assert output().replan_reason is None
    assert caplog.records == []
    for reason in (None, ""):
        assert output(need_replan=True, replan_reason=reason).replan_reason == "No reason provided"
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2


@pytest.mark.parametrize("blank", ["", " ", "\t\n ", "\u00a0"])
def test_validate_quality_reasoning_content(blank: str) -> None:
    """One visible character is a valid reasoning; blanks raise ValidationError."""
    assert output(quality_reasoning=f"{blank}x{blank}").quality_reasoning == "x"
    with pytest.raises(ValidationError, match="quality_reasoning"):
        output(quality_reasoning=blank)


def test_execute_pipeline_without_summarizer(photo: Path) -> None:
    """A state with plan and evidence but no result ends the graph; planner and executor accept it, too."""
    given = state(photo, "Rate the quality of the vehicle.", plan(), evidence())
    assert "summarizer_result" not in given
    assert decide_next_node(given) == "__end__"
    config, engine = scripted({"plan": PLAN})
    assert planner_node(given, config)["plan"].query_scope == ["vehicle"]
    assert not has_field(engine.bodies[0], "feedback")
    assert executor_node(given, config)["executor_evidence"].is_empty()


def test_execute_pipeline_without_executor(photo: Path) -> None:
    """A state with only a plan is valid and ends the graph; the summarizer reports what is missing."""
    given: AgenticIQAState = {"query": RATE, "image_path": str(photo), "plan": plan()}
    assert decide_next_node(given) == "__end__"
    config, engine = scripted(SAID)
    update = summarizer_node(given, config)
    assert list(update) == ["error"]
    assert "executor_evidence" in update["error"]
    assert engine.requests == []


def schema_examples() -> list[dict[str, Any]]:
    return [example for example in SummarizerOutput.model_json_schema()["examples"] if isinstance(example, dict)]


def test_provide_example_for_explanation_qa_mode() -> None:
    """The schema has the example answer of the document, and it is valid."""
    assert QA_EXAMPLE in schema_examples()
    assert output(**QA_EXAMPLE).model_dump(include=set(QA_EXAMPLE)) == QA_EXAMPLE


def test_provide_example_for_replanning_scenario() -> None:
    """The schema has the document's example of a request for a new plan, and it is valid."""
    assert REPLAN_EXAMPLE in schema_examples()
    assert output(**REPLAN_EXAMPLE).model_dump(include=set(REPLAN_EXAMPLE)) == REPLAN_EXAMPLE


def test_append_replan_reasons_to_history(photo: Path) -> None:
    """Each reason for a new plan is added to the history with its iteration; otherwise the history is unchanged."""
    config, _ = scripted(SAID)
    given = state(photo, RATE, plan(analyse=True))
    first = summarizer_node(given, config)
    assert first["replan_history"] == [f"iteration 1: {first['summarizer_result'].replan_reason}"]
    again: Any = {**given, **first}
    second = summarizer_node(again, config)
    assert second["replan_history"] == [
        *first["replan_history"],
        f"iteration 2: {second['summarizer_result'].replan_reason}",
    ]
    done: Any = {**given, **second, "plan": plan()}
    assert summarizer_node(done, config)["replan_history"] == second["replan_history"]


def test_limit_history_size(photo: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The history has at most ten entries; an eleventh removes the oldest, with a warning."""
    history: list[str] = []
    for iteration in range(1, 11):
        history = remember(history, iteration, "a gap")
    assert [len(history), len(caplog.records)] == [10, 0]
    config, _ = scripted(SAID)
    given = state(photo, RATE, plan(analyse=True))
    given |= {"iteration_count": 10, "max_replan_iterations": 20, "replan_history": history}
    kept = summarizer_node(given, config)["replan_history"]
    assert len(kept) == 10
    assert kept[:9] == history[1:]
    assert kept[9].startswith("iteration 11: ")
    (warning,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert "10" in warning.getMessage()
