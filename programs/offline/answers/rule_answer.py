"""The result of a rule: an answer, or ``None`` with the reason."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from agenticiqa.programs.offline.answers.measured_image import MeasuredImage
from agenticiqa.signatures.lexicon import Meaning
from agenticiqa.signatures.types import GLOBAL, ExecutorOutput
from agenticiqa.signatures.vocabulary import DetectableDistortion

YES, NO = "Yes", "No"
NOTHING_VISIBLE = "No visible distortion was measured"
REFERENCE_OR_MODEL = "the reference picture (--reference) or a vision-language model (--backend)"
MOST_SEVERE = 4.0
MOST_SCORES = 4
TIE = 0.05  # of two options whose distances differ by less none is nearer: the measurements are not more precise

_YES = re.compile(r"(?:yes|true)\b", re.I)
_NO = re.compile(r"(?:false|no)(?:$|\s*[,.;:]|\s+(?:it|there|they|the|this)\b)", re.I)
_UNSURE = re.compile(
    r"\b(?:not sure|unsure|uncertain|unknown|maybe|(?:can ?not|can't|impossible to|hard to|unable to) (?:be )?"
    r"(?:tell|say|judge|determined?)|don't know|not applicable)\b",
    re.I,
)


@dataclass(frozen=True)
class RuleAnswer:
    """An answer that follows from the measurements, or ``None``, with the reason in one sentence.

    ``categories`` are those that the verdict is based on. ``needed`` is what would help if there is no answer.
    """

    answer: str | None
    reason: str
    categories: Sequence[DetectableDistortion] = ()
    needed: str = "a vision-language model (--backend)"

    @property
    def in_words(self) -> str:
        """The reason, and what would help if there is no answer."""
        return " ".join(filter(None, (self.reason, self.missing)))

    @property
    def missing(self) -> str:
        """What would help, in a sentence; "" if there is an answer."""
        return "" if self.answer else f"An answer needs {self.needed}."


NO_REFERENCE = RuleAnswer(
    None, "A comparison needs the reference picture, and none was given.", needed="the reference picture (--reference)"
)
NOT_UNDERSTOOD = RuleAnswer(None, "The question names no single thing that is measured.")


def cannot_tell(meaning: Meaning, measured: MeasuredImage) -> RuleAnswer:
    """Return the result if the measurements do not show the severity of ``meaning``."""
    about = measured.about(meaning)
    if not about:
        return RuleAnswer(None, f"{' and '.join(meaning.categories) or 'This'} was not measured.")
    shown = measured.describe(about[0])
    return RuleAnswer(None, f"The measurements show {shown} and cannot tell {meaning.kind} apart.", about)


def cannot_exclude(meaning: Meaning, measured: MeasuredImage) -> RuleAnswer:
    """Return the result if a weak finding does not exclude what ``meaning`` names."""
    what = meaning.kind or "color distortion"
    reason = f"Without a reference, {what} cannot be told from the colors of the scene."
    return RuleAnswer(None, reason, meaning.categories, REFERENCE_OR_MODEL)


def cannot_grade(meaning: Meaning, measured: MeasuredImage) -> RuleAnswer:
    """Return the result if the severity of ``meaning`` may be higher than measured."""
    about = measured.about(meaning)
    reason = f"At least {measured.described(about)} was measured, and without a reference it may be more."
    return RuleAnswer(None, reason, about, REFERENCE_OR_MODEL)


def yes_or_no(holds: bool, reason: str, meaning: Meaning, measured: MeasuredImage) -> RuleAnswer:
    """Yes or no, and beside it the finding that it is about."""
    about = measured.about(meaning)
    return RuleAnswer(f"{YES if holds else NO}, {measured.described(about)}", reason, about)


def nearest_degree(
    places: Mapping[str, float | None], severity: float, meaning: Meaning, measured: MeasuredImage
) -> RuleAnswer:
    """The letter whose severity is nearest to that of ``meaning``, 0 to 4.

    No answer if two are equally near, or if it may be more and another one is then the nearest.
    """
    about = measured.about(meaning)
    chosen = nearest(places, severity, about, f"severity ({severity:.1f} between 0 and 4)")
    if measured.may_be_more(meaning) and chosen.answer != nearest(places, MOST_SEVERE, about, "").answer:
        return cannot_grade(meaning, measured)
    return chosen


def nearest(
    places: Mapping[str, float | None], position: float, categories: Sequence[DetectableDistortion], what: str
) -> RuleAnswer:
    """The letter whose place is nearest to ``position``; no answer if two are equally near."""
    ranked = sorted((abs(place - position), letter) for letter, place in places.items() if place is not None)
    first, second = ranked[0], ranked[1] if len(ranked) > 1 else (float("inf"), "")
    if second[0] - first[0] < TIE:
        return RuleAnswer(None, f"Options {first[1]} and {second[1]} fit the measured {what} equally well.", categories)
    return RuleAnswer(first[1], f"Of what is offered, {first[1]} is the nearest to the measured {what}.", categories)


def definite(options: Mapping[str, str]) -> dict[str, str]:
    """The options without those that say that it cannot be told."""
    return {letter: text for letter, text in options.items() if not _UNSURE.search(text)}


def is_yes_no(options: Mapping[str, str]) -> bool:
    """Whether every option says yes or no."""
    return bool(options) and all(_YES.match(text) or _NO.match(text) for text in options.values())


def yes_no_letter(options: Mapping[str, str], answer: RuleAnswer) -> RuleAnswer:
    """The answer, with the letter of its yes or no if options were offered."""
    if not options:
        return answer
    word = (answer.answer or "").partition(",")[0]
    if word not in (YES, NO):
        return replace(answer, answer=None)
    letters = [letter for letter, text in options.items() if bool(_YES.match(text)) == (word == YES)]
    if len(letters) != 1:
        return RuleAnswer(None, f"The answer would be {word}, which no single option is.", answer.categories)
    return replace(answer, answer=letters[0])


def as_measured(details: list[str]) -> list[str]:
    """The sentence of the reasoning that quotes measurements, in a list; an empty list without any."""
    return [f"Measured: {'; '.join(details)}."] if details else []


def scores_in_words(evidence: ExecutorOutput) -> list[str]:
    """The scores of the tools, one sentence part for each tool and region, with all that it was asked about."""
    asked: dict[tuple[str, str, float], list[str]] = {}
    for region, row in (evidence.quality_scores or {}).items():
        for distortion, (tool, score) in row.items():
            asked.setdefault((tool, region, score), []).append(distortion)
    return [
        f"{tool} scores {score:.2f} of 5 for {'the image' if region == GLOBAL else region}, {' and '.join(distortions)}"
        for (tool, region, score), distortions in [*asked.items()][:MOST_SCORES]
    ]
