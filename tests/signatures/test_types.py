"""The types that stages exchange: what they refuse, what they fold, and that JSON gives them back."""

import json
import logging
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from agenticiqa.signatures.types import (
    UNABLE,
    DistortionAnalysis,
    ExecutorOutput,
    PlanFlags,
    PlannerOutput,
    QueryType,
    SummarizerOutput,
    ToolCall,
)
from agenticiqa.signatures.vocabulary import DISTORTIONS, SEVERITIES
from support.documents import PLAN

NO_FLAGS = dict.fromkeys(("distortion_detection", "distortion_analysis", "tool_selection", "tool_execution"), False)
ROW = {"type": "Blurs", "severity": "moderate", "explanation": "Edges appear soft."}

names = st.text(min_size=1, max_size=12).filter(lambda text: bool(text.strip()) and text.strip().lower() != "global")
regions = st.one_of(st.just("Global"), st.lists(names.map(str.strip), min_size=1, max_size=4, unique=True))
finite = st.floats(allow_nan=False, allow_infinity=False)
on_scale = st.floats(1, 5)
boxes = st.tuples(*[st.integers(0, 5000)] * 4)

plans = st.builds(
    PlannerOutput,
    query_type=st.sampled_from(["IQA", "Other"]),
    query_scope=regions,
    distortion_source=st.sampled_from(["Explicit", "Inferred"]),
    distortions=st.none() | st.dictionaries(names, st.lists(st.sampled_from(DISTORTIONS)), max_size=3),
    reference_mode=st.sampled_from(["Full-Reference", "No-Reference"]),
    required_tool=st.none() | names | st.lists(names, max_size=3),
    plan=st.builds(PlanFlags, **dict.fromkeys(NO_FLAGS, st.booleans())),
)
rows = st.builds(
    DistortionAnalysis, type=st.sampled_from(DISTORTIONS), severity=st.sampled_from(SEVERITIES), explanation=names
)
calls = st.builds(
    ToolCall,
    tool=names,
    region=names,
    distortion=names,
    raw=st.none() | finite,
    calibrated=st.none() | on_scale,
    ms=st.floats(0, 1e6),
    error=st.none() | names,
    box=st.none() | boxes,
)
evidences = st.builds(
    ExecutorOutput,
    distortion_set=st.none() | st.dictionaries(names, st.lists(st.sampled_from(DISTORTIONS), max_size=3), max_size=3),
    distortion_analysis=st.none() | st.dictionaries(names, st.lists(rows, max_size=3), max_size=3),
    selected_tools=st.none() | st.dictionaries(names, st.dictionaries(names, names, max_size=2), max_size=2),
    quality_scores=st.none()
    | st.dictionaries(names, st.dictionaries(names, st.tuples(names, on_scale), max_size=2), max_size=2),
    tool_log=st.lists(calls, max_size=2),
    boxes=st.none() | st.dictionaries(names, st.none() | boxes, max_size=2),
    measurements=st.none() | st.dictionaries(names, st.dictionaries(names, finite, max_size=3), max_size=2),
    failures=st.dictionaries(names, names, max_size=2),
    notes=st.lists(names, max_size=2),
)
verdicts = st.one_of(
    st.builds(SummarizerOutput, final_answer=names, quality_reasoning=names, need_replan=st.booleans()),
    on_scale.flatmap(
        lambda score: st.builds(
            SummarizerOutput,
            final_answer=st.just(score),
            quality_score=st.just(score),
            quality_reasoning=names,
            quality_probs=st.none() | st.just(dict.fromkeys("12345", 0.2)),
            probability_source=st.none() | st.sampled_from(["logprobs", "quality_probs", "measurements"]),
        )
    ),
)


@given(st.one_of(plans, rows, calls, evidences, verdicts))
def test_json_gives_back_what_went_in(value: BaseModel) -> None:
    again = type(value).model_validate_json(value.model_dump_json())
    assert again == value
    assert type(value).model_validate(json.loads(json.dumps(value.model_dump(mode="json"), allow_nan=False))) == value


@pytest.mark.parametrize("model", [PlannerOutput, SummarizerOutput])
def test_the_schemas_examples_are_valid(model: type[BaseModel]) -> None:
    examples = model.model_json_schema()["examples"]
    assert examples
    for example in examples:
        assert model.model_validate(example).model_dump(exclude_unset=True) == example


def test_the_documents_examples_are_in_the_schemas() -> None:
    assert PlannerOutput.model_json_schema()["examples"] == [PLAN]
    good, again = SummarizerOutput.model_json_schema()["examples"]
    assert (good["final_answer"], good["need_replan"]) == ("B", False)
    assert (again["final_answer"], again["replan_reason"]) == (UNABLE, "Missing tool scores for vehicle region")


@pytest.mark.parametrize(
    ("model", "valid"),
    [
        (PlannerOutput, PLAN),
        (PlanFlags, NO_FLAGS),
        (DistortionAnalysis, ROW),
        (ToolCall, {"tool": "GMSD", "region": "Global", "distortion": "Blurs", "ms": 1.5}),
        (ExecutorOutput, {"distortion_set": {"Global": ["Noise"]}}),
        (SummarizerOutput, {"final_answer": "B", "quality_reasoning": "Soft edges."}),
    ],
)
def test_an_unknown_key_is_refused(model: type[BaseModel], valid: dict[str, Any]) -> None:
    model.model_validate(valid)
    with pytest.raises(ValidationError, match="extra_forbidden"):
        model.model_validate({**valid, "surprise": 1})


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity_are_refused(bad: float) -> None:
    call = {"tool": "t", "region": "r", "distortion": "d", "ms": 1.0}
    for model, fields in (
        (ToolCall, {**call, "raw": bad}),
        (ToolCall, {**call, "ms": bad}),
        (ExecutorOutput, {"measurements": {"Global": {"sigma": bad}}}),
        (ExecutorOutput, {"quality_scores": {"Global": {"Blurs": ("GMSD", bad)}}}),
        (SummarizerOutput, {"final_answer": bad, "quality_reasoning": "x"}),
        (SummarizerOutput, {"final_answer": "A", "quality_reasoning": "x", "quality_score": bad}),
    ):
        with pytest.raises(ValidationError):
            model.model_validate(fields)


@pytest.mark.parametrize("missing", PLAN)
def test_a_plan_lacks_nothing(missing: str) -> None:
    with pytest.raises(ValidationError, match=missing):
        PlannerOutput.model_validate({key: value for key, value in PLAN.items() if key != missing})


@pytest.mark.parametrize(
    "wrong",
    [
        {"query_type": "Quality"},
        {"query_type": "iqa?"},
        {"query_scope": 3},
        {"query_scope": [3]},
        {"query_scope": [" "]},
        {"distortion_source": "Guessed"},
        {"distortions": {"vehicle": ["beauty"]}},
        {"distortions": ["Blurs"]},
        {"reference_mode": "Reduced-Reference"},
        {"required_tool": 5},
        {"plan": {**NO_FLAGS, "distortion_analysis": "yes"}},
        {"plan": {**NO_FLAGS, "tool_selection": 1}},
        {"plan": {"distortion_detection": True}},
    ],
)
def test_a_plan_with_a_wrong_value_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        PlannerOutput.model_validate({**PLAN, **wrong})


@pytest.mark.parametrize(
    ("given_scope", "scope", "in_regions"),
    [
        ("Global", "Global", ["Global"]),
        ("global ", "Global", ["Global"]),
        (["GLOBAL"], "Global", ["Global"]),
        ([], "Global", ["Global"]),
        ("vehicle", ["vehicle"], ["vehicle"]),
        (["sky", "global", " sky", "road"], ["sky", "road"], ["sky", "road"]),
    ],
)
def test_every_way_to_write_the_scope_is_folded_into_one(
    given_scope: Any, scope: str | list[str], in_regions: list[str]
) -> None:
    plan = PlannerOutput.model_validate({**PLAN, "query_scope": given_scope})
    assert (plan.query_scope, plan.regions) == (scope, in_regions)


@pytest.mark.parametrize(
    ("given_tool", "tool", "tools"),
    [
        (None, None, []),
        ([], None, []),
        ("GMSD", "GMSD", ["GMSD"]),
        (["GMSD"], "GMSD", ["GMSD"]),
        (["GMSD", "SSIM", "GMSD"], ["GMSD", "SSIM"], ["GMSD", "SSIM"]),
    ],
)
def test_every_way_to_name_tools_is_folded_into_one(given_tool: Any, tool: Any, tools: list[str]) -> None:
    plan = PlannerOutput.model_validate({**PLAN, "required_tool": given_tool})
    assert (plan.required_tool, plan.tools) == (tool, tools)


def test_distortions_are_folded_and_named_once_and_empty_regions_dropped() -> None:
    plan = PlannerOutput.model_validate({**PLAN, "distortions": {"vehicle": ["blurry", "Blurs", "grainy"], "sky": []}})
    assert plan.distortions == {"vehicle": ["Blurs", "Noise"]}
    assert PlannerOutput.model_validate({**PLAN, "distortions": {"sky": []}}).distortions is None


@pytest.mark.parametrize(("source", "mode"), [("explicit", "no-reference"), (" EXPLICIT", "No-reference ")])
def test_the_case_of_closed_words_does_not_matter(source: str, mode: str) -> None:
    plan = PlannerOutput.model_validate({**PLAN, "distortion_source": source, "reference_mode": mode})
    assert (plan.distortion_source, plan.reference_mode) == ("Explicit", "No-Reference")


@pytest.mark.parametrize(
    ("word", "category"),
    [
        ("blurry", "Blurs"),
        ("motion blur", "Blurs"),
        ("JPEG", "Compression"),
        ("overexposed", "Brightness change"),
        ("grain", "Noise"),
        ("washed out", "Contrast"),
        ("oversaturated colours", "Color distortions"),
        ("pixelated", "Spatial distortions"),
        *((category, category) for category in DISTORTIONS),
        *((category.upper(), category) for category in DISTORTIONS),
    ],
)
def test_everyday_words_are_folded_into_their_category(word: str, category: str) -> None:
    assert DistortionAnalysis.model_validate({**ROW, "type": word}).type == category


@pytest.mark.parametrize(
    ("word", "severity"),
    [
        ("mild", "slight"),
        ("Minor", "slight"),
        ("noticeable", "moderate"),
        ("heavy", "severe"),
        ("strong ", "severe"),
        ("very  severe", "extreme"),
        ("negligible", "none"),
        *((severity, severity) for severity in SEVERITIES),
    ],
)
def test_synonyms_of_severity_are_folded(word: str, severity: str) -> None:
    assert DistortionAnalysis.model_validate({**ROW, "severity": word}).severity == severity


@pytest.mark.parametrize(
    "wrong", [{"type": "beauty"}, {"severity": "purple"}, {"explanation": "  "}, {"severity": None}]
)
def test_an_analysis_with_a_wrong_value_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        DistortionAnalysis.model_validate({**ROW, **wrong})


@pytest.mark.parametrize("score", [0.99, 5.01, 0, 100])
def test_a_calibrated_score_off_the_scale_is_refused(score: float) -> None:
    with pytest.raises(ValidationError, match="calibrated scores lie in"):
        ExecutorOutput.model_validate({"quality_scores": {"Global": {"Blurs": ["GMSD", score]}}})
    with pytest.raises(ValidationError):
        ToolCall.model_validate({"tool": "t", "region": "r", "distortion": "d", "ms": 1, "calibrated": score})


def test_the_evidence_is_serialised_as_the_documents_have_it() -> None:
    documents = {
        "distortion_analysis": {"Global": [ROW]},
        "quality_scores": {"Global": {"Blurs": ["TOPIQ_FR", 2.6]}},
    }
    evidence = ExecutorOutput.model_validate(documents)
    assert json.loads(evidence.model_dump_json(include=set(documents))) == documents
    assert evidence.scores == [2.6]


def test_a_rating_is_made_of_the_overall_scores_of_each_region_and_of_all_where_there_are_none() -> None:
    scores = {
        "sky": {"Overall": ("NIQE", 4.0), "Overall 2": ("PIQE", 3.0), "Noise": ("NOISE-SIGMA", 1.0)},
        "car": {"Blurs": ("GMSD", 2.0), "Noise": ("NOISE-SIGMA", 1.0)},
        "sea": {"Overall": ("NIQE", 5.0)},
    }
    found = ExecutorOutput.model_validate({"quality_scores": scores})
    assert found.overall_scores == [4.0, 3.0, 2.0, 1.0, 5.0]
    assert found.overall_mean == 3.0
    assert found.scores == [4.0, 3.0, 1.0, 2.0, 1.0, 5.0]
    assert (ExecutorOutput().overall_scores, ExecutorOutput().overall_mean) == ([], None)


@pytest.mark.parametrize(
    ("fields", "empty"),
    [
        ({}, True),
        ({"distortion_set": {"Global": ["Noise"]}}, True),
        ({"distortion_analysis": {"Global": []}, "quality_scores": {"Global": {}}}, True),
        ({"distortion_analysis": {"Global": [ROW]}}, False),
        ({"quality_scores": {"Global": {"Blurs": ["GMSD", 2.6]}}}, False),
    ],
)
def test_evidence_is_empty_without_an_analysis_and_without_a_score(fields: dict[str, Any], empty: bool) -> None:
    assert ExecutorOutput.model_validate(fields).is_empty() is empty


@pytest.mark.parametrize("answer", ["", "   ", 0.5, 5.5, None, ["A"]])
def test_an_answer_that_is_none_is_refused(answer: Any) -> None:
    with pytest.raises(ValidationError):
        SummarizerOutput.model_validate({"final_answer": answer, "quality_reasoning": "x"})


@pytest.mark.parametrize("reasoning", ["", " \n", None])
def test_an_answer_without_a_reason_is_refused(reasoning: Any) -> None:
    with pytest.raises(ValidationError, match="quality_reasoning"):
        SummarizerOutput.model_validate({"final_answer": "A", "quality_reasoning": reasoning})


def test_a_number_stays_a_number_and_text_stays_text() -> None:
    number, text = (
        SummarizerOutput.model_validate({"final_answer": answer, "quality_reasoning": "x"}).final_answer
        for answer in (4, "4")
    )
    assert (number, type(number)) == (4.0, float)
    assert (text, type(text)) == ("4", str)


def test_the_score_and_the_answer_are_the_same_number() -> None:
    with pytest.raises(ValidationError, match="differs from final_answer"):
        SummarizerOutput(final_answer=3.0, quality_score=3.5, quality_reasoning="x")


def test_a_replan_without_a_reason_is_given_one_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        result = SummarizerOutput(final_answer="A", quality_reasoning="x", need_replan=True)
    assert result.replan_reason == "No reason provided"
    assert "without a reason" in caplog.text


def test_query_types_are_the_documents_three() -> None:
    assert [kind.name for kind in QueryType] == ["SCORING", "MCQ", "EXPLANATION"]
