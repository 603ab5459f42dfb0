"""Options that stand on one scale: severities, quality levels, adjectives between two ends. The nearest one wins."""

import re
from collections.abc import Mapping, Sequence

from agenticiqa.programs.offline.language.claims import TWO_SIDED, cannot_tell, meant, quoted
from agenticiqa.programs.offline.language.measured import VISIBLE, Measured, Verdict
from agenticiqa.programs.offline.language.reading import Reading
from agenticiqa.signatures.lexicon import LOWER, UPPER, Meaning
from agenticiqa.signatures.vocabulary import DetectableDistortion

TIE = 0.05
"""Two options nearer to each other than this are equally good: no measurement here is that exact."""


def on_scale(asked: Reading, options: Mapping[str, Reading], measured: Measured) -> Verdict | None:
    """The option nearest to what was measured, or ``None`` when the options are no scale."""
    meaning = _subject(asked, list(options.values()))
    if meaning is None:
        return None
    if meaning.subject == "quality":
        places = {letter: _level(reading, options) for letter, reading in options.items()}
        rated = asked.meanings or all(reading.rates_quality for reading in options.values())
        if None in places.values() or not rated:
            return None
        return nearest(places, measured.level, measured.seen[:2], f"quality ({measured.level:.1f} between 1 and 5)")
    sides = {letter: _side(reading, options, meaning) for letter, reading in options.items()}
    ends = meaning.subject in TWO_SIDED and meaning.sense in ("neutral", "more")
    if ends and None not in sides.values() and any(sides.values()):
        return _between_ends(sides, meaning, measured)
    places = {letter: _severity(reading, options, meaning) for letter, reading in options.items()}
    if None in places.values():
        return None
    if meaning.subject == "unmeasured":
        return Verdict(None, f"No tool here measures {quoted([term.text for term in asked.terms])}.")
    severity = measured.severity(meaning)
    if severity is None:
        return cannot_tell(meaning, measured)
    about = measured.worst_of(meaning.categories)
    return nearest(places, severity, [about] if about else [], f"severity ({severity:.1f} between 0 and 4)")


def nearest(
    places: Mapping[str, float | None], position: float, about: Sequence[DetectableDistortion], what: str
) -> Verdict:
    """The letter whose place is the nearest to ``position``; none when two are equally near."""
    ranked = sorted((abs(place - position), letter) for letter, place in places.items() if place is not None)
    first, second = ranked[0], ranked[1] if len(ranked) > 1 else (float("inf"), "")
    if second[0] - first[0] < TIE:
        return Verdict(None, f"Options {first[1]} and {second[1]} fit the measured {what} equally well.", about)
    return Verdict(first[1], f"Of what is offered, {first[1]} is the nearest to the measured {what}.", about)


def _subject(asked: Reading, options: Sequence[Reading]) -> Meaning | None:
    """The one thing that the question and every option speak of; ``None`` when there is no such thing."""
    offered = [meaning for reading in options for meaning in reading.meanings if meaning.subject != "quality"]
    named = [meaning for meaning in asked.meanings if meaning.subject != "quality"]
    if asked.meanings and any(meaning.subject != "any" for meaning in offered):
        named = [meaning for meaning in named if meaning.subject != "any"]
    meanings = named + [meaning for meaning in offered if not named or meaning.subject != "any"]
    sides = {UPPER.get(meaning.subject, "") for meaning in offered} | {LOWER.get(m.subject, "") for m in offered}
    if len({meaning.scale for meaning in meanings}) > 1 or {m.kind for m in offered} - sides - {""}:
        return None
    if not meanings:
        return Meaning("quality", "neutral")
    same = len({meaning.subject for meaning in meanings}) == 1
    first = named[0] if named else Meaning(meanings[0].subject, "neutral")
    return first if same else Meaning(first.scale, first.sense)


def _level(reading: Reading, options: Mapping[str, Reading]) -> float | None:
    if reading.level is None or any(meaning.subject != "quality" for meaning in reading.meanings):
        return None
    level = reading.level
    others = [other for other in options.values() if other is not reading]
    if re.search(r"\bbad", reading.text, re.I) and any(o.level == 5 or (o.level or 9) <= 2 for o in others):
        level = 1.0  # where Excellent or Poor is offered, Bad is the end of the scale; else it is the opposite of Good
    return 6 - level if reading.negated else level


def _severity(reading: Reading, options: Mapping[str, Reading], asked: Meaning) -> float | None:
    others = [other for other in options.values() if other is not reading]
    senses = {meaning.sense for meaning in reading.meanings}
    if "fault" in senses or reading.lacking:
        if reading.negated:
            return 0.0 if reading.degree is None or reading.flat else 1.0
        if reading.degree is not None:
            return reading.degree
        return 2.0 if any((other.degree or 0) >= 3 and not other.negated for other in others) else 3.0
    if "virtue" in senses:
        if reading.negated or (reading.level or 5) <= 2:
            return 3.0
        if reading.stressed or reading.level == 5:
            return 0.0
        if reading.degree is not None and reading.degree <= 2:
            return 2.0
        return 1.0 if any(other.stressed and _praises(other) for other in others) else 0.0
    if asked.sense == "fault":
        if reading.degree is None and reading.level is None:
            return 0.0 if reading.negated else None
        return reading.degree if reading.degree is not None else 5 - (reading.level or 0)
    if reading.is_lifelike and asked.subject != "Color distortions":
        return None
    level = _level(reading, options) if not reading.terms else reading.level
    if level is not None:
        return 5 - level
    return {3.0: 0.0, 4.0: 0.0, 2.0: 2.0, 1.0: 3.0}.get(reading.degree or 0) if asked.sense == "virtue" else None


def _praises(reading: Reading) -> bool:
    return not reading.negated and any(meaning.sense == "virtue" for meaning in reading.meanings)


def _side(reading: Reading, options: Mapping[str, Reading], asked: Meaning) -> float | None:
    """Where an option stands between too little (below 0) and too much (above 0)."""
    meaning = meant(reading, Meaning(asked.subject, "neutral"))
    if meaning is None or meaning.subject != asked.subject:
        return None
    if meaning.sense == "virtue":
        return -3.0 if reading.negated else 0.0
    sign = {UPPER.get(meaning.subject): 1.0, LOWER.get(meaning.subject): -1.0}.get(meaning.kind)
    if sign is None:
        return None
    if reading.negated:
        return -3.0 if meaning.sense == "more" else 0.0
    if not any(term.meaning.sense != "neutral" for term in reading.terms):  # "high", "very low"
        return sign * (4.0 if reading.stressed else 3.0)
    if reading.degree is not None:
        return sign * reading.degree
    graded = any((other.degree or 0) >= 3 and other is not reading for other in options.values())
    return sign * (2.0 if graded else 3.0)


def _between_ends(places: Mapping[str, float | None], meaning: Meaning, measured: Measured) -> Verdict:
    about = [name for name in meaning.categories if name in measured.findings]
    signed = measured.signed(meaning.subject)
    if signed is None:
        shown = f"show {measured.words(about[0])} but not to which side" if about else "do not cover it"
        return Verdict(None, f"The measurements {shown}.", about)
    if abs(signed) < VISIBLE and all(abs(place or 0) > 1.5 for place in places.values()):
        return Verdict(None, "No visible change to either side was measured, and no option says so.", about)
    return nearest(places, signed, about, f"{meaning.subject.lower()} ({signed:+.1f} between -4 and 4)")
