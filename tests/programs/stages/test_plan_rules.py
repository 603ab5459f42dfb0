"""The paper's rules of planning: the table of flags, what breaks it, and how it is set right."""

from collections.abc import Mapping
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenticiqa.programs.stages.plan_rules import enforce, expected_flags, violations
from agenticiqa.signatures.types import PlanFlags, PlannerOutput

KNOWN = ["SSIM", "MS_SSIM", "topiq-fr"]
FLAGS = ("distortion_detection", "distortion_analysis", "tool_selection", "tool_execution")


def flags(letters: str) -> PlanFlags:
    return PlanFlags(**{name: letter != "-" for name, letter in zip(FLAGS, letters, strict=True)})


def plan(letters: str = "DASE", **changed: Any) -> PlannerOutput:
    fields: Mapping[str, Any] = {
        "query_type": "IQA",
        "query_scope": "Global",
        "distortion_source": "Inferred",
        "distortions": None,
        "reference_mode": "No-Reference",
        "required_tool": None,
        "plan": flags(letters),
        **changed,
    }
    return PlannerOutput(**fields)


def explicit(letters: str, **changed: Any) -> PlannerOutput:
    return plan(letters, **{"distortion_source": "Explicit", "distortions": {"Global": ["Noise"]}, **changed})


PLANS = st.builds(
    plan,
    letters=st.sampled_from(["".join(letters) for letters in product("D-", "A-", "S-", "E-")]),
    query_type=st.sampled_from(["IQA", "Other"]),
    query_scope=st.sampled_from(["Global", ["sky"], ["sky", "Car"]]),
    distortion_source=st.sampled_from(["Explicit", "Inferred"]),
    distortions=st.sampled_from(
        [None, {"sky": ["Noise"]}, {"car": ["Blurs"], "Global": ["Noise"]}, {"moon": ["Blurs"]}]
    ),
    reference_mode=st.sampled_from(["Full-Reference", "No-Reference"]),
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


def test_a_rating_of_a_region_is_measured_as_one_of_the_image() -> None:
    assert expected_flags("IQA", True, False, False, rates=True) == flags("DASE")
    assert expected_flags("IQA", True, False, True, rates=True) == flags("DA-E")
    assert violations(plan("DA--", query_scope=["sky"]), reference_given=False, known_tools=KNOWN, rates=True) == [
        "plan.tool_selection is false, but must be true: the question rates a region, which is measured.",
        "plan.tool_execution is false, but must be true: the question rates a region, which is measured.",
    ]


def test_a_question_about_anything_else_switches_everything_off() -> None:
    for regions, named, tools in product([True, False], repeat=3):
        assert not expected_flags("Other", regions, named, tools).any()


@pytest.mark.parametrize(
    ("broken", "sentence"),
    [
        (
            plan(reference_mode="Full-Reference"),
            "reference_mode is 'Full-Reference', but no reference image was given: it must be 'No-Reference'.",
        ),
        (
            plan(required_tool="LPIPS"),
            "required_tool names 'LPIPS', which is unknown: the known tools are SSIM, MS_SSIM, topiq-fr; "
            "it is empty unless the question names one.",
        ),
        (
            plan("DASE", query_type="Other"),
            "plan.tool_execution is true, but must be false: query_type is 'Other'.",
        ),
        (
            explicit("DASE"),
            "plan.distortion_detection is true, but must be false: the question names the distortions.",
        ),
        (
            plan("-ASE", distortion_source="Explicit"),
            "distortion_source is 'Explicit', but distortions is null: it must list the distortions that the question "
            "names, or distortion_source must be 'Inferred'.",
        ),
        (
            plan("-ASE"),
            "plan.distortion_detection is false, but must be true: "
            "the question names no distortion, so they must be found.",
        ),
        (
            plan("D-SE"),
            "plan.distortion_analysis is false, but must be true: every question about quality needs it.",
        ),
        (
            plan("DASE", query_scope=["sky"]),
            "plan.tool_selection is true, but must be false: the question names regions and no tool.",
        ),
        (
            plan("DASE", required_tool="ms ssim"),
            "plan.tool_selection is true, but must be false: the question names the tools to run.",
        ),
        (
            plan("DA--"),
            "plan.tool_execution is false, but must be true: the question names neither a region nor a tool.",
        ),
        (
            explicit("-A--", query_scope=["sky"], distortions={"moon": ["Noise"]}),
            "distortions has the key 'moon', which is not in query_scope: the keys must be among 'sky', 'Global'.",
        ),
    ],
)
def test_a_broken_rule_is_told_in_one_sentence_that_says_what_must_be(broken: PlannerOutput, sentence: str) -> None:
    assert sentence in violations(broken, reference_given=False, known_tools=KNOWN)


@pytest.mark.parametrize(
    ("letters", "changed"),
    [
        ("DASE", {}),
        ("DA--", {"query_scope": ["sky"]}),
        ("DA-E", {"required_tool": "SSIM", "query_scope": ["sky"]}),
        ("DA-E", {"required_tool": ["ssim", "TOPIQ FR"]}),
        ("----", {"query_type": "Other", "query_scope": ["sky"]}),
        ("DASE", {"distortions": {"Global": ["Noise"]}}),
    ],
)
def test_a_plan_by_the_rules_has_no_violation(letters: str, changed: dict[str, Any]) -> None:
    assert violations(plan(letters, **changed), reference_given=False, known_tools=KNOWN) == []


@given(made=PLANS, given_one=st.booleans(), again=st.booleans())
def test_enforce_leaves_nothing_to_complain_about(made: PlannerOutput, given_one: bool, again: bool) -> None:
    right = enforce(made, reference_given=given_one, known_tools=KNOWN, replanning=again)
    assert violations(right, reference_given=given_one, known_tools=KNOWN, replanning=again) == []
    assert enforce(right, reference_given=given_one, known_tools=KNOWN, replanning=again) == right
    assert (right.query_type, right.query_scope) == (made.query_type, made.query_scope)
    assert set(right.tools) <= set(KNOWN)


@given(made=PLANS, given_one=st.booleans(), again=st.booleans())
def test_a_plan_without_violations_is_changed_in_the_spelling_of_its_tools_only(
    made: PlannerOutput, given_one: bool, again: bool
) -> None:
    right = enforce(made, reference_given=given_one, known_tools=KNOWN, replanning=again)
    spelled = [{"MS_SSIM": "ms ssim", "SSIM": "ssim"}.get(name, name) for name in right.tools] or None
    otherwise = right.model_copy(update={"required_tool": spelled})
    assert violations(otherwise, reference_given=given_one, known_tools=KNOWN, replanning=again) == []
    assert enforce(otherwise, reference_given=given_one, known_tools=KNOWN, replanning=again) == right


def test_enforce_keeps_the_distortions_of_the_scope_and_without_any_detects_them() -> None:
    right = enforce(plan("-A--", distortion_source="Explicit"), reference_given=False, known_tools=KNOWN)
    assert (right.distortion_source, right.plan) == ("Inferred", flags("DASE"))
    made = explicit("-A--", query_scope=["Car"], distortions={"car": ["Blurs"], "moon": ["Noise"]})
    assert enforce(made, reference_given=False, known_tools=KNOWN).distortions == {"Car": ["Blurs"]}


def test_a_plan_made_again_may_go_beyond_the_rules_but_not_below_them() -> None:
    regional = {"query_scope": ["sky"], "distortions": {"sky": ["Noise"]}}
    for letters, wrong in (("-ASE", 0), ("-A--", 0), ("-A-E", 0), ("DASE", 1), ("---E", 1)):
        made = explicit(letters, **regional)
        assert len(violations(made, reference_given=False, known_tools=KNOWN, replanning=True)) == wrong
    assert len(violations(explicit("-ASE", **regional), reference_given=False, known_tools=KNOWN)) == 2
