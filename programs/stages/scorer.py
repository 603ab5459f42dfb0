"""The Scorer: a model gives probabilities over the five quality levels (paper, Sec. 3.3)."""

import json_repair

from agenticiqa.programs.backends.choice import Backend
from agenticiqa.programs.errors import Unanswered
from agenticiqa.programs.images import LoadedImage, prompt_inputs
from agenticiqa.programs.stages.ask import CheckedPredict
from agenticiqa.programs.stages.evidence import format_evidence
from agenticiqa.programs.stages.flow import Flow, Stage, call
from agenticiqa.programs.stages.fusion import ScoreFusion
from agenticiqa.programs.stages.level_logprobs import level_probabilities_from_tokens
from agenticiqa.programs.stages.protocols import ProbabilitySource, Scored
from agenticiqa.signatures.level_probs import Kind
from agenticiqa.signatures.summarizer import Assessment, ScoreQuality
from agenticiqa.signatures.types import ExecutorOutput

SOURCES: dict[Kind, ProbabilitySource] = {
    "log-probabilities": "quality_probs",
    "probabilities": "probabilities",
    "percentages": "percentages",
}


class Scorer(Stage[Scored]):
    """Asks a model for its probabilities over the quality levels.

    They come, in this order, from the log-probabilities of the token that names the level, from the ``quality_probs``
    that the model writes, from the level that its reasoning names, or they are uniform; ``source`` says which.
    """

    def __init__(self, *, backend: Backend | None = None, attempts: int = 3, fusion: ScoreFusion | None = None) -> None:
        super().__init__()
        self.ask: CheckedPredict[Assessment] = CheckedPredict(
            ScoreQuality, stage="scoring", backend=backend, attempts=attempts, reads_tokens=True
        )
        self.fusion = fusion or ScoreFusion()

    def steps(
        self, image: LoadedImage, query: str, evidence: ExecutorOutput, reference: LoadedImage | None
    ) -> Flow[Scored]:
        """See ``protocols.Scorer``."""
        inputs = {**prompt_inputs(image, reference), "query": query, "evidence": format_evidence(evidence)}
        try:
            reply = yield from call(self.ask, inputs=inputs)
        except Unanswered as gave_up:
            return self._from_reasoning(gave_up)
        assessment = reply.answer
        reading = level_probabilities_from_tokens(reply.logprobs)
        source: ProbabilitySource = "logprobs"
        probabilities = reading.probabilities if reading else None
        if probabilities is None:
            source, probabilities = SOURCES[assessment.quality_probs.kind], assessment.quality_probs.probabilities()
        mass = reading.mass if reading else None
        return Scored(probabilities, source, assessment.quality_reasoning, mass, reply.rejected_answers)

    def _from_reasoning(self, gave_up: Unanswered) -> Scored:
        """The level that the last answer's reasoning names; raises ``gave_up`` when that answer has no reasoning."""
        answer = json_repair.loads(gave_up.last_output) if gave_up.last_output else None
        assessment = answer.get("assessment", answer) if isinstance(answer, dict) else None
        reasoning = assessment.get("quality_reasoning") if isinstance(assessment, dict) else None
        if not isinstance(reasoning, str) or not reasoning.strip():
            raise gave_up
        probabilities, source = self.fusion.probabilities_and_source(reasoning)
        return Scored(probabilities, source, reasoning, rejected_answers={gave_up.stage: gave_up.account})
