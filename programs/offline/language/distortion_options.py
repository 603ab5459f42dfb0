"""Options that name distortions: choose the one with the worst measurement."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from agenticiqa.programs.offline.findings import severity_word
from agenticiqa.programs.offline.language.claims import Clause, claimed_meaning, parse_clause
from agenticiqa.programs.offline.language.measured_image import OBJECTIONABLE, VISIBLE, MeasuredImage
from agenticiqa.programs.offline.language.verdicts import TIE, Verdict, cannot_exclude, cannot_tell
from agenticiqa.signatures.lexicon import DETECTABLE, Meaning, terms_in

_ABSENT = re.compile(
    r"\b(?:do|does|is|are)(?:n't| not)\b(?! it\b| the\b| this\b)|\bnot (?:present|visible|found|seen)\b|\babsent\b",
    re.I,
)
_LEAST = re.compile(r"\b(?:least|weakest|mildest|smallest|lowest|best)\b(?! describes?\b)", re.I)
_JOINED = re.compile(r"\s*(?:,|/|&|\+|\band\b|\bwith\b|\bplus\b)\s*", re.I)
_ALL = re.compile(r"(?:all|both)(?:\s+(?:of\s+)?(?:the|these|them|above|following))*", re.I)
_NONE_OF_THESE = re.compile(r"(?:none|neither)(?:\s+of\s+\w+(?:\s+\w+)?)?|none|neither", re.I)
_OTHER = re.compile(r"others?|something else|another (?:one|distortion)|other distortions?", re.I)

_Rest = Literal["", "none", "none of these", "all", "other"]


@dataclass(frozen=True)
class _Offer:
    """What an option names: faults, or, as ``rest``, a set defined by the other options."""

    faults: tuple[Meaning, ...] = ()
    rest: _Rest = ""


def names_distortions(options: Mapping[str, str], known: Collection[str] = ()) -> bool:
    """Whether every option names distortions, of several scales, or says none, all or other.

    Then they say what is asked. "Bright" and "dark" alone do not: a coffee may be dark.
    """
    offers = [_offer(text, known) for text in options.values()]
    return None not in offers and len({fault.scale for offer in offers if offer for fault in offer.faults}) > 1


def choose_distortion(
    asked: Clause, options: Mapping[str, str], measured: MeasuredImage, known: Collection[str] = ()
) -> Verdict | None:
    """The option that names the worst distortion measured, or ``None`` if the options do not name distortions."""
    offers = {letter: _offer(text, known) for letter, text in options.items()}
    if any(offer is None for offer in offers.values()):
        return None
    named = {letter: offer.faults for letter, offer in offers.items() if offer and offer.faults}
    rests = {letter: offer.rest for letter, offer in offers.items() if offer and offer.rest}
    about = {meaning.scale for meaning in asked.meanings if meaning.sense == "neutral" and meaning.subject != "quality"}
    if not named or (about and any(fault.scale not in about for faults in named.values() for fault in faults)):
        return None
    if _LEAST.search(asked.text):
        return Verdict(None, "The question asks for the least of several, which measurements rank by faults only.")
    every = list(dict.fromkeys(fault for faults in named.values() for fault in faults))
    unmeasured = any(fault.subject == "unmeasured" for fault in every)
    severities = {fault: severity for fault in every if (severity := _severity(fault, every, measured)) is not None}
    highest = max(severities.values(), default=0.0)
    several = any(len(faults) > 1 for faults in named.values()) or "all" in rests.values()
    absent = bool(_ABSENT.search(asked.text))
    for fault in every:
        bound = measured.severity(replace(fault, kind=""))  # the upper bound: the severity of its whole category
        if fault not in severities and bound is not None and (several or absent or bound > highest - TIE):
            return cannot_tell(fault, measured)
    if not severities:
        return Verdict(None, "None of the distortions offered is one that is measured.")
    if absent:
        return _absent(named, rests, severities, unmeasured)
    hidden = next((fault for fault in every if measured.may_hide(fault)), None)
    if hidden and highest < VISIBLE:
        return cannot_exclude(hidden, measured)
    if several:
        return _together(named, rests, severities, measured, unmeasured)
    return _worst(named, rests, severities, measured, unmeasured)


def _severity(fault: Meaning, offered: Sequence[Meaning], measured: MeasuredImage) -> float | None:
    """As ``MeasuredImage.severity``, but if one of several kinds offered was measured, the others have severity 0.

    If the kind of the finding is unknown, the only fault offered of a category stands for the whole category.
    """
    severity = measured.severity(fault)
    if severity is not None or len(fault.categories) != 1 or fault.categories[0] not in measured.findings:
        return severity
    kind = measured.kind_of(fault.categories[0])
    rivals = [other for other in offered if other.categories == fault.categories and other != fault]
    if not kind:
        return None if rivals else measured.severity(replace(fault, kind=""))
    return 0.0 if any(rival.kind == kind for rival in rivals) else None


def _offer(text: str, known: Collection[str]) -> _Offer | None:
    plain = text.strip(" .!?\"'")
    for pattern, rest in ((_ALL, "all"), (_OTHER, "other")):
        if pattern.fullmatch(plain):
            return _Offer(rest=rest)  # type: ignore[arg-type]
    if _NONE_OF_THESE.fullmatch(plain):
        return _Offer(rest="none of these" if " " in plain or plain.lower() == "neither" else "none")
    faults = []
    for part in _parts(plain):
        if not part or part.lower() in ("both", "either"):
            continue
        clause = parse_clause(part.removeprefix("both ").removeprefix("Both "), known)
        fault = _fault(clause)
        if clause.unknown_words or fault is None:
            return None
        faults += [fault]
    if any(fault.sense == "virtue" or fault.subject == "any" for fault in faults):
        clean = all(fault.sense == "virtue" for fault in faults)
        return _Offer(rest="none") if clean else None
    return _Offer(faults=tuple(dict.fromkeys(faults))) if faults else None


def _parts(text: str) -> list[str]:
    """The text, split where "and" and the like join two names, but not inside of one ("salt and pepper")."""
    terms = terms_in(text)
    joints = [j for j in _JOINED.finditer(text) if not any(t.start < j.end() and j.start() < t.end for t in terms)]
    ends = [0, *(end for joint in joints for end in joint.span()), len(text)]
    return [text[start:end] for start, end in zip(ends[::2], ends[1::2], strict=True)]


def _fault(clause: Clause) -> Meaning | None:
    """The distortion that a part of an option names; a virtue if it negates one."""
    meaning = claimed_meaning(clause) or next(iter(clause.meanings), None)
    if meaning is None or meaning.subject == "quality" or clause.comparison:
        return None
    if clause.negated:
        return Meaning(meaning.subject, "virtue") if meaning.sense == "fault" else None
    if meaning.sense in ("neutral", "more"):
        sharpness = meaning.subject == "clarity" and clause.terms[0].text.lower() == "sharpness"
        return Meaning("Sharpness" if sharpness else meaning.subject, "fault", meaning.kind)
    return meaning


def _worst(
    named: Mapping[str, Sequence[Meaning]],
    rests: Mapping[str, _Rest],
    severities: Mapping[Meaning, float],
    measured: MeasuredImage,
    some_unmeasured: bool,
) -> Verdict:
    ranked = sorted(
        ((severities[faults[0]], letter) for letter, faults in named.items() if faults[0] in severities), reverse=True
    )
    best, letter = ranked[0]
    categories = [category for fault in severities for category in fault.categories]
    elsewhere = max((f.severity for c, f in measured.findings.items() if c not in categories), default=0.0)
    about = list(named[letter][0].categories)
    other = [key for key, rest in rests.items() if rest == "other"]
    if other and elsewhere >= VISIBLE and elsewhere > best + TIE:
        return Verdict(other[0], "The worst distortion measured is none of those offered.", measured.visible[:1])
    if best < VISIBLE:
        return _nothing(rests, measured, some_unmeasured)
    if len(ranked) > 1 and best - ranked[1][0] < TIE:
        both = list(dict.fromkeys([*about, *named[ranked[1][1]][0].categories]))
        return Verdict(None, f"Options {ranked[1][1]} and {letter} are measured as equally severe.", both)
    if some_unmeasured and best < OBJECTIONABLE:
        return Verdict(None, "What is measured is slight, and not all that is offered is measured.", about)
    return Verdict(letter, f"Of the distortions offered, {letter} has the worst measurement.", about)


def _nothing(rests: Mapping[str, _Rest], measured: MeasuredImage, some_unmeasured: bool) -> Verdict:
    fitting = [
        letter
        for letter, rest in rests.items()
        if rest == "none of these" or (rest == "none" and measured.worst_severity < VISIBLE)
    ]
    if len(fitting) != 1 or some_unmeasured:
        return Verdict(None, "None of the distortions offered is visible in the measurements.", measured.visible[:1])
    return Verdict(fitting[0], "None of the distortions offered is visible in the measurements.", measured.visible[:1])


def _together(
    named: Mapping[str, Sequence[Meaning]],
    rests: Mapping[str, _Rest],
    severities: Mapping[Meaning, float],
    measured: MeasuredImage,
    some_unmeasured: bool,
) -> Verdict:
    """If an option names several distortions: the option that names exactly those that were measured."""
    if some_unmeasured:
        return Verdict(None, "Not all of the distortions offered are measured.")
    present: set[Meaning] = set()
    for limit in (OBJECTIONABLE, VISIBLE):
        present = present or {fault for fault, severity in severities.items() if severity >= limit}
    if not present:
        return _nothing(rests, measured, False)
    about = [name for name in DETECTABLE if any(name in fault.categories for fault in present)]
    fitting = [letter for letter, faults in named.items() if set(faults) == present]
    fitting += [letter for letter, rest in rests.items() if rest == "all" and present == set(severities)]
    if len(fitting) != 1:
        return Verdict(None, "No single option names exactly the distortions that were measured.", about)
    least = severity_word(OBJECTIONABLE if max(severities.values()) >= OBJECTIONABLE else VISIBLE)
    return Verdict(fitting[0], f"{fitting[0]} names exactly those that are {least} or worse.", about)


def _absent(
    named: Mapping[str, Sequence[Meaning]],
    rests: Mapping[str, _Rest],
    severities: Mapping[Meaning, float],
    some_unmeasured: bool,
) -> Verdict:
    missing = [
        letter for letter, faults in named.items() if all(severities.get(fault, VISIBLE) < VISIBLE for fault in faults)
    ]
    missing = missing or [letter for letter, rest in rests.items() if rest == "none of these"]
    if len(missing) != 1 or some_unmeasured:
        return Verdict(
            None, f"Not visible are {', '.join(missing) or 'none of the options'}, so that no one option fits."
        )
    return Verdict(missing[0], f"{missing[0]} is the only one offered that is not visible in the measurements.")
