"""The Summarizer's two prompts: a distribution over quality levels, or an answer (paper, Sec. 3.3)."""

from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, ClassVar

import dspy
from pydantic import ValidationError, model_validator

from agenticiqa.signatures.answers.levels import LevelProbs, chosen_level, stated_level
from agenticiqa.signatures.answers.model_answer import REASONS, ModelAnswer
from agenticiqa.signatures.input_texts import EVIDENCE, IMAGE, QUERY, REFERENCE
from agenticiqa.signatures.types import Reason, Sentence
from agenticiqa.signatures.vocabulary import CHOICES, LETTERS, LEVELS, Letter, Level

SCORES = {"score", "quality_score", "final_score", "mos", "final_answer"}
CONTRADICTED = 0.5  # minimum probability of the stated level, relative to the most probable one


LEVEL_NAMES = dict.fromkeys(("level", "rating", "quality"), "quality_level")


class NamedLevel(ModelAnswer):
    """A quality rating for a model whose token log-probabilities say how probable each level is."""

    other_names: ClassVar[Mapping[str, str]] = {**REASONS, **LEVEL_NAMES}
    set_by_rules: ClassVar[frozenset[str]] = frozenset({"quality_probs"})

    quality_level: Level
    quality_reasoning: Sentence

    @classmethod
    def prepared(cls, written: dict[str, Any]) -> dict[str, Any]:
        """Write the level by its name."""
        level = stated_level(written.get("quality_level"))
        return written if level is None else written | {"quality_level": _name(level)}

    @classmethod
    def checked(cls, answer: "NamedLevel", surplus: Mapping[str, Any]) -> list[str]:
        """Raise ValueError if the answer also has a score from 1 to 5 that contradicts the level."""
        refuse_other_score(LEVELS[answer.quality_level], surplus)
        return []


class ChosenLetter(ModelAnswer):
    """A quality rating as in the paper, for the same models: the letter of a level, A for Excellent to E for Bad."""

    other_names: ClassVar[Mapping[str, str]] = {
        **REASONS,
        **dict.fromkeys((*LEVEL_NAMES, "quality_level", "answer"), "final_answer"),
    }
    set_by_rules: ClassVar[frozenset[str]] = frozenset({"quality_probs"})

    final_answer: Letter
    quality_reasoning: Sentence

    @property
    def quality_level(self) -> Level:
        """The level of the letter."""
        return CHOICES[self.final_answer]

    @classmethod
    def prepared(cls, written: dict[str, Any]) -> dict[str, Any]:
        """Write the level by its letter."""
        level = chosen_level(written.get("final_answer"))
        return written if level is None else written | {"final_answer": LETTERS[_name(level)]}

    @classmethod
    def checked(cls, answer: "ChosenLetter", surplus: Mapping[str, Any]) -> list[str]:
        """Raise ValueError if the answer also has another level, or a score from 1 to 5 that contradicts the letter."""
        level = LEVELS[answer.quality_level]
        other = stated_level(surplus.get("quality_level"))
        if other not in (None, level):
            raise ValueError(
                f"quality_level is {_name(other)}, but final_answer is {answer.final_answer}: they must agree"
            )
        refuse_other_score(level, surplus)
        return []


class ScoredAnswer(ModelAnswer):
    """A quality rating: the most likely level, how probable each level is, and the reason."""

    other_names: ClassVar[Mapping[str, str]] = {
        **REASONS,
        **LEVEL_NAMES,
        **dict.fromkeys(("probs", "probabilities", "logprobs", "log_probs", "level_probs"), "quality_probs"),
    }

    quality_level: Level
    quality_probs: LevelProbs
    quality_reasoning: Sentence

    @classmethod
    def prepared(cls, written: dict[str, Any]) -> dict[str, Any]:
        """Write the level by its name, and take a missing one from the probabilities."""
        level, probs = stated_level(written.get("quality_level")), written.get("quality_probs")
        if level is None and written.get("quality_level") is None and probs is not None:
            with suppress(ValidationError):  # the validation of the field raises it again, with its reason
                level = LevelProbs.model_validate(probs).most_probable
        return written if level is None else written | {"quality_level": _name(level)}

    @classmethod
    def checked(cls, answer: "ScoredAnswer", surplus: Mapping[str, Any]) -> list[str]:
        """Return a note if the level is not quite the most probable one.

        Raises ValueError if the answer also has a score from 1 to 5 that contradicts the level.
        """
        level, shares = LEVELS[answer.quality_level], answer.quality_probs.probabilities()
        refuse_other_score(level, surplus)
        best = answer.quality_probs.most_probable
        if shares[level] >= shares[best]:
            return []
        return [f"quality_level is {answer.quality_level}, a little less probable than {_name(best)}"]

    @model_validator(mode="after")
    def _level_is_probable(self) -> "ScoredAnswer":
        shares = self.quality_probs.probabilities()
        stated, best = LEVELS[self.quality_level], self.quality_probs.most_probable
        if shares[stated] < CONTRADICTED * shares[best]:
            raise ValueError(
                f"quality_level is {self.quality_level}, but quality_probs gives it {shares[stated]:.0%}, and "
                f"{_name(best)} {shares[best]:.0%}: they must agree"
            )
        return self


def refuse_other_score(level: int, surplus: Mapping[str, Any]) -> None:
    """Raise ValueError if unknown keys, in snake case, have a score from 1 to 5 that contradicts the level."""
    for key in SCORES & surplus.keys():
        score = surplus[key]
        if isinstance(score, int | float) and 1 <= score <= 5 and abs(score - level) > 1:
            raise ValueError(f"{key} is {score}, but quality_level is {_name(level)}: they must agree")


MEANINGS: dict[Level, str] = {
    "Excellent": "no visible distortion",
    "Good": "minor distortions that hardly matter",
    "Fair": "moderate, noticeable distortions",
    "Poor": "severe distortions that matter much",
    "Bad": "extreme distortions, unusable",
}
LEVEL_LINE = "  - quality_level: the level that fits best. {}.\n".format(
    "; ".join(f"{LEVELS[name]}, {name}: {meaning}" for name, meaning in MEANINGS.items())
)
LETTER_LINE = "  - final_answer: the letter of the level that fits best, and nothing else. {}.\n".format(
    "; ".join(f"{LETTERS[name]}. {name}: {meaning}" for name, meaning in MEANINGS.items())
)
PROBS_LINE = (
    '  - quality_probs: for EACH level, under "1" to "5", the probability that an observer would choose it: five '
    "numbers from 0 to 1 that sum to 1, the largest for quality_level.\n"
)
REASON_LINE = (
    "  - quality_reasoning: the reason in one or two short sentences that refer to the distortions and the tool "
    "scores. Where evidence is missing, say so; where tools and analysis contradict each other, say which you believe "
    "and why."
)


class ScoreQuality(dspy.Signature):
    """You judge the quality of an image as an expert observer would, from the image and the evidence: tool scores (1 to
    5, higher is better) and an analysis of its distortions. Rate the rendering only, not beauty or content.
    """

    reference: dspy.Image | None = dspy.InputField(desc=REFERENCE)
    image: dspy.Image = dspy.InputField(desc=IMAGE)
    query: str = dspy.InputField(desc=QUERY)
    evidence: str = dspy.InputField(desc=EVIDENCE)
    assessment: ScoredAnswer = dspy.OutputField(desc=f"the rating\n{LEVEL_LINE}{PROBS_LINE}{REASON_LINE}")


def level_only(signature: Any) -> Any:
    """Return a rating's signature that asks for the level and the reason only, for a model that reports its tokens.

    Five numbers that sum to 1 are more than a small model can write, and the tokens say them better.
    """
    return _shorter(signature, NamedLevel, LEVEL_LINE)


def letter_only(signature: Any) -> Any:
    """Return a rating's signature that asks for a choice among the paper's letters, and the reason, instead."""
    return _shorter(signature, ChosenLetter, LETTER_LINE)


@lru_cache(maxsize=64)  # a cache, because DSPy's text of a signature is cached for its class
def _shorter(signature: Any, answer: type[ModelAnswer], line: str) -> Any:
    return signature.with_updated_fields("assessment", type_=answer, desc=f"the rating\n{line}{REASON_LINE}")


# For models that were trained to name a quality level.
class NameLevel(dspy.Signature):
    """How would you rate the quality of this image?"""

    image: dspy.Image = dspy.InputField(desc="the image to be judged")
    word: str = dspy.OutputField(desc="the word that continues the answer")


class Answer(ModelAnswer):
    """An answer and its reason."""

    other_names: ClassVar[Mapping[str, str]] = {**REASONS, "answer": "final_answer"}

    final_answer: Sentence
    quality_reasoning: Reason

    @classmethod
    def prepared(cls, written: dict[str, Any]) -> dict[str, Any]:
        """Convert a number, which is that of an option, to text."""
        stated = written.get("final_answer")
        is_number = isinstance(stated, int) and not isinstance(stated, bool)
        return written | {"final_answer": str(stated)} if is_number else written


class AnswerQuestion(dspy.Signature):
    """You answer a question about the quality of an image from the image, an analysis of its distortions (their
    severity and where they show) and tool scores (1 to 5, higher is better).

    1. Understand which visual information the question needs.
    2. Check whether the analysis or the tool scores already hold it.
    3. If they do, answer from them.
    4. If they are unclear, missing or about something else, look at the image itself and answer from that.
    """

    reference: dspy.Image | None = dspy.InputField(desc=REFERENCE)
    image: dspy.Image = dspy.InputField(desc=IMAGE)
    query: str = dspy.InputField(desc=QUERY)
    options: str | None = dspy.InputField(desc="the answers to choose from, one per line with its letter")
    evidence: str = dspy.InputField(desc=EVIDENCE)
    answer: Answer = dspy.OutputField(
        desc="the answer and its reason\n"
        "  - final_answer: when options are listed, the letter of exactly one of them and nothing else; otherwise a "
        "short answer in plain words.\n"
        "  - quality_reasoning: one to three sentences that name the analysis, the tool score or the visual detail "
        "that the answer rests on. Where evidence is missing say so; where it contradicts itself say how."
    )


def _name(level: int) -> Level:
    return next(name for name, number in LEVELS.items() if number == level)
