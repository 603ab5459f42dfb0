"""Answer multiple-choice questions from the measurements; the network interprets the options."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from agenticiqa.programs.offline.answers.asked import Asked
from agenticiqa.programs.offline.answers.halves import TWO_SIDED
from agenticiqa.programs.offline.answers.measured_image import (
    OBJECTIONABLE,
    PRESENT,
    VISIBLE,
    MeasuredImage,
)
from agenticiqa.programs.offline.answers.question_reader import (
    AMOUNT,
    FAULTS,
    OTHER,
    Read,
    fault_named,
    in_context,
    main_kind,
    read_text,
)
from agenticiqa.programs.offline.answers.rule_answer import (
    NOT_UNDERSTOOD,
    TIE,
    RuleAnswer,
    cannot_exclude,
    cannot_grade,
    cannot_tell,
    nearest,
    nearest_degree,
)
from agenticiqa.programs.offline.answers.rules import LEVEL_OF
from agenticiqa.signatures.categories import BRIGHTNESS
from agenticiqa.signatures.lexicon import LOWER, UPPER, Meaning, fold_severity, terms_in
from agenticiqa.signatures.vocabulary import SEVERITIES

READ = 0.5  # minimum probability of the subject of an option or of the question
ALONE = 0.9  # minimum probability at which the subject of an option is clear without its question
WORST_LEVEL, WORST_SEVERITY = 5.0, 4.0
CLEARLY = 0.5  # severity by which an option must be nearer than the next one, given the error of the predicted level
ORDERED = 0.8  # minimum correlation of the levels with their order in the list for this order to be used
OPPOSITES = {UPPER[BRIGHTNESS], LOWER[BRIGHTNESS]}  # kinds of one category, but not degrees of one kind
_QUALITY = re.compile(r"\b(?:quality|rating|(?:good|bad) or (?:good|bad))\b", re.I)
_NONE = re.compile(r"\W*(?:none|neither|no (?:visible )?(?:distortion|problem|fault|defect|flaw)s?)\b", re.I)
_OF_THESE = re.compile(r"\bof (?:the|these|those|them)\b|\bneither\b", re.I)
_ABSENT = re.compile(
    r"\b(?:do|does|is|are)(?:n't| not)\b(?! it\b| the\b| this\b)|\bnot (?:present|visible|found|seen)\b|\babsent\b",
    re.I,
)
_PROBLEM = (
    r"(?:\w+ )?(?:problem|issue|flaw|fault|defect|distortion|degradation|impairment|art[ei]fact|one|option|choice)s?"
)
# Questions for the offered distortion that is absent: "Which of these is not a problem?"
_WHICH_NOT = re.compile(
    rf"\W*(?:which|what)(?: (?:one )?of (?:the|these|those)(?: following)?)?(?: (?:\w+ )?{_PROBLEM})?"
    r" (?:(?:is|are|does|do)(?:n't| not)|(?:is|are) (?:absent|missing)|(?:is|are|does|do) (?:\w+ ){1,2}not)\b"
    r"|\W*all (?:of (?:the|these|those)(?: following)? )?(?:[\w']+ ){1,5}except\b",
    re.I,
)
_LEAST = re.compile(r"(?<!at )\bleast\b|\b(?:weakest|weaker|smallest|smaller|mildest|milder|lowest)\b", re.I)
_REFERENCE = re.compile(r"\b(?:reference|original|pristine|source)\b", re.I)


def names_reference(text: str) -> bool:
    """Return whether a text names the reference."""
    return bool(_REFERENCE.search(text))


def choose_quality(question: Asked, measured: MeasuredImage) -> RuleAnswer | None:
    """Return the option nearest to the quality; ``None`` unless all are quality levels."""
    levels = {letter: _level(text) for letter, text in question.options.items()}
    said = f"{question.text} {' '.join(question.options.values())}"
    if None in levels.values() or question.named or (question.text and not _QUALITY.search(said)):
        return None
    return nearest(levels, measured.level, measured.visible[:2], f"quality ({measured.level:.1f} of 5)")


def choose(question: Asked, measured: MeasuredImage) -> RuleAnswer:
    """Return the best option: the worst of several distortions, or the nearest degree of one."""
    if chosen := _property_level(question, measured):
        return chosen
    read = {letter: _read_option(question.text, text) for letter, text in question.options.items()}
    clear = [option.about.name for option in read.values() if option.about.category >= READ]
    faults = {name for name in clear if name in FAULTS}
    opposite = {FAULTS[name].kind for name in faults} >= OPPOSITES
    kinds = {term.meaning.kind for text in question.options.values() for term in terms_in(text)} - {""}
    if len({main_kind(name) for name in faults}) > 1 or len(kinds) > 1 or opposite:
        unclear = min(option.about.category for option in read.values()) < READ
        return NOT_UNDERSTOOD if unclear or AMOUNT in clear else _worst(question, read, measured)
    about = _one_fault(question, faults, clear)
    if about is None or OTHER in clear:
        return NOT_UNDERSTOOD
    return _nearest_degree(about, question.options, {letter: option.level for letter, option in read.items()}, measured)


def choose_absent(question: Asked, measured: MeasuredImage) -> RuleAnswer | None:
    """Return the only offered distortion that is not visible, if the question asks for it; ``None`` for another one."""
    is_named = any(meaning.subject != "any" for meaning in question.named) or "virtue" in question.senses
    if is_named or not _WHICH_NOT.match(question.text):
        return None
    faults = {letter: _faults(text, _read_option(question.text, text)) for letter, text in question.options.items()}
    if any(len(each) != 1 for each in faults.values()):
        return None
    every = [fault for (fault,) in faults.values()]
    absent = []
    for letter, (fault,) in faults.items():
        severity = _severity(fault, every, measured)
        if severity is None:
            return cannot_tell(fault, measured)
        if severity < VISIBLE:
            if measured.may_hide(fault):
                return cannot_exclude(fault, measured)
            absent.append(letter)
    if not absent:
        return RuleAnswer(None, "All offered distortions are visible in the measurements.")
    if len(absent) > 1:
        return RuleAnswer(None, f"Several offered distortions are not visible: {' and '.join(absent)}.")
    reason = f"{absent[0]} is the only offered distortion that is not visible in the measurements."
    return RuleAnswer(absent[0], reason, faults[absent[0]][0].categories)


def _property_level(question: Asked, measured: MeasuredImage) -> RuleAnswer | None:
    """Return the option ("High", "Poor") nearest to the amount of a property; ``None`` for other options."""
    levels = {letter: _level(text) for letter, text in question.options.items()}
    if (
        None in levels.values()
        or {meaning.sense for meaning in question.named} != {"neutral"}
        or len({meaning.scale for meaning in question.named}) > 1
    ):
        return None
    fault = Meaning(question.named[0].subject, "fault")
    of_amount = re.search(r"\b(?:high|low)\b", " ".join(question.options.values()), re.I)
    if of_amount and fault.subject in TWO_SIDED:
        signed = measured.signed_severity(fault.subject)
        places = {letter: 3.0 * ((level or 3) > 3) - 3.0 * ((level or 3) < 3) for letter, level in levels.items()}
        if signed is None:
            return cannot_tell(fault, measured)
        return nearest(
            places,
            signed,
            fault.categories,
            f"{fault.subject.lower()} ({signed:+.1f}; -4 is much too little, 4 much too much)",
        )
    severity = measured.severity(fault)
    if severity is None:
        return cannot_tell(fault, measured)
    return nearest_degree({letter: 5 - (level or 0) for letter, level in levels.items()}, severity, fault, measured)


@dataclass(frozen=True)
class _Option:
    """The subject of an option, and how much of it the option claims, 0 (none) to 5."""

    about: Read
    level: float


def _read_option(question: str, text: str) -> _Option:
    alone, behind = read_text(text), read_text(in_context(question, text))
    is_clear = alone.meaning.name in FAULTS and alone.meaning.category >= ALONE
    return _Option((alone if is_clear else behind).meaning, (alone.level + behind.level) / 2)


def _level(text: str) -> float | None:
    words = " ".join(
        word for word in re.findall(r"[a-z]+", text.lower()) if word not in ("quality", "image", "it", "is")
    )
    return LEVEL_OF.get(words)


def _one_fault(question: Asked, faults: set[str], clear: list[str]) -> Meaning | None:
    """Return the one distortion that the question and its options are about."""
    if question.fault and question.fault.subject != "any":
        meanings = [fault for name in faults if (fault := fault_named(name))]
        return question.fault if all(fault.scale == question.fault.scale for fault in meanings) else None
    if faults:
        return fault_named(max(faults, key=clear.count))
    return question.fault if question.what == "degree" else None


def _worst(question: Asked, read: Mapping[str, _Option], measured: MeasuredImage) -> RuleAnswer:
    """Return the option that names the worst of several distortions, or none or another one if none is visible."""
    meanings = {letter: _faults(question.options[letter], option) for letter, option in read.items()}
    meanings = {letter: faults for letter, faults in meanings.items() if faults}
    every = list(dict.fromkeys(fault for faults in meanings.values() for fault in faults))
    rest = {letter: option.about.name for letter, option in read.items() if letter not in meanings}
    severities = {fault: _severity(fault, every, measured) for fault in every}
    known = {fault: severity for fault, severity in severities.items() if severity is not None}
    highest = max(known.values(), default=0.0)
    if _ABSENT.search(question.text) or any(len(faults) > 1 for faults in meanings.values()):
        return NOT_UNDERSTOOD
    for fault in severities.keys() - known.keys():  # may be the worst: bounded by the severity of its category
        bound = measured.severity(replace(fault, kind=""))
        if bound is not None and bound > highest - TIE:
            return cannot_tell(fault, measured)
    if _LEAST.search(question.text):
        return _least(question, {letter: known.get(faults[0]) for letter, faults in meanings.items()})
    hidden = next((fault for fault in every if measured.may_hide(fault)), None)
    if hidden and highest < VISIBLE:
        return cannot_exclude(hidden, measured)
    none = [letter for letter, name in rest.items() if name != OTHER]
    of_one = len({fault.scale for fault in every}) == 1  # "too low", "fine" and "too high" are degrees
    if highest < (OBJECTIONABLE if of_one and none else VISIBLE):
        if highest >= VISIBLE and measured.may_be_more(max(known, key=known.__getitem__)):
            return cannot_grade(max(known, key=known.__getitem__), measured)
        fits = len(none) == 1 and (
            of_one or measured.worst_severity < VISIBLE or _OF_THESE.search(question.options[none[0]])
        )
        reason = "None of the offered distortions is visible in the measurements."
        return RuleAnswer(none[0] if fits else None, reason, measured.visible[:1])
    best, *others = sorted(meanings, key=lambda letter: -known.get(meanings[letter][0], 0.0))
    about = meanings[best][0].categories
    covered = {category for fault in every for category in fault.categories}
    uncovered = [finding.severity for name, finding in measured.findings.items() if name not in covered]
    elsewhere = max(uncovered, default=0.0)
    other = next((letter for letter, name in rest.items() if name == OTHER), "")
    if other and elsewhere >= VISIBLE and elsewhere > highest + TIE:
        return RuleAnswer(other, "The worst measured distortion is not among the options.", measured.visible[:1])
    if others and highest - known.get(meanings[others[0]][0], 0.0) < TIE:
        return RuleAnswer(None, f"Options {others[0]} and {best} have the same measured severity.", about)
    return RuleAnswer(best, f"{best} has the highest measured severity of the offered distortions.", about)


def _least(question: Asked, severities: Mapping[str, float | None]) -> RuleAnswer:
    """Return the option with the lowest severity, if it is the only one; ``None`` stands for an unknown severity."""
    known = {letter: severity for letter, severity in severities.items() if severity is not None}
    if not question.senses <= {"fault"} or known.keys() != question.options.keys():
        return NOT_UNDERSTOOD
    first, second, *_ = sorted(known, key=known.__getitem__)
    if known[second] - known[first] < TIE or known[second] < VISIBLE:
        return RuleAnswer(None, f"Options {first} and {second} have about the same measured severity.")
    return RuleAnswer(first, f"{first} has the lowest measured severity of the offered distortions.")


def _faults(text: str, option: _Option) -> tuple[Meaning, ...]:
    """Return the distortions that an option names; several only if its words name several."""
    terms = terms_in(text)
    words = list(dict.fromkeys(term.meaning for term in terms if term.meaning.sense == "fault"))
    if {term.meaning.sense for term in terms} == {"virtue"}:
        return ()
    if len({word.scale for word in words}) > 1:
        return tuple(words)
    fault = fault_named(option.about.name)
    return () if fault is None or _NONE.match(text) or _level(text) == 3 else (_exact(text, fault),)


def _exact(text: str, fault: Meaning) -> Meaning:
    """Return the distortion with the kind that the words of an option name."""
    kinds = {term.meaning.kind for term in terms_in(text) if {*term.meaning.categories} & {*fault.categories}} - {""}
    return replace(fault, kind=kinds.pop()) if len(kinds) == 1 else fault


def _severity(fault: Meaning, offered: list[Meaning], measured: MeasuredImage) -> float | None:
    """Return ``MeasuredImage.severity``, but 0 if another of several offered kinds was measured.

    If the kind of the finding is unknown, the only offered distortion of a category stands for the whole category.
    """
    severity = measured.severity(fault)
    if severity is not None or len(fault.categories) != 1 or fault.categories[0] not in measured.findings:
        return severity
    kind = measured.kind_of(fault.categories[0])
    rivals = [other for other in offered if other.categories == fault.categories and other != fault]
    if not kind:
        return None if rivals else measured.severity(replace(fault, kind=""))
    return 0.0 if any(rival.kind == kind for rival in rivals) else None


def _nearest_degree(
    fault: Meaning, options: Mapping[str, str], levels: Mapping[str, float], measured: MeasuredImage
) -> RuleAnswer:
    severity = measured.severity(fault)
    if severity is None:
        return cannot_tell(fault, measured)
    if severity < PRESENT and measured.may_hide(fault):
        return cannot_exclude(fault, measured)
    places = {letter: level / WORST_LEVEL * WORST_SEVERITY for letter, level in in_listed_order(levels).items()}
    words = {letter: degree for letter, text in options.items() if (degree := _degree(text)) is not None}
    if len(words) + 1 >= len(options) and len({*words.values()}) == len(words):
        return nearest_degree(places | words, severity, fault, measured)
    nearer, other, *_ = sorted(abs(place - severity) for place in places.values())
    if other - nearer < CLEARLY:
        return RuleAnswer(None, f"Two options fit the measured severity ({severity:.1f} of 4) equally well.")
    return nearest_degree(places, severity, fault, measured)


def _degree(text: str) -> float | None:
    """Return the severity that an option states as a word of the vocabulary, besides the name of the distortion."""
    for term in terms_in(text):
        text = text.replace(term.text, "")
    word = fold_severity(re.sub(r"^\W*(?:yes|it is|is)?\W*|\W+$", "", text))
    return float(SEVERITIES.index(word)) if word else None


def in_listed_order(levels: Mapping[str, float]) -> dict[str, float]:
    """Replace levels that rise or fall along the list by evenly spaced ones, as most degrees are listed in order.

    The result is the best linear fit if the levels follow a line; fewer than three levels are unchanged.
    """
    read, order = np.array(list(levels.values())), np.arange(len(levels))
    if len(levels) < 3 or not read.std() or abs(np.corrcoef(order, read)[0, 1]) < ORDERED:
        return dict(levels)
    return dict(zip(levels, map(float, np.polyval(np.polyfit(order, read, 1), order)), strict=True))
