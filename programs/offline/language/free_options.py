"""Options in words of their own, "everything looks mushy": what each means is read by a small network."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from agenticiqa.programs.offline.language.choices import choose
from agenticiqa.programs.offline.language.claims import parse_clause
from agenticiqa.programs.offline.language.measured_image import PRESENT, MeasuredImage
from agenticiqa.programs.offline.language.question import Question
from agenticiqa.programs.offline.language.question_reader import (
    AMOUNT,
    NONE,
    NOUNS,
    OTHER,
    Read,
    fault_named,
    in_context,
    listing,
    main_kind,
    read_text,
)
from agenticiqa.programs.offline.language.verdicts import Verdict, cannot_exclude, nearest_degree

_REST = {NONE: "none of these", OTHER: "other"}
OPPOSITES = {"dark", "bright"}  # of one category, but no degrees of the same
GRADED = ("degree", "which", "yes", "no", "rating-high", "rating-low")  # intents that options of degrees may answer
READ = 0.5  # least probability of what an option, or the question, is about
ALONE = 0.9  # from which what an option names is clear without its question, whatever that is about
WORST_LEVEL, WORST_SEVERITY = 5.0, 4.0
CLEARLY = 0.5  # severity by which an option must be nearer than the next one: what it claims is read no better
ORDERED = 0.8  # least correlation of the levels with the order of the list for this to count


def choose_by_meaning(asked: str, question: Question, measured: MeasuredImage) -> Verdict | None:
    """The option that fits the measurements, of several distortions or of several degrees of one.

    ``asked`` is the question without its options, its spelling corrected. ``None`` where it is not clear what it or an
    option is about.
    """
    read = {letter: _read_option(asked, text) for letter, text in question.options.items()}
    named = {letter: option.about.name for letter, option in read.items()}
    clear = [option.about.name for option in read.values() if option.about.category >= READ]
    faults = {name for name in clear if name in NOUNS}
    if len({main_kind(name) for name in faults}) > 1 or faults >= OPPOSITES:
        about = {meaning.scale for meaning in question.claim.meanings} - {"any", "quality"}
        others = any(fault.scale not in about for name in faults if about and (fault := fault_named(name)))
        if others or AMOUNT in clear or min(option.about.category for option in read.values()) < READ:
            return None
        plain = {letter: NOUNS.get(name, _REST.get(name, "")) for letter, name in named.items()}
        return choose(parse_clause("What is the main distortion?"), plain, measured, ())
    asking = read_text(listing(asked, question.options))
    about_one = asking.meaning.name if asking.meaning.name in NOUNS and asking.meaning.category >= READ else ""
    if not about_one and faults:
        about_one = max(faults, key=clear.count)
    if not about_one or OTHER in clear or asking.intent.name not in GRADED:
        return None
    if any(main_kind(name) != main_kind(about_one) for name in faults):
        return None
    return _of_degrees(about_one, {letter: option.level for letter, option in read.items()}, measured)


@dataclass(frozen=True)
class _Option:
    """What an option is about, and how much of that it claims, 0 (none) to 5."""

    about: Read
    level: float


def _read_option(asked: str, text: str) -> _Option:
    alone, behind = read_text(text), read_text(in_context(asked, text))
    is_clear = alone.meaning.name in NOUNS and alone.meaning.category >= ALONE
    return _Option((alone if is_clear else behind).meaning, (alone.level + behind.level) / 2)


def _of_degrees(noun: str, levels: Mapping[str, float], measured: MeasuredImage) -> Verdict | None:
    fault = fault_named(noun)
    severity = measured.severity(fault) if fault else None
    if fault is None or severity is None:
        return None
    if severity < PRESENT and measured.may_hide(fault):
        return cannot_exclude(fault, measured)
    places = {letter: level / WORST_LEVEL * WORST_SEVERITY for letter, level in in_listed_order(levels).items()}
    nearer, other, *_ = sorted(abs(place - severity) for place in places.values())
    if other - nearer < CLEARLY:
        return None
    return nearest_degree(places, severity, fault, measured)


def in_listed_order(levels: Mapping[str, float]) -> dict[str, float]:
    """The levels, made even where they rise or fall along the list: most degrees are listed in their order.

    The straight line that fits the levels best, where they follow one; of less than three the levels as they are.
    """
    read, order = np.array(list(levels.values())), np.arange(len(levels))
    if len(levels) < 3 or not read.std() or abs(np.corrcoef(order, read)[0, 1]) < ORDERED:
        return dict(levels)
    return dict(zip(levels, map(float, np.polyval(np.polyfit(order, read, 1), order)), strict=True))
