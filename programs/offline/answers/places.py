"""Answer where a distortion is, in which half, and which of two parts has more of it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from agenticiqa.programs.offline.answers.asked import Asked
from agenticiqa.programs.offline.answers.measured_image import IMAGE, VISIBLE, Look, MeasuredImage
from agenticiqa.programs.offline.answers.rule_answer import NOT_UNDERSTOOD, RuleAnswer, cannot_tell, yes_or_no
from agenticiqa.signatures.lexicon import Meaning
from agenticiqa.signatures.vocabulary import DetectableDistortion

MARGIN = 0.6  # severity by which a part must be worse than the others to be the answer
HALVES = ("left half", "right half", "top half", "bottom half")
_ROWS = "top left, top middle, top right, left middle, center, right middle, bottom left, bottom middle, bottom right"
# The nine parts with their place (column and row), and the parts of each side.
NINTHS = {f"{name} ninth": (index % 3, index // 3) for index, name in enumerate(_ROWS.split(", "))}
SIDES = {side: [part for part in NINTHS if side in part] for side in ("left", "right", "top", "bottom")}
_PLACE = re.compile(
    r"(?:(?:upper|lower|top|bottom|left|right|cent(?:er|re|ral)|middle)(?:[\s-]+hand)?[\s-]*)+"
    r"(?:half|side|corner|part|area|third|quarter|quadrant|region|section|edge|end|border)?(?: of .*)?"
)
_ACROSS = re.compile(r"\bleft\b|\bright\b", re.I)
_UPRIGHT = re.compile(r"\btop\b|\bbottom\b|\bupper\b|\blower\b|\babove\b|\bbelow\b", re.I)
_LESS = re.compile(r"\b(?:least|less|fewer|fewest|lowest|weakest|not)\b", re.I)
_BEST = re.compile(r"\b(?:best|better|cleanest|clearest|sharpest|crispest)\b", re.I)
_NO_PART = "The distortion is not visible in any part."
_NO_ONE_PART = "No single part stands out."


def where(asked: Asked, measured: MeasuredImage, look: Look) -> RuleAnswer:
    """Return the part of the image where the distortion is worst."""
    severities = _measured(NINTHS, asked, look)
    if isinstance(severities, RuleAnswer):
        return severities
    place = _worst_part(severities)
    return _unless_alike(severities, asked) or RuleAnswer(
        place[0].upper() + place[1:], _reason(severities), _about(asked)
    )


def half(asked: Asked, measured: MeasuredImage, look: Look) -> RuleAnswer:
    """Return the half with more of the distortion than the opposite half (for "half-clean", with less)."""
    names = HALVES[:2] if _ACROSS.search(asked.text) else HALVES[2:] if _UPRIGHT.search(asked.text) else HALVES
    severities = _measured(names, asked, look)
    if isinstance(severities, RuleAnswer):
        return severities
    if alike := _unless_alike(severities, asked):
        return alike
    reason = _reason(severities)
    margins = {name: severities[name] - severities[names[index ^ 1]] for index, name in enumerate(names)}
    first, second, *_ = sorted(margins, key=margins.__getitem__, reverse=asked.what != "half-clean")
    if abs(margins[first] - margins[second]) < MARGIN / 2:
        return RuleAnswer(None, f"{reason} {_NO_ONE_PART}", _about(asked))
    return RuleAnswer(f"The {first}", reason, _about(asked))


def place_offered(asked: Asked, look: Look) -> RuleAnswer:
    """Return the letter of the offered place where the distortion is worst, or least if the question asks for that."""
    names = {letter: place_named(text) for letter, text in asked.options.items()}
    severities = _measured(names.values(), asked, look)
    if isinstance(severities, RuleAnswer):
        return severities
    least, reason = asked.what == "half-clean" or _wants_least(asked), _reason(severities)
    if not least and max(severities.values()) < VISIBLE:
        return RuleAnswer(None, f"{reason} {_NO_PART}")
    ranked = sorted(names, key=lambda letter: severities[names[letter]], reverse=not least)
    if abs(severities[names[ranked[0]]] - severities[names[ranked[1]]]) < MARGIN / 2:
        return RuleAnswer(None, f"{reason} {_NO_ONE_PART}")
    return RuleAnswer(ranked[0], reason)


def compared_parts(asked: Asked, parts: Mapping[str, MeasuredImage]) -> RuleAnswer:
    """Answer whether the first of two parts has more of the distortion than the second."""
    (one, first), (other, second), *_ = parts.items()
    fault = asked.fault or Meaning("any", "fault")
    worse, better = first.severity(fault), second.severity(fault)
    if worse is None or better is None or re.search(r"\b(?:equal\w*|same)\b", asked.text):
        return RuleAnswer(None, "The requested difference was not measured.")
    reason = f"The severity is {worse:.1f} in {one} and {better:.1f} in {other}."
    if VISIBLE / 2 < abs(worse - better) < VISIBLE:
        return RuleAnswer(None, f"{reason} The difference is too small for an answer.")
    holds = abs(worse - better) >= VISIBLE and (worse > better) != asked.is_denial
    return yes_or_no(holds, reason, fault, first)


def name_places(options: Mapping[str, str]) -> bool:
    """Return whether every option is only a place in the frame, so that the question asks where."""
    return bool(options) and all(_PLACE.fullmatch(place_named(text)) for text in options.values())


def place_named(text: str) -> str:
    """Return the name of a place for ``place_in_frame``: "In the upper-left corner" becomes "upper-left corner"."""
    before = r"^\W*(?:(?:it is|mostly|only|in|on|at|near|to|towards?)\s+)*(?:the\s+)?"
    return re.sub(before, "", text.lower()).strip(" .")


def _wants_least(asked: Asked) -> bool:
    """Return whether the question requests the part with the least: "sharper", "less noisy", not "less sharp"."""
    assessed = next((term for term in asked.terms if term.meaning.sense in ("fault", "virtue")), None)
    if assessed is None:
        return bool(_BEST.search(asked.text) or _LESS.search(asked.text))
    praised = assessed.meaning.sense == "virtue" or bool(_BEST.search(asked.text))
    return praised ^ bool(_LESS.search(asked.text[: assessed.start]))


def _measured(names: Iterable[str], asked: Asked, look: Look) -> dict[str, float] | RuleAnswer:
    """Return the severity in each part, or the reason why it is unknown."""
    if asked.fault is None:
        return NOT_UNDERSTOOD
    found: dict[str, float] = {}
    for name in names:
        measured = look(name)
        severity = measured.severity(asked.fault) if measured else None
        if severity is None:
            whole = look(IMAGE)
            unknown = RuleAnswer(None, "A part that the question names was not found in the image.")
            return cannot_tell(asked.fault, whole) if measured and whole else unknown
        found[name] = severity
    return found


def _unless_alike(severities: Mapping[str, float], asked: Asked) -> RuleAnswer | None:
    """Return the answer if no part or every part shows the distortion; ``None`` if the parts differ."""
    highest, lowest, reason = max(severities.values()), min(severities.values()), _reason(severities)
    if highest < VISIBLE:
        return RuleAnswer(None, f"{reason} {_NO_PART}", _about(asked))
    if highest - lowest >= MARGIN:
        return None
    everywhere = "In the whole image; no part is worse than the others" if lowest >= VISIBLE else None
    return RuleAnswer(everywhere, f"{reason} {_NO_ONE_PART}", _about(asked))


def _reason(severities: Mapping[str, float]) -> str:
    return f"Severity by part (0 to 4): {', '.join(f'{name} {value:.1f}' for name, value in severities.items())}."


def _about(asked: Asked) -> Sequence[DetectableDistortion]:
    return asked.fault.categories if asked.fault and len(asked.fault.categories) == 1 else ()


def _worst_part(severities: Mapping[str, float]) -> str:
    """Return a side if all of it is worse than the rest, otherwise the single worst part."""
    worst = max(severities, key=lambda name: severities[name])
    bad = {name for name, value in severities.items() if value > (severities[worst] + min(severities.values())) / 2}
    for side, parts in SIDES.items():
        if {*parts} <= bad and len(bad) <= len(parts) + 3 and fmean(severities[part] for part in parts) > VISIBLE:
            return f"the {side} side"
    return f"the {worst.removesuffix(' ninth')}"
