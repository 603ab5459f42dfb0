"""Questions that need no measurement: of the image's size, of several images, of metrics, of words that they quote."""

import re
from collections.abc import Mapping

from agenticiqa.programs.fusion.formula import level_name
from agenticiqa.programs.offline.answers.rule_answer import NO, TIE, YES, RuleAnswer, is_yes_no, yes_no_letter
from agenticiqa.programs.questions.instructions import readable
from agenticiqa.programs.questions.options import question_part
from agenticiqa.programs.tools import TOOLS
from agenticiqa.programs.tools.tool import find_tool
from agenticiqa.programs.tools.tool_names import names_tools
from agenticiqa.signatures.lexicon import distortions_in, terms_in

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


def answer_from_file(query: str, size: tuple[int, int], *, alone: bool) -> RuleAnswer | None:
    """The verdict on a question for the size of the image, or for the best of several; ``None`` for every other one.

    ``size`` is width and height in pixels; ``alone`` says that there is no reference, which "which image" may mean.
    """
    asked = " ".join(readable(query).lower().replace("\u2019", "'").split())
    asked = _POLITE.sub("", asked)
    if _ASKS_SIZE.fullmatch(asked):
        width, height = size
        megapixels = width * height / 1e6
        shown = f"{megapixels:.1f}" if megapixels >= 1 else f"{megapixels:.2g}"
        return RuleAnswer(
            f"{width} x {height} pixels ({shown} megapixels)", "This is the size of the image as it was read."
        )
    if alone and _ASKS_WHICH.fullmatch(asked) and not _LISTS.search(asked):
        needed = "`agenticiqa compare IMAGE IMAGE...`, which ranks several images"
        return RuleAnswer(None, "The question is about several images, and one is given.", needed=needed)
    return None


_QUOTED = re.compile(r"(['\"])(?:(?!\1).)*\1(?!\w)", re.S)
_WITHOUT_REFERENCE = re.compile(
    r"\b(?:no|without|absence of|lack\w*)\b[^.?!]{0,200}\b(?:reference|original)\b|\bno[- ]reference\b|\bblind\b", re.I
)
_DENIED = re.compile(
    r"\b(?:not|never|fail\w*|useless|unusable|impossible|except|only if|unless|(?:need|require)\w*)\b|n't\b|\bcannot\b",
    re.I,
)
_TOOL = re.compile(r"\b(?:tool|metric|measure|index)s?\b", re.I)
_QUERY = re.compile(r"\b(?:query|question)\b(?:\s+(?:is|was|reads))?\s*:\s*(?P<quoted>\S.*)", re.I | re.S)
_NAMED = re.compile(
    r"\b(?:mention\w*|nam(?:es?|ed|ing)|brought up|brings? up|refer\w*|asks? about|asked about)\b", re.I
)
_SCORE = re.compile(r"\bscores?\s*(?:[:=]|of|is)\s*(\d(?:\.\d+)?)", re.I)
_ONE_TO_FIVE = re.compile(r"\b(?:from )?1 (?:to|-) 5\b", re.I)
_FOLLOWS = re.compile(r"\bverdict\b|\b(?:follows?|implie[sd]|concluded?|conclusion)\b[^.?!]*\?", re.I)
_NONE = re.compile(r"(?:none|neither)\b.*|nothing|no (?:object|distortion|flaw)s?", re.I)


def answer_from_text(query: str, options: Mapping[str, str]) -> RuleAnswer | None:
    """The letter of a question about metrics, a quoted query or a given score; ``None`` for every other question."""
    if not options:
        return None
    question = readable(question_part(query))
    quoted = _QUERY.search(question)
    if quoted:
        return _named_in(quoted["quoted"], options) if _NAMED.search(question[: quoted.start()]) else None
    return _of_score(question, options) or _without_reference(question, options)


def _of_score(question: str, options: Mapping[str, str]) -> RuleAnswer | None:
    """The level, "bad" to "excellent", that follows from a score of 1 to 5 that the question states."""
    scores = {float(score) for score in _SCORE.findall(question)}
    if len(scores) != 1 or not _ONE_TO_FIVE.search(question) or not _FOLLOWS.search(question):
        return None
    (score,) = scores
    if not 1 <= score <= 5 or abs(score % 1 - 0.5) < TIE:
        return RuleAnswer(None, f"A score of {score:g} is between two levels, or not on the scale.")
    level = level_name(score).lower()
    letters = [letter for letter, text in options.items() if text.strip(" .").lower() == level]
    if len(letters) != 1:
        return None
    return RuleAnswer(letters[0], f"A score of {score:g} on the scale of 1 to 5 is {level}.")


def _without_reference(question: str, options: Mapping[str, str]) -> RuleAnswer | None:
    """Which metric, or whether one, gives a value where there is no reference: the toolbox knows."""
    asked = _QUOTED.sub(" ", question)
    if (
        not _TOOL.search(asked)
        or not _WITHOUT_REFERENCE.search(asked)
        or _DENIED.search(asked)
        or _follows_something(asked)
    ):
        return None
    if is_yes_no(options):
        named = names_tools(question, TOOLS)[:1]  # a description may compare it with others
        if not named:
            return None
        alone = TOOLS[named[0]].kind == "NR"
        needs = "needs no reference picture" if alone else "compares with a reference picture"
        return yes_no_letter(options, RuleAnswer(YES if alone else NO, f"{named[0]} {needs}."))
    tools = {letter: find_tool(text.strip(), TOOLS) for letter, text in options.items()}
    alone_of = [letter for letter, tool in tools.items() if tool and TOOLS[tool].kind == "NR"]
    if None in tools.values() or len(alone_of) != 1:
        return None
    return RuleAnswer(alone_of[0], f"Of the metrics offered, only {tools[alone_of[0]]} needs no reference picture.")


def _follows_something(text: str) -> bool:
    """Whether a text names a distortion, which a metric may or may not follow."""
    return any(term.meaning.subject not in ("any", "quality") for term in terms_in(text))


def _named_in(quoted: str, options: Mapping[str, str]) -> RuleAnswer | None:
    """The one option that a quoted query names, or the one that says none."""
    if is_yes_no(options):
        return None
    categories = {category for _, category in distortions_in(quoted)}
    named = [letter for letter, text in options.items() if {each for _, each in distortions_in(text)} & categories]
    if not any(distortions_in(text) for text in options.values()):
        words = {letter: re.escape(text.strip(" .")) for letter, text in options.items()}
        named = [letter for letter, word in words.items() if re.search(rf"(?<!\w){word}(?:e?s)?(?!\w)", quoted, re.I)]
    named = named or [letter for letter, text in options.items() if _NONE.fullmatch(text.strip(" ."))]
    return RuleAnswer(named[0], f"The query says: {quoted.strip()}") if len(named) == 1 else None
