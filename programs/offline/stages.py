"""Implement every stage without a model, by rules and measurements, with the same Protocols."""

import math
import re
from collections.abc import Collection, Iterable, Mapping
from statistics import fmean

from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.images.regions import crop
from agenticiqa.programs.offline.answers.answer import answer_from_evidence
from agenticiqa.programs.offline.answers.fixed_words import UserQuestion
from agenticiqa.programs.offline.answers.measured_image import VISIBLE
from agenticiqa.programs.offline.answers.parts import measured_parts
from agenticiqa.programs.offline.answers.planner import plan_question
from agenticiqa.programs.offline.measured.distortions import findings_of, findings_of_whole
from agenticiqa.programs.offline.measured.findings import GRAY, TONED, Finding, severity_word
from agenticiqa.programs.offline.measured.mos_estimate import estimate_mos, learned_model_applies
from agenticiqa.programs.stages.plan_rules import plan_to_add
from agenticiqa.programs.stages.protocols import (
    Analyzed,
    Answered,
    Detected,
    Located,
    Measurements,
    Planned,
    Scored,
    Selected,
)
from agenticiqa.programs.stages.remedies import remedy_in
from agenticiqa.programs.stages.side_by_side import StageModule, cpu_slot
from agenticiqa.programs.stages.tool_runs import table_choice
from agenticiqa.programs.tools.adapter import Adapter
from agenticiqa.programs.tools.features.by_name import all_statistics
from agenticiqa.programs.tools.saliency import background_box, saliency, subject_box
from agenticiqa.programs.tools.tool import Tool
from agenticiqa.signatures.types import (
    GLOBAL,
    Box,
    Boxes,
    DamagedPart,
    DistortionAnalysis,
    Distortions,
    ExecutorOutput,
    unique,
)
from agenticiqa.signatures.vocabulary import DetectableDistortion

Findings = Mapping[DetectableDistortion, Finding]

_WHICH = r"(?:the )?(?:(?:whole|entire|main|primary|central|principal) )*"
SUBJECT = re.compile(rf"{_WHICH}(?:subject|object|motif|figure|foreground)", re.I)
BACKGROUND = re.compile(rf"{_WHICH}(?:background|backdrop)", re.I)


class RulePlanner(StageModule):
    """A planner that applies rules to the words of the question."""

    def __init__(self, known_tools: Collection[str]) -> None:
        super().__init__()
        self.known_tools = known_tools

    def forward(self, image: LoadedImage, query: str, reference: LoadedImage | None, feedback: str) -> Planned:
        """See ``protocols.PlannerStage``. Raises ToolError when the question names an unknown tool."""
        has_reference = reference is not None
        with cpu_slot():
            plan = plan_question(query, reference_given=has_reference, known_tools=self.known_tools, feedback=feedback)
            if remedy := remedy_in(feedback):
                plan = plan_to_add(plan, remedy.distortions, unique([*plan.tools, *remedy.tools]))
        return Planned(plan)


class SaliencyLocator(StageModule):
    """A locator that finds only the subject and the background, with the embedded saliency network.

    The subject is the most salient part, the background the largest rectangle that does not overlap it. The network
    does not recognize objects by name, so people, faces, skies or vehicles have no box.
    """

    def forward(self, image: LoadedImage, regions: list[str]) -> Located:
        """See ``protocols.LocatorStage``."""
        boxes: Boxes = dict.fromkeys(regions)
        with cpu_slot():
            for region in regions:
                if SUBJECT.fullmatch(region):
                    boxes[region] = subject_box(saliency(image), image.size)
                elif BACKGROUND.fullmatch(region):
                    boxes[region] = background_box(saliency(image), image.size)
        return Located(boxes)


class MeasuredDetector(StageModule):
    """A detector that reports the distortions that the measurements of each region show, worst first."""

    def forward(
        self, image: LoadedImage, query: str, regions: list[str], boxes: Boxes, reference: LoadedImage | None
    ) -> Detected:
        """See ``protocols.DetectorStage``."""
        with cpu_slot():
            by_region, measurements = measured_regions(image, reference, regions, boxes)
        distortions: Distortions = {
            region: [name for name, finding in worst_first(findings) if finding.severity >= VISIBLE]
            for region, findings in by_region.items()
        }
        return Detected(distortions, measurements)


class MeasuredAnalyst(StageModule):
    """An analyst that returns the measured severity of each distortion, with the measured values as explanation."""

    def forward(
        self, image: LoadedImage, query: str, distortion_set: Distortions, boxes: Boxes, reference: LoadedImage | None
    ) -> Analyzed:
        """See ``protocols.AnalystStage``."""
        with cpu_slot():
            by_region, measurements = measured_regions(image, reference, distortion_set, boxes)
        selection = {
            region: [(name, finding) for name, finding in worst_first(findings) if name in distortion_set[region]]
            for region, findings in by_region.items()
        }
        analysis = {
            region: [
                DistortionAnalysis(type=name, severity=finding.word, explanation=finding.explanation)
                for name, finding in findings
            ]
            for region, findings in selection.items()
        }
        parts = {region: rows for region, findings in selection.items() if (rows := damaged_parts(findings))}
        return Analyzed(analysis, measurements, local_damage=parts)


class TableSelector(StageModule):
    """A selector that takes the tool with the highest measured correlation with the distortion or overall."""

    def forward(self, distortion_set: Distortions, tools: list[Tool]) -> Selected:
        """See ``protocols.SelectorStage``."""
        return Selected(table_choice(distortion_set, tools), from_table=True)


class MeasuredScorer(StageModule):
    """A scorer that uses the learned model, or with a reference the severities; regions are averaged.

    An adapter adapts the learned model.
    """

    def __init__(self, adapter: Adapter | None = None) -> None:
        super().__init__()
        self.adapter = adapter

    def forward(
        self, image: LoadedImage, query: str, evidence: ExecutorOutput, reference: LoadedImage | None
    ) -> Scored:
        """See ``protocols.ScorerStage``."""
        boxes = evidence.boxes or {}
        with cpu_slot():
            by_region, _ = measured_regions(image, reference, boxes if any(boxes.values()) else [GLOBAL], boxes)
            estimates = [
                estimate_mos(*cropped(image, reference, boxes.get(region)), findings, self.adapter)
                for region, findings in by_region.items()
            ]
        distributions = [estimate.probabilities() for estimate in estimates]
        summaries = [
            f"{r}: {summary_of(findings)}" if r != GLOBAL else summary_of(findings) for r, findings in by_region.items()
        ]
        return Scored(
            probabilities={
                level: fmean(distribution[level] for distribution in distributions) for level in distributions[0]
            },
            source="learned" if learned_model_applies(image, reference) else "measurements",
            reasoning=" ".join(summaries),
            spread=math.sqrt(fmean(estimate.spread**2 for estimate in estimates)),
        )


class EvidenceAnswerer(StageModule):
    """An answerer that uses only the measured evidence; other questions are not answered."""

    def forward(
        self,
        image: LoadedImage,
        query: str,
        evidence: ExecutorOutput,
        options: dict[str, str],
        reference: LoadedImage | None,
    ) -> Answered:
        """See ``protocols.AnswererStage``. Each region is answered; a letter is returned only if all agree."""
        question = UserQuestion(query, options, evidence, image.size, alone=reference is None)
        with cpu_slot():
            return answer_from_evidence(question, measured_parts(image, reference, evidence.boxes or {}))


def measured_regions(
    image: LoadedImage, reference: LoadedImage | None, regions: Iterable[str], boxes: Boxes
) -> tuple[dict[str, Findings], Measurements]:
    """Return the findings and the named measurements of each region.

    A region with a box is cropped; a region without one is the whole image, including findings in parts of it.
    """
    by_region: dict[str, Findings] = {}
    measurements: Measurements = {}
    for region in regions:
        box = boxes.get(region)
        part, part_of_reference = cropped(image, reference, box)
        by_region[region] = findings_of_whole(part, part_of_reference) if box else findings_of(image, reference)
        measurements[region] = dict(all_statistics(part))
    return by_region, measurements


def cropped(
    image: LoadedImage, reference: LoadedImage | None, box: Box | None
) -> tuple[LoadedImage, LoadedImage | None]:
    """Return the crop of both in a box, or their assessed parts without a box."""
    return crop(image, box), crop(reference, box) if reference else None


def damaged_parts(findings: Iterable[tuple[DetectableDistortion, Finding]]) -> list[DamagedPart]:
    """Return the place of each visible finding that is about a part of the image."""
    return [
        DamagedPart(
            type=name,
            severity=severity_word(part.severity),
            place=part.place,
            box=part.box,
            share=round(part.share, 4),
        )
        for name, finding in findings
        if (part := finding.local) and finding.severity >= VISIBLE
    ]


def worst_first(findings: Findings) -> list[tuple[DetectableDistortion, Finding]]:
    """Return the findings, sorted by decreasing severity."""
    return sorted(findings.items(), key=lambda item: -item[1].severity)


def summary_of(findings: Findings) -> str:
    """Return the visible findings in words, worst first, and a sentence if the picture is monochrome."""
    visible = [(name, finding) for name, finding in worst_first(findings) if finding.severity >= VISIBLE]
    sentences = [f"{name}, {finding.word}: {finding.explanation}" for name, finding in visible]
    monochrome = [finding.explanation for finding in findings.values() if finding.subtype in (GRAY, TONED)]
    return " ".join([*(sentences or ["No visible distortion was measured."]), *monochrome])
