"""The Summarizer: a score fused from tools and a model, or an answer with its reason (paper, Sec. 3.3)."""

import json
import re
from typing import Any

import dspy
import json_repair

from agenticiqa.programs.backends.connect import Backend
from agenticiqa.programs.errors import NoScore, Unanswered
from agenticiqa.programs.images import LoadedImage, prompt_inputs
from agenticiqa.programs.stages import progress
from agenticiqa.programs.stages.ask import CheckedPredict, Rejected
from agenticiqa.programs.stages.evidence import contradictions, format_evidence, what_is_missing
from agenticiqa.programs.stages.flow import Call, Flow, Stage
from agenticiqa.programs.stages.fusion import Probabilities, ScoreFusion, level_name
from agenticiqa.programs.stages.level_logprobs import level_probabilities_from_tokens
from agenticiqa.programs.stages.question import detect_query_type, parse_options
from agenticiqa.signatures.summarizer import Answer, AnswerQuestion, Assessment, ScoreQuality
from agenticiqa.signatures.types import (
    LEVEL_KEYS,
    PARSING_FAILED,
    UNABLE,
    ExecutorOutput,
    PlannerOutput,
    QueryType,
    SummarizerOutput,
)

SOURCES = {"learned": "the learned model"}  # in words, where a probability_source is none by itself


class Summarizer(Stage):
    """Answers from the evidence, in one of two modes.

    Scoring mode (an IQA question that asks for a rating): ``score`` gives probabilities over the five levels, and
    ScoreFusion makes one number of them and the tool scores. Every other question goes to ``answer``. Both are modules
    that ask a model (in this file) or their offline twins (``agenticiqa.programs.offline.stages``).
    """

    def __init__(self, score: dspy.Module, answer: dspy.Module, fusion: ScoreFusion | None = None) -> None:
        super().__init__()
        self.score, self.answer = score, answer
        self.fusion = fusion or ScoreFusion()

    def steps(
        self,
        image: LoadedImage,
        query: str,
        plan: PlannerOutput,
        evidence: ExecutorOutput,
        reference: LoadedImage | None,
    ) -> Flow[dspy.Prediction]:
        """A prediction of ``result`` (SummarizerOutput), ``query_type`` (QueryType) and ``retries``.

        Raises NoScore when a score is asked for and neither a tool nor the model gave anything to make it of.
        """
        kind = detect_query_type(query, plan.query_type)
        scoring = kind is QueryType.SCORING
        progress.summarizing(plan, kind, evidence, image, reference)
        inputs: dict[str, Any] = {"image": image, "query": query, "evidence": evidence, "reference": reference}
        if not scoring:
            inputs["options"] = parse_options(query)
        try:
            reply = yield Call(self.score if scoring else self.answer, inputs)
        except Unanswered as gave_up:
            result = SummarizerOutput(final_answer=UNABLE, quality_reasoning=PARSING_FAILED)
            return dspy.Prediction(result=result, query_type=kind, retries=gave_up.account)
        result = self._scored(reply, evidence) if scoring else self._answered(reply, evidence)
        return dspy.Prediction(result=result, query_type=kind, retries=reply.retries)

    def _scored(self, reply: dspy.Prediction, evidence: ExecutorOutput) -> SummarizerOutput:
        scores, p = evidence.overall_scores, reply.probabilities
        if not scores and reply.source == "uniform":
            raise NoScore("no score: there are no tool scores, and the model gave no probabilities over the levels")
        score = self.fusion.fuse_scores(scores, p)
        seen = sum(level * share for level, share in p.items())
        progress.scored(score, evidence, reply, seen)
        how = f"Score {score:.2f} ({level_name(score)})"
        if scores:
            mean = f"{evidence.overall_mean:.2f} (n={len(scores)})"
            how += f", fused from the tool mean {mean} and a level expectation of {seen:.2f}"
        else:
            how += ", the level expectation alone, as no tool score came"
        source = SOURCES.get(reply.source, reply.source)
        return SummarizerOutput(
            final_answer=score,
            quality_score=score,
            quality_reasoning=_sentences(reply.reasoning, f"{how} (levels from {source}).", *_caveats(evidence)),
            used_evidence=_used(evidence),
            quality_probs=dict(zip(LEVEL_KEYS, (p[level] for level in sorted(p)), strict=True)),
            probability_source=reply.source,
            probability_mass=reply.get("mass"),
        )

    def _answered(self, reply: dspy.Prediction, evidence: ExecutorOutput) -> SummarizerOutput:
        progress.concluded(reply.final_answer, reply.reasoning)
        return SummarizerOutput(
            final_answer=reply.final_answer,
            quality_reasoning=_sentences(reply.reasoning, *_caveats(evidence)),
            used_evidence=_used(evidence),
        )


class Scorer(Stage):
    """Asks a model for its probabilities over the quality levels.

    They come, in this order, from the log-probabilities of the token that names the level, from the ``quality_probs``
    that it writes, from the level that its reasoning names, or they are uniform; ``source`` says which.
    """

    def __init__(self, *, backend: Backend | None = None, attempts: int = 3, fusion: ScoreFusion | None = None) -> None:
        super().__init__()
        self.ask = CheckedPredict(ScoreQuality, stage="scoring", backend=backend, attempts=attempts, reads_tokens=True)
        self.fusion = fusion or ScoreFusion()

    def steps(
        self, image: LoadedImage, query: str, evidence: ExecutorOutput, reference: LoadedImage | None
    ) -> Flow[dspy.Prediction]:
        """A prediction of ``probabilities`` ({1..5: p}), ``source``, ``mass``, ``reasoning`` and ``retries``.

        ``mass`` is the share of the level token's probability that fell on levels; ``None`` where no tokens were read.
        """
        inputs = _inputs(image, query, evidence, reference)
        try:
            reply = yield Call(self.ask, {"inputs": inputs, "check": refuse_plain_probabilities})
        except Unanswered as gave_up:
            return self._from_the_reasoning(gave_up)
        assessment = reply.answer
        reading = level_probabilities_from_tokens(reply.logprobs)
        p: Probabilities | None = reading.probabilities if reading else None
        source = "logprobs" if p else "quality_probs"
        if p is None:
            p = self.fusion.extract_vlm_probabilities({"quality_probs": assessment.quality_probs.by_level()})
        return dspy.Prediction(
            probabilities=p,
            source=source,
            mass=reading.mass if reading else None,
            reasoning=assessment.quality_reasoning,
            retries=reply.retries,
        )

    def _from_the_reasoning(self, gave_up: Unanswered) -> dspy.Prediction:
        """What the last answer still tells when it has a reasoning but no usable probabilities; else gives up too."""
        said = json_repair.loads(gave_up.last_output) if gave_up.last_output else None
        said = said.get("assessment", said) if isinstance(said, dict) else None
        reasoning = said.get("quality_reasoning") if isinstance(said, dict) else None
        if not isinstance(reasoning, str) or not reasoning.strip():
            raise gave_up
        p, source = self.fusion.probabilities_and_source(reasoning)
        return dspy.Prediction(probabilities=p, source=source, reasoning=reasoning, retries=gave_up.account)


def refuse_plain_probabilities(assessment: Assessment) -> None:
    """Raises Rejected for probabilities in place of their logarithms, which a softmax would make nearly uniform."""
    said = assessment.quality_probs.by_level().values()
    if all(0 <= p <= 1 for p in said) and abs(sum(said) - 1) < 0.05:
        raise Rejected("quality_probs holds probabilities; give their natural logarithms, of which none is above 0")


class Answerer(Stage):
    """Asks a model for an answer: one of the letters offered, or words."""

    def __init__(self, *, backend: Backend | None = None, attempts: int = 3) -> None:
        super().__init__()
        self.ask = CheckedPredict(AnswerQuestion, stage="answering", backend=backend, attempts=attempts)

    def steps(
        self,
        image: LoadedImage,
        query: str,
        evidence: ExecutorOutput,
        options: dict[str, str],
        reference: LoadedImage | None,
    ) -> Flow[dspy.Prediction]:
        """A prediction of ``final_answer`` (a letter of ``options``, or words), ``reasoning`` and ``retries``."""
        listed = "\n".join(f"{letter}. {text}" for letter, text in options.items())
        inputs = {**_inputs(image, query, evidence, reference), "options": listed or "none"}

        def check(answer: Answer) -> None:
            if options and letter_of(answer.final_answer, options) is None:
                raise Rejected(
                    f"final_answer {answer.final_answer!r} is none of the letters offered ({', '.join(options)})"
                )

        reply = yield Call(self.ask, {"inputs": inputs, "check": check})
        said = reply.answer.final_answer
        answer = letter_of(said, options) if options else said
        return dspy.Prediction(final_answer=answer, reasoning=reply.answer.quality_reasoning, retries=reply.retries)


def letter_of(answer: str, options: dict[str, str]) -> str | None:
    """The letter that an answer means, or ``None``: "b", "(B)", "B. Blur" and the option's own text all mean B.

    A letter with a text that is not its option's means nothing: it is never guessed which of the two was meant.
    """
    said = answer.strip()
    by_text = {_plain(text): letter for letter, text in options.items()}
    match = re.fullmatch(r"\(?([A-Za-z])\s*(?:[).:]\s*|$)(.*)", said, re.S)
    if match and match[1].upper() in options:
        letter, rest = match[1].upper(), _plain(match[2])
        return letter if not rest or by_text.get(rest) == letter else None
    return by_text.get(_plain(said))


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def _inputs(image: LoadedImage, query: str, evidence: ExecutorOutput, reference: LoadedImage | None) -> dict[str, Any]:
    return {
        **prompt_inputs(image, reference),
        "query": query,
        "evidence": format_evidence(evidence),
    }


def _caveats(evidence: ExecutorOutput) -> list[str]:
    """What a reader has to know about the evidence, whatever the model wrote of it."""
    return [what_is_missing(evidence), *(f"{sentence}." for sentence in contradictions(evidence))]


def _sentences(*parts: str) -> str:
    return " ".join(part if part.endswith((".", "!", "?")) else f"{part}." for part in map(str.strip, parts) if part)


def _used(evidence: ExecutorOutput) -> dict[str, Any] | None:
    used = evidence.model_dump(include={"distortion_analysis", "quality_scores"}, exclude_none=True)
    return json.loads(json.dumps(used)) or None
