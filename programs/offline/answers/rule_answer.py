"""The result of a rule: an answer, or ``None`` with the reason."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from agenticiqa.programs.offline.answers.measured_image import MeasuredImage
from agenticiqa.signatures.categories import COLOR
from agenticiqa.signatures.lexicon import Meaning
from agenticiqa.signatures.types import GLOBAL, ExecutorOutput
from agenticiqa.signatures.vocabulary import DetectableDistortion, everyday_name

YES, NO = "Yes", "No"
NOTHING_VISIBLE = "No visible distortion was measured"
REFERENCE_OR_MODEL = "the reference (--reference) or a vision-language model (--backend)"
MOST_SEVERE = 4.0
MOST_SCORES = 4
TIE = 0.05  # two options with distances that differ by less are equally near, given the measurement error

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

    ``categories`` are the findings that the answer is based on. ``needed`` is required if there is no answer.
    """

    answer: str | None
    reason: str
    categories: Sequence[DetectableDistortion] = ()
    needed: str = "a vision-language model (--backend)"

    @property
    def in_words(self) -> str:
        """The reason, and what is needed if there is no answer."""
        return " ".join(filter(None, (self.reason, self.missing)))

    @property
    def missing(self) -> str:
        """A sentence that says what is needed for an answer; "" if there is one."""
        return "" if self.answer else f"An answer needs {self.needed}."


NO_REFERENCE = RuleAnswer(
    None, "The question compares the image with a reference, but none was given.", needed="the reference (--reference)"
)
NOT_UNDERSTOOD = RuleAnswer(None, "The question does not ask about a single measured property.")


def cannot_tell(meaning: Meaning, measured: MeasuredImage) -> RuleAnswer:
    """Return the result if the measurements do not show the severity of ``meaning``."""
    about = measured.about(meaning)
    if not about:
        return RuleAnswer(None, f"{' and '.join(meaning.categories) or 'This'} was not measured.")
    finding = measured.describe(about[0])
    return RuleAnswer(None, f"The measurements show {finding}, but not whether it is {meaning.kind}.", about)


def cannot_exclude(meaning: Meaning, measured: MeasuredImage) -> RuleAnswer:
    """Return the result if a weak finding does not exclude what ``meaning`` names."""
    what = meaning.kind or everyday_name(COLOR)
    reason = f"Without a reference, {what} cannot be distinguished from the colors of the scene."
    return RuleAnswer(None, reason, meaning.categories, REFERENCE_OR_MODEL)


def cannot_grade(meaning: Meaning, measured: MeasuredImage) -> RuleAnswer:
    """Return the result if the severity of ``meaning`` may be higher than measured."""
    about = measured.about(meaning)
    reason = f"The measurements show at least {measured.described(about)}. Without a reference, it may be worse."
    return RuleAnswer(None, reason, about, REFERENCE_OR_MODEL)


def yes_or_no(holds: bool, reason: str, meaning: Meaning, measured: MeasuredImage) -> RuleAnswer:
    """Return yes or no, with the finding that it is about."""
    about = measured.about(meaning)
    return RuleAnswer(f"{YES if holds else NO}, {measured.described(about)}", reason, about)


def nearest_degree(
    places: Mapping[str, float | None], severity: float, meaning: Meaning, measured: MeasuredImage
) -> RuleAnswer:
    """Return the letter with the severity nearest to that of ``meaning``, 0 to 4.

    Without an answer if two are equally near, or if a higher severity is possible and nearer to another one.
    """
    about = measured.about(meaning)
    chosen = nearest(places, severity, about, f"severity ({severity:.1f} of 4)")
    if measured.may_be_more(meaning) and chosen.answer != nearest(places, MOST_SEVERE, about, "").answer:
        return cannot_grade(meaning, measured)
    return chosen


def nearest(
    places: Mapping[str, float | None], position: float, categories: Sequence[DetectableDistortion], what: str
) -> RuleAnswer:
    """Return the letter with the place nearest to ``position``; no answer if two are equally near."""
    ranked = sorted((abs(place - position), letter) for letter, place in places.items() if place is not None)
    first, second = ranked[0], ranked[1] if len(ranked) > 1 else (float("inf"), "")
    if second[0] - first[0] < TIE:
        return RuleAnswer(None, f"Options {first[1]} and {second[1]} fit the measured {what} equally well.", categories)
    return RuleAnswer(first[1], f"Of the options, {first[1]} is the nearest to the measured {what}.", categories)


def definite(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options without those that mean that the answer is unknown."""
    return {letter: text for letter, text in options.items() if not _UNSURE.search(text)}


def is_yes_no(options: Mapping[str, str]) -> bool:
    """Return whether every option means yes or no."""
    return bool(options) and all(_YES.match(text) or _NO.match(text) for text in options.values())


def yes_no_letter(options: Mapping[str, str], answer: RuleAnswer) -> RuleAnswer:
    """Return the answer, replaced by the letter of its yes or no if there are options."""
    if not options:
        return answer
    word = (answer.answer or "").partition(",")[0]
    if word not in (YES, NO):
        return replace(answer, answer=None)
    letters = [letter for letter, text in options.items() if bool(_YES.match(text)) == (word == YES)]
    if len(letters) != 1:
        return RuleAnswer(None, f"The answer would be {word}, but no single option matches it.", answer.categories)
    return replace(answer, answer=letters[0])


def as_measured(details: list[str]) -> list[str]:
    """Return a list with the sentence that quotes the measurements; empty without measurements."""
    return [f"Measured: {'; '.join(details)}."] if details else []


def scores_in_words(evidence: ExecutorOutput) -> list[str]:
    """Return the tool scores in words, one for each tool and region, with all distortions that it measures."""
    by_score: dict[tuple[str, str, float], list[str]] = {}
    for region, row in (evidence.quality_scores or {}).items():
        for distortion, (tool, score) in row.items():
            by_score.setdefault((tool, region, score), []).append(distortion)
    return [
        f"{tool} scores {score:.2f} of 5 for {'the image' if region == GLOBAL else region} ({', '.join(distortions)})"
        for (tool, region, score), distortions in islice(by_score.items(), MOST_SCORES)
    ]
