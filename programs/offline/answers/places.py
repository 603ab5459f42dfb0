"""Answer where a distortion is: in which part of the image it is worst, or least."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from agenticiqa.programs.offline.answers.asked import Asked, side_named
from agenticiqa.programs.offline.answers.halves import ComparedHalves
from agenticiqa.programs.offline.answers.measured_image import VISIBLE, Look, MeasuredImage
from agenticiqa.programs.offline.answers.rule_answer import (
    NO,
    NOT_UNDERSTOOD,
    YES,
    RuleAnswer,
    cannot_tell,
    yes_no_letter,
)
from agenticiqa.signatures.lexicon import Meaning
from agenticiqa.signatures.vocabulary import DetectableDistortion

MARGIN = 0.6  # severity by which a part must be worse than the others to be the answer
_ROWS = "top left, top middle, top right, left middle, center, right middle, bottom left, bottom middle, bottom right"
# The nine parts with their place (column and row), and the parts of each side.
NINTHS = {f"{name} ninth": (index % 3, index // 3) for index, name in enumerate(_ROWS.split(", "))}
SIDES = {side: [part for part in NINTHS if side in part] for side in ("left", "right", "top", "bottom")}
HALF = ("half", "half-clean")  # the intents of a question about halves
_PLACE = re.compile(
    r"\W*+(?:(?:it is|mostly|only|in|on|at|near|to|towards?|the)\s++)*+"
    r"(?:(?:upper|lower|top|bottom|left|right|cent(?:er|re|ral)|middle)(?:[\s-]++hand)?[\s-]*+)+"
    r"(?:half|side|corner|part|area|third|quarter|quadrant|region|section|edge|end|border)?(?: of .*+)?\W*+",
    re.I,
)
_LESS = re.compile(r"\b(?:least|less|fewer|fewest|lowest|weakest|not)\b", re.I)
_BEST = re.compile(r"\b(?:best|better|cleanest|clearest|sharpest|crispest)\b", re.I)
_ACROSS = re.compile(r"\b(?:top|bottom|upper|lower(?! in\b| contrast\b| saturation\b| quality\b)|above|below)\b", re.I)
_ALIKE = "No single part stands out."


def where(question: Asked, measured: MeasuredImage, look: Look) -> RuleAnswer:
    """Return the part with the most of the distortion, or the least if the question asks for that.

    It is the letter of an offered place, a side for a question about halves, otherwise any part.
    """
    if question.fault is None:
        return NOT_UNDERSTOOD
    severities: dict[str, float] = {}
    for part in NINTHS:
        ninth = look(part)
        severity = _amount(ninth, question.fault) if ninth else None
        if severity is None:
            return cannot_tell(question.fault, measured)
        severities[part] = severity
    scale = "0 to 4" if question.fault.sense == "fault" else "from -4, much too little, to 4, much too much"
    reason = f"Severity by part ({scale}): {', '.join(f'{part} {value:.1f}' for part, value in severities.items())}."
    about: Sequence[DetectableDistortion] = question.fault.categories if len(question.fault.categories) == 1 else ()
    highest, lowest = max(severities.values()), min(severities.values())
    if max(highest, -lowest) < VISIBLE:
        return RuleAnswer(None, f"{reason} The distortion is not visible in any part.", about)
    if highest - lowest < MARGIN:
        everywhere = "In the whole image; no part is worse than the others" if lowest >= VISIBLE else None
        return RuleAnswer(None if question.options else everywhere, f"{reason} {_ALIKE}", about)
    if question.options:
        places = {letter: _parts_of(text) for letter, text in question.options.items()}
        if not all(places.values()):
            return NOT_UNDERSTOOD
    elif question.what in HALF:
        places = {f"The {side} half": SIDES[side] for side in _sides_in(question.text)}
    else:
        place = _worst_part(severities)
        return RuleAnswer(place[0].upper() + place[1:], reason, about)
    means = {name: fmean(severities[part] for part in parts) for name, parts in places.items()}
    first, second, *_ = sorted(means, key=means.__getitem__, reverse=not _wants_least(question))
    if abs(means[first] - means[second]) < MARGIN / 2:
        return RuleAnswer(None, f"{reason} {_ALIKE}", about)
    return RuleAnswer(first, reason, about)


def compare_halves(question: Asked, comparison: ComparedHalves, measured: MeasuredImage, look: Look) -> RuleAnswer:
    """Answer which half has more of what is compared, or less, or whether the first half has."""
    what = "half-clean" if comparison.is_least else "half"
    options = {} if comparison.sides else question.options
    found = where(replace(question, what=what, fault=comparison.by, options=options), measured, look)
    if comparison.sides is None or found.answer is None:
        return found
    is_first = found.answer == f"The {comparison.sides[0]} half"
    answer = replace(found, answer=f"{YES if is_first else NO}, {found.answer[0].lower()}{found.answer[1:]}")
    return yes_no_letter(question.options, answer)


def _amount(part: MeasuredImage, meaning: Meaning) -> float | None:
    """Return the severity of a flaw; of an amount, such as "brighter", how far it is above the usual one."""
    return part.severity(meaning) if meaning.sense == "fault" else part.signed_severity(meaning.subject)


def name_places(options: Mapping[str, str]) -> bool:
    """Return whether every option is only a place in the frame, so that the question asks where."""
    return bool(options) and all(_PLACE.fullmatch(text) and _parts_of(text) for text in options.values())


def _parts_of(place: str) -> list[str]:
    """Return the ninths that a place covers: three for a side, one for a corner or the center."""
    name = side_named(f"the {place}")
    return SIDES.get(name) or [part for part in NINTHS if part == f"{name} ninth"]


def _sides_in(text: str) -> Iterable[str]:
    """Return the sides that a question about halves compares: those across, those up and down, or all."""
    if re.search(r"\b(?:left|right)\b", text, re.I):
        return ("left", "right")
    return ("top", "bottom") if _ACROSS.search(text) else SIDES


def _wants_least(question: Asked) -> bool:
    """Return whether the question requests the part with the least: "sharper", "less noisy", not "less sharp"."""
    if question.what in HALF:
        return question.what == "half-clean"
    assessed = next((term for term in question.terms if term.meaning.sense in ("fault", "virtue")), None)
    if assessed is None:
        return bool(_BEST.search(question.text) or _LESS.search(question.text))
    praised = assessed.meaning.sense == "virtue" or bool(_BEST.search(question.text))
    return praised ^ bool(_LESS.search(question.text[: assessed.start]))


def _worst_part(severities: Mapping[str, float]) -> str:
    """Return a side if all of it is worse than the rest, otherwise the single worst part."""
    worst = max(severities, key=lambda name: severities[name])
    bad = {name for name, value in severities.items() if value > (severities[worst] + min(severities.values())) / 2}
    for side, parts in SIDES.items():
        if {*parts} <= bad and len(bad) <= len(parts) + 3 and fmean(severities[part] for part in parts) > VISIBLE:
            return f"the {side} side"
    return f"the {worst.removesuffix(' ninth')}"
