"""The Summarizer: a score fused from tools and a model, or an answer with its reason (paper, Sec. 3.3)."""

from collections.abc import Mapping, Sequence
from typing import Any

from agenticiqa.programs.errors import NoScore, Unanswered
from agenticiqa.programs.fusion.formula import ScoreFusion
from agenticiqa.programs.fusion.interval import fused_score
from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.questions.options import beside_options, lists_letters, parse_options
from agenticiqa.programs.questions.query_type import detect_query_type
from agenticiqa.programs.questions.scale import stated_scale
from agenticiqa.programs.stages import progress, protocols
from agenticiqa.programs.stages.evidence import (
    contradicted_by,
    contradictions,
    far_named_tools,
    named_gap,
    scores_in_mean,
    uncertainties,
    what_is_missing,
)
from agenticiqa.programs.stages.protocols import Answered, Scored, Summarized
from agenticiqa.programs.stages.side_by_side import StageModule
from agenticiqa.programs.tools.metrics.learned_iqa import outside_training
from agenticiqa.programs.tools.outside_training import Reason, in_words, least_above, least_spread
from agenticiqa.signatures.types import (
    FROM_REJECTED,
    GLOBAL,
    LEVEL_KEYS,
    PARSING_FAILED,
    UNABLE,
    ExecutorOutput,
    PlannerOutput,
    QueryType,
    SummarizerOutput,
)

INCOMPLETE = "The model gave no complete answer, so this score may be wrong."
IDENTICAL = "The image has the same pixels as its reference, so its score is 5."


class Summarizer(StageModule):
    """The stage that answers from the evidence, in one of two modes.

    In scoring mode (an IQA question that requests a rating), ``score`` gives probabilities over the five levels, and
    ScoreFusion combines them with the tool scores. An image with the same pixels as its reference scores 5 without any
    request. Every other question goes to ``answer``. If the model gives no usable answer, the result is UNABLE with the
    reason PARSING_FAILED.
    """

    def __init__(
        self, score: protocols.ScorerStage, answer: protocols.AnswererStage, fusion: ScoreFusion | None = None
    ) -> None:
        super().__init__()
        self.score, self.answer = score, answer
        self.fusion = fusion or ScoreFusion()

    def forward(
        self,
        image: LoadedImage,
        query: str,
        plan: PlannerOutput,
        evidence: ExecutorOutput,
        reference: LoadedImage | None,
        options: Mapping[str, str] | None = None,
    ) -> Summarized:
        """See ``protocols.SummarizerStage``."""
        offered = parse_options(query) if options is None else dict(options)
        query_type = QueryType.MCQ if offered else detect_query_type(query, plan.query_type)
        progress.summarizing(plan, query_type, evidence, image, reference)
        try:
            if query_type is QueryType.SCORING:
                if reference is not None and image.same_pixels(reference):
                    return Summarized(_undamaged(evidence, query), query_type)
                scored = self.score(image=image, query=query, evidence=evidence, reference=reference)
                outside = () if reference else outside_training(image.assessed)
                doubt = in_words(outside, image.assessed.size)
                rated = self._scored(scored, evidence, query, doubt, outside)
                return Summarized(rated, query_type, scored.rejected_answers)
            answered = self.answer(
                image=image,
                query=beside_options(query, options),
                evidence=evidence,
                options=offered,
                reference=reference,
            )
            answer = self._answered(answered, evidence, {} if lists_letters(query, options) else offered)
            return Summarized(answer, query_type, answered.rejected_answers, offered)
        except Unanswered as gave_up:
            result = SummarizerOutput(final_answer=UNABLE, quality_reasoning=PARSING_FAILED, error=str(gave_up))
            return Summarized(result, query_type, gave_up.rejected_answers, offered)

    def _scored(
        self, scored: Scored, evidence: ExecutorOutput, query: str, doubt: str, outside: Sequence[Reason]
    ) -> SummarizerOutput:
        """Return the score. ``outside`` is why the tools may err here, and ``doubt`` says it in words."""
        p, is_adapted = scored.probabilities, any(call.adapted for call in evidence.tool_log)
        # An adapter reports its own spread. The error of another tool is at least its distance from the program's tool,
        # and where analysis and tools contradict each other, it is unknown which of them is wrong.
        gap, reasons = max(named_gap(evidence), contradicted_by(evidence)), () if is_adapted else outside
        if not evidence.overall_scores and scored.source == "uniform":
            raise NoScore("no score: there are no tool scores, and the model gave no level probabilities")
        fused = fused_score(
            self.fusion,
            evidence,
            p,
            scored.source,
            spread=scored.spread,
            least_spread=max(least_spread(reasons), gap),
            least_above=max(least_above(reasons), gap),
            model=scored.model,
        )
        progress.scored(fused.score, evidence, scored, fused.expectation)
        incomplete = INCOMPLETE if scored.source in FROM_REJECTED else ""
        return SummarizerOutput(
            final_answer=on_stated_scale(fused.score, query),
            quality_score=fused.score,
            quality_reasoning=_sentences(scored.reasoning, fused.how, incomplete, doubt, *_caveats(evidence)),
            score_sentence=fused.arithmetic,
            used_evidence=_fused(evidence),
            quality_probs=dict(zip(LEVEL_KEYS, (p[level] for level in sorted(p)), strict=True)),
            probability_source=scored.source,
            probability_mass=scored.mass,
            probability_mass_from=scored.mass_from,
            score_interval=fused.interval,
            score_without_model=fused.without_model,
            disagreement=fused.disagreement,
        )

    def _answered(
        self, answered: Answered, evidence: ExecutorOutput, options_without_letters: Mapping[str, str]
    ) -> SummarizerOutput:
        """Return the answer; for options without letters, the chosen letter is replaced by yes or no."""
        final, chosen = answered.final_answer, options_without_letters.get(answered.final_answer, "")
        if chosen.lower() in ("yes", "no"):
            final, chosen = chosen.capitalize(), ""
        progress.concluded(final, answered.reasoning)
        meaning = f"{final} is {chosen!r}" if chosen else ""
        return SummarizerOutput(
            final_answer=final,
            quality_reasoning=_sentences(meaning, answered.reasoning, *_caveats(evidence, answered.needs_evidence)),
            used_evidence=_used(evidence),
        )


def _undamaged(evidence: ExecutorOutput, query: str) -> SummarizerOutput:
    """Return the score of an image with the same pixels as its reference: 5, by definition."""
    return SummarizerOutput(
        final_answer=on_stated_scale(5.0, query),
        quality_score=5.0,
        quality_reasoning=IDENTICAL,
        used_evidence=_used(evidence),
        quality_probs={key: float(key == LEVEL_KEYS[-1]) for key in LEVEL_KEYS},
        probability_source="measurements",
        score_interval={"80": (5.0, 5.0), "95": (5.0, 5.0)},
    )


def on_stated_scale(score: float, query: str) -> float | str:
    """Return the score, 1 to 5, or its text on another scale if the question states one."""
    scale = stated_scale(query)
    if scale is None or (scale.low, scale.high, scale.best == "low") == (1, 5, False):
        return score
    share = (score - 1) / 4
    return f"{scale.shown(scale.at(1 - share if scale.best == 'low' else share))} (a score of {score:.2f} from 1 to 5)"


def _caveats(evidence: ExecutorOutput, is_needed: bool = True) -> list[str]:
    """Return the caveats about the evidence that are added to the reasoning; gaps count only if it is needed."""
    remarks = [*far_named_tools(evidence), *contradictions(evidence), *uncertainties(evidence)]
    unplaced = dict.fromkeys(call.region for call in evidence.tool_log if call.region != GLOBAL and call.box is None)
    if unplaced:
        remarks.append(f"The tools measured the whole image, because no box was found for {', '.join(unplaced)}")
    return [what_is_missing(evidence) if is_needed else "", *(f"{sentence}." for sentence in remarks)]


def _sentences(*parts: str) -> str:
    """Join the parts as sentences, without repetitions, because a model may repeat its evidence."""
    text = ""
    for part in filter(None, map(str.strip, parts)):
        if part.rstrip(".") not in text:
            ending = "" if part.endswith((".", "!", "?")) else "."
            text = f"{text} {part}{ending}"
    return text.strip()


def _fused(evidence: ExecutorOutput) -> dict[str, Any] | None:
    """Return the parts of a score: the tools in the mean, and the mean."""
    used = _used(evidence.model_copy(update={"quality_scores": scores_in_mean(evidence) or None})) or {}
    return {**used, **({} if evidence.overall_mean is None else {"tool_mean": evidence.overall_mean})} or None


def _used(evidence: ExecutorOutput) -> dict[str, Any] | None:
    used = evidence.model_dump(mode="json", include={"distortion_analysis", "quality_scores"}, exclude_none=True)
    return used or None
