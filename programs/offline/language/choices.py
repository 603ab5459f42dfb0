"""Multiple choice: the option that follows from the measurements."""

import re
from collections.abc import Collection, Mapping
from dataclasses import replace

from agenticiqa.programs.offline.language.claims import Clause, parse_clause
from agenticiqa.programs.offline.language.distortion_options import choose_distortion
from agenticiqa.programs.offline.language.measured_image import MeasuredImage
from agenticiqa.programs.offline.language.scale_options import choose_on_scale
from agenticiqa.programs.offline.language.verdicts import YES, Verdict, not_understood
from agenticiqa.programs.offline.language.word_lists import OPTION_FILLERS

_YES = re.compile(r"(?:yes|true)\b", re.I)
_NO = re.compile(r"(?:false|no)(?:$|\s*[,.;:]|\s+(?:it|there|they|the|this)\b)", re.I)
_UNSURE = re.compile(
    r"\b(?:not sure|unsure|uncertain|unknown|maybe|(?:can ?not|can't|impossible to|hard to|unable to) (?:be )?"
    r"(?:tell|say|judge|determined?)|don't know|not applicable)\b",
    re.I,
)


def definite(options: Mapping[str, str]) -> dict[str, str]:
    """The options without those that say that it cannot be told."""
    return {letter: text for letter, text in options.items() if not _UNSURE.search(text)}


def is_yes_no(options: Mapping[str, str]) -> bool:
    """Whether every option says yes or no."""
    return bool(options) and all(_YES.match(text) or _NO.match(text) for text in options.values())


def yes_no_letter(options: Mapping[str, str], verdict: Verdict) -> Verdict | None:
    """The verdict with the letter of its yes or no; ``None`` if the options are not yes and no."""
    if not is_yes_no(options):
        return None
    means_yes = {letter: bool(_YES.match(text)) for letter, text in options.items()}
    letters = [letter for letter, is_yes in means_yes.items() if is_yes == (verdict.answer == YES)]
    if verdict.answer and len(letters) != 1:
        return Verdict(None, f"The answer would be {verdict.answer}, which no single option is.", verdict.categories)
    return replace(verdict, answer=letters[0] if verdict.answer else None)


def choose(asked: Clause, options: Mapping[str, str], measured: MeasuredImage, regions: Collection[str]) -> Verdict:
    """One of the letters of ``options``, on one scale or naming distortions, or ``None`` with the reason."""
    known = [*regions, *OPTION_FILLERS]
    clauses = {letter: parse_clause(text, known) for letter, text in options.items()}
    named = choose_distortion(asked, options, measured, known)
    unknown = [word for clause in clauses.values() for word in clause.unknown_words] if named is None else []
    if unknown:
        return not_understood(unknown)
    return (
        choose_on_scale(asked, clauses, measured)
        or named
        or Verdict(None, "The options are no scale of one thing, and they do not name distortions.")
    )
