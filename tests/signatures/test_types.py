"""The types that stages exchange: refused values, normalized values, and round trips through JSON."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from agenticiqa.signatures.types import (
    DistortionAnalysis,
    ExecutorOutput,
    PlanFlags,
    PlannerOutput,
    QueryType,
    SummarizerOutput,
    ToolCall,
)
from agenticiqa.signatures.vocabulary import DISTORTIONS, SEVERITIES
from support.specification import PLAN

NO_FLAGS = dict.fromkeys(("distortion_detection", "distortion_analysis", "tool_selection", "tool_execution"), False)
ROW = {"type": "Blurs", "severity": "moderate", "explanation": "Edges appear soft."}
CALL = {"tool": "GMSD", "region": "Global", "distortion": "Blurs", "ms": 1.5}
ANSWER = {"final_answer": "B", "quality_reasoning": "Soft edges."}

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
answers = st.builds(SummarizerOutput, final_answer=names, quality_reasoning=names, need_replan=st.booleans())
scores = on_scale.flatmap(
    lambda score: st.builds(
        SummarizerOutput,
        final_answer=st.just(score),
        quality_score=st.just(score),
        quality_reasoning=names,
        quality_probs=st.none() | st.just(dict.fromkeys("12345", 0.2)),
        probability_source=st.none() | st.sampled_from(["logprobs", "quality_probs", "measurements"]),
    )
)


@given(st.one_of(plans, rows, calls, evidences, answers, scores))
def test_models_round_trip_through_json(value: BaseModel) -> None:
    again = type(value).model_validate_json(value.model_dump_json())
    assert again == value
    assert type(value).model_validate(json.loads(json.dumps(value.model_dump(mode="json"), allow_nan=False))) == value


def test_the_specifications_example_of_a_plan_is_in_its_schema() -> None:
    assert PlannerOutput.model_json_schema()["examples"] == [PLAN]
    assert PlannerOutput.model_validate(PLAN).model_dump() == PLAN


@pytest.mark.parametrize("missing", PLAN)
def test_a_plan_with_a_missing_key_is_refused(missing: str) -> None:
    with pytest.raises(ValidationError, match=missing):
        PlannerOutput.model_validate({key: value for key, value in PLAN.items() if key != missing})


VALID: dict[type[BaseModel], dict[str, Any]] = {
    PlannerOutput: PLAN,
    PlanFlags: NO_FLAGS,
    DistortionAnalysis: ROW,
    ToolCall: CALL,
    ExecutorOutput: {"distortion_set": {"Global": ["Noise"]}},
    SummarizerOutput: ANSWER,
}
WRONG: dict[type[BaseModel], list[dict[str, Any]]] = {
    PlannerOutput: [
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
    DistortionAnalysis: [{"type": "beauty"}, {"severity": "purple"}, {"explanation": "  "}, {"severity": None}],
    ToolCall: [{"calibrated": 0.99}, {"calibrated": 5.01}, {"raw": math.nan}, {"raw": math.inf}, {"ms": math.nan}],
    ExecutorOutput: [
        {"measurements": {"Global": {"sigma": math.nan}}},
        *({"quality_scores": {"Global": {"Blurs": ["GMSD", bad]}}} for bad in (0, 0.99, 5.01, math.nan, -math.inf)),
    ],
    SummarizerOutput: [
        *({"final_answer": bad} for bad in (["A"], math.nan, math.inf)),
        {"quality_score": math.nan},
        {"final_answer": 3.0, "quality_score": 3.5},
    ],
}


@pytest.mark.parametrize(
    ("model", "wrong"), [(model, {"surprise": 1}) for model in VALID] + [(m, each) for m in WRONG for each in WRONG[m]]
)
def test_an_unknown_key_and_a_wrong_value_are_refused(model: type[BaseModel], wrong: dict[str, Any]) -> None:
    model.model_validate(VALID[model])
    with pytest.raises(ValidationError):
        model.model_validate({**VALID[model], **wrong})


@pytest.mark.parametrize(
    ("key", "written", "read", "listed"),
    [
        ("query_scope", "global ", "Global", ["Global"]),
        ("query_scope", ["GLOBAL"], "Global", ["Global"]),
        ("query_scope", [], "Global", ["Global"]),
        ("query_scope", "vehicle", ["vehicle"], ["vehicle"]),
        ("query_scope", ["sky", "global", " sky", "road"], ["sky", "road"], ["sky", "road"]),
        ("required_tool", None, None, []),
        ("required_tool", [], None, []),
        ("required_tool", ["GMSD"], "GMSD", ["GMSD"]),
        ("required_tool", ["GMSD", "SSIM", "GMSD"], ["GMSD", "SSIM"], ["GMSD", "SSIM"]),
        ("distortion_source", " EXPLICIT", "Explicit", None),
        ("reference_mode", "no-reference ", "No-Reference", None),
        ("distortions", {"vehicle": ["blurry", "Blurs", "grainy"], "sky": []}, {"vehicle": ["Blurs", "Noise"]}, None),
        ("distortions", {"sky": []}, None, None),
    ],
)
def test_spellings_of_a_plan_are_normalized(key: str, written: Any, read: Any, listed: list[str] | None) -> None:
    plan = PlannerOutput.model_validate({**PLAN, key: written})
    assert getattr(plan, key) == read
    assert listed in (None, plan.regions if key == "query_scope" else plan.tools)


@pytest.mark.parametrize(
    ("key", "word", "meant"),
    [
        *(("type", word, category) for category in DISTORTIONS for word in (category, category.upper())),
        *(("severity", severity, severity) for severity in SEVERITIES),
        ("type", "motion blur", "Blurs"),
        ("type", "overexposed", "Brightness change"),
        ("type", "oversaturated colours", "Color distortions"),
        ("type", "pixelated", "Spatial distortions"),
        ("type", "Non-eccentricity patch", "Spatial distortions"),  # this and the next three are names of KADID-10k
        ("type", "White noise in color component", "Noise"),
        ("type", "color component noise", "Noise"),
        ("type", "Denoise artifact", "Noise"),
        ("severity", "Minor", "slight"),
        ("severity", "noticeable", "moderate"),
        ("severity", "strong ", "severe"),
        ("severity", "very  severe", "extreme"),
        ("severity", "negligible", "none"),
    ],
)
def test_everyday_words_are_folded_into_the_vocabulary(key: str, word: str, meant: str) -> None:
    assert getattr(DistortionAnalysis.model_validate({**ROW, key: word}), key) == meant


def test_the_evidence_is_serialised_as_the_specification_has_it() -> None:
    written = {
        "distortion_analysis": {"Global": [ROW]},
        "quality_scores": {"Global": {"Blurs": ["TOPIQ_FR", 2.6]}},
    }
    evidence = ExecutorOutput.model_validate(written)
    assert json.loads(evidence.model_dump_json(include=set(written))) == written


def test_a_rating_is_based_on_the_tools_with_a_weight() -> None:
    scores = {
        "sky": {"Blurs": ("NIQE", 4.0), "Noise": ("NOISE-SIGMA", 1.0), "Overall": ("LEARNED-IQA", 2.0)},
        "car": {"Noise": ("NOISE-SIGMA", 1.0)},
        "sea": {"Overall": ("LEARNED-IQA", 5.0), "Blurs": ("LEARNED-IQA", 5.0)},
    }
    weights = {"NIQE": 0.25, "NOISE-SIGMA": 0.0, "LEARNED-IQA": 0.75}
    log = [
        {
            **{"tool": tool, "region": region, "distortion": key, "spread": 0.5, "ms": 1},
            "weight": 1.0 if region == "sea" else weights[tool],
        }
        for region, row in scores.items()
        for key, (tool, _) in row.items()
    ]
    found = ExecutorOutput.model_validate({"quality_scores": scores, "tool_log": log})
    assert found.overall_scores == [4.0, 2.0, 5.0]
    assert found.overall_tools == ("LEARNED-IQA", "NIQE")
    assert found.overall_mean == pytest.approx((0.25 * 4 + 0.75 * 2 + 5) / 2)
    assert found.overall_spread == pytest.approx(0.5)
    nothing = {"quality_scores": {"car": scores["car"]}, "tool_log": log}
    assert ExecutorOutput.model_validate(nothing).overall_mean is None, "a property alone is no rating"


def test_a_rating_is_based_on_overall_scores_or_on_all_scores() -> None:
    scores = {
        "sky": {"Overall": ("NIQE", 4.0), "Overall 2": ("PIQE", 3.0), "Noise": ("NOISE-SIGMA", 1.0)},
        "car": {"Blurs": ("GMSD", 2.0), "Noise": ("NOISE-SIGMA", 1.0)},
        "sea": {"Overall": ("NIQE", 5.0)},
    }
    found = ExecutorOutput.model_validate({"quality_scores": scores})
    assert found.overall_scores == [4.0, 3.0, 2.0, 1.0, 5.0]
    assert found.overall_mean == pytest.approx((4.0 + 3.0 + 2.0 + 1.0 + 5.0) / 5)
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


def test_query_types_are_the_specifications_three() -> None:
    assert [kind.name for kind in QueryType] == ["SCORING", "MCQ", "EXPLANATION"]
