"""One description of an answer gives the schema of its request and its check, so both refuse the same answers."""

from typing import Any

import dspy
import jsonschema  # type: ignore[import-untyped]
import pytest
from pydantic import BaseModel, ValidationError

from agenticiqa.programs.backends.dspy_adapter import SteadyAdapter, answer_schema, described_schema
from agenticiqa.signatures.answers.requested import Requested, most_tokens
from agenticiqa.signatures.executor import AnalyzeDistortions, DetectDistortions, LocateRegions, SelectTools
from agenticiqa.signatures.planner import Plan
from agenticiqa.signatures.replan import DecideReplan
from agenticiqa.signatures.summarizer import AnswerQuestion, ScoreQuality, level_only

REGIONS = [{"region": "the cup"}, {"region": "<|sky|>"}]  # a name that the prompt neutralizes
PAIRS = [{"region": "the cup", "type": "Noise"}, {"region": "the cup", "type": "Blurs"}]
CHOSEN = [{"region": "the cup", "distortion": "Noise"}]
WANTED: dict[type[dspy.Signature], Requested] = {
    Plan: Requested(choices={"required_tool": ["NIQE"]}),
    LocateRegions: Requested(rows={"regions": REGIONS}),
    DetectDistortions: Requested(rows={"distortion_set": REGIONS}),
    AnalyzeDistortions: Requested(rows={"distortion_analysis": PAIRS}),
    SelectTools: Requested(rows={"selected_tools": CHOSEN}, choices={"tool": ["NIQE", "PIQE"]}),
    AnswerQuestion: Requested(choices={"final_answer": ["A", "B"]}),
    ScoreQuality: Requested(),
    level_only(ScoreQuality): Requested(),
    DecideReplan: Requested(),
}
RATED = {"region": "the cup", "severity": "slight", "explanation": "Grain.", "uncertain": False}
RIGHT: dict[type[dspy.Signature], dict[str, Any]] = {
    LocateRegions: {
        "regions": [{"region": "the cup", "box": [1, 2, 3, 4]}, {"region": "< |sky|>", "box": [0, 0, 0, 0]}]
    },
    DetectDistortions: {
        "distortion_set": [{"region": "the cup", "distortions": []}, {"region": "< |sky|>", "distortions": ["Noise"]}]
    },
    AnalyzeDistortions: {"distortion_analysis": [{**RATED, "type": "Noise"}, {**RATED, "type": "Blurs"}]},
    SelectTools: {"selected_tools": [{"region": "the cup", "distortion": "Noise", "tool": "PIQE"}]},
    AnswerQuestion: {"final_answer": "B", "quality_reasoning": "Soft edges."},
}


def bounded(signature: type[dspy.Signature]) -> dict[str, Any]:
    return WANTED[signature].bounded(answer_schema(signature))


def read(signature: type[dspy.Signature], answer: dict[str, Any]) -> BaseModel:
    ((_, field),) = signature.output_fields.items()
    kind: Any = field.annotation
    model: BaseModel = kind.model_validate(answer)
    return model


def allows(signature: type[dspy.Signature], answer: dict[str, Any]) -> bool:
    """Return whether the schema allows an answer, after its check was found to say the same."""
    (name,) = signature.output_fields
    try:
        wrong = WANTED[signature].settle(read(signature, answer))
    except ValidationError as error:
        wrong = [str(error)]
    allowed: bool = jsonschema.Draft202012Validator(bounded(signature)).is_valid({name: answer})
    assert allowed is not bool(wrong), wrong
    return allowed


def nodes(schema: Any) -> list[dict[str, Any]]:
    """Return all objects inside a schema."""
    if isinstance(schema, list):
        return [node for item in schema for node in nodes(item)]
    return [schema, *nodes(list(schema.values()))] if isinstance(schema, dict) else []


@pytest.mark.parametrize("signature", RIGHT)
def test_schema_and_check_accept_what_was_requested(signature: type[dspy.Signature]) -> None:
    assert allows(signature, RIGHT[signature])


@pytest.mark.parametrize("signature", RIGHT)
def test_schema_and_check_refuse_a_row_too_few_too_many_and_of_another_name(signature: type[dspy.Signature]) -> None:
    ((key, rows), *_) = RIGHT[signature].items()
    if not isinstance(rows, list):
        assert not allows(signature, {**RIGHT[signature], key: "C"})
        return
    assert not allows(signature, {key: rows[1:]})
    assert not allows(signature, {key: [*rows, {**rows[0], "region": "moon"}]})
    assert not allows(signature, {key: [{**rows[0], "region": "moon"}, *rows[1:]]})


def test_schema_and_check_refuse_an_unavailable_tool() -> None:
    (row,) = RIGHT[SelectTools]["selected_tools"]
    assert not allows(SelectTools, {"selected_tools": [{**row, "tool": "SSIM"}]})


def test_a_row_that_contradicts_another_one_is_refused() -> None:
    first, second = RIGHT[AnalyzeDistortions]["distortion_analysis"]
    answer = read(AnalyzeDistortions, {"distortion_analysis": [first, {**first, "severity": "extreme"}, second]})
    (wrong,) = WANTED[AnalyzeDistortions].settle(answer)
    assert "the cup/Noise" in wrong
    assert "more than once" in wrong


def test_the_check_ignores_order_case_blanks_and_repetitions() -> None:
    sky, cup = {"region": "<|SKY|>", "distortions": []}, {"region": "The  cup", "distortions": ["Noise"]}
    answer = read(DetectDistortions, {"distortion_set": [sky, cup, cup]})
    assert WANTED[DetectDistortions].settle(answer) == []
    assert answer.model_dump()["distortion_set"] == [
        {"region": "<|sky|>", "distortions": []},
        {"region": "the cup", "distortions": ["Noise"]},
    ]


def test_a_list_without_choices_must_be_empty() -> None:
    wanted = Requested(choices={"required_tool": []})
    schema = wanted.bounded(answer_schema(Plan))
    tools = schema["properties"]["planner_output"]["properties"]["required_tool"]
    assert tools["maxItems"] == 0
    assert '"required_tool": []' in described_schema(schema)


@pytest.mark.parametrize("signature", WANTED, ids=lambda s: s.__name__)
def test_a_schema_bounds_every_text_and_list_and_has_no_keyword_that_fails_open(
    signature: type[dspy.Signature],
) -> None:
    schema = bounded(signature)
    assert not [key for node in nodes(schema) for key in node if key in ("anyOf", "oneOf", "allOf", "$ref", "$defs")]
    texts = [node for node in nodes(schema) if node.get("type") == "string"]
    assert all("enum" in node or node["maxLength"] <= 480 for node in texts)
    assert all("maxItems" in node for node in nodes(schema) if node.get("type") == "array")
    most = most_tokens(schema)
    assert most is not None
    assert most < 2048


def test_a_text_without_a_limit_has_no_limit_of_tokens() -> None:
    assert most_tokens({"type": "object", "properties": {"text": {"type": "string"}}}) is None
    assert most_tokens({"type": "array", "items": {"type": "number"}}) is None


def test_the_prompt_says_what_the_schema_says() -> None:
    adapter = SteadyAdapter().for_request("off", WANTED[SelectTools], per_request=False, in_prompt=False)
    said = adapter.user_message_output_requirements(SelectTools)
    assert '{"region": "the cup", "distortion": "Noise", "tool": "NIQE" | "PIQE"}' in said
    adapter = SteadyAdapter().for_request("off", WANTED[AnalyzeDistortions], per_request=False, in_prompt=False)
    assert "text of at most 240 characters" in adapter.user_message_output_requirements(AnalyzeDistortions)
