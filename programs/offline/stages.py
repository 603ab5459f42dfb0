"""The offline twins of every stage that asks a model: the same calls, answered by rules and measurements."""

from collections.abc import Collection
from statistics import fmean

import dspy

from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.offline.language.answers import answer_from_evidence
from agenticiqa.programs.offline.language.measured import VISIBLE
from agenticiqa.programs.offline.language.planner import plan_question
from agenticiqa.programs.offline.levels import learned_applies
from agenticiqa.programs.offline.perception import Finding
from agenticiqa.programs.offline.regional import (
    Findings,
    as_asked,
    find_regions,
    judge_apart,
    measure_regions,
    perceive_apart,
    perceive_regions,
)
from agenticiqa.programs.stages.flow import Computed
from agenticiqa.programs.tools.tool import Tool, best_for
from agenticiqa.signatures.types import GLOBAL, UNABLE, Boxes, DistortionAnalysis, Distortions, ExecutorOutput
from agenticiqa.signatures.vocabulary import DetectableDistortion


class RulePlanner(Computed):
    """Plans by rules over the question's words."""

    def __init__(self, known_tools: Collection[str]) -> None:
        super().__init__()
        self.known_tools = known_tools

    def compute(self, image: LoadedImage, query: str, reference: LoadedImage | None, earlier: str) -> dspy.Prediction:
        """As ``Planner.steps``."""
        plan = plan_question(
            query, reference_given=reference is not None, known_tools=self.known_tools, feedback=earlier
        )
        return dspy.Prediction(plan=plan, retries=[])


class SaliencyLocator(Computed):
    """Finds the subject and the background by the embedded saliency network, and nothing else."""

    def compute(self, image: LoadedImage, regions: list[str]) -> dspy.Prediction:
        """As ``Locator.steps``, with ``remarks`` for the evidence's notes beside."""
        boxes, remarks = find_regions(image, regions)
        return dspy.Prediction(boxes=boxes, retries=[], remarks=remarks)


class MeasuredDetector(Computed):
    """Reports the distortions that the measurements of each region show, worst first."""

    def compute(
        self, image: LoadedImage, query: str, regions: list[str], boxes: Boxes, reference: LoadedImage | None
    ) -> dspy.Prediction:
        """As ``Detector.steps``."""
        found = {
            region: [name for name, finding in worst_first(findings) if finding.severity >= VISIBLE]
            for region, findings in perceive_regions(image, reference, regions, boxes).items()
        }
        return dspy.Prediction(distortion_set=found, retries=[], measurements=measure_regions(image, regions, boxes))


class MeasuredAnalyst(Computed):
    """Gives each distortion its measured severity, with the measured values as the explanation."""

    def compute(
        self, image: LoadedImage, query: str, distortion_set: Distortions, boxes: Boxes, reference: LoadedImage | None
    ) -> dspy.Prediction:
        """As ``Analyst.steps``."""
        analysis = {
            region: [
                DistortionAnalysis(type=name, severity=finding.word, explanation=finding.explanation)
                for name, finding in worst_first(findings)
                if name in distortion_set[region]
            ]
            for region, findings in perceive_regions(image, reference, distortion_set, boxes).items()
        }
        return dspy.Prediction(
            distortion_analysis=analysis, retries=[], measurements=measure_regions(image, distortion_set, boxes)
        )


class TableSelector(Computed):
    """Picks the tool that was measured to follow the distortion best, else the one that is best overall."""

    def compute(self, distortion_set: Distortions, cards: list[Tool]) -> dspy.Prediction:
        """As ``Selector.steps``."""
        chosen = {
            region: {name: card.name for name in names if (card := best_for(name, cards))}
            for region, names in distortion_set.items()
        }
        return dspy.Prediction(selected_tools=chosen, retries=[])


class MeasuredScorer(Computed):
    """Level probabilities by the learned model, or with a reference by the severities; over regions the mean."""

    def compute(
        self, image: LoadedImage, query: str, evidence: ExecutorOutput, reference: LoadedImage | None
    ) -> dspy.Prediction:
        """As ``Scorer.steps``."""
        by_region = perceive_apart(image, reference, evidence)
        opinions = judge_apart(image, reference, evidence, by_region)
        shares = [opinion.probabilities() for opinion in opinions.values()]
        told = [f"{r}: {summary(found)}" if r != GLOBAL else summary(found) for r, found in by_region.items()]
        return dspy.Prediction(
            probabilities={level: fmean(share[level] for share in shares) for level in shares[0]},
            source="learned" if learned_applies(image, reference) else "measurements",
            reasoning=" ".join(told),
            retries=[],
        )


class EvidenceAnswerer(Computed):
    """Matches the question and its options to the measured evidence; what that cannot answer stays undetermined."""

    def compute(
        self,
        image: LoadedImage,
        query: str,
        evidence: ExecutorOutput,
        options: dict[str, str],
        reference: LoadedImage | None,
    ) -> dspy.Prediction:
        """As ``Answerer.steps``; asked of several regions, it answers for each, and with one letter if they agree."""
        by_region = perceive_apart(image, reference, evidence)
        opinions = judge_apart(image, reference, evidence, by_region)
        answers = {
            region: answer_from_evidence(
                query, options, view, evidence, opinions[region].score, compared=reference is not None
            )
            for region, view in as_asked(by_region, evidence).items()
        }
        one, *others = answers.values()
        if all(other.final_answer == one.final_answer for other in others):
            return dspy.Prediction(final_answer=one.final_answer, reasoning=one.reasoning, retries=[])
        each = "; ".join(f"{region}: {answer.final_answer}" for region, answer in answers.items())
        why = [f"{region}: {answer.final_answer}. {answer.reasoning}" for region, answer in answers.items()]
        return dspy.Prediction(
            final_answer=UNABLE if options else each, reasoning=" ".join(["The regions differ.", *why]), retries=[]
        )


def worst_first(findings: Findings) -> list[tuple[DetectableDistortion, Finding]]:
    """The findings by falling severity."""
    return sorted(findings.items(), key=lambda item: -item[1].severity)


def summary(findings: Findings) -> str:
    """The visible findings in words, worst first."""
    visible = [(name, finding) for name, finding in worst_first(findings) if finding.severity >= VISIBLE]
    if not visible:
        return "No visible distortion was measured."
    return " ".join(f"{name}, {finding.word}: {finding.explanation}" for name, finding in visible)
