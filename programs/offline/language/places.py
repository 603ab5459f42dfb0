"""Where in the image something is: its parts are measured one by one and compared."""

import re
from collections.abc import Callable, Mapping
from statistics import fmean

from agenticiqa.programs.offline.language.claims import Clause, claimed_meaning
from agenticiqa.programs.offline.language.measured_image import VISIBLE, MeasuredImage
from agenticiqa.programs.offline.language.verdicts import Verdict, cannot_tell
from agenticiqa.signatures.lexicon import Meaning

Look = Callable[[str], MeasuredImage | None]
"""What was measured under a name: one of these, or a part of the image; ``None`` for what is not there."""
IMAGE = ""  # the whole image, against the reference if there is one
REFERENCE = "the reference"  # by itself
REFERENCE_BESIDE_IMAGE = "the reference beside the image"  # against the image: what only the reference has

MARGIN = 0.6  # severity by which a part must be worse than the others to be named
HALVES = ("left half", "right half", "top half", "bottom half")
CORNERS = ("top left corner", "top right corner", "bottom left corner", "bottom right corner")
_ROWS = "top left, top middle, top right, left middle, center, right middle, bottom left, bottom middle, bottom right"
# The nine parts by their place (column and row), and which of them a side has.
NINTHS = {f"{name} ninth": (index % 3, index // 3) for index, name in enumerate(_ROWS.split(", "))}
PARTS = tuple(NINTHS)
SIDES = {side: [part for part in PARTS if side in part] for side in ("left", "right", "top", "bottom")}
_OPPOSITE = {"left half": "right half", "top half": "bottom half"} | {
    "right half": "left half",
    "bottom half": "top half",
}
_PLACE = re.compile(
    r"(?:(?:upper|lower|top|bottom|left|right|cent(?:er|re|ral)|middle)(?:[\s-]+hand)?[\s-]*)+"
    r"(?:half|side|corner|part|area|third|quarter|quadrant|region|section)?(?: of .*)?"
)
_LESS = re.compile(r"\b(?:least|less|fewer|fewest|lowest|weakest)\b", re.I)
_BEST = re.compile(r"\b(?:best|better|cleanest|clearest|sharpest|crispest)\b", re.I)


def find_place(text: str, asked: Clause, options: Mapping[str, str], look: Look) -> Verdict:
    """The part of the image where what is asked for is worst, by name or by the letter of an option.

    ``look`` measures a part of the image by its name, and gives ``None`` for what it cannot place.
    """
    meaning = claimed_meaning(asked) or (asked.meanings[0] if asked.meanings else Meaning("any", "fault"))
    fault = Meaning(meaning.subject, "fault", meaning.kind if meaning.sense == "fault" else "")
    if fault.subject in ("quality", "unmeasured"):
        fault = Meaning("any", "fault")
    least = _wants_least(asked)
    if options:
        return _offered(options, fault, least, look)
    halves = re.search(r"\b(?:half|side)\b|\b(left|right|top|bottom|upper|lower)(?: or\b|/)", text, re.I)
    names = HALVES if halves else CORNERS if re.search(r"\bcorner\b", text, re.I) else PARTS
    if halves and re.search(r"\bleft\b|\bright\b", text, re.I):
        names = HALVES[:2]
    elif halves and re.search(r"\btop\b|\bbottom\b|\bupper\b|\blower\b", text, re.I):
        names = HALVES[2:]
    severities = _severities(names, fault, look)
    if severities is None:
        measured = look("")
        return cannot_tell(fault, measured) if measured else Verdict(None, "The image was not measured.")
    about = [name for name in fault.categories if len(fault.categories) == 1]
    reason = (
        "Measured part by part: " + ", ".join(f"{name} {value:.1f}" for name, value in severities.items()) + " of 4."
    )
    highest, lowest = max(severities.values()), min(severities.values())
    if highest < VISIBLE:
        return Verdict(None, f"{reason} No part shows it visibly.", about)
    if highest - lowest < MARGIN:
        everywhere = "Everywhere, no part stands out" if lowest >= VISIBLE else None
        return Verdict(everywhere, f"{reason} No one part stands out.", about)
    if names == PARTS:
        place = _worst_part(severities)
        return Verdict(place[0].upper() + place[1:], reason, about)
    margins = {name: value - severities.get(_OPPOSITE.get(name, ""), lowest) for name, value in severities.items()}
    ranked = sorted(margins, key=lambda name: margins[name], reverse=not least)
    if abs(margins[ranked[0]] - margins[ranked[1]]) < MARGIN / 2:
        return Verdict(None, f"{reason} No one part stands out.", about)
    return Verdict(f"The {ranked[0]}", reason, about)


def _wants_least(asked: Clause) -> bool:
    """Whether the part is asked for that shows it least: "sharper", "less noisy", but not "less sharp"."""
    judged = next((term for term in asked.terms if term.meaning.sense in ("fault", "virtue")), None)
    if judged is None:
        return bool(_BEST.search(asked.text) or _LESS.search(asked.text))
    praised = judged.meaning.sense == "virtue" or bool(_BEST.search(asked.text))
    return praised ^ bool(_LESS.search(asked.text[: judged.start])) ^ asked.negated


def _worst_part(severities: Mapping[str, float]) -> str:
    """The side, if all of it is worse than the rest; otherwise the single worst part."""
    worst = max(severities, key=lambda name: severities[name])
    bad = {name for name, value in severities.items() if value > (severities[worst] + min(severities.values())) / 2}
    for side, parts in SIDES.items():
        if set(parts) <= bad and len(bad) <= len(parts) + 3 and fmean(severities[part] for part in parts) > VISIBLE:
            return f"the {side} side"
    return f"the {worst.removesuffix(' ninth')}"


def names_place(text: str) -> bool:
    """Whether a text is nothing but a place in the frame."""
    return bool(_PLACE.fullmatch(place_named(text)))


def name_places(options: Mapping[str, str]) -> bool:
    """Whether every option is a place in the frame: then the question asks where."""
    return bool(options) and all(map(names_place, options.values()))


def place_named(text: str) -> str:
    """The name of a place, as ``place_in_frame`` takes it: "In the upper-left corner" is "upper-left corner"."""
    return re.sub(r"^\W*(?:(?:it is|mostly|only|in|on|at|near|to|towards?)\s+)*(?:the\s+)?", "", text.lower()).strip(
        " ."
    )


def _offered(options: Mapping[str, str], fault: Meaning, least: bool, look: Look) -> Verdict:
    names = {letter: place_named(text) for letter, text in options.items()}
    severities = _severities(tuple(names.values()), fault, look)
    if severities is None:
        return Verdict(None, "Not every part that is offered can be found in the image.")
    by_letter = {letter: severities[name] for letter, name in names.items()}
    ranked = sorted(by_letter, key=lambda letter: by_letter[letter], reverse=not least)
    reason = (
        "Measured part by part: " + ", ".join(f"{names[each]} {by_letter[each]:.1f}" for each in by_letter) + " of 4."
    )
    if not least and by_letter[ranked[0]] < VISIBLE:
        return Verdict(None, f"{reason} No part shows it visibly.")
    if abs(by_letter[ranked[0]] - by_letter[ranked[1]]) < MARGIN / 2:
        return Verdict(None, f"{reason} No one part stands out.")
    return Verdict(ranked[0], reason)


def _severities(names: tuple[str, ...], fault: Meaning, look: Look) -> dict[str, float] | None:
    found: dict[str, float] = {}
    for name in names:
        measured = look(name)
        severity = measured.severity(fault) if measured else None
        if severity is None:
            return None
        found[name] = severity
    return found
