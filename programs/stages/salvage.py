"""Use the valid parts of rejected answers, so that a missing key does not leave an image without a result.

Parts of different answers are never combined, and contradictory parts are not used. ``probability_source`` marks such
results.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pydantic import ValidationError

from agenticiqa.programs.errors import Unanswered
from agenticiqa.programs.fusion.formula import Probabilities, ScoreFusion
from agenticiqa.programs.stages.protocols import Scored
from agenticiqa.signatures.answers.answer_fields import begun_answer
from agenticiqa.signatures.answers.json_text import ends_in_thoughts, without_thoughts
from agenticiqa.signatures.answers.level_in_words import level_named
from agenticiqa.signatures.answers.levels import LevelProbs, chosen_level, stated_level
from agenticiqa.signatures.summarizer import CONTRADICTED, Answer, ScoredAnswer
from agenticiqa.signatures.types import ProbabilitySource

NO_REASON = "The model gave no reason."

_REFUSES = re.compile(r"\b(sorry|cannot|can't|can’t|unable|apologi[sz]e|not able)\b", re.IGNORECASE)


def salvaged_score(gave_up: Unanswered, fusion: ScoreFusion) -> Scored | None:
    """Return the probabilities of the last answer that has any, or ``None``.

    Answers are tried from the last to the first. First choice are the probabilities in the answer, then the level that
    it states, also as a choice among A to E under ``final_answer``, or that its reasoning names (0.7 for this level,
    the rest shared). An answer that has only a reason gives equal probabilities, so the tools decide.
    """
    for text in reversed(gave_up.outputs):
        written = begun_answer(text, "assessment", ScoredAnswer)
        reasoning = _text(written, "quality_reasoning")
        shares, level = _shares(written), stated_level(written.get("quality_level"))
        if level is None and written.get("quality_level") is None:
            level = chosen_level(_text(begun_answer(text, "answer", Answer), "final_answer"))
        if shares and (level is None or shares[level] >= CONTRADICTED * max(shares.values())):
            return _scored(gave_up, shares, "salvaged_probs", reasoning)
        if shares is None and level is not None and level_named(reasoning) in (None, level):
            return _scored(gave_up, fusion.smoothed(level), "salvaged_level", reasoning)
        words = reasoning if written else _words(text)
        if level_named(words):
            return _scored(gave_up, *fusion.probabilities_and_source(words), words)
    last_reasoning = _text(begun_answer(gave_up.outputs[-1], "assessment", ScoredAnswer), "quality_reasoning")
    if not last_reasoning:
        return None
    return _scored(gave_up, *fusion.probabilities_and_source(last_reasoning), last_reasoning)


def _scored(gave_up: Unanswered, shares: Probabilities, source: ProbabilitySource, reasoning: str) -> Scored:
    return Scored(shares, source, reasoning or NO_REASON, rejected_answers=gave_up.rejected_answers)


def salvaged_answers(gave_up: Unanswered) -> list[Answer]:
    """Return the stated answers, the last first, regardless of other errors; a text without keys counts, too."""
    answers = []
    for text in reversed(gave_up.outputs):
        written = begun_answer(text, "answer", Answer)
        stated = _text(written, "final_answer") if written else _words(text)
        if stated:
            reason = _text(written, "quality_reasoning") or NO_REASON
            answers.append(Answer(final_answer=stated, quality_reasoning=reason))
    return answers


def _shares(written: Mapping[str, Any]) -> Probabilities | None:
    with suppress(ValidationError):
        return LevelProbs.model_validate(written.get("quality_probs")).probabilities()
    return None


def _words(text: str) -> str:
    """Return the text without reasoning tags; empty for a refusal and for broken JSON."""
    text = without_thoughts(text).strip()
    return "" if ends_in_thoughts(text) or _REFUSES.search(text) or "{" in text else text


def _text(written: Mapping[str, Any], key: str) -> str:
    value = written.get(key)
    return value.strip() if isinstance(value, str) else ""
