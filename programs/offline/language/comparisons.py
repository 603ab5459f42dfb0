"""Questions that compare the image with its reference."""

import re
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from agenticiqa.programs.offline.language.clauses import TWO_SIDED, Clause, parse_clause
from agenticiqa.programs.offline.language.measured_image import VISIBLE, MeasuredImage
from agenticiqa.programs.offline.language.verdicts import NO, YES, Verdict, nearest, not_understood
from agenticiqa.signatures.lexicon import Meaning, Subject

_REFERENCE = (
    r"(?:the |its |a )?(?:reference|original|pristine|source|undistorted)(?: (?:image|picture|photo|one|version))?"
)
_AGAINST = re.compile(
    rf"\b(?:than|compar\w+(?: to| with| against)?|relative to|versus|vs\.?|against|as) {_REFERENCE}\b", re.I
)
_NAMED = re.compile(rf"\b{_REFERENCE}\b", re.I)
_COMPARES = re.compile(r"\b(?:than|versus|vs|compar\w+|equally|difference|differs?|different)\b", re.I)
_COMPARATIVE = re.compile(r"(?:ier|sharper|clearer|crisper|darker|brighter|dimmer|duller|paler)$", re.I)


def is_comparison(question: str, options: Mapping[str, str]) -> bool:
    """Whether the question or one of its options compares the image with something."""
    if _COMPARES.search(question) or any(_compares(parse_clause(text)) for text in options.values()):
        return True
    named = _NAMED.search(question) and _compares(parse_clause(question))
    return bool(named or re.search(r"\b(?:better|worse)\b", question, re.I))


def compare(
    question: str,
    measured: MeasuredImage,
    regions: Collection[str] = (),
    options: Mapping[str, str] = MappingProxyType({}),
) -> Verdict:
    """A letter of ``options``, or without options ``"Yes"`` or ``"No"``, from the findings against the reference.

    The reference is assumed to be pristine: a distortion makes the image worse, and nothing makes it better.
    """
    if not _NAMED.search(question) and _COMPARES.search(question):
        return Verdict(None, "The question compares with something other than the reference picture.")
    if not measured.has_reference:
        reason = "A comparison needs the reference picture, and none was given."
        return Verdict(None, reason, needed="the reference picture (--reference)")
    asked = parse_clause(
        _AGAINST.sub(" ", question), [*regions, "given", "difference", "compare", "compared", "changed"]
    )
    clauses = [parse_clause(text, regions) for text in options.values()] or [asked]
    if unknown := [word for clause in (asked, *clauses) for word in clause.unknown_words]:
        return not_understood(unknown)
    subjects = {meaning.scale for clause in (asked, *clauses) for meaning in clause.meanings} - {"quality", "any"}
    if len(subjects) > 1 or "unmeasured" in subjects:
        return Verdict(None, "The question compares several things at once.")
    subject: Subject = subjects.pop() if subjects else "any"
    offered = [_place(clause, clauses, asked, subject) for clause in clauses]
    position = _position(subject, clauses, measured)
    about = measured.worst_of(Meaning(subject, "fault").categories)
    if position is None or about is None or None in offered:
        return Verdict(None, "The difference from the reference that the question asks for was not measured.")
    if not options:
        holds = (
            abs(position) < VISIBLE
            if offered[0] == 0
            else position * (offered[0] or 0) > 0 and abs(position) >= VISIBLE
        )
        reason = "Against the reference, a difference counts from slight on."
        return Verdict(YES if holds != asked.negated else NO, reason, [about])
    return nearest(dict(zip(options, offered, strict=True)), position, [about], "difference from the reference")


def _compares(clause: Clause) -> bool:
    return bool(clause.comparison) or any(_COMPARATIVE.search(term.text) for term in clause.terms)


def _position(subject: Subject, clauses: Sequence[Clause], measured: MeasuredImage) -> float | None:
    """Negative: worse, or less light, color or contrast. Positive: more of them, or sharper."""
    if subject in TWO_SIDED and any(_is_amount(clause) for clause in clauses):
        return measured.signed_severity(subject)
    over = measured.severity(Meaning("Sharpness", "fault", "oversharpening")) if subject == "clarity" else None
    if over is not None and over >= VISIBLE:
        return over
    severity = measured.severity(Meaning(subject, "fault"))
    return None if severity is None else -severity


def _place(clause: Clause, offered: Sequence[Clause], asked: Clause, subject: Subject) -> float | None:
    sign = _sign(clause, asked, subject)
    if not sign:
        return sign
    graded = any(other is not clause and other.degree is not None and other.degree <= 1 for other in offered)
    return sign * (clause.degree if clause.degree else 2.0 if graded else 1.0)


def _sign(clause: Clause, asked: Clause, subject: Subject) -> float | None:
    if clause.comparison == "same" or re.search(r"\bas\b", clause.text):
        return 0.0
    if clause.comparison in ("better", "worse"):
        return 1.0 if clause.comparison == "better" else -1.0
    judged = [term.meaning for source in (clause, asked) for term in source.terms if term.meaning.sense != "neutral"]
    more = -1.0 if clause.comparison == "less" else 1.0
    if clause.deficit:
        return -1.0
    if not _compares(clause):
        return None
    if subject in TWO_SIDED and judged and judged[0].kind:
        upper = judged[0].kind in ("overexposure", "oversaturation", "high contrast")
        return more if upper or judged[0].sense == "virtue" else -more
    faulted = judged and judged[0].sense == "fault" and subject not in ("any", "quality")
    return -more if faulted else more


def _is_amount(clause: Clause) -> bool:
    """Whether it is about more or less light, color or contrast, not about better or worse."""
    if any(meaning.sense == "fault" and not meaning.kind for meaning in clause.meanings):
        return False
    return clause.comparison in ("more", "less") or any(meaning.kind for meaning in clause.meanings)
