"""Answer kinds of questions that fixed words identify, before the network reads the question.

``RULES`` has a function for each kind. It takes a ``UserQuestion`` and returns its answer, or ``None`` for any other
question. ``look(IMAGE)`` returns the measurements on demand. To add a kind, write its function and add it to
``RULES``; no training is needed.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from agenticiqa.programs.fusion.formula import level_name
from agenticiqa.programs.offline.answers.measured_image import Look
from agenticiqa.programs.offline.answers.rule_answer import (
    NO,
    TIE,
    YES,
    RuleAnswer,
    as_measured,
    is_yes_no,
    scores_in_words,
    yes_no_letter,
)
from agenticiqa.programs.questions.instructions import readable
from agenticiqa.programs.questions.options import question_part
from agenticiqa.programs.tools import TOOLS
from agenticiqa.programs.tools.tool import find_tool, with_unit
from agenticiqa.programs.tools.tool_names import asks_about_tools, names_tools
from agenticiqa.signatures.lexicon import distortions_in, terms_in
from agenticiqa.signatures.types import GLOBAL, ExecutorOutput

SHORT = 3  # maximum words of a query that requests a metric's value by its name alone


@dataclass(frozen=True)
class UserQuestion:
    """A question with its options by letter, the evidence, and facts about the image.

    ``size`` is the image's width and height in pixels, ``None`` if unknown; ``alone`` means that there is no reference.
    """

    query: str
    options: Mapping[str, str] = field(default_factory=dict)
    evidence: ExecutorOutput = field(default_factory=ExecutorOutput)
    size: tuple[int, int] | None = None
    alone: bool = False


_FILE = r"(?:image|photo|photograph|picture|pic|shot|file|it|this(?: one)?)"
_THE = rf"(?:(?:the|this|that|my) )?{_FILE}"
_OF = rf"(?: (?:of|does|has|is|are|in) (?:there )?(?:in )?{_THE}(?: (?:have|has|got|big))?| are there| is that)?"
_SIZE = r"(?:resolution|(?:image |pixel )?dimensions|size in pixels|pixel (?:size|count)|aspect ratio|width|height)"
_POLITE = re.compile(
    r"^(?:(?:please|so|ok|hi|hello|hey)[ ,]+)*(?:(?:can|could) you )?(?:tell me )?(?:please )?|[ ?.!]+$"
)
_ASKS_SIZE = re.compile(
    rf"how many (?:mega ?)?pixels{_OF}"
    rf"|what(?:'s| is| are|s) (?:the |its )?(?:{_FILE}(?:'s)? )?{_SIZE}(?: and {_SIZE})?{_OF}(?: in pixels)?"
    rf"|how (?:large|big|wide|high|tall) is {_THE}(?: in (?:mega)?pixels)?"
)
_IMAGES = r"(?:image|photo|photograph|picture|pic|shot|file|version|copie|copy|frame|take)s?"
_ASKS_WHICH = re.compile(
    rf"(?:which|what)(?: one)? (?:of|among) (?:these|those|them|the|my)(?: (?:two|three|four|five|\d+|few))?"
    rf"(?: {_IMAGES})? (?:is|are|looks?|has|have)\b[^,:;]*"
    rf"|which (?:{_IMAGES}|one) (?:is|are|looks?|has|have)\b(?! it\b)[^,:;]*"
)
_LISTS = re.compile(r"\bor\b|\breference\b|\boriginal\b|\bparts?\b|\bregions?\b|\bhal(?:f|ves)\b|\bcorners?\b|\bside\b")


def size_of_image(question: UserQuestion, look: Look) -> RuleAnswer | None:
    """Answer how many pixels the image has."""
    if question.options or question.size is None or not _ASKS_SIZE.fullmatch(_without_politeness(question)):
        return None
    width, height = question.size
    megapixels = width * height / 1e6
    shown = f"{megapixels:.1f}" if megapixels >= 1 else f"{megapixels:.2g}"
    answer = f"{width} x {height} pixels ({shown} megapixels)"
    return RuleAnswer(answer, "This is the size of the image after decoding.")


def best_of_several(question: UserQuestion, look: Look) -> RuleAnswer | None:
    """Refer questions about the best of several images to the command that compares them."""
    asked = _without_politeness(question)
    if question.options or not question.alone or not _ASKS_WHICH.fullmatch(asked) or _LISTS.search(asked):
        return None
    needed = "the command `agenticiqa compare IMAGE IMAGE...`, which ranks images"
    return RuleAnswer(None, "The question is about several images, but only one was given.", needed=needed)


def _without_politeness(question: UserQuestion) -> str:
    asked = " ".join(readable(question.query).lower().replace("\u2019", "'").split())
    return _POLITE.sub("", asked)


_QUERY = re.compile(r"\b(?:query|question)\b(?:\s+(?:is|was|reads))?\s*:\s*(?P<quoted>\S.*)", re.I | re.S)
_NAMED = re.compile(
    r"\b(?:mention\w*|nam(?:es?|ed|ing)|brought up|brings? up|refer\w*|asks? about|asked about)\b", re.I
)
_NONE = re.compile(r"(?:none|neither)\b.*|nothing|no (?:object|distortion|flaw)s?", re.I)


def named_in_quoted_query(question: UserQuestion, look: Look) -> RuleAnswer | None:
    """Return the one option that a quoted query names, or the one that says none."""
    text, options = readable(question_part(question.query)), question.options
    found = _QUERY.search(text)
    if not options or found is None or not _NAMED.search(text[: found.start()]) or is_yes_no(options):
        return None
    quoted = found["quoted"]
    categories = {category for _, category in distortions_in(quoted)}
    named = [letter for letter, option in options.items() if {each for _, each in distortions_in(option)} & categories]
    if not any(distortions_in(option) for option in options.values()):
        words = {letter: re.escape(option.strip(" .")) for letter, option in options.items()}
        named = [letter for letter, word in words.items() if re.search(rf"(?<!\w){word}(?:e?s)?(?!\w)", quoted, re.I)]
    named = named or [letter for letter, option in options.items() if _NONE.fullmatch(option.strip(" ."))]
    return RuleAnswer(named[0], f"Taken from the question: {quoted.strip()}") if len(named) == 1 else None


_SCORE = re.compile(r"\bscores?\s*(?:[:=]|of|is)\s*(\d(?:\.\d+)?)", re.I)
_ONE_TO_FIVE = re.compile(r"\b(?:from )?1 (?:to|-) 5\b", re.I)
_FOLLOWS = re.compile(r"\bverdict\b|\b(?:follows?|implie[sd]|concluded?|conclusion)\b[^.?!]*\?", re.I)


def level_of_score(question: UserQuestion, look: Look) -> RuleAnswer | None:
    """Return the level, "bad" to "excellent", of a score of 1 to 5 that the question states."""
    text = _unquoted(question)
    scores = {float(score) for score in _SCORE.findall(text)}
    if len(scores) != 1 or not _ONE_TO_FIVE.search(text) or not _FOLLOWS.search(text):
        return None
    (score,) = scores
    if not 1 <= score <= 5 or abs(score % 1 - 0.5) < TIE:
        return RuleAnswer(None, f"A score of {score:g} is halfway between two levels or outside the scale.")
    level = level_name(score).lower()
    letters = [letter for letter, option in question.options.items() if option.strip(" .").lower() == level]
    if len(letters) != 1:
        return None
    return RuleAnswer(letters[0], f"A score of {score:g} on a scale of 1 to 5 means {level} quality.")


_QUOTED = re.compile(r"(['\"])(?:(?!\1).)*\1(?!\w)", re.S)
_WITHOUT_REFERENCE = re.compile(
    r"\b(?:no|without|absence of|lack\w*)\b[^.?!]{0,200}\b(?:reference|original)\b|\bno[- ]reference\b|\bblind\b", re.I
)
_DENIED = re.compile(
    r"\b(?:not|never|fail\w*|useless|unusable|impossible|except|only if|unless|(?:need|require)\w*)\b|n't\b|\bcannot\b",
    re.I,
)
_TOOL = re.compile(r"\b(?:tool|metric|measure|index)s?\b", re.I)


def metric_without_reference(question: UserQuestion, look: Look) -> RuleAnswer | None:
    """Answer from the toolbox which metric, or whether one, works without a reference."""
    text, options = _unquoted(question), question.options
    asked = _QUOTED.sub(" ", text)
    if not _TOOL.search(asked) or not _WITHOUT_REFERENCE.search(asked) or _DENIED.search(asked):
        return None
    if any(term.meaning.subject not in ("any", "quality") for term in terms_in(asked)):
        return None  # the question is whether a metric responds to a distortion
    if is_yes_no(options):
        named = names_tools(text, TOOLS)[:1]  # the first one, because a description may mention others
        if not named:
            return None
        alone = TOOLS[named[0]].kind == "NR"
        needs = "needs no reference" if alone else "compares the image with a reference"
        return yes_no_letter(options, RuleAnswer(YES if alone else NO, f"{named[0]} {needs}."))
    tools = {letter: find_tool(option.strip(), TOOLS) for letter, option in options.items()}
    alone_of = [letter for letter, tool in tools.items() if tool and TOOLS[tool].kind == "NR"]
    if None in tools.values() or len(alone_of) != 1:
        return None
    return RuleAnswer(alone_of[0], f"Of the offered metrics, only {tools[alone_of[0]]} needs no reference.")


def _unquoted(question: UserQuestion) -> str:
    """Return the text of a question with options; "" if it quotes a query."""
    text = readable(question_part(question.query)) if question.options else ""
    return "" if _QUERY.search(text) else text


def about_metrics(question: UserQuestion, look: Look) -> RuleAnswer | None:
    """Explain what a metric measures."""
    if asks_about_tools(question.query) and (not question.options or is_yes_no(question.options)):
        return RuleAnswer(None, "The question is about metrics, not about this image.")
    return None


_VALUE = re.compile(
    r"\b(?:whats?|how (?:high|low|much|large|big)|comput\w+|calculat\w+|run|scores?|values?|measure\w*|give|report|tell"
    r"|need|want|know|show|print|output|state|decibels?|db|rate|evaluate|get|say)\b",
    re.I,
)


def values_of_metrics(question: UserQuestion, look: Look) -> RuleAnswer | None:
    """Return the values of the metrics that the question names, in their own units and mapped to 1..5."""
    query, evidence = question.query, question.evidence
    named = [] if question.options else names_tools(query, [call.tool for call in evidence.tool_log])
    if not named or not (len(query.split()) <= SHORT or _VALUE.search(query) or not terms_in(query)):
        return None
    values = [
        f"{call.tool} {with_unit(call.raw, call.unit)} ({call.calibrated:.2f} of 5"
        f"{'' if call.region == GLOBAL else f', {call.region}'})"
        for call in evidence.tool_log
        if call.tool in named and call.raw is not None and call.calibrated is not None
    ]
    if not values:
        return RuleAnswer(None, "The metric returned no value.")
    reason = " ".join(["The question asks for the value of a metric.", *as_measured(scores_in_words(evidence))])
    return RuleAnswer("; ".join(dict.fromkeys(values)), reason)


Rule = Callable[[UserQuestion, Look], RuleAnswer | None]
RULES: tuple[Rule, ...] = (
    size_of_image,
    best_of_several,
    named_in_quoted_query,
    level_of_score,
    metric_without_reference,
    about_metrics,
    values_of_metrics,
)
"""The kinds of questions, in the order in which they are tried."""


def fixed_answer(question: UserQuestion, look: Look) -> RuleAnswer | None:
    """Return the answer to a question of one of these kinds; ``None`` for any other question."""
    return next((answer for rule in RULES if (answer := rule(question, look))), None)
