"""Options in words of their own, "everything looks mushy": what each means is read by a small network."""

from collections.abc import Mapping

from agenticiqa.programs.offline.language.choices import choose
from agenticiqa.programs.offline.language.claims import parse_clause
from agenticiqa.programs.offline.language.measured_image import PRESENT, MeasuredImage
from agenticiqa.programs.offline.language.question import Question
from agenticiqa.programs.offline.language.question_reader import (
    AMOUNT,
    NONE,
    NOUNS,
    OTHER,
    Reading,
    fault_named,
    in_context,
    main_kind,
    read_text,
)
from agenticiqa.programs.offline.language.verdicts import Verdict, cannot_exclude, nearest_degree

_REST = {NONE: "none of these", OTHER: "other"}
OPPOSITES = {"dark", "bright"}  # of one category, but no degrees of the same
GRADED = ("degree", "which", "yes", "no", "rating-high", "rating-low")  # intents that options of degrees may answer
READ = 0.5  # least probability of what an option, or the question, is about
WORST_LEVEL, WORST_SEVERITY = 5.0, 4.0
CLEARLY = 0.5  # severity by which an option must be nearer than the next one: what it claims is read no better


def choose_by_meaning(asked: str, question: Question, measured: MeasuredImage) -> Verdict | None:
    """The option that fits the measurements, of several distortions or of several degrees of one.

    ``asked`` is the question without its options, its spelling corrected. ``None`` where it is not clear what it or an
    option is about.
    """
    read = {letter: read_text(in_context(asked, text)) for letter, text in question.options.items()}
    named = {letter: reading.meaning.name for letter, reading in read.items()}
    clear = [reading.meaning.name for reading in read.values() if reading.meaning.category >= READ]
    faults = {name for name in clear if name in NOUNS}
    if len({main_kind(name) for name in faults}) > 1 or faults >= OPPOSITES:
        about = {meaning.scale for meaning in question.claim.meanings} - {"any", "quality"}
        others = any(fault.scale not in about for name in faults if about and (fault := fault_named(name)))
        if others or AMOUNT in clear or min(reading.meaning.category for reading in read.values()) < READ:
            return None
        plain = {letter: NOUNS.get(name, _REST.get(name, "")) for letter, name in named.items()}
        return choose(parse_clause("What is the main distortion?"), plain, measured, ())
    asking = read_text(asked)
    about_one = asking.meaning.name if asking.meaning.name in NOUNS and asking.meaning.category >= READ else ""
    if not about_one and faults:
        about_one = max(faults, key=clear.count)
    if not about_one or OTHER in clear or asking.intent.name not in GRADED:
        return None
    if any(main_kind(name) != main_kind(about_one) for name in faults):
        return None
    return _of_degrees(about_one, read, measured)


def _of_degrees(noun: str, read: Mapping[str, Reading], measured: MeasuredImage) -> Verdict | None:
    fault = fault_named(noun)
    severity = measured.severity(fault) if fault else None
    if fault is None or severity is None:
        return None
    if severity < PRESENT and measured.may_hide(fault):
        return cannot_exclude(fault, measured)
    places = {letter: reading.level / WORST_LEVEL * WORST_SEVERITY for letter, reading in read.items()}
    nearer, other, *_ = sorted(abs(place - severity) for place in places.values())
    if other - nearer < CLEARLY:
        return None
    return nearest_degree(places, severity, fault, measured)
