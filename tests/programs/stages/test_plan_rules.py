"""The paper's planning rules: the table of flags, its violations, and their correction."""

from collections.abc import Mapping
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenticiqa.programs.stages.plan_rules import effect_of, enforce, expected_flags, violations
from agenticiqa.signatures.planner import PlanAnswer
from agenticiqa.signatures.types import GLOBAL, PlanFlags, PlannerOutput

KNOWN = ["SSIM", "MS_SSIM", "topiq-fr"]
FLAGS = ("distortion_detection", "distortion_analysis", "tool_selection", "tool_execution")
GIVEN: dict[str, Any] = {"reference_given": False, "named_tools": KNOWN}


def flags(letters: str) -> PlanFlags:
    return PlanFlags(**{name: letter != "-" for name, letter in zip(FLAGS, letters, strict=True)})


def answer(**changed: Any) -> PlanAnswer:
    """Return a plan as a model may write it, in the specification's form."""
    fields: Mapping[str, Any] = {
        "query_type": "IQA",
        "query_scope": "Global",
        "distortion_source": "Inferred",
        "distortions": None,
        "required_tool": None,
        **changed,
    }
    return PlanAnswer.model_validate(fields)


def explicit(**changed: Any) -> PlanAnswer:
    return answer(**{"distortion_source": "Explicit", "distortions": {"Global": ["Noise"]}, **changed})


ANSWERS = st.builds(
    answer,
    query_type=st.sampled_from(["IQA", "Other"]),
    query_scope=st.sampled_from(["Global", ["sky"], ["sky", "Car"]]),
    distortion_source=st.sampled_from(["Explicit", "Inferred"]),
    distortions=st.sampled_from(
        [None, {"sky": ["Noise"]}, {"car": ["Blurs"], "Global": ["Noise"]}, {"moon": ["Blurs"]}]
    ),
    required_tool=st.sampled_from([None, "SSIM", ["ms ssim", "LPIPS"], "LPIPS"]),
)


@pytest.mark.parametrize(
    ("regions", "tools", "expected"),
    [(True, True, "-E"), (True, False, "--"), (False, True, "-E"), (False, False, "SE")],
)
@pytest.mark.parametrize("named", [True, False])
def test_the_tool_flags_are_those_of_the_papers_table(regions: bool, tools: bool, expected: str, named: bool) -> None:
    letters = ("-" if named else "D") + "A" + expected
    assert expected_flags("IQA", regions, named, tools) == flags(letters)


def test_rating_a_region_runs_tools_like_rating_the_image() -> None:
    assert expected_flags("IQA", True, False, False, rates=True) == flags("DASE")
    assert expected_flags("IQA", True, False, True, rates=True) == flags("DA-E")
    assert enforce(answer(query_scope=["sky"]), **GIVEN, rates=True).plan == flags("DASE")


def test_other_questions_run_no_sub_task() -> None:
    for regions, named, tools in product([True, False], repeat=3):
        assert not expected_flags("Other", regions, named, tools).any()


@pytest.mark.parametrize(
    ("broken", "sentence"),
    [
        (
            answer(distortion_source="Explicit"),
            "distortion_source is 'Explicit', but distortions is empty: it must list the distortions that the question "
            "names, or distortion_source must be 'Inferred'.",
        ),
        (
            explicit(query_scope=["sky"], distortions={"moon": ["Noise"]}),
            "distortions has the region 'moon', which is not in query_scope: they must be among 'sky', 'Global'.",
        ),
    ],
)
def test_a_violation_is_described_in_one_sentence_with_the_requirement(broken: PlanAnswer, sentence: str) -> None:
    assert violations(broken) == [sentence]


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"query_scope": ["sky"]},
        {"required_tool": ["ssim", "TOPIQ FR"]},
        {"required_tool": "LPIPS"},
        {"query_type": "Other", "query_scope": ["sky"]},
        {"distortions": {"Global": ["Noise"]}},
        {"reference_mode": "Full-Reference", "plan": dict.fromkeys(FLAGS, True)},
        {"reference_mode": 3, "plan": "all of them"},
    ],
)
def test_values_that_the_rules_set_are_no_violation(changed: dict[str, Any]) -> None:
    written = answer(**changed)
    assert violations(written) == []
    assert written.notes == []


@given(made=ANSWERS, given_one=st.booleans(), again=st.booleans())
def test_an_enforced_plan_has_no_violations(made: PlanAnswer, given_one: bool, again: bool) -> None:
    asked = {"reference_given": given_one, "named_tools": KNOWN, "replanning": again}
    right = enforce(made, **asked)
    written = PlanAnswer.model_validate(right.model_dump())
    assert violations(written) == []
    assert enforce(written, **asked) == right
    scope = GLOBAL if made.query_scope == [GLOBAL] else made.query_scope
    assert (right.query_type, right.query_scope) == (made.query_type, scope)
    assert right.reference_mode == ("Full-Reference" if given_one else "No-Reference")
    assert set(right.tools) <= set(KNOWN)


def test_enforce_keeps_distortions_in_scope_and_otherwise_detects_them() -> None:
    right = enforce(answer(distortion_source="Explicit"), **GIVEN)
    assert (right.distortion_source, right.plan) == ("Inferred", flags("DASE"))
    made = explicit(query_scope=["Car"], distortions={"car": ["Blurs"], "moon": ["Noise"]})
    assert enforce(made, **GIVEN).distortions == {"Car": ["Blurs"]}
    assert enforce(explicit(required_tool=["ms ssim", "LPIPS"]), **GIVEN).tools == ["MS_SSIM"]


def test_a_replan_runs_all_applicable_sub_tasks() -> None:
    regional = explicit(query_scope=["sky"], distortions={"sky": ["Noise"]})
    assert enforce(regional, **GIVEN).plan == flags("-A--")
    assert enforce(regional, **GIVEN, replanning=True).plan == flags("-ASE")
    assert enforce(answer(query_scope=["sky"]), **GIVEN, replanning=True).plan == flags("DASE")


# --- what a plan does ------------------------------------------------------------------------------------------------


def made(letters: str = "dase", **changed: Any) -> PlannerOutput:
    """Return a plan with the flags of these letters: detection, analysis, selection and execution."""
    fields: Mapping[str, Any] = {
        "query_type": "IQA",
        "query_scope": "Global",
        "distortion_source": "Inferred",
        "distortions": None,
        "reference_mode": "No-Reference",
        "required_tool": None,
        **changed,
    }
    return PlannerOutput(plan=flags(letters), **fields)


NOISE, BOTH = {"Global": ["Noise"]}, ["sky", "sea"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (made(), made(distortions=NOISE)),
        (made(), made(distortions={"Global": ["Blurs"], "sky": ["Noise"]})),
        (made("-ase"), made("dase")),  # nothing is named, so it is detected for the analysis
        (made(query_scope=BOTH), made(query_scope=["Sea", "sky"])),
        (
            made("-ase", distortions={"Global": ["Noise", "Blurs"]}),
            made("-ase", distortions={"Global": ["Blurs", "Noise"]}),
        ),
        (made(required_tool="NIQE"), made("da-e", required_tool="niqe")),
        (made(required_tool=["NIQE", "PIQE"]), made(required_tool=["PIQE", "NIQE"])),
        (made("da--"), made("da-e")),  # no tools to run
        (made("da--"), made("da--", required_tool="NIQE")),
    ],
)
def test_plans_that_do_the_same_have_equal_effects(one: PlannerOutput, other: PlannerOutput) -> None:
    assert one != other
    assert effect_of(one) == effect_of(other)


@pytest.mark.parametrize(
    "other",
    [
        made(query_type="Other"),
        made(query_scope=["sky"]),
        made("-ase", distortions=NOISE),
        made("d-se"),
        made("da--"),
        made("das-"),
        made(required_tool="NIQE"),
    ],
)
def test_plans_that_do_something_else_have_other_effects(other: PlannerOutput) -> None:
    assert effect_of(other) != effect_of(made())


def test_distortions_count_where_they_are_not_detected() -> None:
    """A region without names is examined, the others are not."""
    named = made("-ase", query_scope=BOTH, distortions={"sky": ["Noise"]})
    assert effect_of(named) != effect_of(made("-ase", query_scope=BOTH, distortions={"sky": ["Blurs"]}))
    assert effect_of(named) != effect_of(made("-ase", query_scope=BOTH, distortions={"Global": ["Noise"]}))
