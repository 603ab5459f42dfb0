"""The quality level that a value names, and how probable a model writes that each level is.

Five numbers are log-probabilities, probabilities or percentages, by their sum: the exponentials of log-probabilities
make about 1, probabilities about 1, percentages about 100. What makes none of these, or more than one, is refused.
"""

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import ConfigDict, Field, model_validator

from agenticiqa.signatures.types import LEVEL_KEYS, LevelKey, Strict
from agenticiqa.signatures.vocabulary import LEVELS, closest

NEVER = -1000.0  # a log-probability of nothing, as a finite number: exp gives exactly 0
NEARLY = 0.05  # how far the sum of the exponentials of log-probabilities may be from 1
ROUNDED = 0.15  # the same of probabilities: written with one digit, 99 % of them are as near
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

    model_config = ConfigDict(populate_by_name=True)

    bad: float = Field(alias="1")
    poor: float = Field(alias="2")
    fair: float = Field(alias="3")
    good: float = Field(alias="4")
    excellent: float = Field(alias="5")

    @model_validator(mode="before")
    @classmethod
    def _as_written(cls, value: Any) -> Any:
        """Level names as keys, records, numbers in words; raises ValueError, for the model, for what is no opinion."""
        if isinstance(value, list):
            value = _from_records(value)
        if not isinstance(value, Mapping):
            return value
        named = {name: key for key, name in zip(LEVEL_KEYS, cls.model_fields, strict=True)}
        return settled({named.get(key, key): item for key, item in value.items()})

    def by_level(self) -> dict[int, float]:
        """The numbers as they were written, ``{1: ..., ..., 5: ...}``; see ``source``."""
        return {1: self.bad, 2: self.poor, 3: self.fair, 4: self.good, 5: self.excellent}

    @property
    def source(self) -> Literal["quality_probs", "probabilities", "percentages"]:
        """What the numbers are, as a result's ``probability_source`` names it; log-probabilities are quality_probs."""
        numbers = self.by_level().values()
        if max(numbers) <= 0:
            return "quality_probs"
        return "probabilities" if math.fsum(numbers) < 2 else "percentages"

    def probabilities(self) -> dict[int, float]:
        """The probability of each level; they sum to one."""
        numbers = self.by_level()
        if self.source == "quality_probs":
            peak = max(numbers.values())
            numbers = {level: math.exp(number - peak) for level, number in numbers.items()}
        total = math.fsum(numbers.values())
        return {level: number / total for level, number in numbers.items()}

    @property
    def most_probable(self) -> int:
        """The most probable level, the worse one of two that are equal."""
        shares = self.probabilities()
        return max(shares, key=lambda level: (shares[level], -level))


def settled(written: Mapping[Any, Any]) -> dict[str, float]:
    """Five numbers of one kind under the keys "1" to "5"; no probability is 0, or ``NEVER`` among log-probabilities.

    Raises ValueError, which says what is wrong, where the numbers are no distribution, or where they may be two.
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
    given = [number for number in numbers.values() if number is not None]
    if not given or (len(given) > 1 and not any(given)):
        raise ValueError(NO_LEVEL)
    if max(given) <= 0:
        return _log_probabilities(numbers, given)
    total = math.fsum(given)
    makes_one = abs(total - 1) <= ROUNDED and not percent
    if min(given) < 0 or not (makes_one or abs(total - 100) <= 100 * ROUNDED):
        raise ValueError(
            "the numbers are no log-probabilities, of which none is above 0, and no probabilities, which sum to 1 "
            f"(they sum to {total:.4g})"
        )
    return {key: numbers.get(key) or 0.0 for key in LEVEL_KEYS}


def _log_probabilities(numbers: Mapping[LevelKey, float | None], given: Sequence[float]) -> dict[str, float]:
    """The log-probabilities of all levels; a zero is certain, or no probability where the others make 1 without it."""
    zeros, below = given.count(0), math.fsum(math.exp(number) for number in given if number < 0)
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
    """The one level, 1 to 5, that a short value names: 4, "4", "Good", "good (4)", "4/5", "Level 4: Good".

    ``None`` for anything else: two levels, a number between two, another scale, a word that is no level.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    if isinstance(value, str) and len(value) > LONGEST_LEVEL:
        return None
    text = unicodedata.normalize("NFKC", f"{value:g}" if isinstance(value, int | float) else value).lower()
    text = _OF_FIVE.sub(r"\1", text)
    if _OTHER_SCALE.search(text):
        return None
    named = {_level_of(token) for token in _TOKEN.findall(text) if token not in FILLERS}
    return named.pop() if len(named) == 1 else None


def _level_of(token: str) -> int | None:
    if token[0].isdigit():
        return int(float(token)) if float(token) in LEVELS.values() else None
    word = closest(token, LEVELS)
    return LEVELS[word] if word else None  # type: ignore[index]


def in_order(five: Sequence[Any], level: int | None) -> dict[str, Any] | None:
    """Five bare numbers under their levels: from 1 to 5, or from 5 to 1, whichever has its peak at ``level``.

    ``None`` where that does not decide.
    """
    fitting: list[dict[str, Any]] = []
    for numbers in (list(five), list(five)[::-1]):
        keyed: dict[str, Any] = dict(zip(LEVEL_KEYS, numbers, strict=True))
        try:
            if LevelProbs.model_validate(keyed).most_probable == level and keyed not in fitting:
                fitting.append(keyed)
        except ValueError:
            return None
    return fitting[0] if len(fitting) == 1 else None


def _from_records(records: list[Any]) -> Any:
    """``[{"level": 1, "prob": 0.1}, ...]`` and ``[{"1": 0.1}, ...]`` as one mapping; anything else as it is."""
    merged: dict[Any, Any] = {}
    for record in records:
        if not isinstance(record, Mapping) or len(record) > 2:
            return records
        if len(record) == 2:
            level = next((value for key, value in record.items() if "level" in str(key).lower()), None)
            number = next((value for key, value in record.items() if "prob" in str(key).lower()), None)
            record = {level: number}
        if None in record or merged.keys() & record.keys():
            return records
        merged |= record
    return merged or records


def _number(value: Any) -> tuple[float | None, bool]:
    """A number, ``None`` for no probability, and whether it has a percent sign."""
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
