"""What a rule concludes from the measurements: an answer, or ``None`` and the reason why there is none."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from agenticiqa.programs.offline.answers.measured_image import MeasuredImage
from agenticiqa.signatures.lexicon import Meaning
from agenticiqa.signatures.vocabulary import DetectableDistortion

YES, NO = "Yes", "No"
NOTHING_VISIBLE = "No visible distortion was measured"
REFERENCE_OR_MODEL = "the reference picture (--reference) or a vision-language model (--backend)"
MOST_SEVERE = 4.0
TIE = 0.05
"""Two options whose distances differ by less than this are equally near: the measurements are not more precise."""


_YES, _NO = (
    re.compile(r"(?:yes|true)\b", re.I),
    re.compile(r"(?:false|no)(?:$|\s*[,.;:]|\s+(?:it|there|they|the|this)\b)", re.I),
)
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


def cannot_tell(meaning: Meaning, measured: MeasuredImage) -> RuleAnswer:
    """The verdict if the severity of ``meaning`` is not known from the measurements."""
    worst = measured.worst_of(meaning.categories)
    if worst is None:
        return RuleAnswer(None, f"{' and '.join(meaning.categories) or 'This'} was not measured.")
    return RuleAnswer(
        None, f"The measurements show {measured.describe(worst)} and cannot tell {meaning.kind} apart.", [worst]
    )


def cannot_exclude(meaning: Meaning, measured: MeasuredImage) -> RuleAnswer:
    """The verdict if a weak finding does not exclude what ``meaning`` names."""
    what = meaning.kind or "color distortion"
    reason = f"Without a reference, {what} cannot be told from the colors of the scene."
    return RuleAnswer(None, reason, meaning.categories, REFERENCE_OR_MODEL)


def cannot_grade(meaning: Meaning, measured: MeasuredImage) -> RuleAnswer:
    """The verdict on how much there is of what may be more than is measured."""
    about = [name for name in (measured.worst_of(meaning.categories),) if name]
    shown = " and ".join(map(measured.describe, about))
    return RuleAnswer(
        None, f"At least {shown} was measured, and without a reference it may be more.", about, REFERENCE_OR_MODEL
    )


def not_understood(words: Sequence[str]) -> RuleAnswer:
    """The verdict for a question with words that no word list has, or, without such words, with no definite claim."""
    if not words:
        return RuleAnswer(None, "The question names no single thing that is measured.")
    return RuleAnswer(None, f"Measurements do not tell what is asked with {quoted(words)}.")


def not_measured(terms: Sequence[str]) -> RuleAnswer:
    """The verdict for distortions that no tool measures."""
    return RuleAnswer(None, f"No tool here measures {quoted(terms)}.")


def quoted(words: Sequence[str]) -> str:
    """The words in quotation marks, each once: ``'car', 'red'``."""
    return ", ".join(f"'{word}'" for word in dict.fromkeys(words))


def nearest_degree(
    places: Mapping[str, float | None], severity: float, meaning: Meaning, measured: MeasuredImage
) -> RuleAnswer:
    """The letter whose severity is nearest to that of ``meaning``, 0 to 4.

    No answer if two are equally near, or if it may be more and another one is then the nearest.
    """
    about = measured.worst_of(meaning.categories)
    chosen = nearest(places, severity, [about] if about else [], f"severity ({severity:.1f} between 0 and 4)")
    return unless_more(chosen, places, MOST_SEVERE, meaning, measured)


def unless_more(
    chosen: RuleAnswer, places: Mapping[str, float | None], end: float, meaning: Meaning, measured: MeasuredImage
) -> RuleAnswer:
    """The choice; none where there may be more of what ``meaning`` names, up to ``end``, to which another is nearer."""
    if measured.may_be_more(meaning) and chosen.answer != nearest(places, end, chosen.categories, "").answer:
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
    """The answer with the letter of its yes or no."""
    word = (answer.answer or "").partition(",")[0]
    if word not in (YES, NO):
        return replace(answer, answer=None)
    letters = [letter for letter, text in options.items() if bool(_YES.match(text)) == (word == YES)]
    if len(letters) != 1:
        return RuleAnswer(None, f"The answer would be {word}, which no single option is.", answer.categories)
    return replace(answer, answer=letters[0])
