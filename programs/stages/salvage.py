"""What is valid in answers that were rejected to the last, so that an image is not without a result for a missing key.

Nothing is put together of two answers, and nothing is taken that contradicts itself. What is made of it is marked: see
``probability_source``.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pydantic import ValidationError

from agenticiqa.programs.backends.cleaning import ends_in_thoughts, without_thoughts
from agenticiqa.programs.backends.reading import begun_answer
from agenticiqa.programs.errors import Unanswered
from agenticiqa.programs.fusion.formula import ScoreFusion
from agenticiqa.programs.questions.stated_level import level_named
from agenticiqa.programs.stages.protocols import Scored
from agenticiqa.signatures.level_probs import LevelProbs, stated_level
from agenticiqa.signatures.summarizer import CONTRADICTED, Answer, Assessment

NO_REASON = "The model gave no reason."

_LEVEL_LINE = re.compile(r"quality[_ ]level[\"'*`]*\s*[:=]\s*[\"'*`]*([A-Za-z]+|[1-5])(?=[\"'*`\s,}])", re.IGNORECASE)
_REFUSES = re.compile(r"\b(sorry|cannot|can't|can’t|unable|apologi[sz]e|not able)\b", re.IGNORECASE)


def salvaged_score(gave_up: Unanswered, fusion: ScoreFusion) -> Scored | None:
    """The probabilities of the last answer that has any; ``None`` without one.

    In this order, for each answer from the last to the first: the probabilities that it wrote; the level that it
    stated, or that its reasoning names (0.7 for it, the rest shared). An answer with a reason and nothing else gives
    equal probabilities, so that the tools decide.
    """
    rejected = {gave_up.stage: gave_up.account}
    for text in reversed(gave_up.outputs):
        written = begun_answer(text, "assessment", Assessment) or {}
        reasoning = _text(written, "quality_reasoning")
        probs, level = _probs(written), _level(text, written)
        shares = probs.probabilities() if probs else None
        if shares and (level is None or shares[level] >= CONTRADICTED * max(shares.values())):
            return Scored(shares, "salvaged_probs", reasoning or NO_REASON, rejected_answers=rejected)
        named = level_named(reasoning)
        if shares is None and level is not None and named in (None, level):
            return Scored(fusion.smoothed(level), "salvaged_level", reasoning or NO_REASON, rejected_answers=rejected)
        words = reasoning or ("" if written else _words(text))
        if named or level_named(words):
            shares, source = fusion.probabilities_and_source(words)
            return Scored(shares, source, words, rejected_answers=rejected)
    last = gave_up.outputs[-1] if gave_up.outputs else ""
    reasoning = _text(begun_answer(last, "assessment", Assessment) or {}, "quality_reasoning")
    if not reasoning:
        return None
    shares, source = fusion.probabilities_and_source(reasoning)
    return Scored(shares, source, reasoning, rejected_answers=rejected)


def salvaged_answers(gave_up: Unanswered) -> list[Answer]:
    """The answers, the last first, that state one, whatever else is wrong; a text without keys is one, too."""
    found = []
    for text in reversed(gave_up.outputs):
        written = begun_answer(text, "answer", Answer)
        stated = _text(written or {}, "final_answer") if written else "" if ends_in_thoughts(text) else _words(text)
        if stated:
            reason = _text(written or {}, "quality_reasoning") or NO_REASON
            found.append(Answer(final_answer=stated, quality_reasoning=reason))
    return found


def _probs(written: Mapping[str, Any]) -> LevelProbs | None:
    with suppress(ValidationError):
        return LevelProbs.model_validate(written.get("quality_probs"))
    return None


def _level(text: str, written: Mapping[str, Any]) -> int | None:
    """The level that an answer states, also one that was cut off after it; ``None`` for two of them."""
    if written.get("quality_level") is not None:
        return stated_level(written["quality_level"])
    if ends_in_thoughts(text):
        return None
    named = {stated_level(name) for name in _LEVEL_LINE.findall(without_thoughts(text))}
    return named.pop() if len(named) == 1 else None


def _words(text: str) -> str:
    """A text in words, without thoughts; empty for a refusal and for broken JSON."""
    text = without_thoughts(text).strip()
    return "" if ends_in_thoughts(text) or _REFUSES.search(text) or "{" in text else text


def _text(written: Mapping[str, Any], key: str) -> str:
    value = written.get(key)
    return value.strip() if isinstance(value, str) else ""
