"""What models are asked to give: strict JSON schemas, and a lenient reading of the documents' nested forms."""

import json
import math
from collections.abc import Iterator
from typing import Any

import dspy
import pytest
from pydantic import BaseModel, ValidationError

from agenticiqa.signatures.executor import (
    Analysis,
    AnalyzeDistortions,
    DetectDistortions,
    Detection,
    LocateRegions,
    Location,
    Selection,
    SelectTools,
)
from agenticiqa.signatures.planner import Plan, PlanAnswer, plan_signature
from agenticiqa.signatures.replan import DecideReplan, Decision
from agenticiqa.signatures.summarizer import Answer, AnswerQuestion, Assessment, ScoreQuality
from agenticiqa.signatures.vocabulary import DETECTABLE, DISTORTIONS, LEVELS, SEVERITIES, Level
from support.fake_server import fake_server
from support.loopback import Body

SIGNATURES: dict[str, type[dspy.Signature]] = {
    "plan": Plan,
    "location": LocateRegions,
    "detection": DetectDistortions,
    "analysis": AnalyzeDistortions,
    "selection": SelectTools,
    "assessment": ScoreQuality,
    "answer": AnswerQuestion,
    "decision": DecideReplan,
}
# The answer is the same without them: null, empty, or the most probable level.
MAY_BE_LEFT_OUT = {"distortions", "required_tool", "quality_level", "replan_reason"}
FLAGS = dict.fromkeys(("distortion_detection", "distortion_analysis", "tool_selection", "tool_execution"), True)
VALID: dict[str, dict[str, Any]] = {
    "plan": {
        "query_type": "IQA",
        "query_scope": ["vehicle"],
        "distortion_source": "Explicit",
        "distortions": [{"region": "vehicle", "distortions": ["Blurs"]}],
        "reference_mode": "No-Reference",
        "required_tool": [],
        "plan": FLAGS,
    },
    "location": {
        "regions": [{"region": "vehicle", "box": [120.0, 400.0, 560.5, 830.0]}, {"region": "sky", "box": None}]
    },
    "detection": {"distortion_set": [{"region": "Global", "distortions": ["Noise", "Blurs"]}]},
    "analysis": {
        "distortion_analysis": [
            {"region": "Global", "type": "Noise", "severity": "slight", "explanation": "Grain in the sky."}
        ]
    },
    "selection": {"selected_tools": [{"region": "Global", "distortion": "Noise", "tool": "GMSD"}]},
    "assessment": {
        "quality_level": "Fair",
        "quality_probs": {"1": -3.2, "2": -0.5, "3": -0.1, "4": -2.1, "5": -4.5},
        "quality_reasoning": "Grain.",
    },
    "answer": {"final_answer": "B", "quality_reasoning": "Soft edges."},
    "decision": {"need_replan": False, "replan_reason": ""},
}


def output(stage: str) -> type[BaseModel]:
    """The type of a signature's one output field."""
    (field,) = SIGNATURES[stage].output_fields.values()
    return field.annotation


@pytest.fixture(scope="module")
def sent() -> dict[str, Body]:
    """The response format of each stage, as DSPy puts it on the wire for a model that takes schemas."""
    with fake_server("{}") as server:
        lm = dspy.LM("openai/gpt-4o", api_base=server.url, api_key="none", num_retries=0, cache=False)
        for signature in SIGNATURES.values():
            with dspy.context(lm=lm, adapter=dspy.JSONAdapter(), trace=None), pytest.raises(dspy.AdapterParseError):
                dspy.Predict(signature)(**dict.fromkeys(signature.input_fields))
    return dict(zip(SIGNATURES, (body["response_format"] for body in server.requests), strict=True))


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Every object of a schema that is itself a schema (or a map of them)."""
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from nodes(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from nodes(value)


@pytest.mark.parametrize("stage", SIGNATURES)
def test_what_dspy_sends_is_a_strict_schema(stage: str, sent: dict[str, Body]) -> None:
    """Every object closed and every property required: what providers demand of a strict schema."""
    assert sent[stage]["type"] == "json_schema"
    assert sent[stage]["json_schema"]["strict"] is True
    schema = sent[stage]["json_schema"]["schema"]
    objects = [node for node in nodes(schema) if node.get("type") == "object"]
    assert len(objects) >= 2
    for node in objects:
        assert node["additionalProperties"] is False
        assert node["properties"]
        assert sorted(node["required"]) == sorted(node["properties"])
    for node in nodes(schema):
        assert "patternProperties" not in node
        assert "default" not in node
        if node.get("type") == "array":
            assert node["items"]


@pytest.mark.parametrize("stage", SIGNATURES)
def test_closed_vocabularies_are_spelled_out_for_the_model(stage: str, sent: dict[str, Body]) -> None:
    words: dict[str, tuple[str, ...]] = {
        "detection": DETECTABLE,
        "plan": (*DISTORTIONS, "IQA", "Other", "Explicit", "Inferred", "Full-Reference", "No-Reference"),
        "analysis": (*DISTORTIONS, *SEVERITIES),
        "selection": DISTORTIONS,
        "assessment": ("Excellent", "Good", "Fair", "Poor", "Bad"),
    }
    text = json.dumps(sent[stage])
    assert all(f'"{word}"' in text for word in words.get(stage, ()))


@pytest.mark.parametrize("stage", SIGNATURES)
def test_an_answer_of_that_form_is_read_and_written_back_the_same(stage: str) -> None:
    answer = output(stage).model_validate(VALID[stage])
    assert answer.model_dump(mode="json", by_alias=True) == VALID[stage]
    assert output(stage).model_validate_json(answer.model_dump_json(by_alias=True)) == answer


@pytest.mark.parametrize("stage", SIGNATURES)
def test_a_missing_key_is_refused(stage: str) -> None:
    for key in VALID[stage]:
        if key in MAY_BE_LEFT_OUT:
            continue
        with pytest.raises(ValidationError, match=key):
            output(stage).model_validate({name: value for name, value in VALID[stage].items() if name != key})


@pytest.mark.parametrize("stage", SIGNATURES)
def test_an_unknown_key_is_left_out_and_noted(stage: str) -> None:
    answer = output(stage).model_validate({**VALID[stage], "confidence": 0.9})
    assert answer.model_dump() == output(stage).model_validate(VALID[stage]).model_dump()
    assert answer.notes == ["the unknown key 'confidence' was left out"]


@pytest.mark.parametrize("stage", ["detection", "analysis", "selection"])
def test_an_unknown_key_in_a_record_is_left_out_and_noted(stage: str) -> None:
    ((key, (record,)),) = VALID[stage].items()
    answer = output(stage).model_validate({key: [{**record, "confidence": 0.9}]})
    assert answer.notes == ["the unknown key 'confidence' was left out"]


def test_a_misspelled_key_is_read_and_noted_and_one_that_is_there_twice_is_refused() -> None:
    reason = VALID["answer"]["quality_reasoning"]
    answer = Answer.model_validate({"Final Answer": "B", "quality_resoning": reason})
    assert (answer.final_answer, answer.quality_reasoning) == ("B", reason)
    assert answer.notes == ["the key 'quality_resoning' was read as quality_reasoning"]
    with pytest.raises(ValidationError, match="final_answer is there twice"):
        Answer.model_validate({"final_answer": "A", "Final Answer": "B", "quality_reasoning": reason})


@pytest.mark.parametrize("stage", SIGNATURES)
def test_each_question_has_one_answer_and_an_instruction(stage: str) -> None:
    signature = SIGNATURES[stage]
    assert list(signature.output_fields) == ["planner_output" if stage == "plan" else stage]
    assert len(signature.instructions) > 100
    assert all((field.json_schema_extra or {})["desc"] for field in signature.fields.values())


def test_no_two_stages_ask_the_same_so_that_an_optimizer_tells_them_apart() -> None:
    signatures = list(SIGNATURES.values())
    assert not any(one.equals(other) for number, one in enumerate(signatures) for other in signatures[number + 1 :])


def test_the_planner_may_be_asked_without_images() -> None:
    assert plan_signature(sees_images=True) is Plan
    blind = plan_signature(sees_images=False)
    assert set(Plan.input_fields) - set(blind.input_fields) == {"image", "reference"}
    assert blind.instructions == Plan.instructions


def test_the_documents_nested_plan_is_accepted() -> None:
    documents = {
        **VALID["plan"],
        "query_scope": "Global",
        "distortions": {"Global": ["blurry", "noise"]},
        "required_tool": None,
        "distortion_source": "explicit",
    }
    answer = PlanAnswer.model_validate(documents)
    assert answer.query_scope == ["Global"]
    plan = answer.to_plan()
    assert (plan.query_scope, plan.distortions, plan.required_tool) == ("Global", {"Global": ["Blurs", "Noise"]}, None)
    assert PlanAnswer.model_validate({**documents, "required_tool": "GMSD"}).to_plan().required_tool == "GMSD"
    assert PlanAnswer.model_validate({**documents, "distortions": None}).to_plan().distortions is None


def test_a_plan_that_names_a_region_twice_keeps_both_lists() -> None:
    twice = [{"region": "sky", "distortions": ["Noise"]}, {"region": "sky", "distortions": ["Blurs", "Noise"]}]
    plan = PlanAnswer.model_validate({**VALID["plan"], "distortions": twice}).to_plan()
    assert plan.distortions == {"sky": ["Noise", "Blurs"]}


@pytest.mark.parametrize(
    "box",
    [
        [-1, 0, 500, 500],
        [0, 0, 640, 1480],  # pixels in place of thousandths
        [0.1, 0.2, 0.5, 0.6],  # shares in place of thousandths
        [500, 100, 200, 400],
        [100, 400, 200, 400],
        [100, 400, 200],
        [100, 400, 200, math.nan],
        [],
    ],
)
def test_a_box_off_the_scale_or_with_swapped_corners_is_refused(box: list[float]) -> None:
    with pytest.raises(ValidationError, match="box"):
        Location.model_validate({"regions": [{"region": "sky", "box": box}]})


def test_boxes_by_region_are_accepted() -> None:
    nested = Location.model_validate({"regions": {"vehicle": [0, 250, 1000, 999.5], "sky": None}})
    assert {row.region: row.box for row in nested.regions} == {"vehicle": [0, 250, 1000, 999.5], "sky": None}


def test_the_documents_nested_detection_is_accepted() -> None:
    nested = Detection.model_validate({"distortion_set": {"vehicle": ["blurry", "grainy"], "sky": []}})
    assert nested.by_region() == {"vehicle": ["Blurs", "Noise"], "sky": []}


def test_the_documents_nested_analysis_is_accepted() -> None:
    row = {"type": "blur", "severity": "heavy", "explanation": "Smeared plate."}
    nested = Analysis.model_validate({"distortion_analysis": {"vehicle": [row], "sky": []}})
    assert [record.model_dump() for record in nested.by_region()["vehicle"]] == [
        {"type": "Blurs", "severity": "severe", "explanation": "Smeared plate."}
    ]


def test_the_documents_nested_selection_is_accepted() -> None:
    nested = Selection.model_validate({"selected_tools": {"vehicle": {"blurs": "GMSD", "noise": "SSIM"}}})
    assert nested.by_region() == {"vehicle": {"Blurs": "GMSD", "Noise": "SSIM"}}


@pytest.mark.parametrize(
    ("model", "bad"),
    [
        (Location, {"regions": {"sky": "above"}}),
        (Location, {"regions": {"sky": [0, 0, 1000]}}),
        (Location, {"regions": {"sky": {"left": 0}}}),
        (Location, {"regions": 3}),
        (Detection, {"distortion_set": {"sky": None}}),
        (Detection, {"distortion_set": {"sky": [["Noise"]]}}),
        (Detection, {"distortion_set": {"sky": ["pixelated"]}}),
        (Detection, {"distortion_set": 3}),
        (Analysis, {"distortion_analysis": {"sky": "hazy"}}),
        (Analysis, {"distortion_analysis": {"sky": ["hazy"]}}),
        (Analysis, {"distortion_analysis": {"sky": {"type": "Noise"}}}),
        (Analysis, {"distortion_analysis": {"sky": None}}),
        (Analysis, {"distortion_analysis": {"sky": [None]}}),
        (Selection, {"selected_tools": {"sky": "GMSD"}}),
        (Selection, {"selected_tools": {"sky": ["GMSD"]}}),
        (Selection, {"selected_tools": {"sky": None}}),
        (Detection, {"distortion_set": [["sky", "Noise"]]}),
        (PlanAnswer, {**VALID["plan"], "distortions": {"sky": None}}),
        (PlanAnswer, {**VALID["plan"], "query_scope": None}),
        (PlanAnswer, {**VALID["plan"], "query_scope": {"sky": 1}}),
        (PlanAnswer, {**VALID["plan"], "plan": None}),
        (PlanAnswer, {**VALID["plan"], "required_tool": {"tool": "GMSD"}}),
    ],
)
def test_a_malformed_nested_answer_is_a_validation_error_and_nothing_else(model: type[BaseModel], bad: Any) -> None:
    """Anything else would leave the retries and sink the run."""
    with pytest.raises(ValidationError):
        model.model_validate(bad)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, None, "likely", [1]])
def test_a_log_probability_that_is_no_number_is_refused(bad: Any) -> None:
    probs = {**VALID["assessment"]["quality_probs"], "3": bad}
    with pytest.raises(ValidationError):
        Assessment.model_validate({**VALID["assessment"], "quality_probs": probs})


@pytest.mark.parametrize("key", ["0", "6", "Fair"])
def test_levels_beyond_the_five_are_refused(key: str) -> None:
    probs = {**VALID["assessment"]["quality_probs"], key: -1.0}
    with pytest.raises(ValidationError, match=key):
        Assessment.model_validate({**VALID["assessment"], "quality_probs": probs})


@pytest.mark.parametrize(("said", "level"), [("fair", "Fair"), (" GOOD", "Good"), ("Excellent", "Excellent")])
def test_the_case_of_a_level_does_not_matter(said: str, level: Level) -> None:
    probs = {number: 0.9 if LEVELS[level] == int(number) else 0.025 for number in "12345"}
    said_so = {**VALID["assessment"], "quality_level": said, "quality_probs": probs}
    assert Assessment.model_validate(said_so).quality_level == level


def test_a_level_that_is_nearly_the_most_probable_is_accepted_with_a_note() -> None:
    probs = {"1": 0.0, "2": 0.05, "3": 0.45, "4": 0.4, "5": 0.1}
    answer = Assessment.model_validate({**VALID["assessment"], "quality_level": "Good", "quality_probs": probs})
    assert answer.notes == ["quality_level is Good, a little less probable than Fair"]


def test_one_name_alone_is_a_list_of_one_and_none_is_an_empty_one() -> None:
    found = Detection.model_validate({"distortion_set": {"sky": "Noise", "sea": ["no visible distortion"]}})
    assert found.by_region() == {"sky": ["Noise"], "sea": []}


def test_log_probabilities_are_told_by_level() -> None:
    assessment = Assessment.model_validate(VALID["assessment"])
    assert assessment.quality_probs.by_level() == {1: -3.2, 2: -0.5, 3: -0.1, 4: -2.1, 5: -4.5}


@pytest.mark.parametrize("reason", ["", "  "])
def test_a_replan_needs_a_reason_and_standing_by_the_answer_none(reason: str) -> None:
    assert Decision(need_replan=False, replan_reason=reason).replan_reason == ""
    with pytest.raises(ValidationError, match="replan_reason must say"):
        Decision(need_replan=True, replan_reason=reason)


@pytest.mark.parametrize("bad", ["yes", 1, None, "maybe true"])
def test_a_decision_is_true_or_false(bad: Any) -> None:
    with pytest.raises(ValidationError, match="need_replan"):
        Decision.model_validate({"need_replan": bad, "replan_reason": "x"})


@pytest.mark.parametrize("blank", ["", "   "])
def test_a_blank_answer_or_reason_is_refused(blank: str) -> None:
    for field in VALID["answer"]:
        with pytest.raises(ValidationError, match=field):
            Answer.model_validate({**VALID["answer"], field: blank})


def test_half_a_character_in_an_answer_is_replaced_so_that_it_can_be_written_down() -> None:
    answer = Answer(final_answer="soft \ud83d", quality_reasoning="x\udcff")
    assert (answer.final_answer, answer.quality_reasoning) == ("soft ?", "x?")
    assert Decision(need_replan=True, replan_reason="no \ud83d").model_dump_json()
