"""The Executor: runs the sub-tasks that the plan enables, and collects their evidence (paper, Sec. 3.2).

Unlike the paper, regions that the plan names are located first, and each region is analyzed and measured separately.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from agenticiqa.programs.errors import Unanswered
from agenticiqa.programs.fusion.tool_mean import rating_tools
from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.images.regions import account, grown, place_in_frame
from agenticiqa.programs.questions.query_type import detect_query_type
from agenticiqa.programs.stages import progress, protocols
from agenticiqa.programs.stages.evidence import WHOLE_IMAGE
from agenticiqa.programs.stages.protocols import Analyzed, Executed, StageResult, ToolSelection
from agenticiqa.programs.stages.side_by_side import StageModule, beside, cpu_slot
from agenticiqa.programs.stages.tool_runs import (
    applicable_tools,
    named_tools,
    refuse_inapplicable_tools,
    run_in_box,
    scores,
    weighted,
    with_overall,
)
from agenticiqa.programs.tools.tool import Tool, find_tool, get_tool, run_tool, with_unit
from agenticiqa.signatures.types import (
    GLOBAL,
    OVERALL,
    Boxes,
    Distortions,
    ExecutorOutput,
    PlannerOutput,
    QueryType,
    ToolCall,
)

R = TypeVar("R", bound=StageResult)
GENERATED_NOTE = (
    "The image was recognized as AI-generated and scored as observers rate such images. "
    "1 or 2 of 100 photos are recognized so by mistake; their scores are then off by about half a level."
)


class Executor(StageModule):
    """The stage that collects the evidence that a plan requests.

    Each sub-task asks a model or is computed offline. Analysis runs in parallel with the selection and execution of
    tools. A sub-task or tool that fails is recorded in the evidence, and the others continue.

    Args:
        detect: Finds the distortions of each region.
        analyze: Rates their severity.
        select: Chooses a tool for each distortion.
        toolbox: The tools to choose from, by name.
        locate: Finds named regions first, except those that state a place in the frame, such as "left half". A region
            without a box is measured as the whole image; without ``locate`` this applies to all other names.
        select_for_rating: Replaces ``select`` if the question requests a rating. The tools of
            ``fusion.tool_mean.rating_tools`` are then added to any selection.
    """

    def __init__(
        self,
        detect: protocols.DetectorStage,
        analyze: protocols.AnalystStage,
        select: protocols.SelectorStage,
        toolbox: Mapping[str, Tool],
        locate: protocols.LocatorStage | None = None,
        select_for_rating: protocols.SelectorStage | None = None,
    ) -> None:
        super().__init__()
        self.detect, self.analyze, self.select, self.locate = detect, analyze, select, locate
        self.select_for_rating = select_for_rating
        self.toolbox = toolbox

    def forward(self, image: LoadedImage, query: str, plan: PlannerOutput, reference: LoadedImage | None) -> Executed:
        """Collect the evidence, as ``protocols.ExecutorStage`` says.

        Args:
            image: The loaded image.
            query: The question.
            plan: The plan.
            reference: The pristine image, or ``None``.

        Returns:
            The evidence, and the rejected answers of models by sub-task.

        Raises:
            ToolError: The plan names an unknown tool, or one that needs a reference.
        """
        flags = plan.plan
        refuse_inapplicable_tools(plan.tools, self.toolbox, reference)
        work = Work(image, query, plan, reference)
        self._locate(work)
        detected: Distortions | None = None
        if flags.distortion_detection:
            with work.attempt("distortion_detection"):
                found = self.detect(
                    image=image, query=query, regions=plan.regions, boxes=work.boxes, reference=reference
                )
                detected = work.noted(found).distortion_set
                work.measurements |= found.measurements
                progress.detected(detected)
        distortions = detected if detected is not None else plan.named_distortions
        measure = partial(self._measure, work, distortions)
        both = flags.distortion_analysis and (flags.tool_selection or flags.tool_execution)
        with beside(measure if both else None) as measured:
            analysis = self._analyze(work, distortions)
        selected, tool_log = measured.result() if both else measure()
        evidence = ExecutorOutput(
            distortion_set=detected,
            distortion_analysis=analysis.distortion_analysis if analysis else None,
            selected_tools=selected,
            quality_scores=scores(selected or {}, tool_log) if flags.tool_execution else None,
            tool_log=tool_log,
            boxes=work.boxes or None,
            measurements=work.measurements or None,
            local_damage={**analysis.local_damage} or None if analysis else None,
            failures=work.failures,
            notes=[*image.notes, *_notes(work, tool_log)],
        )
        return Executed(evidence, work.rejected_answers)

    def prefetch(self, image: LoadedImage, query: str, reference: LoadedImage | None) -> None:
        """Run, before the plan is made, the tools that every plan for this question runs on the whole image.

        Args:
            image: The loaded image.
            query: The question.
            reference: The pristine image, or ``None``.
        """
        if detect_query_type(query, "IQA") is QueryType.SCORING:
            for tool in rating_tools(
                applicable_tools(self.toolbox, image, reference), has_reference=reference is not None
            ):
                with cpu_slot():
                    run_tool(tool, image.assessed, reference, region=GLOBAL, distortion=OVERALL)

    def _locate(self, work: "Work") -> None:
        """Find the named regions, if any sub-task of the plan uses them."""
        named = [region for region in work.plan.regions if region != GLOBAL] if work.plan.plan.any() else []
        work.boxes = {region: place_in_frame(region, work.image.size) for region in named}
        unplaced = [region for region, box in work.boxes.items() if box is None]
        if unplaced and self.locate is not None:
            # The reference shows the same scene undistorted, so regions are easier to find in it.
            image = work.reference or work.image
            with work.attempt("localization"):
                located = work.noted(self.locate(image=image, regions=unplaced))
                work.boxes |= located.boxes
                work.remarks += located.remarks
        if work.boxes:
            progress.located(work.boxes)

    def _analyze(self, work: "Work", distortions: Distortions) -> Analyzed | None:
        if not work.plan.plan.distortion_analysis:
            return None
        with work.attempt("distortion_analysis"):
            analyzed = work.noted(
                self.analyze(
                    image=work.image,
                    query=work.query,
                    distortion_set=distortions,
                    boxes=work.boxes,
                    reference=work.reference,
                )
            )
            work.measurements |= analyzed.measurements
            progress.analyzed(analyzed.distortion_analysis)
            return analyzed
        return None

    def _measure(self, work: "Work", distortions: Distortions) -> tuple[ToolSelection | None, list[ToolCall]]:
        """Select the tools, and run them.

        If the question names tools, they are run. For a rating the program's own tools are run as well. They provide
        the score if no named tool estimates quality; otherwise the first of them is run for comparison.
        """
        flags, selected = work.plan.plan, None
        compared: ToolSelection = {}
        rates = detect_query_type(work.query, work.plan.query_type) is QueryType.SCORING
        if work.plan.tools and flags.tool_execution:
            named = [get_tool(name, self.toolbox) for name in work.plan.tools]
            selected = named_tools(named, distortions)
            own = self._own_tools(work) if rates else []
            if any(tool.rates_overall for tool in named):
                compared = with_overall({}, work.plan.regions, [tool for tool in own[:1] if tool not in named])
            else:
                selected = with_overall(selected, work.plan.regions, own)
        elif flags.tool_selection:
            tools = applicable_tools(self.toolbox, work.image, work.reference)
            select = (rates and self.select_for_rating) or self.select
            with work.attempt("tool_selection"):
                chosen = work.noted(select(distortion_set=distortions, tools=tools))
                selected = with_overall(chosen.selected_tools, work.plan.regions, self._own_tools(work))
        if selected is not None:
            progress.selected(selected)
        if not flags.tool_execution or selected is None:
            return selected, []
        calls = weighted(self._run(work, selected), self.toolbox, has_reference=work.reference is not None)
        calls += [call.model_copy(update={"weight": 0.0}) for call in self._run(work, compared)]
        if rates:
            work.remarks += self._no_part_of_the_score(work.plan.tools, calls)
        return selected, calls

    def _no_part_of_the_score(self, named: list[str], calls: list[ToolCall]) -> list[str]:
        """Return one sentence for each named tool that estimates a single property."""
        return [
            f"{call.tool} gave {with_unit(call.raw, call.unit)}. It measures only {tool.good_at[0].lower()}, so it is "
            "not part of the score."
            for call in calls
            if call.raw is not None
            and find_tool(call.tool, named)
            and not (tool := self.toolbox[call.tool]).rates_overall
        ]

    def _own_tools(self, work: "Work") -> list[Tool]:
        """Return the tools of a rating for which the question names no tools."""
        tools = applicable_tools(self.toolbox, work.image, work.reference)
        return rating_tools(tools, has_reference=work.reference is not None)

    def _run(self, work: "Work", selected: ToolSelection) -> list[ToolCall]:
        """Run each selected tool once, for all distortions that it was selected for."""
        measured: dict[tuple[str, str], ToolCall] = {}
        for region, chosen_tools in selected.items():
            for key, name in chosen_tools.items():
                if (region, name) not in measured:
                    distortion = key.removesuffix(f" ({name})")
                    tool, box = get_tool(name, self.toolbox), work.boxes.get(region)
                    with cpu_slot():
                        measured[region, name] = run_in_box(
                            tool, work.image, work.reference, box, region=region, distortion=distortion
                        )
                    progress.measured(measured[region, name])
        return list(measured.values())


@dataclass
class Work:
    """The state of one run: the inputs of its sub-tasks, and their notes, failures and rejected answers."""

    image: LoadedImage
    query: str
    plan: PlannerOutput
    reference: LoadedImage | None
    boxes: Boxes = field(default_factory=dict)
    measurements: dict[str, dict[str, float]] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)
    rejected_answers: dict[str, Sequence[str]] = field(default_factory=dict)

    @contextmanager
    def attempt(self, name: str) -> Iterator[None]:
        """Run one sub-task inside; if its model gives no usable answer, end it with an entry in ``failures``."""
        try:
            yield
        except Unanswered as gave_up:
            self.failures[name] = str(gave_up)
            self.rejected_answers |= gave_up.rejected_answers

    def noted(self, result: R) -> R:
        """Record the rejected answers of a sub-task's result, and return the result."""
        self.rejected_answers |= result.rejected_answers
        return result


def _notes(work: Work, tool_log: list[ToolCall]) -> list[str]:
    """Return notes on the scores: tools without a score, boxes and crops, remarks."""
    notes = [f"{call.tool} gave no score for {call.region}: {call.error}" for call in tool_log if call.error]
    notes += [*account(work.boxes, work.image.size), *work.remarks]
    if any(call.image_kind == "generated" for call in tool_log):
        notes.append(GENERATED_NOTE)
    notes += dict.fromkeys(f"{call.tool} is {call.adapted}." for call in tool_log if call.adapted)
    usual = {region: box and grown(box, work.image.size) for region, box in work.boxes.items()}
    notes += [
        f"{call.tool} needs a larger crop of {call.region} and measured the box {list(call.box)}."
        for call in tool_log
        if call.box and (box := usual.get(call.region)) and call.box != box
    ]
    unplaced = [region for region, box in work.boxes.items() if box is None]
    if unplaced and (tool_log or work.measurements):
        notes.append(f"No box was found for {', '.join(unplaced)}: {WHOLE_IMAGE}")
    return notes
