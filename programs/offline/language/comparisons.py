"""Questions that compare the image with its reference."""

import re
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from agenticiqa.programs.offline.language.claims import TWO_SIDED, Clause, parse_clause
from agenticiqa.programs.offline.language.measured_image import OBJECTIONABLE, VISIBLE, MeasuredImage
from agenticiqa.programs.offline.language.places import REFERENCE, REFERENCE_BESIDE_IMAGE, Look
from agenticiqa.programs.offline.language.verdicts import NO, YES, Verdict, nearest, not_understood
from agenticiqa.signatures.lexicon import LOWER, UPPER, Meaning, Subject

_NOUN = r"(?:image|picture|photo|one|version|copy|file|shot)"
_REFERENCE = (
    rf"(?:(?:the |its |a |this |my )?(?:reference|original)(?: {_NOUN})?|(?:pristine|source|undistorted) {_NOUN}"
    r"|the (?:pristine|source|undistorted)(?= one|\b(?=\W*$)))"
)
_AGAINST = re.compile(
    r"\b(?:than|compar\w+(?: to| with| against)?|relative to|next to|with respect to|versus|vs\.?|against|over|beyond"
    r"|(?<=added) to|as)(?: (?:in|is|of|for))* "
    rf"{_REFERENCE}\b"
    r"(?: (?:is|has|does))?",
    re.I,
)
_NAMED = re.compile(rf"\b{_REFERENCE}\b", re.I)
_AIDED = re.compile(rf"\b(?:given|with|using|considering|based on|knowing|taking)\s+{_REFERENCE}\b", re.I)
_OTHERS = re.compile(rf"\b(?:first|second|third|other|another|these) {_NOUN}s?\b|\bthe first or the second\b", re.I)
_THIS_IMAGE = re.compile(
    rf"^\W*(?:the |this )?(?:(?:distorted|test|given|degraded|second|first) )?{_NOUN}\W*$|^\W*this one\W*$", re.I
)
_SAME = re.compile(r"\b(?:same|equal\w*|neither|both|no difference|identical)\b", re.I)
_WHICH_IMAGE = re.compile(
    rf"\bwhich\b|\bwho\b|\b{_NOUN} or {_REFERENCE}\b|\b{_REFERENCE} or (?:the )?(?:test |distorted )?{_NOUN}\b", re.I
)
_COMPARES = re.compile(r"\b(?:than|versus|vs|compar\w+|equally|difference|differs?|different|changed)\b", re.I)
_COMPARATIVE = re.compile(
    r"(?:ier|sharper|clearer|cleaner|crisper|softer|flatter|darker|brighter|dimmer|duller|paler)$", re.I
)


def _images_in(options: Mapping[str, str]) -> dict[str, str]:
    """Which picture each option names, "image" or "reference", if all of them do, or "same"."""
    named = {
        letter: "reference" if _NAMED.search(text) else "same" if _SAME.search(text) else "image"
        for letter, text in options.items()
        if _NAMED.search(text) or _SAME.search(text) or _THIS_IMAGE.search(text)
    }
    return named if len(named) == len(options) and "reference" in named.values() else {}


def names_reference(text: str) -> bool:
    """Whether a text names the reference, or compares with something."""
    return bool(_NAMED.search(text) or _COMPARES.search(text))


def without_reference(text: str) -> str:
    """A text without the names of the reference: what is left may name the image."""
    return re.sub(rf"{_NAMED.pattern}(?: of (?:the|this|my|that) {_NOUN})?", " ", text, flags=re.I)


def names_reference_alone(text: str) -> bool:
    """Whether a question without a comparison is about the reference itself: "Is the reference blurry?"."""
    return bool(_NAMED.search(_AIDED.sub(" ", text)))


def is_comparison(text: str, options: Mapping[str, str]) -> bool:
    """Whether the question or one of its options compares the image, or a part of it, with something."""
    compared = _COMPARES.search(text) or _AGAINST.search(text) or _images_in(options)
    if compared or any(_compares(parse_clause(each)) for each in options.values()):
        return True
    named = _NAMED.search(text) and _compares(parse_clause(text))
    return bool(named or re.search(r"\b(?:better|worse)\b", text, re.I))


def compare(
    text: str,
    regions: Collection[str],
    measured: MeasuredImage,
    look: Look,
    options: Mapping[str, str] = MappingProxyType({}),
) -> Verdict:
    """How the image compares with its reference: a letter of ``options``, or without options words.

    ``measured`` has the findings against the reference. Where no change to the worse was found, what is visible in the
    reference by itself (``look``) counts as far as only the reference has it.
    """
    if _OTHERS.search(text) or (not _NAMED.search(text) and _COMPARES.search(text)):
        return Verdict(None, "The question compares with something other than the reference picture.")
    reference = look(REFERENCE)
    if not measured.has_reference or reference is None:
        reason = "A comparison needs the reference picture, and none was given."
        return Verdict(None, reason, needed="the reference picture (--reference)")
    known = [*regions, "given", "difference", "compare", "compared", "changed"]
    asked = parse_clause(_AGAINST.sub(" ", text), known)
    clauses = [parse_clause(each, regions) for each in options.values()] or [asked]
    pictures = _images_in(options)
    if options and not pictures and (unknown := [word for clause in clauses for word in clause.unknown_words]):
        return not_understood(unknown)
    if pictures:
        clauses = [asked]
    subjects = {meaning.scale for clause in (asked, *clauses) for meaning in clause.meanings} - {"quality", "any"}
    if len(subjects) > 1 or "unmeasured" in subjects:
        return Verdict(None, "The question compares several things at once.")
    subject: Subject = subjects.pop() if subjects else "any"
    offered = [_place(clause, clauses, asked, subject) for clause in clauses]
    position = _position(subject, clauses, measured)
    about = measured.worst_of(Meaning(subject, "fault").categories)
    if position is None or about is None or None in offered:
        return Verdict(None, "The difference from the reference that the question asks for was not measured.")
    fault = Meaning(subject, "fault")
    if abs(position) < VISIBLE <= (reference.severity(fault) or 0.0):
        turned = look(REFERENCE_BESIDE_IMAGE)
        worse = (turned.severity(fault) if turned else None) or 0.0
        position = worse if worse >= OBJECTIONABLE else position
    if options and not pictures:
        return nearest(dict(zip(options, offered, strict=True)), position, [about], "difference from the reference")
    wanted = offered[0] or 0.0
    same = abs(position) < VISIBLE
    reason = "Against the reference, a difference counts from slight on."
    chosen = "same" if same else "image" if position * wanted > 0 else "reference"
    if pictures:
        letters = [letter for letter, picture in pictures.items() if picture == chosen]
        return Verdict(letters[0] if len(letters) == 1 else None, reason, [about])
    if _WHICH_IMAGE.search(text):
        return Verdict("They are about the same" if same else f"The {chosen}", reason, [about])
    holds = same if wanted == 0 else position * wanted > 0 and not same
    return Verdict(YES if holds != asked.negated else NO, reason, [about])


def compare_regions(text: str, one: MeasuredImage, other: MeasuredImage, names: Sequence[str]) -> Verdict:
    """How one part of the image compares with another, named in this order."""
    asked = parse_clause(text, [word for name in names for word in name.split()])
    subjects = {meaning.scale for meaning in asked.meanings} - {"quality", "any"}
    if len(subjects) > 1 or "unmeasured" in subjects:
        return Verdict(None, "The question compares several things at once.")
    subject: Subject = subjects.pop() if subjects else "any"
    fault = Meaning(subject, "fault", next((meaning.kind for meaning in asked.meanings), ""))
    first, second, wanted = one.severity(fault), other.severity(fault), _sign(asked, asked, subject)
    about = one.worst_of(fault.categories)
    if first is None or second is None or wanted is None or about is None:
        return Verdict(None, "The difference that the question asks for was not measured.")
    difference = second - first  # positive: the first is better
    reason = f"The severity is {first:.1f} in {names[0]} and {second:.1f} in {names[1]}."
    if VISIBLE / 2 < abs(difference) < VISIBLE:
        return Verdict(None, f"{reason} That is too near to call.", [about])
    same = abs(difference) < VISIBLE
    if _WHICH_IMAGE.search(text):
        chosen = names[0] if difference * wanted > 0 else names[1]
        return Verdict(
            "Both are about the same" if same else f"The {chosen}".replace("The the ", "The "), reason, [about]
        )
    holds = same if wanted == 0 else difference * wanted > 0 and not same
    return Verdict(YES if holds != asked.negated else NO, reason, [about])


def _compares(clause: Clause) -> bool:
    return bool(clause.comparison) or any(_COMPARATIVE.search(term.text) for term in clause.terms)


def _position(subject: Subject, clauses: Sequence[Clause], measured: MeasuredImage) -> float | None:
    """Negative: worse, or less light, color or contrast. Positive: more of them, or sharper."""
    kinds = {meaning.kind for clause in clauses for meaning in clause.meanings if meaning.sense == "fault"}
    ends = {UPPER.get(subject, ""), LOWER.get(subject, ""), ""}
    if len(kinds) == 1 and not kinds & ends:
        severity = measured.severity(Meaning(subject, "fault", kinds.pop()))
        severity = measured.severity(Meaning(subject, "fault")) if severity is None else severity
        return None if severity is None else -severity
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
    judged = [meaning for meaning in judged if meaning.subject != "any"] or judged  # "which distorted copy is sharper"
    more = -1.0 if clause.comparison == "less" else 1.0
    if clause.deficit:
        return -1.0
    if not _compares(clause):
        if judged and judged[0].kind and judged[0].kind == UPPER.get(judged[0].subject):
            return 1.0  # "too much contrast", for which the position is positive, too
        return -1.0 if judged and judged[0].sense == "fault" and subject not in ("any", "quality") else None
    if subject in TWO_SIDED and judged and judged[0].kind:
        upper = judged[0].kind in ("overexposure", "oversaturation", "high contrast")
        return more if upper or judged[0].sense == "virtue" else -more
    if judged and judged[0].kind == UPPER["clarity"]:
        return more
    faulted = judged and judged[0].sense == "fault" and subject not in ("any", "quality")
    return -more if faulted else more


def _is_amount(clause: Clause) -> bool:
    """Whether it is about more or less light, color or contrast, not about better or worse."""
    if any(meaning.sense == "fault" and not meaning.kind for meaning in clause.meanings):
        return False
    return clause.comparison in ("more", "less") or any(meaning.kind for meaning in clause.meanings)
