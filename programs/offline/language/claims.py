"""Whether what a question says of the picture is so, by the measurements."""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace

from agenticiqa.programs.offline.findings import severity_word
from agenticiqa.programs.offline.language.measured import OBJECTIONABLE, VISIBLE, Measured, Verdict
from agenticiqa.programs.offline.language.reading import Reading, read
from agenticiqa.signatures.lexicon import LOWER, UPPER, Meaning
from agenticiqa.signatures.vocabulary import DetectableDistortion

YES, NO = "Yes", "No"
TWO_SIDED = frozenset({"Brightness change", "Color distortions", "Contrast"})
_LINE = "The line between yes and no is drawn at"
_CLAUSE = re.compile(r"\s*(?:[,;:.?!]+|\b(?:and|or|but|nor)\b)\s*", re.I)


def meant(reading: Reading, asked: Meaning | None = None) -> Meaning | None:
    """The fault or virtue that a reading claims; ``None`` when it claims none, or several.

    A neutral term becomes one by what is said of it: "lack of contrast", "good lighting", "brightness too high". A
    reading without a term of its own ("too low") speaks of ``asked``.
    """
    meanings = reading.meanings or ([asked] if asked else [])
    if len({(meaning.scale, meaning.sense) for meaning in meanings}) != 1:
        return None
    subjects, kinds = {meaning.subject for meaning in meanings}, {meaning.kind for meaning in meanings} - {""}
    meaning = Meaning(
        meanings[0].subject if len(subjects) == 1 else meanings[0].scale,
        meanings[0].sense,
        kinds.pop() if len(kinds) == 1 else "",
    )
    subject, upper, lower = meaning.subject, UPPER.get(meaning.subject, ""), LOWER.get(meaning.subject, "")
    if meaning.sense == "more":
        if reading.excess:
            return replace(meaning, sense="fault")
        return Meaning(subject, "virtue", lower) if reading.level else meaning
    if meaning.sense != "neutral" or subject == "quality":
        return meaning
    if reading.is_lifelike and subject != "Color distortions":  # natural light is a matter of its source
        return None
    little = reading.level == 2 and reading.degree is not None and reading.degree <= 1  # "low", "weak"
    much = reading.level == 4 and reading.degree is not None and reading.degree >= 3  # "high", "strong"
    if reading.lacking or reading.insufficient or little or (reading.excess and (reading.degree or 9) <= 1):
        return Meaning(subject, "fault", lower)
    if reading.excess:
        return Meaning(subject, "fault", upper)
    if reading.sufficient:
        return Meaning(subject, "virtue", lower)
    if much and subject in TWO_SIDED:
        return Meaning(subject, "more", upper)
    if reading.level is not None:
        return Meaning(subject, "fault" if reading.level < 3 else "virtue")
    return None


def judge(question: str, measured: Measured, regions: Collection[str] = ()) -> Verdict:
    """``"Yes"`` or ``"No"`` for a question that says something of the picture, or ``None`` with the reason.

    Of several claims joined by "or" one has to hold, else all of them.
    """
    readings = [read(clause, regions) for clause in _CLAUSE.split(question) if clause]
    if unread := [word for reading in readings for word in reading.unread]:
        return not_understood(unread)
    claims = [reading for reading in readings if not reading.claims_nothing]
    if not claims:
        return not_understood([])
    verdicts = [claim(_with_predicate(reading, claims), measured) for reading in claims]
    answers = [verdict.answer for verdict in verdicts]
    either = bool(re.search(r"\bor\b", question, re.I)) and len(claims) > 1
    if either and offers_opposites(question, regions):
        return Verdict(None, "The question offers opposites, to which neither yes nor no is an answer.")
    decisive = YES if either else NO
    if decisive not in answers and None in answers:
        return verdicts[answers.index(None)]
    verdict = verdicts[answers.index(decisive)] if decisive in answers else verdicts[0]
    about = [name for each in verdicts if each.answer == verdict.answer for name in each.about]
    return Verdict(verdict.answer, verdict.why, list(dict.fromkeys(about)))


def offers_opposites(question: str, regions: Collection[str] = ()) -> bool:
    """Whether a question puts opposites up for choice: "natural or oversaturated"."""
    if not re.search(r"\bor\b", question, re.I):
        return False
    meanings = [meaning for clause in _CLAUSE.split(question) if (meaning := meant(read(clause, regions)))]
    return len({m.scale for m in meanings}) == 1 and len({(m.sense, m.kind) for m in meanings}) > 1


def claim(reading: Reading, measured: Measured) -> Verdict:
    """``"Yes"`` when the claim of one clause holds, ``"No"`` when it does not, ``None`` when that cannot be told."""
    meaning = meant(reading)
    if not reading.meanings or (meaning and meaning.subject == "quality"):
        return _quality(reading, measured)
    if meaning is None or reading.strays:
        return Verdict(None, "The question judges no single thing that is measured.")
    if meaning.subject == "unmeasured":
        return Verdict(None, f"No tool here measures {quoted([term.text for term in reading.terms])}.")
    if meaning.sense == "more":
        return _direction(meaning, reading, measured)
    severity = measured.severity(meaning)
    if severity is None:
        return cannot_tell(meaning, measured)
    about = [name for name in (measured.worst_of(meaning.categories),) if name]
    if meaning.sense == "virtue":
        limit = VISIBLE if reading.stressed else 2.5 if reading.level == 3 else OBJECTIONABLE
        return _verdict(severity < limit, reading.negated, f"{_LINE} {severity_word(limit)}", about)
    graded = any(term.meaning.sense == "fault" for term in reading.terms) and not reading.excess
    degree = reading.degree if graded else None
    if degree is not None and degree <= 1 and reading.level == 2:  # "low", "weak"
        return _verdict(severity < OBJECTIONABLE, reading.negated, f"{_LINE} {severity_word(OBJECTIONABLE)}", about)
    if degree == 0:
        return _verdict(severity < VISIBLE, reading.negated, "Only what is not visible counts", about)
    if degree is not None and reading.exact:
        word = severity_word(degree)
        return _verdict(severity_word(severity) == word, reading.negated, f"Only {word} counts", about)
    limit = VISIBLE if reading.flat else OBJECTIONABLE if degree is None else degree - 0.5
    denied = reading.negated ^ (reading.lacking and reading.meanings[0].sense == "fault")
    return _verdict(severity >= limit, denied, f"{_LINE} {severity_word(limit)}", about)


def cannot_tell(meaning: Meaning, measured: Measured) -> Verdict:
    """The verdict where the measurements do not give what ``meaning`` needs."""
    about = measured.worst_of(meaning.categories)
    if about is None:
        return Verdict(None, f"{' and '.join(meaning.categories) or 'This'} was not measured.")
    return Verdict(
        None, f"The measurements show {measured.words(about)} and cannot tell {meaning.kind} apart.", [about]
    )


def not_understood(words: Sequence[str]) -> Verdict:
    """The verdict where a question says what none of the word lists knows, or with no such words, nothing definite."""
    if not words:
        return Verdict(None, "The question names no single thing that is measured.")
    return Verdict(None, f"Measurements do not tell what is asked with {quoted(words)}.")


def quoted(words: Sequence[str]) -> str:
    """Words in quotation marks, each once: ``'car', 'red'``."""
    return ", ".join(f"'{word}'" for word in dict.fromkeys(words))


def _verdict(holds: bool, denied: bool, rule: str, about: Sequence[DetectableDistortion]) -> Verdict:
    return Verdict(YES if holds != denied else NO, f"{rule}.", about)


def _quality(reading: Reading, measured: Measured) -> Verdict:
    level, wanted = measured.level, reading.level
    if wanted is None or not reading.rates_quality:
        return Verdict(None, "The question does not say what quality it takes for a yes.")
    if wanted == 3:
        lenient = re.search(r"\b(?:acceptable|ok|okay|decent)\b", reading.text, re.I)
        holds = level >= 2.5 and (bool(lenient) or level < 3.5)
    else:
        holds = level >= wanted - 0.5 if wanted > 3 else level < wanted + 0.5
    answer = YES if holds != reading.negated else NO
    return Verdict(answer, f"The quality is estimated at {level:.1f} on the scale of 1 to 5.", measured.seen[:2])


def _direction(meaning: Meaning, reading: Reading, measured: Measured) -> Verdict:
    signed = measured.signed(meaning.subject)
    if signed is None:
        return cannot_tell(meaning, measured)
    if abs(signed) < OBJECTIONABLE:
        why = f"Without a marked {meaning.subject.lower()} it is neither {reading.terms[0].text} nor the opposite."
        return Verdict(None, why, meaning.categories)
    return _verdict(signed > 0, reading.negated, f"{_LINE} moderate", meaning.categories)


def _with_predicate(reading: Reading, claims: Sequence[Reading]) -> Reading:
    """ "Are sharpness and contrast good?": the first clause borrows the judgement of the second."""
    judged = [other for other in claims if other.level is not None or other.lacking]
    bare = meant(reading) is None and reading.level is None and reading.terms
    return replace(reading, level=judged[0].level, degree=judged[0].degree) if bare and len(judged) == 1 else reading
