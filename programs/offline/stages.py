"""The offline twin of every stage that asks a model: the same Protocol, answered by rules and measurements."""

import math
from collections.abc import Collection, Iterable
from dataclasses import replace
from statistics import fmean

from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.offline.answers.answer import answer_from_evidence
from agenticiqa.programs.offline.answers.measured_image import VISIBLE
from agenticiqa.programs.offline.answers.own_words import answer_from_file
from agenticiqa.programs.offline.answers.planner import plan_question
from agenticiqa.programs.offline.by_region import (
    Findings,
    PartsMeasured,
    findings_by_region,
    findings_for_evidence,
    locate,
    opinions_by_region,
    statistics_by_region,
)
from agenticiqa.programs.offline.measured.findings import GRAY, TONED, Finding, severity_word
from agenticiqa.programs.offline.measured.opinion import learned_model_applies
from agenticiqa.programs.stages.protocols import Analyzed, Answered, Detected, Located, Planned, Scored, Selected
from agenticiqa.programs.stages.side_by_side import StageModule, cpu_slot
from agenticiqa.programs.stages.tool_runs import table_choice
from agenticiqa.programs.tools.adapter import Adapter
from agenticiqa.programs.tools.metrics.learned_iqa import outside_training
from agenticiqa.programs.tools.outside_training import in_words
from agenticiqa.programs.tools.tool import Tool
from agenticiqa.signatures.types import (
    GLOBAL,
    UNABLE,
    Boxes,
    DamagedPart,
    DistortionAnalysis,
    Distortions,
    ExecutorOutput,
)
from agenticiqa.signatures.vocabulary import DetectableDistortion


class RulePlanner(StageModule):
    """Plans by rules over the question's words."""

    def __init__(self, known_tools: Collection[str]) -> None:
        super().__init__()
        self.known_tools = known_tools

    def forward(self, image: LoadedImage, query: str, reference: LoadedImage | None, feedback: str) -> Planned:
        """See ``protocols.PlannerStage``. Raises ToolError when the question names an unknown tool."""
        given = reference is not None
        with cpu_slot():
            plan = plan_question(query, reference_given=given, known_tools=self.known_tools, feedback=feedback)
        return Planned(plan)


class SaliencyLocator(StageModule):
    """Finds the subject and the background by the embedded saliency network, and nothing else."""

    def forward(self, image: LoadedImage, regions: list[str]) -> Located:
        """See ``protocols.LocatorStage``."""
        with cpu_slot():
            boxes = locate(image, regions)
        return Located(boxes)


class MeasuredDetector(StageModule):
    """Reports the distortions that the measurements of each region show, worst first."""

    def forward(
        self, image: LoadedImage, query: str, regions: list[str], boxes: Boxes, reference: LoadedImage | None
    ) -> Detected:
        """See ``protocols.DetectorStage``."""
        with cpu_slot():
            by_region = findings_by_region(image, reference, regions, boxes)
            measurements = statistics_by_region(image, regions, boxes)
        found: Distortions = {
            region: [name for name, finding in worst_first(findings) if finding.severity >= VISIBLE]
            for region, findings in by_region.items()
        }
        return Detected(found, measurements)


class MeasuredAnalyst(StageModule):
    """Gives each distortion its measured severity, with the measured values as the explanation."""

    def forward(
        self, image: LoadedImage, query: str, distortion_set: Distortions, boxes: Boxes, reference: LoadedImage | None
    ) -> Analyzed:
        """See ``protocols.AnalystStage``."""
        with cpu_slot():
            by_region = findings_by_region(image, reference, distortion_set, boxes)
            measurements = statistics_by_region(image, distortion_set, boxes)
        found = {
            region: [(name, finding) for name, finding in worst_first(findings) if name in distortion_set[region]]
            for region, findings in by_region.items()
        }
        analysis = {
            region: [
                DistortionAnalysis(type=name, severity=finding.word, explanation=finding.explanation)
                for name, finding in findings
            ]
            for region, findings in found.items()
        }
        parts = {region: rows for region, findings in found.items() if (rows := damaged_parts(findings))}
        return Analyzed(analysis, measurements, local_damage=parts)


class TableSelector(StageModule):
    """Selects the tool with the highest measured correlation with the distortion, else the best one overall."""

    def forward(self, distortion_set: Distortions, tools: list[Tool]) -> Selected:
        """See ``protocols.SelectorStage``."""
        return Selected(table_choice(distortion_set, tools))


class MeasuredScorer(StageModule):
    """Level probabilities by the learned model, or with a reference by the severities; over regions the mean.

    An adapter adapts the learned model.
    """

    def __init__(self, adapter: Adapter | None = None) -> None:
        super().__init__()
        self.adapter = adapter

    def forward(
        self, image: LoadedImage, query: str, evidence: ExecutorOutput, reference: LoadedImage | None
    ) -> Scored:
        """See ``protocols.ScorerStage``."""
        with cpu_slot():
            by_region = findings_for_evidence(image, reference, evidence)
            opinions = opinions_by_region(image, reference, evidence, by_region, self.adapter)
        distributions = [opinion.probabilities() for opinion in opinions.values()]
        summaries = [
            f"{r}: {summary_of(found)}" if r != GLOBAL else summary_of(found) for r, found in by_region.items()
        ]
        return Scored(
            probabilities={
                level: fmean(distribution[level] for distribution in distributions) for level in distributions[0]
            },
            source="learned" if learned_model_applies(image, reference) else "measurements",
            reasoning=" ".join(summaries),
            spread=math.sqrt(fmean(opinion.spread**2 for opinion in opinions.values())),
        )


class EvidenceAnswerer(StageModule):
    """Matches the question and its options with the measured evidence; what that cannot answer stays undetermined."""

    def forward(
        self,
        image: LoadedImage,
        query: str,
        evidence: ExecutorOutput,
        options: dict[str, str],
        reference: LoadedImage | None,
    ) -> Answered:
        """See ``protocols.AnswererStage``. Several regions are answered one by one; by one letter only if all agree."""
        alone = reference is None
        if not options and (told := answer_from_file(query, image.size, alone=alone)):
            return Answered(told.answer or UNABLE, told.in_words)
        with cpu_slot():
            answered = answer_from_evidence(query, options, PartsMeasured(image, reference, evidence), evidence)
            reasons = [each for each in outside_training(image.judged) if each != "gray"] if alone else []
        if not reasons or answered.final_answer == UNABLE:
            return answered
        return replace(answered, reasoning=f"{answered.reasoning} {in_words(reasons, image.judged.size)}")


def damaged_parts(findings: Iterable[tuple[DetectableDistortion, Finding]]) -> list[DamagedPart]:
    """Where each visible finding is that is about a part of the image."""
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
    """The findings, the most severe first."""
    return sorted(findings.items(), key=lambda item: -item[1].severity)


def summary_of(findings: Findings) -> str:
    """The visible findings in words, worst first, and that a picture is monochrome."""
    visible = [(name, finding) for name, finding in worst_first(findings) if finding.severity >= VISIBLE]
    told = [f"{name}, {finding.word}: {finding.explanation}" for name, finding in visible]
    monochrome = [finding.explanation for finding in findings.values() if finding.subtype in (GRAY, TONED)]
    return " ".join([*(told or ["No visible distortion was measured."]), *monochrome])
