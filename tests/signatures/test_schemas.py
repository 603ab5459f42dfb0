"""Requested answers: strict JSON schemas, and lenient parsing of the specification's nested forms."""

import json
import math
from collections.abc import Iterator
from typing import Any

import dspy
import pytest
from pydantic import BaseModel, ValidationError

from agenticiqa.programs.backends.dspy_adapter import answer_schema
from agenticiqa.signatures.answers.levels import settled
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
from agenticiqa.signatures.summarizer import Answer, AnswerQuestion, ScoredAnswer, ScoreQuality
from agenticiqa.signatures.vocabulary import DETECTABLE, DISTORTIONS, LEVELS, SEVERITIES, Level

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
# Optional keys: without them the answer has null, an empty list, or the most probable level.
MAY_BE_LEFT_OUT = {"distortions", "required_tool", "quality_level", "replan_reason"}
FLAGS = dict.fromkeys(("distortion_detection", "distortion_analysis", "tool_selection", "tool_execution"), True)
VALID: dict[str, dict[str, Any]] = {
    "plan": {
        "query_type": "IQA",
        "query_scope": ["vehicle"],
        "distortion_source": "Explicit",
        "distortions": [{"region": "vehicle", "distortions": ["Blurs"]}],
        "required_tool": [],
    },
    "location": {
        "regions": [
            {"region": "vehicle", "box": [120.0, 400.0, 560.5, 830.0]},
            {"region": "sky", "box": [0.0, 0.0, 0.0, 0.0]},
        ]
    },
    "detection": {"distortion_set": [{"region": "Global", "distortions": ["Noise", "Blurs"]}]},
    "analysis": {
        "distortion_analysis": [
            {
                "region": "Global",
                "type": "Noise",
                "severity": "slight",
                "explanation": "Grain in the sky.",
                "uncertain": True,
            }
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
    """Return the type of a signature's only output field."""
    (field,) = SIGNATURES[stage].output_fields.values()
    return field.annotation


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield every object of a schema that is itself a schema (or a map of them)."""
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from nodes(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from nodes(value)


@pytest.mark.parametrize("stage", SIGNATURES)
def test_the_schema_that_is_sent_is_strict(stage: str) -> None:
    """Providers require that every object is closed and every property required."""
    schema = answer_schema(SIGNATURES[stage])
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


@pytest.mark.parametrize(
    ("stage", "words"),
    [
        ("detection", DETECTABLE),
        ("plan", (*DISTORTIONS, "IQA", "Other", "Explicit", "Inferred")),
        ("analysis", (*DISTORTIONS, *SEVERITIES)),
        ("selection", DISTORTIONS),
        ("assessment", tuple(LEVELS)),
    ],
)
def test_closed_vocabularies_are_spelled_out_for_the_model(stage: str, words: tuple[str, ...]) -> None:
    text = json.dumps(answer_schema(SIGNATURES[stage]))
    assert all(f'"{word}"' in text for word in words)


@pytest.mark.parametrize("stage", SIGNATURES)
def test_an_answer_round_trips_and_loses_unknown_keys(stage: str) -> None:
    model, valid = output(stage), VALID[stage]
    answer = model.model_validate(valid)
    assert answer.model_dump(mode="json", by_alias=True) == valid
    assert model.model_validate_json(answer.model_dump_json(by_alias=True)) == answer
    for key in valid.keys() - MAY_BE_LEFT_OUT:
        with pytest.raises(ValidationError, match=key):
            model.model_validate({name: value for name, value in valid.items() if name != key})
    (first, *others) = valid.items()
    in_a_row = isinstance(first[1], list) and not others
    more = {first[0]: [{**first[1][0], "confidence": 0.9}, *first[1][1:]]} if in_a_row else {**valid, "confidence": 0.9}
    read = model.model_validate(more)
    assert (read.model_dump(), read.notes) == (answer.model_dump(), ["the unknown key 'confidence' was left out"])


def test_a_misspelled_key_is_noted_and_a_repeated_one_refused() -> None:
    reason = VALID["answer"]["quality_reasoning"]
    answer = Answer.model_validate({"Final Answer": "B", "quality_resoning": reason})
    assert (answer.final_answer, answer.quality_reasoning) == ("B", reason)
    assert answer.notes == ["the key 'quality_resoning' was read as quality_reasoning"]
    with pytest.raises(ValidationError, match="final_answer is there twice"):
        Answer.model_validate({"final_answer": "A", "Final Answer": "B", "quality_reasoning": reason})


def test_each_signature_has_one_answer_and_distinct_instructions() -> None:
    signatures = list(SIGNATURES.values())
    assert not any(one.equals(other) for number, one in enumerate(signatures) for other in signatures[number + 1 :])
    for stage, signature in SIGNATURES.items():
        assert list(signature.output_fields) == ["planner_output" if stage == "plan" else stage]
        assert len(signature.instructions) > 100
        assert all((field.json_schema_extra or {})["desc"] for field in signature.fields.values())


def test_the_planner_works_without_images() -> None:
    assert plan_signature(sees_images=True) is Plan
    blind = plan_signature(sees_images=False)
    assert set(Plan.input_fields) - set(blind.input_fields) == {"image", "reference"}
    assert blind.instructions == Plan.instructions


def test_the_specifications_nested_plan_is_accepted() -> None:
    written = {
        **VALID["plan"],
        "reference_mode": "No-Reference",
        "plan": FLAGS,
        "query_scope": "Global",
        "distortions": {"Global": ["blurry", "noise"]},
        "required_tool": None,
        "distortion_source": "explicit",
    }
    answer = PlanAnswer.model_validate(written)
    assert answer.query_scope == ["Global"]
    assert (answer.by_region(), answer.required_tool) == ({"Global": ["Blurs", "Noise"]}, [])
    assert (answer.stated, answer.notes) == ({"reference_mode": "No-Reference", "plan": FLAGS}, [])
    assert PlanAnswer.model_validate({**written, "required_tool": "GMSD"}).required_tool == ["GMSD"]
    assert PlanAnswer.model_validate({**written, "distortions": None}).by_region() == {}


def test_a_plan_that_names_a_region_twice_keeps_both_lists() -> None:
    twice = [{"region": "sky", "distortions": ["Noise"]}, {"region": "sky", "distortions": ["Blurs", "Noise"]}]
    answer = PlanAnswer.model_validate({**VALID["plan"], "distortions": twice})
    assert answer.by_region() == {"sky": ["Noise", "Blurs"]}


@pytest.mark.parametrize("box", [[-1, 0, 500, 500], [9, 9, 99], [9, 9, 99, 99, 99], [0, 0, 9, math.nan]])
def test_a_box_that_is_not_four_numbers_is_refused(box: list[float]) -> None:
    with pytest.raises(ValidationError, match="box"):
        Location.model_validate({"regions": [{"region": "sky", "box": box}]})


@pytest.mark.parametrize(
    ("model", "nested", "rows"),
    [
        (
            Location,
            {"regions": {"vehicle": [0, 250, 1000, 999.5], "sky": None}},
            [{"region": "vehicle", "box": [0, 250, 1000, 999.5]}, {"region": "sky", "box": [0, 0, 0, 0]}],
        ),
        (
            Detection,
            {"distortion_set": {"vehicle": ["blurry", "grainy"], "sky": "Noise", "sea": ["no visible distortion"]}},
            [
                {"region": "vehicle", "distortions": ["Blurs", "Noise"]},
                {"region": "sky", "distortions": ["Noise"]},
                {"region": "sea", "distortions": []},
            ],
        ),
        (
            Analysis,
            {"distortion_analysis": {"car": [{"type": "blur", "severity": "heavy", "explanation": "x"}], "sky": []}},
            [
                {
                    "region": "car",
                    "type": "Blurs",
                    "severity": "severe",
                    "explanation": "x",
                    "uncertain": False,
                }
            ],
        ),
        (
            Selection,
            {"selected_tools": {"vehicle": {"blurs": "GMSD", "noise": "SSIM"}}},
            [
                {"region": "vehicle", "distortion": "Blurs", "tool": "GMSD"},
                {"region": "vehicle", "distortion": "Noise", "tool": "SSIM"},
            ],
        ),
    ],
)
def test_the_specifications_mapping_by_region_is_accepted(model: type[BaseModel], nested: Any, rows: Any) -> None:
    (read,) = model.model_validate(nested).model_dump().values()
    assert read == rows


@pytest.mark.parametrize(
    ("stage", "by_region"),
    [
        *(("location", {"sky": bad}) for bad in ("above", [0, 0, 1000], {"left": 0})),
        *(("detection", {"sky": bad}) for bad in (None, [["Noise"]], ["pixelated"])),
        *(("analysis", {"sky": bad}) for bad in (None, [None], ["hazy"], {"type": "Noise"})),
        *(("selection", {"sky": bad}) for bad in (None, "GMSD", ["GMSD"])),
        *(
            (stage, bad)
            for stage in ("location", "detection", "analysis", "selection")
            for bad in (3, [["sky", "Noise"]])
        ),
    ],
)
def test_a_malformed_mapping_is_a_validation_error_and_nothing_else(stage: str, by_region: Any) -> None:
    """Any other exception would bypass the retries and stop the run."""
    with pytest.raises(ValidationError):
        output(stage).model_validate(dict.fromkeys(VALID[stage], by_region))


@pytest.mark.parametrize(
    "wrong",
    [
        {"distortions": {"sky": None}},
        {"query_scope": None},
        {"query_scope": {"sky": 1}},
        {"required_tool": {"tool": "GMSD"}},
    ],
)
def test_a_malformed_plan_is_a_validation_error(wrong: Any) -> None:
    with pytest.raises(ValidationError):
        PlanAnswer.model_validate({**VALID["plan"], **wrong})


@pytest.mark.parametrize(
    ("key", "bad"),
    [*(("3", bad) for bad in (math.nan, math.inf, "likely", [1], True)), ("0", -1.0), ("6", -1.0), ("Nice", -1.0)],
)
def test_invalid_log_probabilities_of_levels_are_refused(key: str, bad: Any) -> None:
    probs = {**VALID["assessment"]["quality_probs"], key: bad}
    with pytest.raises(ValidationError, match="quality_probs"):
        ScoredAnswer.model_validate({**VALID["assessment"], "quality_probs": probs})


@pytest.mark.parametrize("log", [-1e300, -1000.0, float("-inf"), 0.0])
def test_zero_probability_for_every_level_is_refused(log: float) -> None:
    with pytest.raises(ValueError, match="no level has any probability"):
        settled(dict.fromkeys("12345", log))
    assert settled({**dict.fromkeys("1235", -1e300), "4": 0.0}) == {**dict.fromkeys("1235", -1000.0), "4": 0.0}


@pytest.mark.parametrize(("said", "level"), [("fair", "Fair"), (" GOOD", "Good"), ("Excellent", "Excellent")])
def test_the_case_of_a_level_does_not_matter(said: str, level: Level) -> None:
    probs = {number: 0.9 if LEVELS[level] == int(number) else 0.025 for number in "12345"}
    said_so = {**VALID["assessment"], "quality_level": said, "quality_probs": probs}
    assert ScoredAnswer.model_validate(said_so).quality_level == level


def test_a_level_that_is_nearly_the_most_probable_is_accepted_with_a_note() -> None:
    probs = {"1": 0.0, "2": 0.05, "3": 0.45, "4": 0.4, "5": 0.1}
    answer = ScoredAnswer.model_validate({**VALID["assessment"], "quality_level": "Good", "quality_probs": probs})
    assert answer.notes == ["quality_level is Good, a little less probable than Fair"]


def test_only_a_replan_needs_a_reason() -> None:
    for reason in ("", "  "):
        assert Decision(need_replan=False, replan_reason=reason).replan_reason == ""
        with pytest.raises(ValidationError, match="replan_reason must say"):
            Decision(need_replan=True, replan_reason=reason)


@pytest.mark.parametrize(
    ("stage", "key", "bad"),
    [
        *(("decision", "need_replan", bad) for bad in ("yes", 1, None, "maybe true")),
        *(("answer", key, blank) for key in VALID["answer"] for blank in ("", "   ")),
    ],
)
def test_a_decision_is_true_or_false_and_an_answer_not_blank(stage: str, key: str, bad: Any) -> None:
    with pytest.raises(ValidationError, match=key):
        output(stage).model_validate({**VALID[stage], key: bad})


def test_a_lone_surrogate_in_an_answer_is_replaced() -> None:
    answer = Answer(final_answer="soft \ud83d", quality_reasoning="x\udcff")
    assert (answer.final_answer, answer.quality_reasoning) == ("soft ?", "x?")
    assert Decision(need_replan=True, replan_reason="no \ud83d").model_dump_json()
