"""Find the option that an answer means. An answer that could mean two options or none is not read.

The forms are those that VLMEvalKit (``can_infer``), lmms-eval and the MMMU scripts (``parse_multi_choice_response``)
extract. Unlike these, nothing is guessed: a letter beside another option's text, two letters, a letter that is an
article ("A blurry image") and a denied option ("not noise") are not read.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping

LONGEST = 2_000  # characters of an answer; a longer answer is not read
LONGEST_SENTENCE = 20  # words of an answer that is searched for an option's text

_AROUND = re.compile(
    r"<think(?:ing)?>(?:[^<]|<(?!think))*?</think(?:ing)?>"
    r"|</?(?:answer|final_answer|option|choice)>|<\|(?:begin|end)_of_box\|>",
    re.I | re.S,
)
_BOXED = re.compile(r"\\(?:boxed|fbox)\s*\{((?:[^{}]|\{[^{}]*\})*)\}")
_STYLED = re.compile(r"\\(?:text(?:bf|rm|it)?|math(?:bf|rm|it)?)\s*\{([^{}]*)\}")
_MARKUP = re.compile(r"\\[()\[\]]|[*`$#\"“”«»「」]+|(?<!\w)_+|_+(?!\w)|(?<!\w)'|'(?!\w)")
_PUNCTUATION = str.maketrans({"。": ".", "、": ",", "【": "[", "】": "]", "〔": "[", "〕": "]", "’": "'"})

_ALONE = re.compile(r"[(\[]?\s*([A-Za-z])\s*[)\]]?[.:,;]*")
_NOUN = r"(?:answer|option|choice|response|letter)"
_LEAD = rf"""
    \b(?:i|we)(?:'d|'ll|\s++would|\s++will)?\s++(?:choose|chose|pick|select|go\s++(?:with|for)|say|answer):?\s++
  | \b(?:it|this)(?:'s|\s++is|\s++would\s++be)\s++
  | \b{_NOUN}\b\s*+(?:(?:is|would\s++be|should\s++be|must\s++be)\b|[:=→]|->)\s*+(?:[:=→]|(?:most\s++)?likely\b)?\s*+
  | (?:答案|选项|选择|选)\s*+(?:是|为)?\s*+:?\s*+
"""
_CLAIM = re.compile(
    rf"""(?=(?:(?P<led>{_LEAD})|(?:^|\n)[^\S\n]*+(?:(?:so|therefore|thus|hence),?\s++|[-–—]\s++)?)
    (?:(?:the\s++)?{_NOUN}\s++)?
    (?:[(\[]\s*+)?(?P<label>[A-Za-z])(?![\w'])(?P<then>\s*+[.:,;)\]/=&|]+|\s++[-–—]+(?=\s)|))""",
    re.I | re.X,
)
_EXPLAINED = re.compile(
    r"(?:because|since|as|due\s+to)\b"
    r"|(?:is|seems)\s+(?:the\s+|clearly\s+)?(?:most\s+\w+|best|correct|right|accurate|appropriate)\b",
    re.I,
)
_LEADING = re.compile(
    rf"(?<!\s)\s*+(?:{_LEAD}|(?:(?:the|my)\s++)?(?:\b\w++\s++){{0,2}}{_NOUN}\s*+(?:is|:)\s*+)", re.I | re.X
)
_NAMED = re.compile(
    rf"""[(\[]\s*([A-Z])\s*[)\]] | \b(?i:{_NOUN})\s+([A-Z])\b | (?<![\w'])([B-HJ-Z])(?![\w'’]|\.\w)
    | (?<![\w'])([AI])(?=\s*(?:[).:,/&]|$|\n|(?:or|and|nor)\b))""",
    re.X,
)
# Words near an option that deny it or leave it open.
_DOUBT = re.compile(
    r"\b(?:no|not|never|neither|nor|none|without|cannot|wrong|incorrect|hardly|barely|almost|nearly|little|less|lack\w*"
    r"|far\s+from|rather\s+than|instead\s+of|free\s+of|except|exclud\w+|eliminat\w+|unlikely|or|either|unclear|unsure"
    r"|uncertain|maybe|perhaps|might|could\s+be|both)\b|n't\b",
    re.I,
)
# Words that are frequent in any sentence, where they do not mean an option.
_COMMON = frozenset({"yes", "no", "none", "true", "false", "a", "the", "is", "it", "i", "in", "all", "other"})


def letter_of(answer: str, options: Mapping[str, str]) -> str | None:
    """Return the letter of the option that an answer means, or ``None``.

    It may be the letter ("b", "(B)", "**B**", "B. Blur", "Option B", "The answer is B", ``\\boxed{B}``), the option's
    text, or a short sentence with the text of exactly one option.
    """
    text = _unwrapped(answer) if len(answer) <= LONGEST else ""
    plain = {letter: _plain(option) for letter, option in options.items()}
    texts = sorted(plain.values(), key=len, reverse=True)  # options that differ only in marks are ambiguous
    letters = {option: letter for letter, option in plain.items()}
    by_text = {option: letters[option] for option in texts if option and texts.count(option) == 1}
    exact = by_text.get(_plain(text))
    label = _ALONE.fullmatch(text)
    if label and (letter := _letter(label[1], options)):
        return letter
    beside, candidates = _without_texts(text, by_text)
    claims = set(_claims(text, options, by_text, candidates))
    if exact:
        return exact if claims <= {exact, None} else None
    labels = {letter for groups in _NAMED.findall(text) for letter in groups if letter in options}
    opening = _opening(_LEADING.sub("", text, count=1), by_text)
    if claims:
        candidates = claims | {_begins_with(text, by_text)} - {None}
    elif opening:
        candidates.add(opening)
    elif _DOUBT.search(beside) or len(text.split()) > LONGEST_SENTENCE:
        return None
    return candidates.pop() if len(candidates) == 1 and labels <= candidates else None


def _claims(
    text: str, options: Mapping[str, str], by_text: Mapping[str, str], candidates: set[str | None]
) -> Iterator[str | None]:
    """Yield the letters that the answer states; ``None`` for a contradictory or vague statement."""
    for match in _CLAIM.finditer(text):
        letter, rest = _letter(match["label"], options), text[match.end("then") :].partition("\n")[0].strip()
        said = _begins_with(rest, by_text)
        explained = _EXPLAINED.match(rest)
        if letter is None or not (match["then"].strip() or not rest or said == letter or explained):
            continue  # an article, "I", or a word of one letter
        before = re.split(r"[.!?\n]", text[: match.start("label")])[-1]
        led = match["led"] or explained or not rest
        clear = said == letter or (said is None and led and candidates <= {letter})
        yield letter if clear and not _DOUBT.search(before) else None


def _opening(text: str, by_text: Mapping[str, str]) -> str | None:
    """Return the letter of the option before the first mark, such as "yes" in "Yes, it is"."""
    mark = re.search(r"[,.;:!\n]|\s[-–—]\s", text)
    first, rest = (text[: mark.start()], text[mark.end() :]) if mark else (text, "")
    letter, words = by_text.get(_plain(first)), _plain(rest).split()
    said = {_begins_with(rest, by_text), *(by_text.get(word) for word in words[:1] + words[-1:])}
    doubtful = said - {letter, None} or _DOUBT.match(rest.strip())
    return None if doubtful else letter


def _begins_with(text: str, by_text: Mapping[str, str]) -> str | None:
    """Return the letter of the longest option that a text begins with."""
    plain = f"{_plain(text)} "
    return next((letter for option, letter in by_text.items() if plain.startswith(f"{option} ")), None)


def _without_texts(text: str, by_text: Mapping[str, str]) -> tuple[str, set[str | None]]:
    """Remove the options' texts (except common words) from a text; return it with their letters."""
    plain = " ".join(["", *re.findall(r"[\w']+", text.casefold()), ""])
    letters: set[str | None] = set()
    for option, letter in by_text.items():
        if option not in _COMMON and f" {option} " in plain:
            plain = plain.replace(f" {option} ", " | ")
            letters.add(letter)
    return plain, letters


def _letter(label: str, options: Mapping[str, str]) -> str | None:
    """Return the letter that a label means, in any case."""
    return label.upper() if label.upper() in options else None


def _unwrapped(answer: str) -> str:
    """Return the answer without thoughts, tags, LaTeX and Markdown; if it has a box, the content of the box."""
    text = unicodedata.normalize("NFKC", _AROUND.sub(" ", answer)).translate(_PUNCTUATION)
    text = " or ".join(dict.fromkeys(_BOXED.findall(text))) or text
    return _MARKUP.sub("", _STYLED.sub(r"\1", text)).strip()


def _plain(text: str) -> str:
    """Return the words of a text in lower case."""
    return " ".join(re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold()))
