"""The Executor with scripted sub-tasks: which of them run, their inputs, and the use of their results."""

from typing import Any

import dspy
import pytest
from PIL import Image

from agenticiqa.programs.errors import Unanswered
from agenticiqa.programs.images import LoadedImage, load
from agenticiqa.programs.stages.evidence import far_named_tools, format_evidence, named_gap
from agenticiqa.programs.stages.executor import Executor
from agenticiqa.programs.stages.protocols import Analyzed, Detected, Executed, Located, Selected
from agenticiqa.programs.tools import toolbox
from agenticiqa.signatures.types import DistortionAnalysis, ExecutorOutput, PlannerOutput
from support.distortion_levels import scene

SUB_TASKS = ("distortion_detection", "distortion_analysis", "tool_selection", "tool_execution")


class Given(dspy.Module):
    """A stage that records its inputs, and returns or raises a given object."""

    def __init__(self, outcome: Any) -> None:
        super().__init__()
        self.outcome = outcome
        self.inputs: list[dict[str, Any]] = []

    def forward(self, **inputs: Any) -> Any:
        self.inputs.append(inputs)
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


BLUR = DistortionAnalysis(type="Blurs", severity="moderate", explanation="Soft edges.")
DETECTED = Detected({"Global": ["Blurs"]}, {"Global": {"sharpness": 0.25}}, {"distortion_detection": ["empty"]})
ANALYZED = Analyzed({"Global": [BLUR]}, {"Global": {"noise": 1.5}}, {"distortion_analysis": ["no JSON", "cut off"]})
SELECTED = Selected({"Global": {"Blurs": "NIQE"}}, {"tool_selection": ["unknown tool"]})
LOCATED = Located({"dog": (0, 0, 200, 200)}, ["dog was taken for the subject."], {"localization": ["no box"]})


@pytest.fixture(scope="module")
def image() -> LoadedImage:
    return load(Image.fromarray(scene()))


def plan(*on: str, regions: list[str] | None = None) -> PlannerOutput:
    return PlannerOutput.model_validate(
        {
            "query_type": "IQA",
            "query_scope": regions or "Global",
            "distortion_source": "Inferred",
            "distortions": None,
            "reference_mode": "No-Reference",
            "required_tool": None,
            "plan": {name: name in on for name in SUB_TASKS},
        }
    )


def executor(**other: Any) -> Executor:
    outcomes = {"detect": DETECTED, "analyze": ANALYZED, "select": SELECTED, "locate": LOCATED, **other}
    return Executor(**{name: Given(outcome) for name, outcome in outcomes.items()}, toolbox=toolbox())


def execute(made: Executor, image: LoadedImage, planned: PlannerOutput) -> Executed:
    result: Executed = made(image=image, query="Is it sharp?", plan=planned, reference=None)
    return result


def test_the_evidence_has_the_result_of_each_sub_task(image: LoadedImage) -> None:
    located = execute(executor(), image, plan(*SUB_TASKS, regions=["dog"]))
    assert located.rejected_answers == {
        "localization": ["no box"],
        "distortion_detection": ["empty"],
        "distortion_analysis": ["no JSON", "cut off"],
        "tool_selection": ["unknown tool"],
    }
    assert "dog was taken for the subject." in located.evidence.notes
    assert located.evidence.boxes == {"dog": (0, 0, 200, 200)}
    made = execute(executor(), image, plan(*SUB_TASKS))
    assert made.evidence.measurements == {"Global": {"noise": 1.5}}, "those of the last sub-task that has any"
    assert made.evidence.distortion_set == DETECTED.distortion_set
    assert made.evidence.distortion_analysis == ANALYZED.distortion_analysis
    assert made.evidence.selected_tools == {"Global": {"Blurs": "NIQE"}}
    assert [(call.tool, call.weight) for call in made.evidence.tool_log] == [("NIQE", 1)]
    assert made.evidence.failures == {}


def test_only_the_sub_tasks_of_the_plan_run(image: LoadedImage) -> None:
    made = executor()
    evidence = execute(made, image, plan()).evidence
    assert [stage.inputs for stage in (made.detect, made.analyze, made.select, made.locate)] == [[]] * 4  # type: ignore[attr-defined]
    assert evidence.is_empty()
    assert (evidence.distortion_set, evidence.distortion_analysis, evidence.quality_scores) == (None, None, None)


@pytest.mark.parametrize(
    ("stage", "name", "lost"),
    [
        ("detect", "distortion_detection", "distortion_set"),
        ("analyze", "distortion_analysis", "distortion_analysis"),
        ("select", "tool_selection", "selected_tools"),
    ],
)
def test_an_unanswered_sub_task_is_recorded_and_the_others_continue(
    image: LoadedImage, stage: str, name: str, lost: str
) -> None:
    made = execute(executor(**{stage: Unanswered(name, ["empty", "cut off"], "{")}), image, plan(*SUB_TASKS))
    assert list(made.evidence.failures) == [name]
    assert "attempt 2: cut off" in made.evidence.failures[name]
    assert made.rejected_answers[name] == ["empty", "cut off; the answer was: {"]
    given = made.evidence.model_dump()
    assert [key for key in ("distortion_set", "distortion_analysis", "selected_tools") if given[key] is None] == [lost]


def test_another_error_of_a_sub_task_ends_the_run(image: LoadedImage) -> None:
    with pytest.raises(dspy.LMTimeoutError):
        execute(executor(analyze=dspy.LMTimeoutError("slow")), image, plan(*SUB_TASKS))


def rated(image: LoadedImage, *tools: str, query: str = "Rate the quality.") -> ExecutorOutput:
    named = plan(*SUB_TASKS).model_copy(update={"required_tool": [*tools]})
    found: Executed = executor()(image=image, query=query, plan=named, reference=None)
    return found.evidence


def test_a_named_tool_of_one_property_is_not_part_of_the_score(image: LoadedImage) -> None:
    """Its value is reported, and the score comes from the program's own tools, as without it."""
    evidence, without = rated(image, "RMS-CONTRAST"), rated(image, "LEARNED-IQA")
    assert evidence.overall_mean == without.overall_mean
    assert evidence.overall_tools == ("LEARNED-IQA",)
    (call,) = [call for call in evidence.tool_log if call.tool == "RMS-CONTRAST"]
    assert call.weight == 0
    assert [note for note in evidence.notes if f"RMS-CONTRAST gave {call.raw:.4g}" in note and "not part" in note]
    assert "Contrast" in (evidence.quality_scores or {})["Global"], "it stands under what it measures"
    assert not rated(image, "RMS-CONTRAST", query="What is its RMS-CONTRAST?").overall_tools


def test_a_named_tool_far_from_the_programs_own_is_reported(image: LoadedImage) -> None:
    evidence = rated(image, "NIQE")
    assert evidence.overall_tools == ("NIQE",)
    niqe, own = evidence.tool_log
    assert (own.tool, own.weight) == ("LEARNED-IQA", 0.0)
    assert niqe.calibrated is not None
    assert own.calibrated is not None
    for apart in (1.2, 0.8):
        moved = own.model_copy(update={"calibrated": niqe.calibrated - apart})
        beside = evidence.model_copy(update={"tool_log": [niqe, moved]})
        message = far_named_tools(beside)
        assert named_gap(beside) == pytest.approx(apart)
        assert bool(message) == (apart >= 1)
        assert all("NIQE" in sentence and "LEARNED-IQA" in sentence for sentence in message)
    assert named_gap(rated(image, "LEARNED-IQA")) == 0


def test_every_selected_quality_tool_changes_the_mean(image: LoadedImage) -> None:
    means = {}
    for name in ("LEARNED-IQA", "NIQE", "BRISQUE", "BLUR-EXTENT"):
        made = executor(select=Selected({"Global": {"Blurs": name}}))
        evidence = execute(made, image, plan(*SUB_TASKS)).evidence
        means[name] = evidence.overall_mean
        assert (evidence.overall_tools == ("LEARNED-IQA",)) == (name in ("LEARNED-IQA", "BLUR-EXTENT"))
        shown = format_evidence(evidence)
        assert f"Tool score mean:\n{evidence.overall_mean:.2f}" in shown
        before, after = shown.index("Tool score mean"), shown.index(name)
        assert (after > before) == (name == "BLUR-EXTENT"), "what is no part of the mean stands apart"
    assert means["BLUR-EXTENT"] == means["LEARNED-IQA"]
    assert len(set(means.values())) == 3
