"""Find the quality level that a free text states for the whole image, as a last resort.

Only unambiguous statements are read. A clause must have one of a few forms ("the overall quality is poor", "a good
quality image", "quality level: 4"), and nothing near it may change its meaning. No level is read from "far from
excellent", "hardly a good quality image", "would be excellent if", "good but noisy", "poor lighting" or "the background
is of poor quality".
"""

import re
from functools import cache

from agenticiqa.signatures.vocabulary import LEVELS

LONGEST = 8_000  # characters; a longer text is not read

_IMAGE = "(?:image|picture|photo|photograph)"
_KIND = "(?:overall|perceptual|perceived|visual|general|image|picture|photo|photographic)"
_WORD = rf"(?:{'|'.join(LEVELS)})"
_NUMBER = r"(?:level\s*+:?\s*+[1-5]|[1-5]\s*+(?:/|out\s++of)\s*+5)(?![\d/]|\.\d)"
_NOUN = rf"(?:(?:{_KIND}\s++){{0,4}}quality(?:\s++{_IMAGE})?|{_IMAGE})"
_NAME = (
    rf"(?:(?:the|this|its)\s++)?(?:final\s++|{_KIND}\s++){{0,4}}"
    rf"(?:quality(?:\s++(?:level|rating))?|{_IMAGE}|rating|level|grade)"
    rf"(?:\s++of\s++(?:the|this)\s++{_IMAGE})?"
)
_LEVEL = rf"(?:{_WORD}(?:\s++{_NOUN})?|{_NUMBER}|[1-5])"


@cache  # a pattern compiled on first use, because it takes a tenth of the program's start time
def _claim() -> re.Pattern[str]:
    return re.compile(
        rf"""(?:(?:and|so|thus|hence|therefore|because|since|though|although|overall|in\s++conclusion),?\s++){{0,4}}(?:
            (?:{_NAME}|this|(?P<it>it))\s++(?:is|appears|looks|seems)
            (?:\s++(?:therefore|thus|hence|clearly|overall|rated|judged|assessed|considered|best\s++described)){{0,4}}
            \s++(?:as\s++|at\s++|of\s++|to\s++be\s++|an?\s++){{0,4}}{_LEVEL}
          | (?:{_NAME}|overall)\s*+:\s*+{_LEVEL}
          | (?:I|we)(?:\s++would|'d)?\s++(?:rate|say|judge|assess|call|consider|grade)
            \s++(?:(?:it|{_NAME})\s++)?(?:as\s++|at\s++|is\s++)?{_LEVEL}
          | (?:{_NAME}\s++(?:has|shows)\s++|(?P<alone>))(?:an?\s++|the\s++)?(?:overall\s++)?
            (?:{_WORD}\s++{_NOUN}|{_NUMBER})
        )(?![\d/]|\.\d)(?:\s*+\([1-5](?:/5)?\))?(?:\s++overall)?
        \s*+(?:$|[:,\u2013\u2014]|\((?!\d)|-\s|\b(?:with|due|because|since|as|given|despite|owing|and|though|although)\b)""",
        re.IGNORECASE | re.VERBOSE,
    )


_ALONE = re.compile(rf"(?:{_WORD}|{_NUMBER})\s*+(?:\([1-5](?:/5)?\))?[.! ]*+", re.IGNORECASE)
_MARKUP = re.compile(r"[*_`\"\u201c\u201d#]+")
_SENTENCE_ENDS = re.compile(r"(?<=[.!?;])\s+|;|\n")
_CLAUSE_ENDS = re.compile(
    r"(?<!overall)(?<!conclusion),\s*+|(?<!\s)\s++[-\u2013\u2014]++\s++|\u2014"
    r"|(?<!\s)\s++(?=(?:so|hence|thus|therefore|because|since|though|although|and)\s)",
    re.IGNORECASE,
)
# A statement before one of these words is qualified by what follows.
_CONTRAST = re.compile(
    r"(?<!anything)(?<!nothing)(?<!all)(?:^|[\s,])(?:but|however|yet|nevertheless|nonetheless|still)\b,?\s*", re.I
)
_DENIED = re.compile(
    r"\b(?:not|no|never|neither|nor|none|nothing|nobody|nowhere|cannot|hardly|barely|scarcely|rarely|seldom|without|"
    r"far|anything|lack\w*|fail\w*|less|false|wrong|untrue|doubt\w*)\b|n't\b",
    re.IGNORECASE,
)
# Words that make a whole sentence uncertain: a condition, a wish, a question, a choice of levels, a former state, a
# quotation.
_UNCERTAIN = re.compile(
    rf"""\b(?:if|unless|were\s+(?:it|there|the|not)|had\s+(?:it|the)|would(?<!I\ would)(?<!we\ would)|could|might|may
    |must|should|whether|wish\w*|hope\w*|provided|assuming|suppos\w+|imagin\w+|expect\w*|between|better|worse|than
    |almost|nearly|near|close|apart|aside|except\w*|excluding|ignor\w+|before|once|until|enough|best(?!\s+described)
    |worst|glance|respect|regard\w*|concerning|without|rather|instead|long\s+as|used\s+to|longer|or\s+so|at\s+least
    |maybe|perhaps|possibly|probably|supposedly|allegedly|apparently|seemingly|says|said|claim\w*|ask\w*|question\w*
    |users?|caption\w*|reads?|title\w*|people|viewers?|some|others|think|believe\w*|true|case
    |{_WORD}\b[\W\d]*+(?:(?:or|to|and|nor)\b\W*+)?\b{_WORD})\b|\?""",
    re.IGNORECASE | re.VERBOSE,
)
_PLACE = re.compile(
    r"(?:^|,\s*)(?:in|at|on|near|around|within|along|towards?|for|from|under|when|while|where|by|across|among|unlike)\b"
    r"(?!\s+(?:conclusion|summary|short|total|the\s+whole))",
    re.IGNORECASE,
)
_TAKEN_BACK = re.compile(
    r"(?:unfortunately|not|no|or|rather|actually|wait|correction|at\s+least|in\s+fact|in\s+reality|on\s+second|"
    r"on\s+the\s+other\s+hand|that\s+said)\b",
    re.IGNORECASE,
)


def level_named(text: str) -> int | None:
    """Return the one quality level, 1 to 5, that a text states for its image; ``None`` for none or several."""
    text = _MARKUP.sub("", text.replace("\u2019", "'")).strip()
    if len(text) > LONGEST:
        return None
    if _ALONE.fullmatch(text):
        return _level_in(text)
    is_it = bool(re.match(rf"(?:it|{_NAME})\b(?!')", text, re.IGNORECASE))  # whether "it" is the image
    levels: set[int] = set()
    for sentence in _SENTENCE_ENDS.split(_CONTRAST.split(text)[-1]):
        if levels and _TAKEN_BACK.match(sentence.strip()):
            return None
        certain = not (_UNCERTAIN.search(sentence) or _PLACE.search(sentence.strip()))
        for number, clause in enumerate(_CLAUSE_ENDS.split(sentence) if certain else ()):
            claim = None if _DENIED.search(clause.partition(": ")[0]) else _claim().match(clause.strip(" .!"))
            if claim and (is_it or not claim["it"]) and (number == 0 or claim["alone"] is None):
                levels.add(_level_in(claim[0]))
    return levels.pop() if len(levels) == 1 else None


def _level_in(text: str) -> int:
    """Return the level in a text that has exactly one."""
    word, number = re.search(rf"\b{_WORD}\b", text, re.IGNORECASE), re.search("[1-5]", text)
    return LEVELS[word[0].capitalize()] if word else int(number[0])  # type: ignore[index]
