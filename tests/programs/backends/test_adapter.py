"""The adapter asks for what DSPy's own would, only without making it anew each time."""

from typing import Any

import dspy
import pytest
from pydantic import BaseModel

from agenticiqa.programs.backends.adapter import SteadyAdapter, answer_schema
from agenticiqa.signatures import executor, planner, replan, summarizer
from support.engine import scripted_lm

ROOMS = (planner, executor, summarizer, replan)
SIGNATURES = [
    found
    for room in ROOMS
    for found in vars(room).values()
    if isinstance(found, type)
    and issubclass(found, dspy.Signature)
    and found.__module__ == room.__name__
    and found is not summarizer.NameLevel  # its answer is one word, not an object
]


def closed(schema: Any) -> bool:
    """Whether every object in a schema has all its properties required and takes no others."""
    if isinstance(schema, list):
        return all(map(closed, schema))
    if not isinstance(schema, dict):
        return True
    if schema.get("type") == "object" and (
        schema.get("additionalProperties") is not False or set(schema["required"]) != set(schema["properties"])
    ):
        return False
    return all(map(closed, schema.values()))


@pytest.mark.parametrize("signature", SIGNATURES, ids=lambda s: s.__name__)
def test_the_schema_is_strict_and_that_of_the_answer(signature: type[dspy.Signature]) -> None:
    schema = answer_schema(signature)
    assert closed(schema)
    assert list(schema["properties"]) == list(signature.output_fields)
    (field,) = signature.output_fields.values()
    assert issubclass(field.annotation, BaseModel)
    assert schema["$defs"][field.annotation.__name__]["properties"].keys() == {
        (inner.alias or name) for name, inner in field.annotation.model_fields.items()
    }


@pytest.mark.parametrize("signature", SIGNATURES, ids=lambda s: s.__name__)
def test_the_system_prompt_is_dspys_own(signature: type[dspy.Signature]) -> None:
    assert SteadyAdapter().format_system_message(signature) == dspy.JSONAdapter().format_system_message(signature)


def test_a_model_of_someone_elses_is_asked_as_dspy_asks_it() -> None:
    lm, engine = scripted_lm(['{"decision": {"need_replan": false, "replan_reason": ""}}'])
    given = dict.fromkeys(("query", "plan", "evidence", "doubts"), "none")
    for adapter in (SteadyAdapter(), dspy.JSONAdapter()):
        with dspy.context(lm=lm, adapter=adapter):
            dspy.Predict(replan.DecideReplan)(**given)
    ours, dspys = engine.requests
    assert ours == dspys
