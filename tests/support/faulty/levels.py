"""Levels and written probabilities that make no sense; no log-probabilities come with them."""

import json
from collections.abc import Callable
from typing import Any

from support.faulty.exchange import Act, Profile, said, scoring

Probs = dict[str, Any]


def _assessment(change: Callable[[dict[str, Any]], None]) -> Act:
    def content(text: str) -> str:
        whole = json.loads(text)
        change(whole["assessment"])
        return json.dumps(whole)

    return said(content)


def _probs(make: Callable[[Probs], Any]) -> Act:
    """The assessment with other ``quality_probs``."""
    return _assessment(lambda answer: answer.update(quality_probs=make(answer["quality_probs"])))


def _each(change: Callable[[float], Any]) -> Act:
    return _probs(lambda probs: {level: change(log) for level, log in probs.items()})


def _level(value: Any) -> Act:
    return _assessment(lambda answer: answer.update(quality_level=value))


def _turned(probs: Probs) -> Probs:
    """The probabilities of the levels in reverse; where that changes nothing, certainty of level 1."""
    turned = {str(6 - int(level)): log for level, log in probs.items()}
    most = max(probs, key=lambda level: probs[level])
    return turned if most != "3" else {"1": 0.0, "2": -9.0, "3": -9.0, "4": -9.0, "5": -9.0}


ROWS = [
    Profile("probs-positive", "log-probabilities above 0", _each(lambda log: -log), scoring),
    Profile("probs-percent", "percentages", _each(lambda log: round(100 * 2.718281828**log, 1)), scoring),
    Profile("probs-plain", "probabilities, not their logarithms", _each(lambda log: 2.718281828**log), scoring),
    Profile("probs-zero", "0 for each", _each(lambda log: 0.0), scoring),
    Profile("probs-same", "-1.609 for each: no opinion", _each(lambda log: -1.609438), scoring, expect="undetectable"),
    Profile("probs-contradict", "the level is the least likely", _probs(_turned), scoring),
    Profile("probs-huge", "-10^300 for each", _each(lambda log: -1e300), scoring),
    Profile("probs-1e400", "past all floats", said(lambda t: t.replace('"1": -', '"1": -1e400, "0": -', 1)), scoring),
    Profile("probs-nan", "NaN", _each(lambda log: float("nan")), scoring),
    Profile(
        "probs-infinity",
        "-Infinity for all but the level",
        _each(lambda log: log if log > -1 else float("-inf")),
        scoring,
        expect="undetectable",
    ),
    Profile("probs-null", "null for each", _each(lambda log: None), scoring),
    Profile("probs-strings", "texts that are numbers", _each(str), scoring),
    Profile("probs-words", "words", _each(lambda log: "likely"), scoring),
    Profile("probs-list", "a list of five", _probs(lambda probs: [*probs.values()]), scoring),
    Profile("probs-empty", "{}", _probs(lambda probs: {}), scoring),
    Profile(
        "probs-four", "one is missing", _probs(lambda probs: dict([*probs.items()][:4])), scoring, expect="undetectable"
    ),
    Profile("probs-six", "one too many", _probs(lambda probs: {**probs, "6": -9.0}), scoring),
    Profile(
        "probs-names",
        "under the levels' names",
        _probs(lambda probs: dict(zip(("Bad", "Poor", "Fair", "Good", "Excellent"), probs.values(), strict=True))),
        scoring,
    ),
    Profile("probs-bool", "true for each", _each(lambda log: True), scoring),
    Profile("level-unknown", "a level nobody knows", _level("Superb"), scoring),
    Profile("level-7", "7", _level(7), scoring),
    Profile("level-0", "0", _level(0), scoring),
    Profile("level-half", "3.5", _level(3.5), scoring),
    Profile("level-null", "null", _level(None), scoring),
    Profile("level-list", "a list", _level(["Good"]), scoring),
    Profile("level-escapes", "terminal escapes", _level("Good\x1b[31m\x07"), scoring),
    Profile(
        "level-other",
        "another level than the probabilities'",
        _assessment(lambda a: a.update(quality_level="Bad" if a["quality_level"] != "Bad" else "Excellent")),
        scoring,
    ),
]
