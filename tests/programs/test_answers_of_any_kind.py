"""For every answer of a model, a stage returns a typed answer or raises Unanswered, and no other error."""

import contextlib
import json
from typing import Any

import dspy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agenticiqa.programs.errors import Unanswered
from agenticiqa.programs.stages.ask import CheckedPredict
from agenticiqa.signatures.executor import AnalyzeDistortions, DetectDistortions, SelectTools
from agenticiqa.signatures.planner import Plan
from agenticiqa.signatures.replan import DecideReplan
from agenticiqa.signatures.summarizer import AnswerQuestion, ScoreQuality
from support.engine import scripted_backend

SIGNATURES = (Plan, DetectDistortions, AnalyzeDistortions, SelectTools, ScoreQuality, AnswerQuestion, DecideReplan)

words = st.sampled_from(["Global", "Blurs", "severe", "IQA", "B", "", "1", "region", "type"]) | st.text(max_size=8)
scalars = st.none() | st.booleans() | st.integers(-9, 9) | st.floats() | words
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3), max_leaves=8
)


def fields(signature: type[dspy.Signature]) -> list[str]:
    (field,) = signature.output_fields.values()
    return list(field.annotation.model_json_schema()["properties"])


def ask(signature: type[dspy.Signature], said: str) -> None:
    backend, _ = scripted_backend([said])
    (output,) = signature.output_fields.values()
    with contextlib.suppress(Unanswered):
        reply = CheckedPredict(signature, stage="any", backend=backend, attempts=1)(
            dict.fromkeys(signature.input_fields)
        )
        assert isinstance(reply.answer, output.annotation)


@pytest.mark.parametrize("signature", SIGNATURES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_objects_with_the_right_keys_and_any_values_are_handled(
    signature: type[dspy.Signature], data: st.DataObject
) -> None:
    (name,) = signature.output_fields
    content: Any = data.draw(st.fixed_dictionaries(dict.fromkeys(fields(signature), json_values)) | json_values)
    ask(signature, json.dumps({name: content}))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(said=st.text(st.characters(exclude_categories=["Cs"])) | st.text('{}[]":,\\tn0.-e`', max_size=30))
def test_any_text_is_handled(said: str) -> None:
    ask(ScoreQuality, said)


def test_a_too_deeply_nested_answer_is_rejected_as_such() -> None:
    backend, _ = scripted_backend(['{"answer": ' + "[" * 5000 + "]" * 5000 + "}"])
    with pytest.raises(Unanswered, match="nested too deeply"):
        CheckedPredict(AnswerQuestion, stage="any", backend=backend)(dict.fromkeys(AnswerQuestion.input_fields))
