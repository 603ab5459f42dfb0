"""The Scorer: a model gives probabilities over the five quality levels (paper, Sec. 3.3)."""

from typing import Any

from agenticiqa.programs.backends.choice import Backend
from agenticiqa.programs.errors import Unanswered
from agenticiqa.programs.fusion.formula import ScoreFusion, level_name
from agenticiqa.programs.images import LoadedImage, prompt_inputs
from agenticiqa.programs.stages.ask import CheckedPredict, Rejected
from agenticiqa.programs.stages.evidence import format_evidence
from agenticiqa.programs.stages.progress import evidence_summary
from agenticiqa.programs.stages.protocols import Scored
from agenticiqa.programs.stages.salvage import salvaged_score
from agenticiqa.programs.stages.side_by_side import StageModule
from agenticiqa.signatures.answers.tokens import level_in_tokens, level_probabilities_from_tokens
from agenticiqa.signatures.summarizer import ScoredAnswer, ScoreQuality
from agenticiqa.signatures.types import ExecutorOutput
from agenticiqa.signatures.vocabulary import LEVELS


class Scorer(StageModule):
    """A scorer that asks a model for its probabilities over the quality levels.

    They are read from the log-probabilities of the token that names the level. Otherwise they are the
    ``quality_probs`` that the model writes (log-probabilities, probabilities or percentages), or the valid parts of
    rejected answers, unless ``strict``. ``source`` names the kind.
    """

    def __init__(
        self,
        *,
        backend: Backend | None = None,
        attempts: int = 3,
        fusion: ScoreFusion | None = None,
        strict: bool = False,
    ) -> None:
        super().__init__()
        self.ask: CheckedPredict[ScoredAnswer] = CheckedPredict(
            ScoreQuality, stage="scoring", backend=backend, attempts=attempts, reads_tokens=True
        )
        self.fusion = fusion or ScoreFusion()
        self.strict = strict

    def forward(
        self, image: LoadedImage, query: str, evidence: ExecutorOutput, reference: LoadedImage | None
    ) -> Scored:
        """See ``protocols.ScorerStage``."""
        inputs = {**prompt_inputs(image, reference), "query": query, "evidence": format_evidence(evidence)}
        try:
            reply = self.ask(inputs=inputs, check_tokens=refuse_other_level, evidence=evidence_summary(evidence))
        except Unanswered as gave_up:
            salvaged = None if self.strict else salvaged_score(gave_up, self.fusion)
            if salvaged is None:
                raise
            return salvaged
        written, reading = reply.answer.quality_probs, level_probabilities_from_tokens(reply.logprobs)
        by_tokens = reading.probabilities if reading else None
        return Scored(
            by_tokens or written.probabilities(),
            "logprobs" if by_tokens else written.source,
            reply.answer.quality_reasoning,
            reading.mass if reading else None,
            reply.rejected_answers,
            model=reply.model,
        )


def refuse_other_level(assessment: ScoredAnswer, logprobs: Any) -> None:
    """Raise Rejected if the tokens with the log-probabilities spell another level than the text."""
    spelled = level_in_tokens(logprobs)
    if spelled is not None and spelled != LEVELS[assessment.quality_level]:
        raise Rejected(
            f"the answer says {assessment.quality_level}, but the tokens that came with it spell "
            f"{level_name(spelled)}: give the level again"
        )
