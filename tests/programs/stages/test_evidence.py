"""Gaps in the evidence are found with the list of distortions that the Executor used."""

import pytest

from agenticiqa.programs.offline.answers.planner import plan_question
from agenticiqa.programs.stages.evidence import contradictions, format_evidence, gaps, uncertainties
from agenticiqa.signatures.executor import Analysis
from agenticiqa.signatures.types import DistortionAnalysis, ExecutorOutput, PlanFlags, PlannerOutput, ToolCall


def test_globally_named_distortions_are_required_in_each_region() -> None:
    plan = PlannerOutput(
        query_type="IQA",
        query_scope=["sky", "face"],
        distortion_source="Explicit",
        distortions={"Global": ["Noise"], "face": ["Blurs"]},
        reference_mode="No-Reference",
        required_tool=None,
        plan=PlanFlags(distortion_detection=False, distortion_analysis=False, tool_selection=True, tool_execution=True),
    )
    assert plan.named_distortions == {"sky": ["Noise"], "face": ["Blurs"]}
    scored = ExecutorOutput(quality_scores={"sky": {"Overall": ("NIQE", 3.0)}, "face": {"Blurs": ("NIQE", 3.0)}})
    assert gaps(plan, scored) == ["Missing tool scores for sky: Noise"]


def test_a_score_for_comparison_does_not_fill_a_gap_but_a_value_without_a_curve_does() -> None:
    plan = plan_question("Rate this image with NIQE.", reference_given=False, known_tools=("NIQE",))
    call = ToolCall(
        region="Global", distortion="Overall", tool="LEARNED-IQA", raw=3.0, calibrated=3.0, weight=0.0, ms=1
    )
    for found, missing in ((call, 1), (call.model_copy(update={"calibrated": None}), 0)):
        evidence = ExecutorOutput(quality_scores={"Global": {}}, tool_log=[found])
        assert len([gap for gap in gaps(plan, evidence) if "tool scores" in gap]) == missing


def test_an_overall_score_contradicts_the_whole_analysis_only() -> None:
    """A question about noise in a blurred photo: the tool for the overall quality stands in for noise, too."""
    rows = [
        DistortionAnalysis(type="Noise", severity="none", explanation="No noise."),
        DistortionAnalysis(type="Blurs", severity="severe", explanation="Wide edges."),
    ]
    low, high = (
        ExecutorOutput(
            distortion_analysis={"Global": rows},
            quality_scores={"Global": {"Noise": ("LEARNED-IQA", score), "Overall": ("LEARNED-IQA", score)}},
        )
        for score in (1.67, 4.6)
    )
    assert contradictions(low) == []
    assert contradictions(high) == ["Contradictory evidence for Global: severe Blurs but LEARNED-IQA scores 4.60"]
    only_noise = ExecutorOutput(
        distortion_analysis={"Global": rows}, quality_scores={"Global": {"Noise": ("NOISE-SIGMA", 1.2)}}
    )
    assert contradictions(only_noise) == [
        "Contradictory evidence for Global: no distortion is visible but NOISE-SIGMA scores 1.20"
    ]


def test_a_question_that_is_no_rating_has_all_scores_together_and_no_mean() -> None:
    """The tool for the question's distortion is not part of a mean that no answer uses."""
    calls = [
        ToolCall(region="Global", distortion=name, tool=tool, raw=score, calibrated=score, weight=weight, ms=1)
        for name, tool, score, weight in (("Overall", "LEARNED-IQA", 2.1, 1.0), ("Noise", "NOISE-SIGMA", 1.8, 0.0))
    ]
    scores = {"Global": {call.distortion: (call.tool, call.raw or 0.0) for call in calls}}
    evidence = ExecutorOutput(quality_scores=scores, tool_log=calls)
    asked = format_evidence(evidence, rates=False)
    assert '{"Global": {"Overall": ["LEARNED-IQA", 2.1], "Noise": ["NOISE-SIGMA", 1.8]}}' in asked
    assert "mean" not in asked
    assert "Other measurements (1-5 scale, no part of the mean)" in format_evidence(evidence)


DOUBTS = [
    ("may be blurred", True, 1),
    ("possibly soft", True, 1),
    ("low confidence", True, 1),
    ("difficult to judge", True, 1),
    ("unclear", False, 0),
    ("unclear", None, 1),
    ("possibly soft", None, 0),
]


@pytest.mark.parametrize(("words", "said", "doubts"), DOUBTS)
def test_a_doubt_is_what_the_analysis_says_in_its_field_else_in_its_words(
    words: str, said: bool | None, doubts: int
) -> None:
    row = DistortionAnalysis(type="Blurs", severity="slight", explanation=f"It is {words}.", uncertain=said)
    evidence = ExecutorOutput(distortion_analysis={"Global": [row]})
    assert len(uncertainties(evidence)) == doubts
    assert ('"uncertain": true' in format_evidence(evidence)) == (said is True)
    assert ("uncertain" in row.model_dump_json()) == (said is not None)
    assert DistortionAnalysis.model_validate_json(row.model_dump_json()) == row


@pytest.mark.parametrize("field", [{}, {"uncertain": None}, {"uncertain": "rather"}])
def test_an_answer_without_a_usable_field_is_read_by_its_words(field: dict[str, object]) -> None:
    said = {"type": "Noise", "severity": "slight", "explanation": "It is unclear whether this is grain."}
    rows = {"Global": [{**said, **field}]}
    (row,) = Analysis.model_validate({"distortion_analysis": rows}).by_region()["Global"]
    assert row.uncertain is True
