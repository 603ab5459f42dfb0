"""The quality level that a free text states of the image as a whole, for an answer that has nothing better.

Only what is certain is read. A clause has to have one of a few forms ("the overall quality is poor", "a good quality
image", "quality level: 4"), and nothing beside it may change its meaning: of "far from excellent", "hardly a good
quality image", "would be excellent if", "good but noisy", "poor lighting" and "the background is of poor quality"
nothing is read.
"""

import re

from agenticiqa.signatures.vocabulary import LEVELS

LONGEST = 8_000  # characters; of a longer text nothing is certain
MOST_CLAUSES = 40  # of a sentence

_IMAGE = "(?:image|picture|photo|photograph)"
_KIND = "(?:overall|perceptual|perceived|visual|general|image|picture|photo|photographic)"
_OF_THE_IMAGE = rf"(?:\s+of\s+(?:the|this)\s+{_IMAGE})?"
_WORD = rf"(?:{'|'.join(LEVELS)})"
_NUMBER = r"(?:level\s*:?\s*[1-5]|[1-5]\s*(?:/|out\s+of)\s*5)(?![\d/]|\.\d)"
_LEVEL = rf"(?:{_WORD}(?:\s+quality)?|{_NUMBER})"
_GRADE = rf"(?:{_LEVEL}|[1-5](?![\d/]|\.\d))"
_NOUN = rf"(?:(?:{_KIND}\s+)*quality(?:\s+{_IMAGE})?|{_IMAGE})"
_NAME = rf"(?:(?:the|this|its)\s+)?(?:{_KIND}\s+)*(?:quality(?:\s+(?:level|rating))?|{_IMAGE}|rating|level)"
_IS = (
    r"\s+(?:is|appears|looks|seems)(?:\s+(?:therefore|thus|hence|clearly|overall))?"
    r"(?:\s+(?:rated|judged|assessed|considered|deemed|classified|graded|best\s+described))?"
)
_RATE = r"(?:I|we)(?:\s+would|'d)?\s+(?:rate|say|judge|assess|call|consider|describe|grade|classify)"
_BEGIN = r"(?:(?:and|so|thus|hence|therefore|because|since|though|although)\s+)*"
_END = (
    r"(?:\s+overall)?\s*(?:$|[(:,\u2013\u2014]|\s-\s|\b(?:with|due|because|since|as|given|despite|owing|and|though|"
    r"although)\b)"
)


def _form(pattern: str) -> re.Pattern[str]:
    return re.compile(_BEGIN + pattern + _END, re.IGNORECASE)


# A whole clause from its beginning: who or what, a verb, the level.
_SENTENCES = (
    _form(rf"{_NAME}{_OF_THE_IMAGE}{_IS}\s+(?:(?:as|at|to\s+be)\s+)?{_GRADE}"),
    _form(rf"(?:{_NAME}|this){_IS}\s+(?:of\s+)?(?:an?\s+)?{_WORD}\s+{_NOUN}"),
    _form(rf"{_NAME}\s+(?:has|shows|exhibits|presents|displays)\s+(?:an?\s+)?{_WORD}\s+{_NOUN}"),
    _form(rf"{_RATE}(?:\s+(?:it|{_NAME}{_OF_THE_IMAGE}))?\s+(?:(?:as|at|to\s+be|is)\s+)?{_GRADE}"),
    _form(rf"(?:(?:final|{_KIND})\s+)*(?:quality\s+)?(?:quality|level|rating|grade|overall)\s*=\s*{_GRADE}"),
)
_OF_IT = _form(rf"it{_IS}\s+(?:(?:as\s+)?{_LEVEL}|(?:of\s+)?(?:an?\s+)?{_WORD}\s+{_NOUN})")
_FRAGMENT = _form(rf"(?:(?:(?:an?|the)\s+)?(?:overall\s+)?{_WORD}\s+{_NOUN}|{_NUMBER})")
_RESULT = _form(rf"(?:resulting|results|leading|leads)\s+(?:in|to)\s+(?:an?\s+)?(?:overall\s+)?{_WORD}\s+{_NOUN}")
_ALONE = re.compile(rf"(?:{_WORD}|{_NUMBER})\s*(?:\([1-5](?:/5)?\))?", re.IGNORECASE)

_SENTENCE_ENDS = re.compile(r"(?<=[.!?;])\s+|;|\n")
_CONTRASTS = re.compile(r"(?:^|[\s,])(?:but|however|yet|nevertheless|nonetheless|still|except)\b,?\s*", re.IGNORECASE)
_CLAUSE_ENDS = re.compile(
    r",\s*|\s+[-\u2013\u2014]+\s+|\u2014|:\s+(?=\D)|\s+(?=(?:so|hence|thus|therefore|because|since|though|although|and)\s)"
)
_LABEL = re.compile(
    rf"((?:^|[,;.]\s*)(?:(?:final|{_KIND})\s+)*(?:quality\s+)?(?:quality|level|rating|grade|overall))\s*:\s*",
    re.IGNORECASE,
)
_MARKUP = re.compile(r"[*_`\"\u201c\u201d#]+")

_DENIED = re.compile(
    r"\b(?:not|no|never|neither|nor|none|nothing|nobody|nowhere|cannot|hardly|barely|scarcely|rarely|seldom|without|"
    r"far|anything|lack\w*|fail\w*|less|false|wrong|untrue|doubt\w*)\b|n't\b",
    re.IGNORECASE,
)
_REPORTED = re.compile(
    r"\b(?:says?|said|claim\w*|ask\w*|question\w*|users?|caption\w*|reads?|title\w*|people|viewers?|some|others)\b",
    re.IGNORECASE,
)
_OPINION = re.compile(
    r"\b(?:think|believe\w*|agree\w*|means?|call\w*|consider\w*|find|case|true|rat(?:e|es|ed|ing))\b", re.IGNORECASE
)
# What makes a whole sentence uncertain: a condition, a wish, a question, a choice of levels, a former state.
_UNCERTAIN = re.compile(
    r"\b(?:if|unless|were\s+(?:it|there|the|not)|had\s+(?:it|the)|would(?<!I would)(?<!we would)|could|might|may|must|"
    r"should|whether|wish\w*|hope\w*|provided|assuming|suppos\w+|imagin\w+|expect\w*|between|better|worse|than|"
    r"almost|nearly|near|close|apart|aside|exception|excepting|except|excluding|ignor\w+|before|once|until|enough|"
    r"best(?!\s+described)|worst|glance|respect|regard\w*|concerning|without|rather|instead|long\s+as|used\s+to|"
    r"longer|or\s+so|at\s+least|maybe|perhaps|possibly|probably|supposedly|allegedly|apparently|seemingly)\b|\?",
    re.IGNORECASE,
)
_CHOICE = re.compile(rf"\b{_WORD}\b\W*(?:\b(?:or|to|and|nor)\b)?\W*\b{_WORD}\b", re.IGNORECASE)
# Elsewhere than in the image as a whole, or something else than the image.
_PLACE = re.compile(
    r"\s*(?:in|at|on|near|around|within|along|toward|towards|for|from|under|when|while|where|by|across|among|unlike)\b"
    r"(?!\s+(?:conclusion|summary|short|total|sum|the\s+whole|balance|(?:my|our)\s+(?:opinion|view)|(?:this|that)\s+"
    r"reason|(?:these|those)\s+reasons))",
    re.IGNORECASE,
)
_OTHER = re.compile(
    r"\b(?:reference|original|pristine|source|lens|camera|background|foreground|cent(?:er|re)|corner\w*|edge\w*|left|"
    r"right|top|bottom|sky|face|region|area)\b",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"(?:overall|(?:in\s+)?(?:conclusion|summary|short|total|sum)|therefore|thus|hence|so|finally|on\s+balance|"
    r"on\s+the\s+whole)",
    re.IGNORECASE,
)
_ABOUT_THE_IMAGE = re.compile(rf"\s*(?:it|{_NAME})\b(?!')", re.IGNORECASE)
_TAKEN_BACK = re.compile(
    r"\s*(?:however|but|yet|still|unfortunately|not|no|nevertheless|nonetheless|or|rather|actually|wait|correction|"
    r"at\s+least|in\s+fact|in\s+reality|on\s+second\s+thought\w*|on\s+the\s+other\s+hand|that\s+said)\b",
    re.IGNORECASE,
)


def level_named(text: str) -> int | None:
    """The one quality level, 1 to 5, that a text states of its image; ``None`` where it states none or several."""
    if len(text) > LONGEST:
        return None
    text = " ".join(_MARKUP.sub("", line.replace("\u2019", "'")) for line in text.splitlines(keepends=True))
    if _ALONE.fullmatch(text.strip().rstrip(".! ")):
        return _level_in(text)
    levels: list[int] = []
    before = ""
    for sentence in filter(None, map(_stripped, _SENTENCE_ENDS.split(text))):
        if _TAKEN_BACK.match(sentence):
            levels = []
        levels += _stated(sentence, before)
        before = sentence
    return levels[0] if len(set(levels)) == 1 else None


def _stated(sentence: str, before: str) -> list[int]:
    """The levels that a sentence states; ``before`` is the sentence before it."""
    *dropped, last = _CONTRASTS.split(sentence)  # of "X but Y" only Y is meant without a reserve
    if _UNCERTAIN.search(sentence) or _CHOICE.search(last):
        return []
    if dropped and re.search(r"\b(?:anything|all|nothing)$", dropped[-1].strip(), re.IGNORECASE):
        return []
    if dropped and _DENIED.search(dropped[-1]) and _ALONE.fullmatch(_stripped(last)):
        return [_level_in(last)]
    clauses = [clause for each in _CLAUSE_ENDS.split(_LABEL.sub(r"\1=", last)) if (clause := each.strip(" ,"))]
    if len(clauses) > MOST_CLAUSES or any(_PLACE.match(clause) for clause in clauses):
        return []
    return [
        level
        for number, clause in enumerate(clauses)
        if (level := _clause_level(clause, clauses[:number], before or " ".join(dropped))) is not None
    ]


def _clause_level(clause: str, earlier: list[str], before: str) -> int | None:
    if _DENIED.search(clause):
        return None
    led = " ".join(earlier)
    denied = bool(_DENIED.search(led))
    if _REPORTED.search(led):
        return None
    if not (denied and _OPINION.search(led)):
        for form in _SENTENCES:
            if found := form.match(clause):
                return _level_in(found[0])
        subject = led or before
        if (found := _OF_IT.match(clause)) and (not subject or _ABOUT_THE_IMAGE.match(subject)):
            return _level_in(found[0])
    if denied or _OTHER.search(f"{led} {clause}"):
        return None
    found = _RESULT.match(clause)
    if not found and all(map(_OPENING.fullmatch, earlier)):
        found = _FRAGMENT.match(clause)
    return _level_in(found[0]) if found else None


def _level_in(text: str) -> int:
    """The level of a text that has exactly one."""
    word = re.search(rf"\b{_WORD}\b", text, re.IGNORECASE)
    number = re.search("[1-5]", text)
    return LEVELS[word[0].capitalize()] if word else int(number[0])  # type: ignore[index]


def _stripped(sentence: str) -> str:
    return sentence.strip().rstrip(".!; ")
