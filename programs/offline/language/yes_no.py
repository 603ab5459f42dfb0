"""Yes or no: whether the claims of a question about the image hold, by the measurements."""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace

from agenticiqa.programs.offline.findings import severity_word
from agenticiqa.programs.offline.language.claims import Clause, claimed_meaning, parse_clause
from agenticiqa.programs.offline.language.measured_image import OBJECTIONABLE, PRESENT, VISIBLE, MeasuredImage
from agenticiqa.programs.offline.language.verdicts import (
    NO,
    YES,
    Verdict,
    cannot_exclude,
    cannot_tell,
    not_measured,
    not_understood,
)
from agenticiqa.signatures.lexicon import Meaning, terms_in
from agenticiqa.signatures.vocabulary import DetectableDistortion

DOUBTFUL = 0.5  # severity below such a limit in which the measurements are not precise enough for a no
_INTENSIFIER = re.compile(r"\b(?:totally|completely|entirely|fully|absolutely|super|so)\b", re.I)  # is no degree
_LINE = "The line between yes and no is drawn at"
_CLAUSE_BREAK = re.compile(r"\s*(?:[,;:.?!]+|\b(?:and|or|but|nor)\b)\s*", re.I)


def answer_yes_no(question: str, measured: MeasuredImage, regions: Collection[str] = ()) -> Verdict:
    """``"Yes"`` or ``"No"`` for a question that makes a claim about the image, or ``None`` with the reason.

    Of several claims joined by "or" one must hold, otherwise all of them. ``regions`` are words to ignore.
    """
    clauses = [parse_clause(part, regions) for part in clauses_of(question)]
    claims = [clause for clause in clauses if not clause.is_empty]
    if not claims:
        return not_understood([])
    verdicts = [verify(_with_predicate(clause, claims), measured) for clause in claims]
    answers = [verdict.answer for verdict in verdicts]
    either = bool(re.search(r"\bor\b", question, re.I)) and len(claims) > 1
    if either and offers_opposites(question, regions):
        return Verdict(None, "The question offers opposites, to which neither yes nor no is an answer.")
    decisive = YES if either else NO
    if decisive not in answers and None in answers:
        return verdicts[answers.index(None)]
    verdict = verdicts[answers.index(decisive)] if decisive in answers else verdicts[0]
    about = [name for each in verdicts if each.answer == verdict.answer for name in each.categories]
    return Verdict(verdict.answer, verdict.reason, list(dict.fromkeys(about)))


def offers_opposites(question: str, regions: Collection[str] = ()) -> bool:
    """Whether a question asks to choose between opposites: "natural or oversaturated"."""
    if not re.search(r"\bor\b", question, re.I):
        return False
    meanings = [meaning for part in clauses_of(question) if (meaning := claimed_meaning(parse_clause(part, regions)))]
    return len({m.scale for m in meanings}) == 1 and len({(m.sense, m.kind) for m in meanings}) > 1


def clauses_of(question: str) -> list[str]:
    """The parts of a question between its conjunctions and marks; "salt and pepper" is one."""
    inside = [(term.start, term.end) for term in terms_in(question)]
    parts, start = [], 0
    for mark in _CLAUSE_BREAK.finditer(question):
        if not any(begin <= mark.start() < end for begin, end in inside):
            parts.append(question[start : mark.start()])
            start = mark.end()
    return [part for part in (*parts, question[start:]) if part.strip()]


def verify(clause: Clause, measured: MeasuredImage) -> Verdict:
    """``"Yes"`` if the claim of one clause holds, ``"No"`` if it does not, ``None`` if the measurements cannot tell."""
    meaning = claimed_meaning(clause)
    if not clause.meanings or (meaning and meaning.subject == "quality"):
        return _quality(clause, measured)
    if meaning is None or clause.mixes_subjects:
        return Verdict(None, "The question judges no single thing that is measured.")
    if meaning.subject == "unmeasured":
        return not_measured([term.text for term in clause.terms])
    if meaning.sense == "more":
        return _direction(meaning, clause, measured)
    severity = measured.severity(meaning)
    if severity is None:
        return cannot_tell(meaning, measured)
    about = [name for name in (measured.worst_of(meaning.categories),) if name]
    if meaning.sense == "virtue":
        limit = VISIBLE if clause.emphasized else 2.5 if clause.level == 3 else OBJECTIONABLE
        if severity < limit and measured.may_hide(meaning):
            return cannot_exclude(meaning, measured)
        return _verdict(severity < limit, clause.negated, f"{_LINE} {severity_word(limit)}", about)
    degree = clause.degree if clause.grades_fault and not _INTENSIFIER.search(clause.text) else None
    if degree is not None and degree <= 1 and clause.level == 2:  # "low", "weak"
        return _verdict(severity < OBJECTIONABLE, clause.negated, f"{_LINE} {severity_word(OBJECTIONABLE)}", about)
    if degree == 0:
        return _verdict(severity < VISIBLE, clause.negated, "Only what is not visible counts", about)
    if degree is not None and clause.exact:
        word = severity_word(degree)
        return _verdict(severity_word(severity) == word, clause.negated, f"Only {word} counts", about)
    usual = OBJECTIONABLE if set(meaning.categories) & {"Noise", "Blurs"} else PRESENT
    limit = VISIBLE if clause.absolute else usual if degree is None else degree - 0.5
    denied = clause.negated ^ (clause.deficit and clause.meanings[0].sense == "fault")
    if severity < limit and measured.may_hide(meaning):
        return cannot_exclude(meaning, measured)
    if not measured.has_reference and limit in (PRESENT, OBJECTIONABLE) and limit - DOUBTFUL <= severity < limit:
        return Verdict(None, f"What is measured is too slight to tell ({severity:.1f} of 4).", about)
    return _verdict(severity >= limit, denied, f"{_LINE} {severity_word(limit)}", about)


def _verdict(holds: bool, denied: bool, rule: str, about: Sequence[DetectableDistortion]) -> Verdict:
    return Verdict(YES if holds != denied else NO, f"{rule}.", about)


def _quality(clause: Clause, measured: MeasuredImage) -> Verdict:
    level, wanted = measured.level, clause.level
    if wanted is None or not clause.rates_quality:
        return Verdict(None, "The question does not say what quality it takes for a yes.")
    if wanted == 3:
        lenient = re.search(r"\b(?:acceptable|ok|okay|decent)\b", clause.text, re.I)
        holds = level >= 2.5 and (bool(lenient) or level < 3.5)
    else:
        holds = level >= wanted - 0.5 if wanted > 3 else level < wanted + 0.5
    answer = YES if holds != clause.negated else NO
    return Verdict(answer, f"The quality is estimated at {level:.1f} on the scale of 1 to 5.", measured.visible[:2])


def _direction(meaning: Meaning, clause: Clause, measured: MeasuredImage) -> Verdict:
    signed = measured.signed_severity(meaning.subject)
    if signed is None:
        return cannot_tell(meaning, measured)
    if abs(signed) < OBJECTIONABLE:
        reason = f"Without a marked {meaning.subject.lower()} it is neither {clause.terms[0].text} nor the opposite."
        return Verdict(None, reason, meaning.categories)
    return _verdict(signed > 0, clause.negated, f"{_LINE} moderate", meaning.categories)


def _with_predicate(clause: Clause, claims: Sequence[Clause]) -> Clause:
    """ "Are sharpness and contrast good?": the first clause gets the level of the second."""
    judged = [other for other in claims if other.level is not None or other.deficit]
    bare = claimed_meaning(clause) is None and clause.level is None and clause.terms
    return replace(clause, level=judged[0].level, degree=judged[0].degree) if bare and len(judged) == 1 else clause
