"""Gaps in the evidence are found with the list of distortions that the Executor used."""

from agenticiqa.programs.stages.evidence import gaps
from agenticiqa.signatures.types import ExecutorOutput, PlanFlags, PlannerOutput


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
