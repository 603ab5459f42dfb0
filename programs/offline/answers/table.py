"""The answer to each kind of question from what was measured: ``ANSWERS`` has a small function for each."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from agenticiqa.programs.fusion.formula import level_name
from agenticiqa.programs.offline.answers.asked import Asked
from agenticiqa.programs.offline.answers.measured_image import OBJECTIONABLE, PRESENT, VISIBLE, MeasuredImage
from agenticiqa.programs.offline.answers.rule_answer import (
    NO,
    NOTHING_VISIBLE,
    REFERENCE_OR_MODEL,
    TIE,
    YES,
    RuleAnswer,
    cannot_exclude,
    cannot_grade,
    cannot_tell,
    is_yes_no,
    not_understood,
)
from agenticiqa.programs.offline.measured.findings import GRAY, TONED, severity_word
from agenticiqa.signatures.categories import BLURS, COLOR, COMPRESSION, NOISE, SHARPNESS
from agenticiqa.signatures.lexicon import CLARITY, LOWER, UPPER, Meaning, any_of
from agenticiqa.signatures.vocabulary import DetectableDistortion

DOUBTFUL = 0.5  # severity below the line between yes and no in which the measurements are not precise enough for a no
NEEDS_REFERENCE = "the reference picture (--reference)"
_ANY = any_of(["no", "without", "free of", "free from", "any", "some", "at all", "zero"])
_EXCESS = any_of(["too", "overly", "excessive*"])
_EXACT = {1.0: any_of(["barely", "slight*", "mild*", "minor"]), 2.0: any_of(["moderate*", "medium"])}
_LEAST = {
    4.0: any_of(["extreme*", "very severe*", "very strong*"]),
    3.0: any_of(
        ["severe*", "strong*", "heavy", "heavily", "serious*", "very", "highly", "significant*", "bad", "badly"]
    ),
}
ONE = re.compile(
    r"\b(?:main|major|primary|principal|dominant|most|worst|worse|biggest|largest|greatest|strongest|dominates?)\b",
    re.I,
)
_SEVERAL = re.compile(r"\b(?:all|any|list|distortions|art[ei]facts|defects|faults|flaws|problems|issues)\b", re.I)
_CODING = re.compile(r"compress|jpe?g|webp|cod(?:ing|ec)|block|band|ring|posteri|mosquito", re.I)
_LINE = "The line between yes and no is drawn at"
_OTHERS = re.compile(r"\b(?:last|previous|earlier) (?:image|picture|photo|one|version|copy|file|shot)\b", re.I)
# Levels of quality, 1 to 5, as options have them.
LEVEL_OF = {
    **dict.fromkeys(("excellent", "perfect", "superb", "outstanding"), 5.0),
    **dict.fromkeys(("good", "great", "high", "fine", "very good"), 4.0),
    **dict.fromkeys(("fair", "average", "medium", "moderate", "ok", "okay", "acceptable", "mediocre"), 3.0),
    **dict.fromkeys(("poor", "low"), 2.0),
    **dict.fromkeys(("bad", "terrible", "awful", "very poor", "unacceptable"), 1.0),
}
_PICTURE = r"(?:image|photo\w*|picture|pic|shot)"
_LEVELS = "|".join(sorted(LEVEL_OF, key=len, reverse=True))
_CLAIM = re.compile(
    rf"^\W*(?:is|are|was|does|has|would)\b(?:n't)?[^.?!]*(?:\b(?P<one>{_LEVELS})[- ](?:\w+ )?(?:quality|{_PICTURE})\b"
    rf"|\b(?:quality|{_PICTURE})\b(?: \w+){{0,3}}? (?P<two>{_LEVELS})\b)",
    re.I,
)
Look = Callable[[str], MeasuredImage | None]
"""What was measured under a name: one of these, or a part of the image; ``None`` for what is not there."""
IMAGE = ""  # the whole image, against the reference if there is one
REFERENCE = "the reference"  # by itself
REFERENCE_BESIDE_IMAGE = "the reference beside the image"  # against the image: what only the reference has

MARGIN = 0.6  # severity by which a part must be worse than the others to be named
HALVES = ("left half", "right half", "top half", "bottom half")
_ROWS = "top left, top middle, top right, left middle, center, right middle, bottom left, bottom middle, bottom right"
# The nine parts by their place (column and row), and which of them a side has.
NINTHS = {f"{name} ninth": (index % 3, index // 3) for index, name in enumerate(_ROWS.split(", "))}
SIDES = {side: [part for part in NINTHS if side in part] for side in ("left", "right", "top", "bottom")}
_PLACE = re.compile(
    r"(?:(?:upper|lower|top|bottom|left|right|cent(?:er|re|ral)|middle)(?:[\s-]+hand)?[\s-]*)+"
    r"(?:half|side|corner|part|area|third|quarter|quadrant|region|section|edge|end|border)?(?: of .*)?"
)
_LESS = re.compile(r"\b(?:least|less|fewer|fewest|lowest|weakest|not)\b", re.I)
_BEST = re.compile(r"\b(?:best|better|cleanest|clearest|sharpest|crispest)\b", re.I)


def presence(asked: Asked, measured: MeasuredImage, look: Look) -> RuleAnswer:
    """Yes or no: whether the distortion is there, in the degree that is named."""
    several = list(dict.fromkeys(term.meaning for term in asked.terms if term.meaning.sense == "fault"))
    if len({each.scale for each in several} - {"any"}) > 1 and {term.meaning.sense for term in asked.terms} == {
        "fault"
    }:
        return _presence_of_several(asked, several, measured)
    return _presence(asked, asked.fault, measured) if asked.fault else not_understood([])


def _presence_of_several(asked: Asked, faults: Sequence[Meaning], measured: MeasuredImage) -> RuleAnswer:
    """One of several distortions joined by "or" must be there, otherwise all of them."""
    each = [_presence(asked, fault, measured) for fault in faults]
    there = NO if asked.is_denial else YES
    decisive = there if re.search(r"\b(?:or|nor)\b", asked.text, re.I) else ({YES, NO} - {there}).pop()
    ranked = sorted(each, key=lambda one: (_word(one) != decisive, one.answer is not None))
    return ranked[0]


def _word(answer: RuleAnswer) -> str:
    return (answer.answer or "").partition(",")[0]


def _presence(asked: Asked, fault: Meaning, measured: MeasuredImage) -> RuleAnswer:
    severity, about = measured.severity(fault), [name for name in (measured.worst_of(fault.categories),) if name]
    if severity is None:
        return cannot_tell(fault, measured)
    rest = asked.text
    for term in asked.terms:
        rest = rest.replace(term.text, "\n")
    graded = any(term.meaning.sense == "fault" for term in asked.terms) and not _EXCESS.search(asked.text)
    exact = next((degree for degree, words in _EXACT.items() if graded and words.search(rest)), None)
    least = next((degree for degree, words in _LEAST.items() if graded and words.search(rest)), None)
    if exact is not None:
        word = severity_word(exact)
        return _yes_or_no(asked, severity_word(severity) == word, f"Only {word} counts.", measured, about)
    usual = OBJECTIONABLE if {*fault.categories} & {NOISE, BLURS} else PRESENT
    limit = VISIBLE if _ANY.search(asked.text) else usual if least is None else least - 0.5
    if severity < limit and measured.may_hide(fault):
        return cannot_exclude(fault, measured)
    unsure = not measured.has_reference and limit in (PRESENT, OBJECTIONABLE)
    if unsure and limit - DOUBTFUL <= severity < limit:
        return RuleAnswer(None, f"What is measured is too slight to tell ({severity:.1f} of 4).", about)
    return _yes_or_no(asked, severity >= limit, f"{_LINE} {severity_word(limit)}.", measured, about)


def _yes_or_no(
    asked: Asked, is_there: bool, reason: str, measured: MeasuredImage, about: Sequence[DetectableDistortion]
) -> RuleAnswer:
    answer = YES if is_there != asked.is_denial else NO
    return RuleAnswer(f"{answer}, {' and '.join(map(measured.describe, about))}", reason, about)


def degree(asked: Asked, measured: MeasuredImage, look: Look) -> RuleAnswer:
    """How severe the distortion is, in a word."""
    fault = asked.fault
    if fault is None:
        return not_understood([])
    severity, name = measured.severity(fault), measured.worst_of(fault.categories)
    if severity is None or name is None:
        return cannot_tell(fault, measured)
    visible = severity >= VISIBLE
    if not visible and measured.may_hide(fault):
        return cannot_exclude(fault, measured)
    if measured.may_be_more(fault):
        return cannot_grade(fault, measured)
    answer = measured.describe(name) if visible or not fault.kind else f"no visible {fault.kind}"
    if visible and fault.kind and fault.kind not in answer:
        answer = f"{severity_word(severity)} {fault.kind}"
    if fault.subject == "any" and not visible:
        answer = NOTHING_VISIBLE
    return RuleAnswer(answer[0].upper() + answer[1:], f"The measured severity is {severity:.1f} of 4.", [name])


def which(asked: Asked, measured: MeasuredImage, look: Look) -> RuleAnswer:
    """The visible distortions of those that are named, or of all: the worst first, or the worst alone."""
    meanings = [term.meaning for term in asked.terms if term.meaning.subject not in ("any", "quality")]
    named = [name for meaning in meanings for name in meaning.categories]
    if not _CODING.search(asked.text):  # an artifact of any kind
        named = [name for name in named if name != COMPRESSION]
    one, hidden = ONE.search(asked.text), "" if named else _hidden(measured)
    shown = [name for name in measured.visible if name in named or not named]
    if not shown and hidden:
        return RuleAnswer(
            f"{NOTHING_VISIBLE}, but {hidden}", "Without a reference, nobody knows which colors the scene had."
        )
    if not shown and one and not named:
        return RuleAnswer(None, "No distortion is visible in the measurements, so that none is the worst.")
    if not shown:
        answer = f"No visible {' or '.join(dict.fromkeys(named))} was measured" if named else NOTHING_VISIBLE
        return RuleAnswer(answer, "Every severity in question is below slight.")
    is_slight = measured.findings[shown[0]].severity < OBJECTIONABLE
    if is_slight and hidden and shown[0] != COLOR and (one or not _SEVERAL.search(asked.text)):
        reason = f"Only {measured.describe(shown[0])} was measured, and {hidden}."
        return RuleAnswer(None, reason, shown[:1], REFERENCE_OR_MODEL)
    if one or (len(named) > 1 and re.search(r"\bor\b", asked.text)):
        worst = measured.findings[shown[0]].severity
        shown = [name for name in shown if worst - measured.findings[name].severity < TIE]
        answer = " and ".join(measured.named(name) for name in shown)
        return RuleAnswer(answer, "It has the worst measurement.", shown)
    answer = "; ".join(f"{measured.named(name)}: {measured.explained(name)}" for name in shown)
    return RuleAnswer(answer, "These are the measured distortions that are slight or worse, the worst first.")


def _hidden(measured: MeasuredImage) -> str:
    """What may be wrong with the colors that no measurement tells; "" if nothing."""
    if measured.has_reference:
        return ""
    if measured.findings[COLOR].subtype in (GRAY, TONED):
        return f"whether {measured.describe('Color distortions')} is meant cannot be told"
    kinds = " or ".join(sorted(measured.unsure))
    return f"{kinds} cannot be told from the colors of the scene" if kinds else ""


def rating(asked: Asked, measured: MeasuredImage, look: Look) -> RuleAnswer:
    """A number on the question's scale: of quality, or of one distortion."""
    scale, fault = asked.scale, asked.fault
    if scale is None or fault is None:
        return not_understood([])
    if fault.subject == "any":
        share = (measured.level - 1) / 4
        value = scale.at(1 - share if scale.best == "low" else share)
        reason = f"The quality is estimated at {measured.level:.1f} on the scale of 1 to 5."
        return RuleAnswer(f"{scale.shown(value)} ({level_name(measured.level)} quality)", reason, measured.visible[:2])
    severity, name = measured.severity(fault), measured.worst_of(fault.categories)
    if severity is None or name is None:
        return cannot_tell(fault, measured)
    is_amount = scale.best == "low"
    value = scale.at(severity / 4 if is_amount else 1 - severity / 4)
    ends = f"{scale.high:g} is {'the most' if is_amount else 'the best'}"
    reason = f"The measured severity is {severity:.1f} of 4."
    return RuleAnswer(f"{scale.shown(value)} ({measured.describe(name)}; {ends})", reason, [name])


def change(asked: Asked, measured: MeasuredImage, look: Look) -> float | RuleAnswer:
    """How much more of the distortion the image has than the reference; negative: less. Or why that is not known.

    ``measured`` is the image against the reference. Where no change to the worse was found, what is visible in the
    reference by itself counts as far as only the reference has it.
    """
    reference, fault = look(REFERENCE), asked.fault
    if reference is None or not measured.has_reference:
        return no_reference()
    if fault is None or _OTHERS.search(asked.text):
        return RuleAnswer(
            None, "The question compares with something other than the reference picture, or several things."
        )
    more = measured.severity(fault)
    upper, lower = UPPER.get(fault.subject, ""), LOWER.get(fault.subject, "")
    opposite = {upper: lower, lower: upper}.get(fault.kind, "")
    less = measured.severity(replace(fault, kind=opposite)) if opposite else 0.0
    if {*fault.categories} & {*CLARITY} and fault.kind != UPPER["clarity"]:
        less = measured.severity(Meaning(SHARPNESS, "fault", UPPER["clarity"]))
        more = 0.0 if (less or 0.0) >= VISIBLE else more
    if more is None:
        more = measured.severity(Meaning(fault.subject, "fault"))
    if more is None:
        return cannot_tell(fault, measured)
    difference = more if more >= VISIBLE else -(less or 0.0)
    if abs(difference) < VISIBLE <= (reference.severity(fault) or 0.0):
        beside = look(REFERENCE_BESIDE_IMAGE)
        turned = (beside.severity(fault) if beside else None) or 0.0
        difference = -turned if turned >= OBJECTIONABLE else difference
    return difference


def compare(asked: Asked, measured: MeasuredImage, look: Look) -> RuleAnswer:
    """Whether the image has more of the distortion than the reference, or, by "which", which of the two."""
    found = change(asked, measured, look)
    if isinstance(found, RuleAnswer):
        return found
    about = [name for name in (measured.worst_of(asked.fault.categories if asked.fault else ()),) if name]
    reason, same = "Against the reference, a difference counts from slight on.", abs(found) < VISIBLE
    if asked.what == "compare-presence":
        praised = {term.meaning.sense for term in asked.terms} == {"virtue"} and re.search(r"\bthan\b", asked.text)
        holds = (found >= VISIBLE) != asked.is_denial and not (same and praised)
        word = YES if holds else NO
        return RuleAnswer(f"{word}, {' and '.join(map(measured.describe, about))}", reason, about)
    if same:
        return RuleAnswer("They are about the same", reason, about)
    more_in_image = (found > 0) == (asked.what == "compare-image")
    return RuleAnswer("The image" if more_in_image else "The reference", reason, about)


def compared_parts(asked: Asked, parts: Mapping[str, MeasuredImage]) -> RuleAnswer:
    """Whether the first of two parts has more of the distortion than the second, or which one."""
    (one, first), (other, second), *_ = parts.items()
    fault = asked.fault or Meaning("any", "fault")
    worse, better = first.severity(fault), second.severity(fault)
    if worse is None or better is None or re.search(r"\b(?:equal\w*|same)\b", asked.text):
        return RuleAnswer(None, "The difference that the question asks for was not measured.")
    reason = f"The severity is {worse:.1f} in {one} and {better:.1f} in {other}."
    if VISIBLE / 2 < abs(worse - better) < VISIBLE:
        return RuleAnswer(None, f"{reason} That is too near to call.")
    holds = abs(worse - better) >= VISIBLE and (worse > better) != asked.is_denial
    about = [name for name in (first.worst_of(fault.categories),) if name]
    return _yes_or_no(replace(asked, is_denial=False), holds, reason, first, about)


def changes(asked: Asked, measured: MeasuredImage, look: Look) -> RuleAnswer:
    """What differs from the reference."""
    if look(REFERENCE) is None:
        return no_reference()
    return which(asked, measured, look)


def no_reference() -> RuleAnswer:
    """That a comparison has nothing to compare with."""
    reason = "A comparison needs the reference picture, and none was given."
    return RuleAnswer(None, reason, needed=NEEDS_REFERENCE)


def untold(asked: Asked, measured: MeasuredImage, look: Look) -> RuleAnswer:
    """Why there is no answer."""
    return RuleAnswer(None, "No measurement tells what the question asks.")


def no_value(asked: Asked, measured: MeasuredImage, look: Look) -> RuleAnswer:
    """That the metric was not measured."""
    return RuleAnswer(None, "The metric gave no value.")


def quality_claim(asked: Asked, measured: MeasuredImage) -> RuleAnswer | None:
    """Yes or no to a claim about the level of quality; ``None`` for any other question."""
    found = _CLAIM.search(asked.text)
    named = [term for term in asked.terms if term.meaning.subject not in ("quality", "any")]
    if (
        not found
        or named
        or re.search(r"\b(?:than|or)\b", asked.text)
        or not (not asked.options or is_yes_no(asked.options))
    ):
        return None
    level, wanted = measured.level, LEVEL_OF[(found["one"] or found["two"]).lower()]
    if wanted == 3:
        holds = level >= 2.5 and (re.search(r"acceptable|ok", found[0], re.I) is not None or level < 3.5)
    else:
        holds = level >= wanted - 0.5 if wanted > 3 else level < wanted + 0.5
    denied = bool(re.search(r"\bnot\b", asked.text, re.I))
    reason = f"The quality is estimated at {level:.1f} on the scale of 1 to 5."
    return RuleAnswer(f"{YES if holds != denied else NO}, about {level:.1f} of 5", reason, measured.visible[:2])


def where(asked: Asked, look: Look) -> RuleAnswer:
    """The part of the image where the distortion is worst."""
    severities, fault = _measured(tuple(NINTHS), asked, look), asked.fault
    if isinstance(severities, RuleAnswer):
        return severities
    reason, about = _reason(severities), _about(fault)
    highest, lowest = max(severities.values()), min(severities.values())
    if highest < VISIBLE:
        return RuleAnswer(None, f"{reason} No part shows it visibly.", about)
    if highest - lowest < MARGIN:
        return _nowhere(severities, reason, about)
    place = _worst_part(severities)
    return RuleAnswer(place[0].upper() + place[1:], reason, about)


def half(asked: Asked, look: Look, *, least: bool = False) -> RuleAnswer:
    """The half of the image that shows more, or the ``least``, of the distortion than the opposite one."""
    across = re.search(r"\bleft\b|\bright\b", asked.text, re.I)
    upright = re.search(r"\btop\b|\bbottom\b|\bupper\b|\blower\b|\babove\b|\bbelow\b", asked.text, re.I)
    names = HALVES[:2] if across else HALVES[2:] if upright else HALVES
    severities = _measured(names, asked, look)
    if isinstance(severities, RuleAnswer):
        return severities
    reason, about = _reason(severities), _about(asked.fault)
    highest, lowest = max(severities.values()), min(severities.values())
    if highest < VISIBLE:
        return RuleAnswer(None, f"{reason} No part shows it visibly.", about)
    if highest - lowest < MARGIN:
        return _nowhere(severities, reason, about)
    opposite = {name: names[index ^ 1] for index, name in enumerate(names)}
    margins = {name: value - severities[opposite[name]] for name, value in severities.items()}
    return _foremost(severities, margins, reason, about, least=least)


def place_offered(asked: Asked, look: Look) -> RuleAnswer:
    """The letter of the place, of those that are offered, where the distortion is worst, or least if that is asked."""
    names = {letter: place_named(text) for letter, text in asked.options.items()}
    severities = _measured(tuple(names.values()), asked, look)
    if isinstance(severities, RuleAnswer):
        return severities
    least, reason = asked.what == "half-clean" or _wants_least(asked), _reason(severities)
    if not least and max(severities.values()) < VISIBLE:
        return RuleAnswer(None, f"{reason} No part shows it visibly.")
    ranked = sorted(names, key=lambda letter: severities[names[letter]], reverse=not least)
    if abs(severities[names[ranked[0]]] - severities[names[ranked[1]]]) < MARGIN / 2:
        return RuleAnswer(None, f"{reason} No one part stands out.")
    return RuleAnswer(ranked[0], reason)


def name_places(options: Mapping[str, str]) -> bool:
    """Whether every option is nothing but a place in the frame: then the question asks where."""
    return bool(options) and all(_PLACE.fullmatch(place_named(text)) for text in options.values())


def place_named(text: str) -> str:
    """The name of a place, as ``place_in_frame`` takes it: "In the upper-left corner" is "upper-left corner"."""
    before = r"^\W*(?:(?:it is|mostly|only|in|on|at|near|to|towards?)\s+)*(?:the\s+)?"
    return re.sub(before, "", text.lower()).strip(" .")


def _wants_least(asked: Asked) -> bool:
    """Whether the part is asked for that shows it least: "sharper", "less noisy", but not "less sharp"."""
    judged = next((term for term in asked.terms if term.meaning.sense in ("fault", "virtue")), None)
    if judged is None:
        return bool(_BEST.search(asked.text) or _LESS.search(asked.text))
    praised = judged.meaning.sense == "virtue" or bool(_BEST.search(asked.text))
    return praised ^ bool(_LESS.search(asked.text[: judged.start]))


def _measured(names: Sequence[str], asked: Asked, look: Look) -> dict[str, float] | RuleAnswer:
    """The severity in each part; or why it is not known."""
    if asked.fault is None:
        return not_understood([])
    found: dict[str, float] = {}
    for name in names:
        measured = look(name)
        severity = measured.severity(asked.fault) if measured else None
        if measured is None or severity is None:
            whole = look(IMAGE)
            unknown = RuleAnswer(None, "Not every part that is offered can be found in the image.")
            return cannot_tell(asked.fault, whole) if measured and whole else unknown
        found[name] = severity
    return found


def _foremost(
    severities: Mapping[str, float], margins: Mapping[str, float], reason: str, about: Sequence[str], *, least: bool
) -> RuleAnswer:
    first, second, *_ = sorted(margins, key=lambda name: margins[name], reverse=not least)
    if abs(margins[first] - margins[second]) < MARGIN / 2:
        return RuleAnswer(None, f"{reason} No one part stands out.", about)
    return RuleAnswer(f"The {first}", reason, about)


def _nowhere(severities: Mapping[str, float], reason: str, about: Sequence[str]) -> RuleAnswer:
    everywhere = "Everywhere, no part stands out" if min(severities.values()) >= VISIBLE else None
    return RuleAnswer(everywhere, f"{reason} No one part stands out.", about)


def _reason(severities: Mapping[str, float]) -> str:
    return f"Measured part by part: {', '.join(f'{name} {value:.1f}' for name, value in severities.items())} of 4."


def _about(fault: Meaning | None) -> Sequence[str]:
    return fault.categories if fault and len(fault.categories) == 1 else ()


def _worst_part(severities: Mapping[str, float]) -> str:
    """The side, if all of it is worse than the rest; otherwise the single worst part."""
    worst = max(severities, key=lambda name: severities[name])
    bad = {name for name, value in severities.items() if value > (severities[worst] + min(severities.values())) / 2}
    for side, parts in SIDES.items():
        if {*parts} <= bad and len(bad) <= len(parts) + 3 and fmean(severities[part] for part in parts) > VISIBLE:
            return f"the {side} side"
    return f"the {worst.removesuffix(' ninth')}"


Rule = Callable[[Asked, MeasuredImage, Look], RuleAnswer]
ANSWERS: Mapping[str, Rule] = {
    "presence": presence,
    "degree": degree,
    "which": which,
    "where": lambda asked, measured, look: where(asked, look),
    "half": lambda asked, measured, look: half(asked, look),
    "half-clean": lambda asked, measured, look: half(asked, look, least=True),
    "compare-presence": compare,
    "compare-image": compare,
    "compare-reference": compare,
    "compare-category": changes,
    "rating": rating,
    "metric": no_value,
    "unanswerable": untold,
    "": untold,
}
"""By what is asked; see ``asked.Asked``."""
