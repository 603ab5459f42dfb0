"""Parse a question without a model: the options it offers, and the form of the answer it asks for."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise
from string import ascii_uppercase
from typing import Literal

from agenticiqa.signatures.types import QueryType

DEFAULT_QUERY = "Rate the perceptual quality of this image."

_MARKER = re.compile(
    r"""(?<![^\s?:;,])                     # not inside a word: "U.S.A. style" has no option A
    (?:(?:option|choice|answer)\s+)?
    (?P<open>\()?(?P<letter>[A-Za-z])(?P<close>[).:])
    (?:(?<=\))|(?=\s|\w(?!\.)))            # "A)x" and "A.Yes", but not the "a.m." of a clock
    """,
    re.I | re.X,
)
_LABELLED = re.compile(r"\b(?:image|photo|picture|region|area|zone|patch|crop|part|version|section)\s*$", re.I)
_INSTRUCTION = re.compile(
    r"\?\s.*|[.!]\s+(?:please|answer|choose|select|pick|reply|respond|explain|justify|give|return|only)\b.*",
    re.I | re.S,
)
_LEAD_IN = re.compile(
    r"\b(?:(?:choose|pick|select)(?:\s+(?:one|an?\s+\w+|the\s+(?:best|right|correct)(?:\s+\w+)?))?"
    r"(?:\s+(?:from|between|among|of)\b(?:\s+(?:the\s+following|these)(?:\s+(?:options|choices|answers))?)?\s*:?|\s*:)"
    r"|(?:options|choices|possible\s+answers)(?:\s+are)?\s*:)\s*",
    re.I,
)
_YES_NO = re.compile(
    r"""(?:\banswer\s+(?:with\s+|by\s+|only\s+)*)?
    (?<![\w'-])(?P<first>yes|no)\s*(?:[/,|]|\bor\b|\n)\s*(?!(?P=first))(?P<second>yes|no)\b
    (?:\s*[)\]]?[\s.?!"']*$ | (?=\s*:))    # at the very end, or as in "Yes or no: ..."
    """,
    re.I | re.X,
)

_NO_RATIO = r"(?<!compression )(?<!frame )(?<!bit )"
_QUALITY = re.compile(r"\bquality\b", re.I)
_RATING = re.compile(rf"{_NO_RATIO}\brat(?:e|es|ed|ing)\b|\bscor(?:e|es|ed|ing)\b|\b(?:assess|evaluat)\w*", re.I)
_RATE = re.compile(rf"{_NO_RATIO}\b(?:rate|score|assess|evaluate|grade)\b", re.I)
_HOW_GOOD = re.compile(
    r"\bhow(?:'s|\s+(?:good\s+|bad\s+|high\s+|low\s+|poor\s+)?(?:is|was))\s+(?:\w+\s+){0,3}quality\b"
    r"|\bhow\s+(?:good|bad)\s+is\s+(?:this|the|my)\s+(?:\w+\s+)?(?:image|photo|photograph|picture|pic|shot)\b"
    r"|\bhow\s+would\s+you\s+(?:rate|score|grade)\b",
    re.I,
)
_REASON_FIRST = re.compile(r"^\W*(?:please\s+)?(?:why|explain)\b", re.I)
_EXPLAIN = re.compile(r"\b(?:why|explain|describe|what)\b", re.I)
_ASKS = re.compile(
    r"\?|^\W*(?:is|are|was|were|do|does|did|has|have|can|could|how|which|who|where|when)\b"
    r"|\b(?:whether|tell|check|list|name|find|identify|locate|compare|discuss|comment)\b",
    re.I,
)


@dataclass(frozen=True)
class _Offer:
    """The options that a question offers, and the span of the question that lists them."""

    texts: list[str]
    start: int
    end: int


def parse_options(query: str) -> dict[str, str]:
    """The options that the question offers, by letter, in order; ``{}`` when it offers none.

    Lettered options are ``A) ..``, ``A. ..``, ``(A) ..`` or ``A: ..``, one per line or in one line, 2 to 26 of them,
    consecutive from A; small letters are given back as capitals. Options without letters ("choose from: X, Y or Z",
    "Options: X, Y", a closing "Yes or No?", "(Yes/No)", "Yes, No") get the letters A, B, ... in their order.

    >>> parse_options("Is the sky noisy? A. Yes B. No")
    {'A': 'Yes', 'B': 'No'}
    """
    offer = _offer(query)
    return dict(zip(ascii_uppercase, offer.texts, strict=False)) if offer else {}


def question_part(query: str) -> str:
    """The question without the options it offers; the whole question when it consists of options only.

    >>> question_part("Is the sky noisy? A. Yes B. No")
    'Is the sky noisy?'
    """
    offer = _offer(query)
    if not offer:
        return query.strip()
    before = _LEAD_IN.sub(lambda match: "" if match.end() == offer.start else match[0], query[: offer.start])
    rest = before.rstrip(" \n\t([-*•") + " " + query[offer.end :].lstrip(" \n\t.:;")
    return rest.strip() or query.strip()


def detect_query_type(query: str, query_type: Literal["IQA", "Other"] = "IQA") -> QueryType:
    """The form of the answer: a letter, a score from 1 to 5, or text.

    A question with options is answered by a letter. A question that is not about quality (``"Other"``) is never scored.
    A request to rate, score, assess or evaluate the quality is scored, also as "What is the quality score?" or "How is
    the quality?", unless it begins with "why" or "explain". Other questions (why, what, describe, is, how blurry, ...)
    are answered by text, and everything else ("Measure the noise.") by a score.
    """
    if _offer(query):
        return QueryType.MCQ
    if query_type == "Other" or _REASON_FIRST.search(query):
        return QueryType.EXPLANATION
    if (_RATING.search(query) and _QUALITY.search(query)) or _HOW_GOOD.search(query):
        return QueryType.SCORING
    if _EXPLAIN.search(query) or (_ASKS.search(query) and not _RATE.search(query)):
        return QueryType.EXPLANATION
    return QueryType.SCORING


def _offer(query: str) -> _Offer | None:
    return next((offer for offer in (*_lettered(query), _listed(query), _yes_no(query)) if offer), None)


def _lettered(query: str) -> Iterator[_Offer]:
    def style(marker: re.Match[str]) -> tuple[bool, str, bool]:
        return bool(marker["open"]), marker["close"], marker["letter"].isupper()

    for _, group in groupby(sorted(_MARKER.finditer(query), key=style), key=style):
        markers = list(group)
        opening = [marker for marker in markers if not query[: marker.start()].rpartition("\n")[2].strip(" \t-*•")]
        for candidates in (opening, markers):
            run = _run(candidates)
            if run and (offer := _lettered_offer(query, run)):
                yield offer


def _run(markers: list[re.Match[str]]) -> list[re.Match[str]]:
    """The first consecutive run of markers A, B, C, ...; empty when it has fewer than two."""
    letters = "".join(marker["letter"].upper() for marker in markers)
    for start in (index for index, letter in enumerate(letters) if letter == "A"):
        rest = letters[start + 1 :].partition("A")[0]
        if rest and ("A" + rest) == ascii_uppercase[: len(rest) + 1]:
            return markers[start : start + 1 + len(rest)]
    return []


def _lettered_offer(query: str, run: list[re.Match[str]]) -> _Offer | None:
    first, last = run[0], run[-1]
    before = query[: first.start()]
    bare_paren = first["close"] == ")" and not first["open"]
    # An initial ("the portrait of A. Smith") and a label ("image A: ...") occur in the middle of a sentence.
    mid_sentence = bool(before.strip()) and not re.search(r"[?:.!;,)\"'\n]\s*$", before)
    if mid_sentence and not bare_paren:
        if _LABELLED.search(before) and first["close"] != ".":
            return None
        if not first["open"] and len(run) < 3 and not first[0].lower().startswith(("option", "choice", "answer")):
            return None
    tail = _INSTRUCTION.sub("", re.split(r"(?<=\S)\s*\n", query[last.end() :], maxsplit=1)[0])
    bodies = [query[here.end() : after.start()] for here, after in pairwise(run)]
    # "(a) the sky and (b) the sea" is an enumeration, not a choice.
    if any(re.search(r"\band\s*$", body) for body in bodies):
        return None
    texts = [_tidy(body) for body in (*bodies, tail)]
    return _Offer(texts, first.start(), last.end() + len(tail)) if all(texts) else None


def _listed(query: str) -> _Offer | None:
    lead_in = _LEAD_IN.search(query)
    if not lead_in:
        return None
    tail = query[lead_in.end() :]
    lines = [line for line in tail.split("\n\n")[0].splitlines() if line.strip()]
    if len(lines) > 1 and "\n" in lead_in[0]:
        items, length = lines, len(tail.split("\n\n")[0])
    else:
        sentence = re.split(r"[.?!](?:\s|$)|\n", tail, maxsplit=1)[0]
        items, length = re.split(r"\s*[,;/|]\s*(?:(?:or|and)\s+)?|\s+or\s+", sentence), len(sentence)
        if "between" in lead_in[0].lower() or (len(items) > 1 and " or " not in sentence):
            items = [*items[:-1], *items[-1].split(" and ")]
    texts = [_tidy(item) for item in items]
    distinct = len({text.casefold() for text in texts}) == len(texts)
    short = all(text and len(text.split()) <= 6 for text in texts)
    if not (2 <= len(texts) <= 26 and distinct and short):
        return None
    return _Offer(texts, lead_in.start(), lead_in.end() + length + bool(re.match(r"[.?!]", tail[length:])))


def _yes_no(query: str) -> _Offer | None:
    match = _YES_NO.search(query)
    return _Offer([match["first"], match["second"]], match.start(), match.end()) if match else None


def _tidy(text: str) -> str:
    text = " ".join(text.split()).strip(" -*•\"'()[]")
    return re.sub(r"(?:[\s,;|/]+(?:or)?|[.?!])+$", "", text)
