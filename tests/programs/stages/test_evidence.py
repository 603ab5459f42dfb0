"""Gaps in the evidence are found with the list of distortions that the Executor used."""

from agenticiqa.programs.offline.answers.planner import plan_question
from agenticiqa.programs.stages.evidence import contradictions, gaps
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
