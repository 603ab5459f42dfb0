"""The Executor: detects, analyses, selects tools and runs them, each only if the plan says so (paper, Sec. 3.2).

What the paper lacks: when the plan names regions, they are located first, and each is looked at and measured by itself.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import dspy

from agenticiqa.programs.backends.connect import Backend
from agenticiqa.programs.errors import ToolError, Unanswered
from agenticiqa.programs.images import LoadedImage, prompt_inputs
from agenticiqa.programs.images.regions import SMALLEST, account, crop, grown, place_in_frame, told
from agenticiqa.programs.stages import progress
from agenticiqa.programs.stages.ask import CheckedPredict, Rejected
from agenticiqa.programs.stages.flow import Call, Flow, Stage
from agenticiqa.programs.stages.question import detect_query_type
from agenticiqa.programs.tools.tool import Tool, best_for, get_tool, run_tool
from agenticiqa.signatures.executor import (
    Analysis,
    AnalyzeDistortions,
    DetectDistortions,
    Detection,
    Selection,
    SelectTools,
)
from agenticiqa.signatures.types import (
    GLOBAL,
    OVERALL,
    Box,
    Boxes,
    Distortions,
    ExecutorOutput,
    PlannerOutput,
    QueryType,
    ToolCall,
)

Selected = dict[str, dict[str, str]]


class Executor(Stage):
    """Gathers the evidence that a plan asks for.

    ``detect``, ``analyze``, ``select`` and ``locate`` are modules that ask a model (in this file, and ``localize``) or
    their offline twins (``agenticiqa.programs.offline.stages``). Analysis runs beside the selection and execution of
    tools. A sub-task or tool that fails is recorded in the evidence, and the rest goes on.

    ``locate`` runs before everything else, and only for regions whose names do not place them in the frame ("left
    half" does). A region without a box, and without ``locate`` any such region, is measured as the whole image.
    """

    def __init__(
        self,
        detect: dspy.Module,
        analyze: dspy.Module,
        select: dspy.Module,
        toolbox: Mapping[str, Tool],
        locate: dspy.Module | None = None,
    ) -> None:
        super().__init__()
        self.detect, self.analyze, self.select, self.locate = detect, analyze, select, locate
        self.toolbox = toolbox

    def steps(
        self, image: LoadedImage, query: str, plan: PlannerOutput, reference: LoadedImage | None
    ) -> Flow[dspy.Prediction]:
        """A prediction of ``evidence`` (ExecutorOutput) and ``retries`` (sub-task to reasons)."""
        refuse_inapplicable_tools(plan.tools, self.toolbox, reference)
        work = Work(image, query, plan, reference)
        yield from self._boxes(work)
        found: Distortions | None = None
        if plan.plan.distortion_detection:
            inputs = {"regions": plan.regions, "boxes": work.boxes}
            detected = yield from work.attempt("distortion_detection", self.detect, inputs)
            found = detected.distortion_set if detected else None
            if found is not None:
                progress.detected(found)
        wanted = found if found is not None else plan.named_distortions
        looking, measuring = self._analysis(work, wanted), self._tools(work, wanted)
        if plan.plan.distortion_analysis and (plan.plan.tool_selection or plan.plan.tool_execution):
            analysis, (selected, log) = yield [looking, measuring]
        else:
            analysis = yield from looking
            selected, log = yield from measuring
        evidence = ExecutorOutput(
            distortion_set=found,
            distortion_analysis=analysis.distortion_analysis if analysis else None,
            selected_tools=selected,
            quality_scores=_scores(selected, log) if plan.plan.tool_execution else None,
            tool_log=log,
            boxes=work.boxes or None,
            measurements=work.measurements or None,
            failures=work.failures,
            notes=[*image.notes, *_notes(work, log)],
        )
        return dspy.Prediction(evidence=evidence, retries=work.retries)

    def surely_wanted(self, image: LoadedImage, query: str, reference: LoadedImage | None) -> list[Tool]:
        """The tools that a plan will run on the whole image, as far as the question alone tells: quality overall."""
        if detect_query_type(query, "IQA") is not QueryType.SCORING:
            return []
        best = best_for(OVERALL, applicable(self.toolbox, image, reference))
        return [best] if best else []

    def _boxes(self, work: "Work") -> Flow[None]:
        """Find the named regions, if anything is to be done with them."""
        named = [region for region in work.plan.regions if region != GLOBAL] if work.plan.plan.any() else []
        work.boxes = {region: place_in_frame(region, work.image.size) for region in named}
        unknown = [region for region, box in work.boxes.items() if box is None]
        if unknown and self.locate is not None:
            # The reference shows the same things, undamaged, so they are found in it if there is one.
            inputs = {"image": work.reference or work.image, "regions": unknown}
            located = yield from work.attempt("localisation", self.locate, inputs, sees=False)
            work.boxes |= located.boxes if located else {}
        if work.boxes:
            progress.located(work.boxes)

    def _analysis(self, work: "Work", wanted: Distortions) -> Flow[dspy.Prediction | None]:
        if not work.plan.plan.distortion_analysis:
            return None
        inputs = {"distortion_set": wanted, "boxes": work.boxes}
        analysed = yield from work.attempt("distortion_analysis", self.analyze, inputs)
        if analysed:
            progress.analysed(analysed.distortion_analysis)
        return analysed

    def _tools(self, work: "Work", wanted: Distortions) -> Flow[tuple[Selected | None, list[ToolCall]]]:
        """Which tool for which distortion, and what each measured."""
        plan, selected = work.plan, None
        if plan.tools and plan.plan.tool_execution:
            selected = _named_tools([get_tool(name, self.toolbox).name for name in plan.tools], wanted)
        elif plan.plan.tool_selection:
            cards = applicable(self.toolbox, work.image, work.reference)
            inputs = {"distortion_set": wanted, "cards": cards}
            chosen = yield from work.attempt("tool_selection", self.select, inputs, sees=False)
            selected = _with_overall(chosen.selected_tools, plan.regions, cards) if chosen else None
        if selected is not None:
            progress.selected(selected)
        if not plan.plan.tool_execution or selected is None:
            return selected, []
        measured: dict[tuple[str, str], ToolCall] = {}
        for region, tools in selected.items():
            for distortion, name in tools.items():
                if (region, name) not in measured:  # one run serves every distortion that it was chosen for
                    measured[region, name] = yield Call(
                        run_in_box,
                        {
                            "card": get_tool(name, self.toolbox),
                            "image": work.image,
                            "reference": work.reference,
                            "box": work.boxes.get(region),
                            "region": region,
                            "distortion": distortion,
                        },
                    )
                    progress.measured(measured[region, name])
        return selected, list(measured.values())


@dataclass
class Work:
    """What the sub-tasks of one run share: what they are given, and what came of them besides their results."""

    image: LoadedImage
    query: str
    plan: PlannerOutput
    reference: LoadedImage | None
    boxes: Boxes = field(default_factory=dict)
    measurements: dict[str, dict[str, float]] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)
    retries: dict[str, list[str]] = field(default_factory=dict)

    def attempt(
        self, name: str, module: dspy.Module, inputs: dict[str, Any], *, sees: bool = True
    ) -> Flow[dspy.Prediction | None]:
        """Run one sub-task, given the images and the question if it ``sees``; ``None`` when its model never answers."""
        seen = {"image": self.image, "query": self.query, "reference": self.reference} if sees else {}
        try:
            reply = yield Call(module, {**seen, **inputs})
        except Unanswered as gave_up:
            self.failures[name], self.retries[name] = str(gave_up), gave_up.account
            return None
        if reply.retries:
            self.retries[name] = reply.retries
        self.measurements |= reply.get("measurements", {})
        self.remarks += reply.get("remarks", [])
        return reply


def applicable(toolbox: Mapping[str, Tool], image: LoadedImage, reference: LoadedImage | None) -> list[Tool]:
    """The tools that fit: full-reference ones with a reference, else no-reference ones; none that needs more pixels."""
    kind, side = "FR" if reference is not None else "NR", min(image.size)
    return [card for card in toolbox.values() if card.kind == kind and card.smallest <= side]


def run_in_box(
    card: Tool, image: LoadedImage, reference: LoadedImage | None, box: Box | None, *, region: str, distortion: str
) -> ToolCall:
    """Run one tool on the whole image, or on the crop of a box that is large enough for it; the reference likewise."""
    if box is None:
        return run_tool(card, image, reference, region=region, distortion=distortion)
    smallest = max(SMALLEST, card.smallest)
    part, pristine = crop(image, box, smallest), crop(reference, box, smallest) if reference else None
    call = run_tool(card, part, pristine, region=region, distortion=distortion)
    return call.model_copy(update={"box": grown(box, image.size, smallest)})


def refuse_inapplicable_tools(names: list[str], toolbox: Mapping[str, Tool], reference: LoadedImage | None) -> None:
    """Raises ToolError when a named tool is unknown, or compares with a reference that was not given."""
    for name in names:
        if get_tool(name, toolbox).kind == "FR" and reference is None:
            raise ToolError(f"{name} compares with a pristine reference, and none was given: give one with --reference")


def _named_tools(names: list[str], wanted: Distortions) -> Selected:
    """The tools that the question named, for each region's distortions or its quality overall."""
    first, *more = names
    selected: Selected = {}
    for region, distortions in wanted.items():
        subjects: list[str] = [*distortions] or [OVERALL]
        selected[region] = dict.fromkeys(subjects, first)
        selected[region] |= {f"{subject} ({name})": name for name in more for subject in subjects}
    return selected


def _with_overall(selected: Selected, regions: list[str], cards: list[Tool]) -> Selected:
    """The selection with, for each region, the best tool for quality as a whole added."""
    best = best_for(OVERALL, cards)
    return {r: {**selected.get(r, {}), **({OVERALL: best.name} if best else {})} for r in regions}


def _scores(selected: Selected | None, log: list[ToolCall]) -> dict[str, dict[str, tuple[str, float]]]:
    measured = {(call.region, call.tool): call.calibrated for call in log if call.calibrated is not None}
    return {
        region: {
            distortion: (tool, measured[region, tool])
            for distortion, tool in tools.items()
            if (region, tool) in measured
        }
        for region, tools in (selected or {}).items()
    }


def _notes(work: Work, log: list[ToolCall]) -> list[str]:
    notes = [f"{call.tool} gave no score for {call.region}: {call.error}" for call in log if call.error]
    notes += [*account(work.boxes, work.image.size), *work.remarks]
    usual = {region: box and grown(box, work.image.size) for region, box in work.boxes.items()}
    notes += [
        f"{call.tool} needs a larger crop of {call.region} and measured {list(call.box)}."
        for call in log
        if call.box and call.box != usual[call.region]
    ]
    unplaced = [region for region, box in work.boxes.items() if box is None]
    if unplaced and (log or work.measurements):
        notes.append(f"No box was found for {', '.join(unplaced)}: the whole image was measured.")
    return notes


class Detector(Stage):
    """Asks a model which distortions each region has."""

    def __init__(self, *, backend: Backend | None = None, attempts: int = 3) -> None:
        super().__init__()
        self.ask = CheckedPredict(DetectDistortions, stage="distortion detection", backend=backend, attempts=attempts)

    def steps(
        self, image: LoadedImage, query: str, regions: list[str], boxes: Boxes, reference: LoadedImage | None
    ) -> Flow[dspy.Prediction]:
        """A prediction of ``distortion_set`` ({region: [category]}) and ``retries``."""
        inputs = {
            **prompt_inputs(image, reference),
            "query": query,
            "query_scope": json.dumps(regions, ensure_ascii=False),
            "boxes": told(boxes, image.size),
        }

        def check(answer: Detection) -> None:
            same("regions", set(answer.by_region()), set(regions))

        reply = yield Call(self.ask, {"inputs": inputs, "check": check})
        found = reply.answer.by_region()
        return dspy.Prediction(distortion_set={region: found[region] for region in regions}, retries=reply.retries)


class Analyst(Stage):
    """Asks a model how bad each distortion is."""

    def __init__(self, *, backend: Backend | None = None, attempts: int = 3) -> None:
        super().__init__()
        self.ask = CheckedPredict(AnalyzeDistortions, stage="distortion analysis", backend=backend, attempts=attempts)

    def steps(
        self, image: LoadedImage, query: str, distortion_set: Distortions, boxes: Boxes, reference: LoadedImage | None
    ) -> Flow[dspy.Prediction]:
        """A prediction of ``distortion_analysis`` ({region: [DistortionAnalysis]}) and ``retries``."""
        if not any(distortion_set.values()):
            return dspy.Prediction(distortion_analysis={region: [] for region in distortion_set}, retries=[])
        shown = json.dumps({region: names for region, names in distortion_set.items() if names}, ensure_ascii=False)
        inputs = {
            **prompt_inputs(image, reference),
            "query": query,
            "distortion_set": shown,
            "boxes": told(boxes, image.size),
        }

        def check(answer: Analysis) -> None:
            analysed = {(row.region, row.type) for row in answer.distortion_analysis}
            same("pairs of region and distortion", analysed, _pairs(distortion_set))

        reply = yield Call(self.ask, {"inputs": inputs, "check": check})
        analysis = reply.answer.by_region()
        return dspy.Prediction(
            distortion_analysis={region: analysis.get(region, []) for region in distortion_set}, retries=reply.retries
        )


class Selector(Stage):
    """Asks a model, by text only, which tool suits which distortion."""

    def __init__(self, *, backend: Backend | None = None, attempts: int = 3) -> None:
        super().__init__()
        self.ask = CheckedPredict(SelectTools, stage="tool selection", backend=backend, attempts=attempts)

    def steps(self, distortion_set: Distortions, cards: list[Tool]) -> Flow[dspy.Prediction]:
        """A prediction of ``selected_tools`` ({region: {distortion: tool}}) and ``retries``."""
        if not any(distortion_set.values()):
            return dspy.Prediction(selected_tools={}, retries=[])
        names = [card.name for card in cards]
        inputs = {
            "available_tools": "\n".join(card.line() for card in cards),
            "distortion_set": json.dumps({r: d for r, d in distortion_set.items() if d}, ensure_ascii=False),
        }

        def check(answer: Selection) -> None:
            chosen = {(row.region, row.distortion) for row in answer.selected_tools}
            same("pairs of region and distortion", chosen, _pairs(distortion_set))
            unknown = sorted({row.tool for row in answer.selected_tools} - set(names))
            if unknown:
                raise Rejected(f"there is no tool {', '.join(unknown)}; the available tools are {', '.join(names)}")

        reply = yield Call(self.ask, {"inputs": inputs, "check": check})
        return dspy.Prediction(selected_tools=reply.answer.by_region(), retries=reply.retries)


def _pairs(distortion_set: Distortions) -> set[tuple[str, str]]:
    return {(region, name) for region, names in distortion_set.items() for name in names}


def same(what: str, got: set[Any], expected: set[Any]) -> None:
    """Raises Rejected, naming the difference, unless the two sets are equal."""
    missing, surplus = sorted(map(str, expected - got)), sorted(map(str, got - expected))
    complaints = [f"these {what} are missing: {', '.join(missing)}"] if missing else []
    complaints += [f"these {what} were not asked for: {', '.join(surplus)}"] if surplus else []
    if complaints:
        raise Rejected("; ".join(complaints))
