"""The prompt has the form of the answer once: in ``response_format`` if the server enforces it, else in the text."""

import json
from typing import Any

import dspy
import pytest
from pydantic import BaseModel

from agenticiqa.programs.backends.dspy_adapter import CORRECTION, SteadyAdapter, answer_schema
from agenticiqa.programs.backends.providers import Form
from agenticiqa.signatures import executor, planner, replan, summarizer
from agenticiqa.signatures.answers.model_answer import wire_names
from agenticiqa.signatures.answers.requested import Requested
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
    """Return whether every object in a schema requires all its properties and allows no others."""
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
def test_the_schema_is_strict_and_matches_the_answer(signature: type[dspy.Signature]) -> None:
    schema = answer_schema(signature)
    assert closed(schema)
    assert list(schema["properties"]) == list(signature.output_fields)
    (field,) = signature.output_fields.values()
    assert issubclass(field.annotation, BaseModel)
    (answer,) = schema["properties"].values()
    assert answer["properties"].keys() == {
        (inner.alias or name) for name, inner in field.annotation.model_fields.items()
    }


@pytest.mark.parametrize("signature", SIGNATURES, ids=lambda s: s.__name__)
def test_the_schema_contains_no_names_of_classes(signature: type[dspy.Signature]) -> None:
    text = json.dumps(answer_schema(signature))
    assert not [key for key in ("title", "description", "$defs", "$ref") if f'"{key}"' in text]


@pytest.mark.parametrize("signature", SIGNATURES, ids=lambda s: s.__name__)
def test_the_form_is_sent_once(signature: type[dspy.Signature]) -> None:
    """If the server enforces the schema, the prompt has no form; else it has each key with its type, not a schema."""
    enforced, free = (prompt(signature, form) for form in ("json_schema", "off"))
    form = SteadyAdapter().described(signature)
    assert form not in enforced
    assert free.count(form) == 1
    assert "additionalProperties" not in free
    for text in (enforced, free):
        assert all(f"- {name}" in text for name in signature.input_fields)
        (model,) = (field.annotation for field in signature.output_fields.values())
        assert all(key in text for key in wire_names(model)), "the instructions name the keys, too"


def test_a_correction_adds_only_its_reason() -> None:
    """The form is not repeated: a server that enforces it needs no words, and a full context would overflow."""
    why = "it was no JSON"
    signature = replan.DecideReplan.append(CORRECTION, dspy.InputField(), str)
    for form in ("json_schema", "off"):
        assert system(signature, form) == system(replan.DecideReplan, form), "the cached prefix"
        first, second = prompt(replan.DecideReplan, form), prompt(signature, form, correction=why)
        assert len(second) - len(first) == len(f"[[ ## correction ## ]]\n{why}\n\n")


def test_the_form_is_in_the_prompt_of_a_server_that_ignores_its_schema() -> None:
    signature = replan.DecideReplan
    ignoring = SteadyAdapter().for_request("json_schema", Requested(), per_request=True, in_prompt=True)
    assert ignoring.described(signature) in ignoring.user_message_output_requirements(signature)


def test_inputs_that_are_none_are_not_in_the_prompt() -> None:
    text = prompt(summarizer.AnswerQuestion, "off", options=None, query="Is it sharp?")
    assert "[[ ## query ## ]]\nIs it sharp?" in text
    assert "[[ ## options ## ]]" not in text


def system(signature: type[dspy.Signature], form: Form) -> str:
    return SteadyAdapter(form).format_system_message(signature)


def prompt(signature: type[dspy.Signature], form: Form, **inputs: Any) -> str:
    """Return the whole text of a request."""
    adapter = SteadyAdapter(form)
    given = {name: "x" for name, field in signature.input_fields.items() if field.annotation in (str, str | None)}
    return "\n".join(message["content"] for message in adapter.format(signature, [], given | inputs))


def test_the_callers_own_model_gets_the_form_in_the_prompt() -> None:
    lm, engine = scripted_lm(['{"decision": {"need_replan": false, "replan_reason": ""}}'])
    given = dict.fromkeys(("query", "plan", "evidence", "doubts"), "none")
    with dspy.context(lm=lm, adapter=SteadyAdapter()):
        dspy.Predict(replan.DecideReplan)(**given)
    form = SteadyAdapter().described(replan.DecideReplan)
    assert form in str(engine.requests[0].messages[-1].parts[-1])
