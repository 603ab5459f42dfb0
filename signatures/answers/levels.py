"""Read the quality level that a value names, and the probability of each level that a model wrote.

Five numbers are log-probabilities, probabilities, percentages or weights, depending on their sum: the exponentials of
log-probabilities and probabilities sum to about 1, percentages to about 100. Five weights, all of them given and one
above 1, have another sum. Equal numbers, the levels themselves and ambiguous numbers are refused.
"""

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import ConfigDict, Field, model_validator

from agenticiqa.signatures.answers.letters import letter_of
from agenticiqa.signatures.types import LEVEL_KEYS, LevelKey, Strict
from agenticiqa.signatures.vocabulary import CHOICES, LEVELS, closest

NEVER = -1000.0  # the log-probability of zero, as a finite number: exp gives exactly 0
NEARLY = 0.05  # maximum difference of the sum of the exponentials of log-probabilities from 1
ROUNDED = 0.15  # the same for probabilities; with one digit, 99 % of them are within this
LONGEST_LEVEL = 100  # characters of a value that states one level
FILLERS = {"level", "quality", "rating", "stars", "star"}
NO_LEVEL = "no level has any probability: give each level its own"

_NONE = re.compile(r"-\s*(?:inf(?:inity)?|∞)|null|none|n/?a|", re.I)
_PERCENT = re.compile(r"([+-]?[\d.]+(?:e[+-]?\d+)?)\s*[%％]", re.I)
_OF_FIVE = re.compile(r"([1-5](?:\.0+)?)\s*(?:/|out of)\s*5(?![\d.])")
_OTHER_SCALE = re.compile(r"/|%|\bout of\b|(?<![\w.])-\d|\d[a-z]|\d{9}")
_TOKEN = re.compile(r"\d+(?:\.\d+)?|[^\W\d_]+")


class LevelProbs(Strict):
    """How probable each quality level is: five log-probabilities, or five probabilities that sum to 1. The keys are "1" to "5"."""  # fmt: skip # noqa: E501

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    bad: float = Field(alias="1")
    poor: float = Field(alias="2")
    fair: float = Field(alias="3")
    good: float = Field(alias="4")
    excellent: float = Field(alias="5")

    @model_validator(mode="before")
    @classmethod
    def _as_written(cls, value: Any) -> Any:
        """Convert level names and numbers in words; raises ValueError, for the model, for invalid values."""
        if not isinstance(value, Mapping):
            return value
        keys = {name: key for key, name in zip(LEVEL_KEYS, cls.model_fields, strict=True)}
        return settled({keys.get(key, key): item for key, item in value.items()})

    def by_level(self) -> dict[int, float]:
        """Return the numbers as they were written, ``{1: ..., ..., 5: ...}``; see ``source``."""
        return {1: self.bad, 2: self.poor, 3: self.fair, 4: self.good, 5: self.excellent}

    @property
    def source(self) -> Literal["quality_probs", "probabilities", "percentages", "weights"]:
        """The kind of the numbers, as in ``probability_source`` of a result; quality_probs are log-probabilities."""
        numbers = self.by_level().values()
        if max(numbers) <= 0:
            return "quality_probs"
        total = math.fsum(numbers)
        if abs(total - 1) <= ROUNDED:
            return "probabilities"
        return "percentages" if abs(total - 100) <= 100 * ROUNDED else "weights"

    def probabilities(self) -> dict[int, float]:
        """Return the probability of each level; they sum to one."""
        numbers = self.by_level()
        if self.source == "quality_probs":
            peak = max(numbers.values())
            numbers = {level: math.exp(number - peak) for level, number in numbers.items()}
        total = math.fsum(numbers.values())
        return {level: number / total for level, number in numbers.items()}

    @property
    def most_probable(self) -> int:
        """The most probable level; the worse one of two that are equal."""
        shares = self.probabilities()
        return max(shares, key=lambda level: (shares[level], -level))


def settled(written: Mapping[Any, Any]) -> dict[str, float]:
    """Return five numbers of one kind under the keys "1" to "5"; a missing one is 0, or ``NEVER`` as log-probability.

    Raises ValueError, with the reason, if the numbers are not exactly one distribution.
    """
    numbers: dict[LevelKey, float | None] = {}  # None: no probability
    percent = False
    for key, value in written.items():
        level = stated_level(key)
        if level is None:
            raise ValueError(f'the key {str(key)[:40]!r} is no level: the keys are "1" to "5"')
        if LEVEL_KEYS[level - 1] in numbers:
            raise ValueError(f"level {level} is there twice")
        numbers[LEVEL_KEYS[level - 1]], is_percent = _number(value)
        percent |= is_percent
    values = [number for number in numbers.values() if number is not None]
    if not values or (len(values) > 1 and not any(values)):
        raise ValueError(NO_LEVEL)
    if max(values) <= 0:
        return _log_probabilities(numbers, values)
    total = math.fsum(values)
    makes_one = abs(total - 1) <= ROUNDED and not percent
    is_distribution = makes_one or abs(total - 100) <= 100 * ROUNDED
    if min(values) < 0 or not (is_distribution or (_are_weights(numbers) and not percent)):
        raise ValueError(
            "the numbers are no log-probabilities, of which none is above 0, and no probabilities, which sum to 1 "
            f"(they sum to {total:.4g})"
        )
    return {key: numbers.get(key) or 0.0 for key in LEVEL_KEYS}


def _are_weights(numbers: Mapping[LevelKey, float | None]) -> bool:
    """Return whether five numbers differ, are not the levels themselves, and are no confidences up to 1."""
    values = [number for key in LEVEL_KEYS if (number := numbers.get(key)) is not None]
    is_weights = len(values) == len(LEVEL_KEYS) and max(values) > 1 and len(set(values)) > 1
    return is_weights and values != [float(key) for key in LEVEL_KEYS]


def _log_probabilities(numbers: Mapping[LevelKey, float | None], values: Sequence[float]) -> dict[str, float]:
    """Return the log-probabilities of all levels; a zero means certain, or none if the others sum to 1."""
    zeros, below = values.count(0), math.fsum(math.exp(number) for number in values if number < 0)
    is_zero_none = zeros > 0 and abs(below - 1) <= NEARLY
    if zeros > 1 and not is_zero_none:
        raise ValueError("several levels have the log-probability 0, which means certain")
    missing = [key for key in LEVEL_KEYS if key not in numbers]
    if missing and not is_zero_none and abs(below + zeros - 1) > NEARLY:
        raise ValueError(f"the levels {', '.join(missing)} are missing")
    logs: dict[str, float] = {}
    for key in LEVEL_KEYS:
        number = numbers.get(key)
        logs[key] = NEVER if number is None or (number == 0 and is_zero_none) else max(number, NEVER)
    if max(logs.values()) == NEVER:
        raise ValueError(NO_LEVEL)
    return logs


def stated_level(value: Any) -> int | None:
    """Return the one level, 1 to 5, that a short value names: 4, "4", "Good", "good (4)", "4/5", "Level 4: Good".

    Return ``None`` for anything else: two levels, a number between two, another scale, another word.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    if isinstance(value, str) and len(value) > LONGEST_LEVEL:
        return None
    text = unicodedata.normalize("NFKC", f"{value:g}" if isinstance(value, int | float) else value).lower()
    text = _OF_FIVE.sub(r"\1", text)
    if _OTHER_SCALE.search(text):
        return None
    levels = {_level_of(token) for token in _TOKEN.findall(text) if token not in FILLERS}
    return levels.pop() if len(levels) == 1 else None


def chosen_level(answer: Any) -> int | None:
    """Return the level that a choice names by its letter, name or number: "C", "C. Fair", "Fair", 3; else ``None``.

    The letters A to E stand for the levels from Excellent to Bad, as in the paper.
    """
    letter = letter_of(answer, CHOICES) if isinstance(answer, str) else None
    return stated_level(answer) if letter is None else LEVELS[CHOICES[letter]]


def _level_of(token: str) -> int | None:
    if token[0].isdigit():
        return int(float(token)) if float(token) in LEVELS.values() else None
    word = closest(token, LEVELS)
    return LEVELS[word] if word else None  # type: ignore[index]


def _number(value: Any) -> tuple[float | None, bool]:
    """Return a number, or ``None`` for no probability, and whether it has a percent sign."""
    percent = None
    if isinstance(value, str):
        text = value.strip().replace("−", "-")
        percent = _PERCENT.fullmatch(text)
        try:
            value = None if _NONE.fullmatch(text) else float(percent[1] if percent else text)
        except ValueError:
            raise ValueError(f"{value[:40]!r} is no number") from None
    if value is None or value == -math.inf:
        return None, bool(percent)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{str(value)[:40]} is no finite number")
    return float(value), bool(percent)
