"""Read which option an answer means. What could mean two options, or none that was offered, is not read at all.

The forms are those that VLMEvalKit (``can_infer``), lmms-eval and the MMMU scripts (``parse_multi_choice_response``)
extract. Unlike these, nothing is guessed: a letter beside another option's text, two letters, a letter that is an
article ("A blurry image") and a denied option ("not noise") are not read.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence

LONGEST = 2_000  # characters of an answer; in a longer one no option is looked for
MOST_CLAIMS = 100  # of an answer
LONGEST_SENTENCE = 20  # words of an answer in which an option's text is looked for

_THOUGHTS = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.I | re.S)
_TAG = re.compile(r"</?(?:answer|final_answer|option|choice)>|<\|(?:begin|end)_of_box\|>", re.I)
_BOXED = re.compile(r"\\(?:boxed|fbox)\s*\{((?:[^{}]|\{[^{}]*\})*)\}")
_STYLED = re.compile(r"\\(?:text(?:bf|rm|it)?|math(?:bf|rm|it)?)\s*\{([^{}]*)\}")
_MARKUP = re.compile(r"\\[()\[\]]|[*`$#\"“”«»「」]+|(?<!\w)_+|_+(?!\w)|(?<!\w)'|'(?!\w)")
_PUNCTUATION = str.maketrans({"。": ".", "、": ",", "【": "[", "】": "]", "〔": "[", "〕": "]", "’": "'"})

_NOUN = r"(?:answer|option|choice|response|letter)"
_LEAD = rf"""
    \b(?:i|we)(?:'d|'ll|\s+would|\s+will|\s+have\s+to)?\s+
    (?:choose|chose|pick|select|go\s+(?:with|for)|say|answer|opt\s+for)(?:\s+that)?:?\s+
  | (?:^|\n)\s*(?:(?:so|therefore|thus|hence|overall|then),?\s+)?(?:[-–—]\s+)?
  | \b(?:it|this)(?:'s|\s+is|\s+would\s+be)\s+
  | \b{_NOUN}\b(?:\s+(?:here|to\s+(?:this|the)\s+question))?\s*(?:(?:is|would\s+be|should\s+be|must\s+be)\b|[:=→]|->)
    (?:\s*(?:[:=→]|most\s+likely\b|likely\b|therefore\b|clearly\b))?\s*
  | (?:答案|选项|选择|选)\s*(?:是|为)?\s*:?\s*
"""
_CLAIM = re.compile(
    rf"""(?=(?:{_LEAD})(?:(?:the\s+)?(?:{_NOUN}|number)\s+)?
    (?P<open>[(\[])?\s*(?P<label>[A-Za-z]|\d{{1,2}})(?![\w'])\s*(?P<close>[)\]])?
    (?P<then>\s*[.:,;)\]/=&|]+|\s*[-–—]+(?=\s)|\s*$|\s*\n|\s+)(?P<rest>[^\n]*))
    """,
    re.I | re.X,
)
_LEADING_WORDS = re.compile(
    rf"^\s*(?:(?:the\s+|my\s+)?(?:\w+\s+){{0,2}}{_NOUN}\s*(?:is|would\s+be|should\s+be|:|=)\s*:?\s*"
    r"|it(?:'s|\s+is)\s+|(?:i|we)(?:'d|\s+would)?\s+(?:choose|pick|select|say|go\s+with|answer)\s+)",
    re.I,
)
_CONFIRMED = re.compile(
    r"(?:is|was|would\s+be|seems|appears)\s+(?:to\s+be\s+)?(?:the\s+|clearly\s+|most\s+likely\s+)*"
    r"(?:most\s+\w+|best|correct|right|accurate|true|appropriate)\b",
    re.I,
)
_REASON = re.compile(r"(?:because|since|as|due\s+to)\b", re.I)
_NAMED = re.compile(
    rf"""[(\[]\s*([A-Z])\s*[)\]] | \b(?i:{_NOUN})\s+([A-Z])\b | (?<![\w'])([B-HJ-Z])(?![\w'’]|\.\w)
    | (?<![\w'])([AI])(?=\s*(?:[).:,/&]|$|\n|(?:or|and|nor)\b))""",
    re.X,
)
_NEGATION = re.compile(
    r"\b(?:no|not|never|neither|nor|none|without|cannot|wrong|incorrect|hardly|barely|almost|nearly|little|less|lack\w*"
    r"|far\s+from|rather\s+than|instead\s+of|free\s+of|except|exclud\w+|eliminat\w+|unlikely)\b|n't\b",
    re.I,
)
_UNDECIDED = re.compile(r"\b(?:or|either|unclear|unsure|uncertain|maybe|perhaps|might|could\s+be|both)\b", re.I)
# Words that are in any sentence, so that there they mean no option.
_COMMON = frozenset({"yes", "no", "none", "true", "false", "a", "the", "is", "it", "i", "in", "all", "other"})


def letter_of(answer: str, options: Mapping[str, str], *, numbered: bool = False) -> str | None:
    """The letter of the option that an answer means, or ``None``.

    Read are the letter ("b", "(B)", "**B**", "B. Blur", "Option B", "The answer is B", ``\\boxed{B}``), the option's
    text, and a short sentence with the text of exactly one option. With ``numbered`` the question numbered its options,
    and "2" means the second.
    """
    text = _unwrapped(answer) if len(answer) <= LONGEST else ""
    if not text:
        return None
    by_text = _by_text(options)
    exact = by_text.get(_plain(text))
    label = re.fullmatch(r"[(\[]?\s*([A-Za-z]|\d{1,2})\s*[)\]]?[.:,;]*", text)
    if label and (letter := _letter(label[1], options, numbered)):
        return letter if label[1].isalpha() or exact in (None, letter) else None
    claims = list(_claims(text, options, by_text, numbered))
    if exact:
        return exact if all(letter == exact for letter in claims if letter) else None
    if claims:
        letter = claims[0]
        return letter if letter and set(claims) | _named(text, options) == {letter} else None
    return _letter_of_text(text, by_text, _named(text, options))


def _claims(text: str, options: Mapping[str, str], by_text: Mapping[str, str], numbered: bool) -> Iterator[str | None]:
    """The letters that the answer states; ``None`` for a statement that contradicts itself."""
    looked_at = 0
    for match in _CLAIM.finditer(text):
        letter = _letter(match["label"], options, numbered)
        if letter is None:
            continue
        looked_at += 1
        if looked_at > MOST_CLAIMS:
            yield None
            return
        led = bool(text[match.start() : match.start("label")].strip(" \n([-–—"))
        rest, line_ends = match["rest"].strip(), "\n" in match["then"] or not match["rest"]
        delimited = bool(match["close"] or match["then"].strip() or line_ends)
        own = _begins_with(rest, letter, by_text)
        if not delimited and not own and not _CONFIRMED.match(rest) and not _REASON.match(rest):
            continue  # an article, "I", or a word of one letter
        before = re.split(r"[.!?\n]", text[: match.start("label")])[-1]
        if _NEGATION.search(before) or _UNDECIDED.search(before):
            yield None
        elif own:
            yield letter
        elif _others(text[: match.start("label")] + " " + text[match.end("label") :], letter, by_text):
            yield None
        elif line_ends or led or _CONFIRMED.match(rest) or _REASON.match(rest):
            yield letter
        else:
            yield None


def _letter_of_text(text: str, by_text: Mapping[str, str], named: set[str]) -> str | None:
    """The letter of the one option whose text the answer says."""
    stated = _LEADING_WORDS.sub("", text)
    letter = by_text.get(_plain(stated)) or _opening(stated, by_text)
    if letter is None:
        rest, found = _without_texts(text, by_text)
        if len(found) != 1 or _NEGATION.search(rest) or _UNDECIDED.search(rest):
            return None
        if len(text.split()) > LONGEST_SENTENCE:
            return None
        (letter,) = found
    return letter if named <= {letter} else None


def _opening(text: str, by_text: Mapping[str, str]) -> str | None:
    """The letter of the option that is said before the first mark, as "yes" in "Yes, it is"."""
    first, _, rest = [*re.split(r"([,.;:!\n]|\s[-–—]\s)", text, maxsplit=1), "", ""][:3]
    letter = by_text.get(_plain(first))
    if letter is None or _others(rest, letter, by_text):
        return None
    words = _plain(rest).split()
    said = {by_text[word] for word in (words[:1] + words[-1:]) if word in by_text}
    return letter if said <= {letter} and not _UNDECIDED.match(rest.strip()) else None


def _others(text: str, letter: str, by_text: Mapping[str, str]) -> bool:
    """Whether a text says the text of another option; at its beginning also a common word, such as "no"."""
    first = _first_option(text, by_text)
    return bool(_without_texts(text, by_text)[1] - {letter}) or first not in (None, letter)


def _begins_with(text: str, letter: str, by_text: Mapping[str, str]) -> bool:
    return _first_option(text, by_text) == letter


def _first_option(text: str, by_text: Mapping[str, str]) -> str | None:
    """The letter of the option whose text a text begins with; of several the longest."""
    plain = f"{_plain(text)} "
    return next((by_text[option] for option in _longest_first(by_text) if plain.startswith(f"{option} ")), None)


def _without_texts(text: str, by_text: Mapping[str, str]) -> tuple[str, set[str]]:
    """A text without the options' texts, and the letters of those that it had; common words are no text."""
    plain, found = f" {_plain(text, keep_apostrophes=True)} ", set()
    for option in _longest_first(by_text):
        if option not in _COMMON and f" {option} " in plain:
            plain = plain.replace(f" {option} ", " | ")
            found.add(by_text[option])
    return plain, found


def _longest_first(by_text: Mapping[str, str]) -> Sequence[str]:
    return sorted(by_text, key=len, reverse=True)


def _by_text(options: Mapping[str, str]) -> dict[str, str]:
    """The letter of each option's text; texts that differ in marks only are left out."""
    plain = {letter: _plain(text) for letter, text in options.items()}
    texts = list(plain.values())
    return {text: letter for letter, text in plain.items() if text and texts.count(text) == 1}


def _named(text: str, options: Mapping[str, str]) -> set[str]:
    """The letters of options that an answer names anywhere."""
    return {letter for groups in _NAMED.findall(text) for letter in groups if letter in options}


def _letter(label: str, options: Mapping[str, str], numbered: bool) -> str | None:
    if label.isalpha():
        return label.upper() if label.upper() in options else None
    letters = list(options)
    return letters[int(label) - 1] if numbered and 1 <= int(label) <= len(letters) else None


def _unwrapped(answer: str) -> str:
    """The answer without thoughts, tags, LaTeX and Markdown; of a text with a box, what is in the box."""
    text = unicodedata.normalize("NFKC", _THOUGHTS.sub(" ", answer)).translate(_PUNCTUATION)
    boxes = _BOXED.findall(text)
    text = " or ".join(dict.fromkeys(boxes)) if boxes else text
    text = _STYLED.sub(r"\1", text)
    return _MARKUP.sub("", _TAG.sub(" ", text)).strip()


def _plain(text: str, *, keep_apostrophes: bool = False) -> str:
    """The words of a text in small letters."""
    words = r"[\w']+" if keep_apostrophes else r"\w+"
    return " ".join(re.findall(words, unicodedata.normalize("NFKC", text).casefold()))
