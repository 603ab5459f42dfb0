"""Answer kinds of questions that fixed words identify, before the network reads the question.

``RULES`` has a function for each kind. It takes a ``UserQuestion`` and returns its answer, or ``None`` for any other
question. ``look(IMAGE)`` returns the measurements on demand. To add a kind, write its function and add it to
``RULES``; no training is needed.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from agenticiqa.programs.offline.answers.measured_image import Look
from agenticiqa.programs.offline.answers.rule_answer import (
    RuleAnswer,
    as_measured,
    is_yes_no,
    scores_in_words,
)
from agenticiqa.programs.questions.instructions import readable
from agenticiqa.programs.tools.tool import with_unit
from agenticiqa.programs.tools.tool_names import asks_about_tools, names_tools
from agenticiqa.signatures.lexicon import terms_in
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
    r"^(?:(?:please|so|ok|hi|hello|hey)[ ,]+)*(?:(?:can|could) you )?(?:tell me )?(?:please )?|(?<![ ?.!])[ ?.!]++$"
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
    figure = f"{megapixels:.1f}" if megapixels >= 1 else f"{megapixels:.2g}"
    answer = f"{width} x {height} pixels ({figure} megapixels)"
    return RuleAnswer(answer, "This is the size of the image after decoding.")


def best_of_several(question: UserQuestion, look: Look) -> RuleAnswer | None:
    """Refer questions about the best of several images to the command that compares them."""
    text = _without_politeness(question)
    if question.options or not question.alone or not _ASKS_WHICH.fullmatch(text) or _LISTS.search(text):
        return None
    needed = "the command `agenticiqa compare IMAGE IMAGE...`, which ranks images"
    return RuleAnswer(None, "The question is about several images, but only one was given.", needed=needed)


def _without_politeness(question: UserQuestion) -> str:
    text = " ".join(readable(question.query).lower().replace("\u2019", "'").split())
    return _POLITE.sub("", text)


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
    tools = [] if question.options else names_tools(query, [call.tool for call in evidence.tool_log])
    if not tools or not (len(query.split()) <= SHORT or _VALUE.search(query) or not terms_in(query)):
        return None
    values = [
        f"{call.tool} {with_unit(call.raw, call.unit)} "
        f"({'no curve' if call.calibrated is None else f'{call.calibrated:.2f} of 5'}"
        f"{'' if call.region == GLOBAL else f', {call.region}'})"
        for call in evidence.tool_log
        if call.tool in tools and call.raw is not None
    ]
    if not values:
        return RuleAnswer(None, "The metric returned no value.")
    reason = " ".join(["The question asks for the value of a metric.", *as_measured(scores_in_words(evidence))])
    return RuleAnswer("; ".join(dict.fromkeys(values)), reason)


Rule = Callable[[UserQuestion, Look], RuleAnswer | None]
RULES: tuple[Rule, ...] = (
    size_of_image,
    best_of_several,
    about_metrics,
    values_of_metrics,
)
"""The kinds of questions, in the order in which they are tried."""


def fixed_answer(question: UserQuestion, look: Look) -> RuleAnswer | None:
    """Return the answer to a question of one of these kinds; ``None`` for any other question."""
    return next((answer for rule in RULES if (answer := rule(question, look))), None)
