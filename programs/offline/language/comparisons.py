"""Questions that weigh the picture against its reference."""

import re
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from agenticiqa.programs.offline.language.claims import NO, TWO_SIDED, YES, not_understood
from agenticiqa.programs.offline.language.measured import VISIBLE, Measured, Verdict
from agenticiqa.programs.offline.language.reading import Reading, read
from agenticiqa.programs.offline.language.scales import nearest
from agenticiqa.signatures.lexicon import Meaning, Subject

_REFERENCE = (
    r"(?:the |its |a )?(?:reference|original|pristine|source|undistorted)(?: (?:image|picture|photo|one|version))?"
)
_AGAINST = re.compile(
    rf"\b(?:than|compar\w+(?: to| with| against)?|relative to|versus|vs\.?|against|as) {_REFERENCE}\b", re.I
)
_NAMED = re.compile(rf"\b{_REFERENCE}\b", re.I)
_WEIGHS = re.compile(r"\b(?:than|versus|vs|compar\w+|equally|difference|differs?|different)\b", re.I)
_COMPARATIVE = re.compile(r"(?:ier|sharper|clearer|crisper|darker|brighter|dimmer|duller|paler)$", re.I)


def is_comparison(question: str, options: Mapping[str, str]) -> bool:
    """Whether the question, or what it offers, weighs the picture against something."""
    if _WEIGHS.search(question) or any(_compares(read(text)) for text in options.values()):
        return True
    named = _NAMED.search(question) and _compares(read(question))
    return bool(named or re.search(r"\b(?:better|worse)\b", question, re.I))


def compare(
    question: str, measured: Measured, regions: Collection[str] = (), options: Mapping[str, str] = MappingProxyType({})
) -> Verdict:
    """The letter offered, or without options ``"Yes"`` or ``"No"``, by what was measured against the reference.

    The reference is taken to be undisturbed: a distortion makes the picture worse, and nothing makes it better.
    """
    if not _NAMED.search(question) and _WEIGHS.search(question):
        return Verdict(None, "The question compares with something other than the reference picture.")
    if not measured.compared:
        why = "A comparison needs the reference picture, and none was given."
        return Verdict(None, why, missing="the reference picture (--reference)")
    asked = read(_AGAINST.sub(" ", question), [*regions, "given", "difference", "compare", "compared", "changed"])
    readings = [read(text, regions) for text in options.values()] or [asked]
    if unread := [word for reading in (asked, *readings) for word in reading.unread]:
        return not_understood(unread)
    subjects = {meaning.scale for reading in (asked, *readings) for meaning in reading.meanings} - {"quality", "any"}
    if len(subjects) > 1 or "unmeasured" in subjects:
        return Verdict(None, "The question compares several things at once.")
    subject: Subject = subjects.pop() if subjects else "any"
    offered = [_place(reading, readings, asked, subject) for reading in readings]
    position = _position(subject, readings, measured)
    about = measured.worst_of(Meaning(subject, "fault").categories)
    if position is None or about is None or None in offered:
        return Verdict(None, "The difference from the reference that the question asks for was not measured.")
    if not options:
        holds = (
            abs(position) < VISIBLE
            if offered[0] == 0
            else position * (offered[0] or 0) > 0 and abs(position) >= VISIBLE
        )
        why = "Against the reference, a difference counts from slight on."
        return Verdict(YES if holds != asked.negated else NO, why, [about])
    return nearest(dict(zip(options, offered, strict=True)), position, [about], "difference from the reference")


def _compares(reading: Reading) -> bool:
    return bool(reading.comparison) or any(_COMPARATIVE.search(term.text) for term in reading.terms)


def _position(subject: Subject, readings: Sequence[Reading], measured: Measured) -> float | None:
    """Below 0: worse, or less light, colour or contrast; above 0: more of them, or sharper."""
    if subject in TWO_SIDED and any(_is_amount(reading) for reading in readings):
        return measured.signed(subject)
    over = measured.severity(Meaning("Sharpness", "fault", "oversharpening")) if subject == "clarity" else None
    if over is not None and over >= VISIBLE:
        return over
    severity = measured.severity(Meaning(subject, "fault"))
    return None if severity is None else -severity


def _place(reading: Reading, offered: Sequence[Reading], asked: Reading, subject: Subject) -> float | None:
    sign = _sign(reading, asked, subject)
    if not sign:
        return sign
    graded = any(other is not reading and other.degree is not None and other.degree <= 1 for other in offered)
    return sign * (reading.degree if reading.degree else 2.0 if graded else 1.0)


def _sign(reading: Reading, asked: Reading, subject: Subject) -> float | None:
    if reading.comparison == "same" or re.search(r"\bas\b", reading.text):
        return 0.0
    if reading.comparison in ("better", "worse"):
        return 1.0 if reading.comparison == "better" else -1.0
    judged = [term.meaning for source in (reading, asked) for term in source.terms if term.meaning.sense != "neutral"]
    more = -1.0 if reading.comparison == "less" else 1.0
    if reading.lacking:
        return -1.0
    if not _compares(reading):
        return None
    if subject in TWO_SIDED and judged and judged[0].kind:
        upper = judged[0].kind in ("overexposure", "oversaturation", "high contrast")
        return more if upper or judged[0].sense == "virtue" else -more
    faulted = judged and judged[0].sense == "fault" and subject not in ("any", "quality")
    return -more if faulted else more


def _is_amount(reading: Reading) -> bool:
    """Whether it speaks of more or less light, colour or contrast, rather than of better or worse."""
    if any(meaning.sense == "fault" and not meaning.kind for meaning in reading.meanings):
        return False
    return reading.comparison in ("more", "less") or any(meaning.kind for meaning in reading.meanings)
