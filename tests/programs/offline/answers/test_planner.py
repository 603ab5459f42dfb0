"""Offline plans: a table of questions, and rules that every plan keeps."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, reject
from hypothesis import strategies as st

from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.offline.answers import planner
from agenticiqa.programs.offline.answers.planner import plan_question, regions_named
from agenticiqa.programs.questions.query_type import detect_query_type
from agenticiqa.programs.stages.plan_rules import enforce, violations
from agenticiqa.signatures.planner import PlanAnswer
from agenticiqa.signatures.types import PlanFlags, QueryType

KNOWN = ["PSNR", "SSIM", "MS_SSIM", "GMSD", "FSIM", "VIF", "BRISQUE", "UNIQUE", "TOPIQ_FR"]
KNOWN += [
    "sharpness",
    "contrast",
    "noise",
    "blockiness",
    "exposure",
    "color_cast",
    "BLUR-EXTENT",
    "RMS-CONTRAST",
    "COLORFULNESS",
]
TABLE: dict[str, list[dict[str, Any]]] = yaml.safe_load(Path(__file__).with_name("planner_cases.yaml").read_text())
CASES = [
    pytest.param(case, id=f"{group}: {case['query'][:60]!r}")
    for group, cases in TABLE.items()
    for case in cases
    if "unknown" not in case
]
WORDS = """
    Is the are car sky of in on and but noisy blurry dark sharp image photo quality rate ? . , : A. B. A) B) SSIM
    ms-ssim sharpness metric ignoring apart from left right which part Yes No (Yes/No) choose or mood what's dog's with
    for a this not 1 5 out focus detail color face
"""
QUESTIONS = st.lists(st.sampled_from(WORDS.split()), max_size=14).map(" ".join) | st.text(max_size=60)


def letters(flags: PlanFlags) -> str:
    """Return the flags in the notation of the table: D detection, A analysis, S selection, E execution."""
    return "".join(letter if is_on else "-" for letter, is_on in zip("DASE", flags.model_dump().values(), strict=True))


@pytest.mark.parametrize("case", CASES)
def test_a_question_gets_the_plan_of_the_table(case: dict[str, Any]) -> None:
    plan = plan_question(case["query"], reference_given=case.get("reference", False), known_tools=KNOWN)
    assert {
        "type": plan.query_type,
        "scope": plan.query_scope,
        "source": plan.distortion_source,
        "named": plan.distortions,
        "tools": plan.tools,
        "reference": plan.reference_mode,
        "flags": letters(plan.plan),
        "answer": detect_query_type(case["query"], plan.query_type).value,
    } == {
        "type": case["type"],
        "scope": case["scope"],
        "source": "Explicit" if "named" in case else "Inferred",
        "named": case.get("named"),
        "tools": case.get("tools", []),
        "reference": "Full-Reference" if case.get("reference") else "No-Reference",
        "flags": case["flags"],
        "answer": case["answer"],
    }


def test_the_table_is_as_large_and_as_varied_as_it_should_be() -> None:
    queries = [case["query"] for cases in TABLE.values() for case in cases]
    assert len(set(queries)) == len(queries) >= 78
    assert {flags for case in CASES for flags in [case.values[0]["flags"]]} >= {"DASE", "-ASE", "-A--", "DA--", "----"}


@pytest.mark.parametrize("case", TABLE["unknown_tools"], ids=lambda case: case["unknown"])
def test_an_unknown_tool_is_an_error_that_lists_the_known_ones(case: dict[str, str]) -> None:
    with pytest.raises(ToolError) as raised:
        plan_question(case["query"], reference_given=False, known_tools=KNOWN)
    meant = f", did you mean {case['meant']}? Expected" if "meant" in case else ": expected"
    assert str(raised.value) == f"unknown tool {case['unknown']!r}{meant} {', '.join(KNOWN)}"


@pytest.mark.parametrize("word", ["HDR", "JPG", "UHD", "RAW", "GIMP"])
def test_a_word_in_capitals_that_resembles_no_tool_is_ignored(word: str) -> None:
    plan = plan_question(f"I use {word} a lot. Rate the quality.", reference_given=False, known_tools=KNOWN)
    assert plan.tools == []


def test_a_reference_changes_the_mode_and_nothing_else() -> None:
    for case in CASES:
        query = case.values[0]["query"]
        with_one, without = (plan_question(query, reference_given=given, known_tools=KNOWN) for given in (True, False))
        assert (with_one.reference_mode, without.reference_mode) == ("Full-Reference", "No-Reference")
        assert with_one.model_copy(update={"reference_mode": "No-Reference"}) == without


@given(query=QUESTIONS, reference=st.booleans(), feedback=st.sampled_from(["", "no scores for the sky"]))
def test_plans_for_any_question_keep_the_rules(query: str, reference: bool, feedback: str) -> None:
    try:
        plan = plan_question(query, reference_given=reference, known_tools=KNOWN, feedback=feedback)
    except ToolError:
        reject()
    written = PlanAnswer.model_validate(plan.model_dump())
    assert violations(written) == []
    again, rates = bool(feedback), detect_query_type(query) is QueryType.SCORING
    assert enforce(written, reference_given=reference, named_tools=KNOWN, replanning=again, rates=rates) == plan


@pytest.mark.parametrize(
    ("query", "first", "second"),
    [
        ("Is the vehicle blurry?", "-A--", "-ASE"),
        ("Is the sky of good quality?", "DA--", "DASE"),
        ("Is the singing man emphasized?", "----", "DASE"),
        ("Rate the quality with SSIM.", "DA-E", "DASE"),
    ],
)
def test_feedback_widens_the_plan_and_keeps_what_it_is_about(query: str, first: str, second: str) -> None:
    once = plan_question(query, reference_given=True, known_tools=KNOWN)
    twice = plan_question(query, reference_given=True, known_tools=KNOWN, feedback="scores are missing")
    assert (letters(once.plan), letters(twice.plan)) == (first, second)
    assert twice.model_copy(update={"plan": once.plan}) == once


@pytest.mark.parametrize("name", ["contrast", "sharpness", "exposure", "noise", "color cast"])
def test_a_distortion_word_alone_is_never_a_tool(name: str) -> None:
    plan = plan_question(f"How is the {name}?", reference_given=False, known_tools=KNOWN)
    assert plan.tools == []
    assert plan.distortion_source == "Explicit"


@pytest.mark.parametrize(
    ("query", "tools"),
    [
        ("Give me the contrast metric.", ["contrast"]),
        ("Use color_cast.", ["color_cast"]),
        ("Run BLUR-EXTENT and COLORFULNESS.", ["BLUR-EXTENT", "COLORFULNESS"]),
        ("blur-extent and rms_contrast please", ["BLUR-EXTENT", "RMS-CONTRAST"]),
        ("What is the extent of the blur, and the colorfulness?", []),
        ("What is the blur extent, and the Colorfulness?", []),
        ("WHAT IS THE COLORFULNESS?", []),
        ("SSIM-based rating please", ["SSIM"]),
        ("Is MS-SSIM low?", ["MS_SSIM"]),
        ("PSNR/SSIM?", ["PSNR", "SSIM"]),
        ("Which tool is best for blur, SSIM or LPIPS?", []),
        ("The tool used is: TOPIQ_FR (score: 1.6). Is the image good?", []),
        ("Was it taken using HDR?", []),
        ("Use SSIM: is the photo suitable for print?", ["SSIM"]),
        ("Use SSIM: how noisy is it? A. Very noisy B. Not noisy", ["SSIM"]),
        ("Which of these follows opinions best?\nA. SSIM\nB. BRISQUE", []),
        ("Choose from: A) PSNR B) BRISQUE", []),
        ("Which came last? A. LPIPS B. SSIM", []),
        ("Is the 'SSIM: Structural similarity.' tool usable with no original? A. Yes B. No", []),
        ("Can PSNR be used on a single picture?", []),
    ],
)
def test_only_tools_that_the_question_requests_are_run(query: str, tools: list[str]) -> None:
    assert plan_question(query, reference_given=True, known_tools=KNOWN).tools == tools


def test_a_question_is_planned_once_and_its_plan_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    query, asked = "Is the fog of this very test blurry?", []

    def counted(question: str, options: Mapping[str, str]) -> list[str]:
        asked.append(question)
        return regions_named(question, options)

    monkeypatch.setattr(planner, "regions_named", counted)
    first = plan_question(query, reference_given=False, known_tools=KNOWN)
    expected = first.model_copy(deep=True)
    first.distortions = {"the fog": ["Noise"]}
    first.plan.tool_execution = not first.plan.tool_execution
    assert plan_question(query, reference_given=False, known_tools=KNOWN) == expected
    assert len(asked) == 1
    assert plan_question(query, reference_given=True, known_tools=KNOWN).reference_mode == "Full-Reference"


def test_the_asking_part_has_no_introduction() -> None:
    assert planner.asking_part("My boss says it is fine. Please tell me if it is too dark.") == "it is too dark."
