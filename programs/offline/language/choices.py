"""Multiple choice: which of the options offered follows from the measurements."""

import re
from collections.abc import Collection, Mapping

from agenticiqa.programs.offline.language.claims import YES, judge, not_understood
from agenticiqa.programs.offline.language.comparisons import compare, is_comparison
from agenticiqa.programs.offline.language.measured import Measured, Verdict
from agenticiqa.programs.offline.language.naming import name
from agenticiqa.programs.offline.language.reading import read
from agenticiqa.programs.offline.language.scales import on_scale
from agenticiqa.programs.offline.language.words import word_set

_YES = re.compile(r"yes\b", re.I)
_NO = re.compile(r"no(?:$|\s*[,.;:]|\s+(?:it|there|they|the|this)\b)", re.I)
_UNSURE = re.compile(
    r"\b(?:not sure|unsure|uncertain|unknown|maybe|(?:can ?not|can't|impossible to|hard to|unable to) (?:be )?"
    r"(?:tell|say|judge|determined?)|don't know|not applicable)\b",
    re.I,
)
# What a question about distortions may say beside them.
_ASIDE = word_set(
    """
    above below most main mainly major primary primarily dominant worst severe serious apparent noticeable
    obvious prominent significant severest strongest greatest biggest largest important reason cause causes
    caused causing makes make responsible related exist exists existing occur occurs occurring evident suffers
    appears affect affects affecting impact impacts influences degrades reduces lowers shot taken particular
    detected describe choices factor factors aspect aspects first thing things level among between observed
    identified visible perceived attribute attributes property properties characterizes characterized hurts hurt
    harms spoils ruins else adjective phrase fit fits applies matches matching rating score
    """
)


def choose(question: str, options: Mapping[str, str], measured: Measured, regions: Collection[str] = ()) -> Verdict:
    """One of the letters of ``options``, or ``None`` with the reason.

    In this order: yes and no, comparisons with the reference, options on one scale, options that name distortions.
    """
    settled = {letter: text for letter, text in options.items() if not _UNSURE.search(text)}
    decided = {
        letter: bool(_YES.match(text)) for letter, text in settled.items() if _YES.match(text) or _NO.match(text)
    }
    compares = is_comparison(question, {} if decided else settled)
    if decided and len(decided) == len(settled):
        verdict = compare(question, measured, regions) if compares else judge(question, measured, regions)
        letters = [letter for letter, is_yes in decided.items() if is_yes == (verdict.answer == YES)]
        if verdict.answer and len(letters) != 1:
            return Verdict(None, f"The answer would be {verdict.answer}, which no single option is.", verdict.about)
        return Verdict(letters[0] if verdict.answer else None, verdict.why, verdict.about, verdict.missing)
    if compares:
        return compare(question, measured, regions, settled)
    asked = read(question, [*regions, *_ASIDE])
    readings = {letter: read(text, regions) for letter, text in settled.items()}
    named = name(asked, settled, measured, regions)
    unread = [word for reading in readings.values() for word in reading.unread] if named is None else []
    if unread or asked.unread:
        return not_understood([*asked.unread, *unread])
    placed = on_scale(asked, readings, measured)
    return placed or named or Verdict(None, "The options are no scale of one thing, and they do not name distortions.")
