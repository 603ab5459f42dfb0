"""Multiple choice: the option that follows from the measurements."""

import re
from collections.abc import Collection, Mapping

from agenticiqa.programs.offline.language.clauses import parse_clause
from agenticiqa.programs.offline.language.comparisons import compare, is_comparison
from agenticiqa.programs.offline.language.distortion_options import choose_distortion
from agenticiqa.programs.offline.language.measured_image import MeasuredImage
from agenticiqa.programs.offline.language.scale_options import choose_on_scale
from agenticiqa.programs.offline.language.verdicts import YES, Verdict, not_understood
from agenticiqa.programs.offline.language.word_lists import OPTION_FILLERS
from agenticiqa.programs.offline.language.yes_no import answer_yes_no

_YES = re.compile(r"yes\b", re.I)
_NO = re.compile(r"no(?:$|\s*[,.;:]|\s+(?:it|there|they|the|this)\b)", re.I)
_UNSURE = re.compile(
    r"\b(?:not sure|unsure|uncertain|unknown|maybe|(?:can ?not|can't|impossible to|hard to|unable to) (?:be )?"
    r"(?:tell|say|judge|determined?)|don't know|not applicable)\b",
    re.I,
)


def choose(
    question: str, options: Mapping[str, str], measured: MeasuredImage, regions: Collection[str] = ()
) -> Verdict:
    """One of the letters of ``options``, or ``None`` with the reason.

    Tried in this order: yes or no, comparisons with the reference, options on one scale, options that name distortions.
    """
    definite = {letter: text for letter, text in options.items() if not _UNSURE.search(text)}
    yes_no = {
        letter: bool(_YES.match(text)) for letter, text in definite.items() if _YES.match(text) or _NO.match(text)
    }
    compares = is_comparison(question, {} if yes_no else definite)
    if yes_no and len(yes_no) == len(definite):
        verdict = compare(question, measured, regions) if compares else answer_yes_no(question, measured, regions)
        letters = [letter for letter, is_yes in yes_no.items() if is_yes == (verdict.answer == YES)]
        if verdict.answer and len(letters) != 1:
            return Verdict(
                None, f"The answer would be {verdict.answer}, which no single option is.", verdict.categories
            )
        return Verdict(letters[0] if verdict.answer else None, verdict.reason, verdict.categories, verdict.needed)
    if compares:
        return compare(question, measured, regions, definite)
    asked = parse_clause(question, [*regions, *OPTION_FILLERS])
    clauses = {letter: parse_clause(text, regions) for letter, text in definite.items()}
    named = choose_distortion(asked, definite, measured, regions)
    unknown = [word for clause in clauses.values() for word in clause.unknown_words] if named is None else []
    if unknown or asked.unknown_words:
        return not_understood([*asked.unknown_words, *unknown])
    on_scale = choose_on_scale(asked, clauses, measured)
    return (
        on_scale or named or Verdict(None, "The options are no scale of one thing, and they do not name distortions.")
    )
