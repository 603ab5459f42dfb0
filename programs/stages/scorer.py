"""The Scorer: a model gives probabilities over the five quality levels (paper, Sec. 3.3)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import dspy

from agenticiqa.configs import Rating
from agenticiqa.programs.backends.choice import Backend
from agenticiqa.programs.errors import Unanswered
from agenticiqa.programs.fusion.formula import ScoreFusion, level_name
from agenticiqa.programs.images import LoadedImage, prompt_inputs
from agenticiqa.programs.stages.ask import CheckedPredict, Rejected, TokenForm
from agenticiqa.programs.stages.evidence import format_evidence
from agenticiqa.programs.stages.progress import evidence_summary
from agenticiqa.programs.stages.protocols import Scored
from agenticiqa.programs.stages.salvage import NO_REASON, salvaged_score
from agenticiqa.programs.stages.side_by_side import StageModule
from agenticiqa.signatures.answers.answer_fields import begun_answer
from agenticiqa.signatures.answers.levels import chosen_level, stated_level
from agenticiqa.signatures.answers.tokens import gives_levels, level_in_tokens, level_probabilities_from_tokens
from agenticiqa.signatures.summarizer import (
    ChosenLetter,
    NamedLevel,
    ScoredAnswer,
    ScoreQuality,
    letter_only,
    level_only,
)
from agenticiqa.signatures.types import ExecutorOutput, ProbabilitySource
from agenticiqa.signatures.vocabulary import LETTERS, LEVELS

RatingAnswer: TypeAlias = ScoredAnswer | NamedLevel | ChosenLetter


class Scorer(StageModule):
    """A scorer that asks a model for its probabilities over the quality levels.

    A model that reports its tokens is asked for the level and the reason only, and the probabilities are those of the
    token that names the level, also if the rest of the answer was cut off or broken. With ``rating="letter"`` it
    chooses among A to E instead, as in the paper. Any other model writes them as
    ``quality_probs`` (log-probabilities, probabilities, percentages or weights). Otherwise they come from the valid
    parts of rejected answers, unless ``strict``. ``source`` names the kind.
    """

    def __init__(
        self,
        *,
        backend: Backend | None = None,
        attempts: int = 3,
        fusion: ScoreFusion | None = None,
        strict: bool = False,
        rating: Rating = "level",
    ) -> None:
        super().__init__()
        self.ask: CheckedPredict[RatingAnswer] = CheckedPredict(
            RATINGS[rating].signature,
            stage="scoring",
            backend=backend,
            attempts=attempts,
            reads_tokens=True,
            token_form=RATINGS[rating].token_form,
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
        answer, reading = reply.answer, level_probabilities_from_tokens(reply.logprobs, in_schema=reply.in_schema)
        source: ProbabilitySource = "logprobs"
        probabilities = reading.probabilities if reading else None
        if isinstance(answer, ScoredAnswer) and probabilities is None:
            probabilities, source = answer.quality_probs.probabilities(), answer.quality_probs.source
        assert probabilities is not None, "an answer without probabilities is only accepted with tokens"
        return Scored(
            probabilities,
            source,
            answer.quality_reasoning,
            reading.mass if reading else None,
            reply.rejected_answers,
            model=reply.model,
            mass_from=reading.mass_from if reading else None,
        )


def level_begun(text: str) -> NamedLevel | None:
    """Return the level that a broken answer names, with its reason as far as it goes; ``None`` without a level."""
    written = begun_answer(text, "assessment", NamedLevel)
    level = stated_level(written.get("quality_level"))
    if level is None:
        return None
    return NamedLevel(quality_level=level_name(level), quality_reasoning=_reason(written))


def letter_begun(text: str) -> ChosenLetter | None:
    """Return the letter that a broken answer chooses, with its reason as far as it goes; ``None`` without a letter."""
    written = begun_answer(text, "assessment", ChosenLetter)
    level = chosen_level(written.get("final_answer"))
    if level is None:
        return None
    return ChosenLetter(final_answer=LETTERS[level_name(level)], quality_reasoning=_reason(written))


def _reason(written: Mapping[str, Any]) -> str:
    reason = written.get("quality_reasoning")
    return (reason.strip() if isinstance(reason, str) else "") or NO_REASON


# The forms of an answer from a model that reports its tokens: the name of the level, or a letter for it.
LEVEL_FORM: TokenForm[RatingAnswer] = TokenForm(level_only, gives_levels, level_begun)
LETTER_FORM: TokenForm[RatingAnswer] = TokenForm(letter_only, gives_levels, letter_begun)


@dataclass(frozen=True)
class RatingPrompt:
    """A prompt that asks for a rating: its signature, and its form for a model that reports its tokens.

    Raises TypeError for a signature with other fields than ``ScoreQuality``, whose values the scorer sends and reads,
    or with other descriptions of them, because the form replaces that of the answer.
    """

    signature: type[dspy.Signature]
    token_form: TokenForm[RatingAnswer]

    def __post_init__(self) -> None:
        """Check the fields of the signature."""
        given, needed = (
            {name: (field.annotation, field.json_schema_extra) for name, field in signature.fields.items()}
            for signature in (self.signature, ScoreQuality)
        )
        if given != needed:
            raise TypeError(
                f"{self.signature.__name__} must have the fields of ScoreQuality, with their descriptions: "
                f"{', '.join(needed)}"
            )


# The prompts by their name in ``summarizer.rating``. Cost estimates, saved prompts and golden requests follow from the
# row. Write each signature as a class of its own name, by which saved prompts tell them apart.
RATINGS: Mapping[Rating, RatingPrompt] = {
    "level": RatingPrompt(ScoreQuality, LEVEL_FORM),
    "letter": RatingPrompt(ScoreQuality, LETTER_FORM),
}


def refuse_other_level(assessment: RatingAnswer, logprobs: Any) -> None:
    """Raise Rejected if the tokens with the log-probabilities spell another level than the text."""
    spelled = level_in_tokens(logprobs)
    if spelled is not None and spelled != LEVELS[assessment.quality_level]:
        raise Rejected(
            f"the answer says {assessment.quality_level}, but the tokens that came with it spell "
            f"{level_name(spelled)}: give the level again"
        )
