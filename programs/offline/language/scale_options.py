"""Options on one scale (severities, quality levels, adjectives between two ends): choose the nearest."""

import math
import re
from collections.abc import Mapping, Sequence

from agenticiqa.programs.offline.language.claims import TWO_SIDED, Clause, claimed_meaning
from agenticiqa.programs.offline.language.measured_image import PRESENT, VISIBLE, MeasuredImage
from agenticiqa.programs.offline.language.verdicts import (
    MOST_SEVERE,
    Verdict,
    cannot_exclude,
    cannot_tell,
    nearest,
    nearest_degree,
    not_measured,
    unless_more,
)
from agenticiqa.signatures.lexicon import LOWER, UPPER, Meaning

_USUAL = re.compile(
    r"\b(?:normal|just right|natural|proper|correct|appropriate|fine|suitable|balanced|ok|okay)\b", re.I
)


def choose_on_scale(asked: Clause, options: Mapping[str, Clause], measured: MeasuredImage) -> Verdict | None:
    """The option nearest to the measurement, or ``None`` if the options are not on one scale."""
    meaning = _subject(asked, list(options.values()))
    if meaning is None:
        return None
    if meaning.subject == "quality":
        places = {letter: _level(clause, options) for letter, clause in options.items()}
        rated = asked.meanings or all(clause.rates_quality for clause in options.values())
        if None in places.values() or not rated:
            return None
        return nearest(places, measured.level, measured.visible[:2], f"quality ({measured.level:.1f} between 1 and 5)")
    sides = {letter: _side(clause, options, meaning) for letter, clause in options.items()}
    kinds = {each.kind for clause in options.values() for each in clause.meanings if each.sense == "fault"}
    opposite = {UPPER.get(meaning.subject), LOWER.get(meaning.subject)} <= kinds
    ends = meaning.subject in TWO_SIDED and (meaning.sense in ("neutral", "more") or opposite)
    if not ends and len(kinds) > 1 and UPPER.get(meaning.subject) in kinds:  # "too soft" and "oversharpened"
        return None
    if ends and None not in sides.values() and any(sides.values()):
        return _between_ends(sides, meaning, measured)
    places = {letter: _severity(clause, options, meaning) for letter, clause in options.items()}
    if None in places.values():
        return None
    if meaning.subject == "unmeasured":
        return not_measured([term.text for term in asked.terms])
    severity = measured.severity(meaning)
    if severity is None:
        return cannot_tell(meaning, measured)
    if severity < PRESENT and measured.may_hide(meaning):
        return cannot_exclude(meaning, measured)
    return nearest_degree(places, severity, meaning, measured)


def _subject(asked: Clause, options: Sequence[Clause]) -> Meaning | None:
    """What the question and every option are about; ``None`` if they are not all about the same thing."""
    offered = [meaning for clause in options for meaning in clause.meanings if meaning.subject != "quality"]
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


def _level(clause: Clause, options: Mapping[str, Clause]) -> float | None:
    if clause.level is None or any(meaning.subject != "quality" for meaning in clause.meanings):
        return None
    level = clause.level
    others = [other for other in options.values() if other is not clause]
    if re.search(r"\bbad", clause.text, re.I) and any(o.level == 5 or (o.level or 9) <= 2 for o in others):
        level = 1.0  # beside Excellent or Poor, Bad is the end of the scale; otherwise the opposite of Good
    return 6 - level if clause.negated else level


def _severity(clause: Clause, options: Mapping[str, Clause], asked: Meaning) -> float | None:
    others = [other for other in options.values() if other is not clause]
    senses = {meaning.sense for meaning in clause.meanings}
    if "fault" in senses or clause.deficit:
        if clause.negated:
            return 0.0 if clause.degree is None or clause.absolute else 1.0
        if clause.degree is not None:
            return clause.degree
        return 2.0 if any((other.degree or 0) >= 3 and not other.negated for other in others) else 3.0
    if "virtue" in senses:
        if clause.negated or (clause.level or 5) <= 2:
            return 3.0
        if clause.emphasized or clause.level == 5:
            return 0.0
        if clause.degree is not None and clause.degree <= 2:
            return 2.0
        return 1.0 if any(other.emphasized and _praises(other) for other in others) else 0.0
    if asked.sense == "fault":
        if clause.degree is None and clause.level is None:
            return 0.0 if clause.negated else None
        if clause.degree is None and _USUAL.search(clause.text):
            return 0.0
        return clause.degree if clause.degree is not None else 5 - (clause.level or 0)
    if clause.rates_naturalness and asked.subject != "Color distortions":
        return None
    level = _level(clause, options) if not clause.terms else clause.level
    if level is not None:
        return 5 - level
    return {3.0: 0.0, 4.0: 0.0, 2.0: 2.0, 1.0: 3.0}.get(clause.degree or 0) if asked.sense == "virtue" else None


def _praises(clause: Clause) -> bool:
    return not clause.negated and any(meaning.sense == "virtue" for meaning in clause.meanings)


def _side(clause: Clause, options: Mapping[str, Clause], asked: Meaning) -> float | None:
    """The place of an option between too little (negative) and too much (positive)."""
    meaning = claimed_meaning(clause, Meaning(asked.subject, "neutral"))
    if meaning is None or meaning.subject != asked.subject:
        return None
    if meaning.sense == "virtue":
        return -3.0 if clause.negated else 0.0
    sign = {UPPER.get(meaning.subject): 1.0, LOWER.get(meaning.subject): -1.0}.get(meaning.kind)
    if sign is None:
        return None
    if clause.negated:
        return -3.0 if meaning.sense == "more" else 0.0
    if not any(term.meaning.sense != "neutral" for term in clause.terms):  # "high", "very low"
        return sign * (4.0 if clause.emphasized else 3.0)
    if clause.degree is not None:
        return sign * clause.degree
    graded = any((other.degree or 0) >= 3 and other is not clause for other in options.values())
    return sign * (2.0 if graded else 3.0)


def _between_ends(places: Mapping[str, float | None], meaning: Meaning, measured: MeasuredImage) -> Verdict:
    about = [name for name in meaning.categories if name in measured.findings]
    signed = measured.signed_severity(meaning.subject)
    if signed is None:
        shown = f"show {measured.describe(about[0])} but not to which side" if about else "do not cover it"
        return Verdict(None, f"The measurements {shown}.", about)
    fault = Meaning(meaning.subject, "fault")
    if abs(signed) < PRESENT and measured.may_hide(fault):
        return cannot_exclude(fault, measured)
    if abs(signed) < VISIBLE and all(abs(place or 0) > 1.5 for place in places.values()):
        return Verdict(None, "No visible change to either side was measured, and no option says so.", about)
    chosen = nearest(places, signed, about, f"{meaning.subject.lower()} ({signed:+.1f} between -4 and 4)")
    return unless_more(chosen, places, math.copysign(MOST_SEVERE, signed), fault, measured)
