"""The offline twins of every stage that asks a model: the same calls, answered by rules and measurements."""

from collections.abc import Collection, Mapping

import dspy

from agenticiqa.programs.flow import Computed
from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.offline.answering.answers import answer_from_evidence
from agenticiqa.programs.offline.answering.measured import VISIBLE
from agenticiqa.programs.offline.levels import expected_level, level_probabilities
from agenticiqa.programs.offline.perception import Finding, perceive
from agenticiqa.programs.offline.planning.planner import plan_question
from agenticiqa.programs.tools.card import ToolCard
from agenticiqa.programs.tools.measures import measure
from agenticiqa.signatures.types import OVERALL, DistortionAnalysis, Distortions, ExecutorOutput
from agenticiqa.signatures.vocabulary import DetectableDistortion

Findings = Mapping[DetectableDistortion, Finding]


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


class MeasuredDetector(Computed):
    """Reports the distortions that the measurements show, worst first; every region gets the whole image's."""

    def compute(
        self, image: LoadedImage, query: str, regions: list[str], reference: LoadedImage | None
    ) -> dspy.Prediction:
        """As ``Detector.steps``."""
        found = [name for name, finding in worst_first(perceive(image, reference)) if finding.severity >= VISIBLE]
        return dspy.Prediction(
            distortion_set=dict.fromkeys(regions, found), retries=[], measurements=dict(measure(image))
        )


class MeasuredAnalyst(Computed):
    """Gives each distortion its measured severity, with the measured values as the explanation."""

    def compute(
        self, image: LoadedImage, query: str, distortion_set: Distortions, reference: LoadedImage | None
    ) -> dspy.Prediction:
        """As ``Analyst.steps``."""
        findings = perceive(image, reference)
        analysis = {
            region: [
                DistortionAnalysis(type=name, severity=finding.word, explanation=finding.explanation)
                for name, finding in worst_first(findings)
                if name in names
            ]
            for region, names in distortion_set.items()
        }
        return dspy.Prediction(distortion_analysis=analysis, retries=[], measurements=dict(measure(image)))


class TableSelector(Computed):
    """Picks the first tool whose card says that it is good at the distortion, else the first that is good overall."""

    def compute(self, distortion_set: Distortions, cards: list[ToolCard]) -> dspy.Prediction:
        """As ``Selector.steps``."""
        chosen = {
            region: {name: card.name for name in names if (card := best_for(name, cards))}
            for region, names in distortion_set.items()
        }
        return dspy.Prediction(selected_tools=chosen, retries=[])


class MeasuredScorer(Computed):
    """Probabilities over the levels from the measured severities."""

    def compute(
        self, image: LoadedImage, query: str, evidence: ExecutorOutput, reference: LoadedImage | None
    ) -> dspy.Prediction:
        """As ``Scorer.steps``."""
        findings = perceive(image, reference)
        return dspy.Prediction(
            probabilities=level_probabilities(findings),
            source="measurements",
            reasoning=summary(findings),
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
        """As ``Answerer.steps``."""
        findings = perceive(image, reference)
        expected = expected_level(findings)
        answered = answer_from_evidence(query, options, findings, evidence, expected, compared=reference is not None)
        return dspy.Prediction(final_answer=answered.final_answer, reasoning=answered.reasoning, retries=[])


def best_for(distortion: str, cards: list[ToolCard]) -> ToolCard | None:
    """The tool of choice for a distortion among the cards given, in their order."""
    for wanted in (distortion, OVERALL):
        for card in cards:
            if wanted in card.good_at:
                return card
    return None


def worst_first(findings: Findings) -> list[tuple[DetectableDistortion, Finding]]:
    """The findings by falling severity."""
    return sorted(findings.items(), key=lambda item: -item[1].severity)


def summary(findings: Findings) -> str:
    """The visible findings in words, worst first."""
    visible = [(name, finding) for name, finding in worst_first(findings) if finding.severity >= VISIBLE]
    if not visible:
        return "No visible distortion was measured."
    return " ".join(f"{name}, {finding.word}: {finding.explanation}" for name, finding in visible)
