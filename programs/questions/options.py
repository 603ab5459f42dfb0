"""Parse the options of a question: those in its text, and those that the caller passes."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, groupby, islice, pairwise
from string import ascii_letters, ascii_uppercase
from typing import TypeAlias

from agenticiqa.programs.errors import UserError
from agenticiqa.programs.questions.instructions import without_instructions, without_leading, without_trailing
from agenticiqa.signatures.vocabulary import well_formed

OptionsArgument: TypeAlias = Sequence[str] | Mapping[str, str]

LONGEST = 4000  # characters of all options that a caller gives
FEWEST, MOST = 2, len(ascii_uppercase)
MOST_MARKERS = 1_000  # letters that may mark options; real questions have fewer
LONGEST_BULLET = 80  # characters before a marker in its line
LONGEST_BEFORE = 200  # characters before a marker that are examined

# Full-width characters map one to one to plain ones, so positions in the text stay; "：" and "．" need no blank.
_WIDE = {0xFEE0 + ord(mark): mark for mark in f"()[],;?!{ascii_letters}"} | str.maketrans("、【】。", ")[];")
_MARK = r"\*{0,2}"  # bold in Markdown
_LETTER = re.compile(
    rf"""(?<![^\s?:：;,*])                   # not inside a word: "U.S.A. style" has no option A
    (?:(?:option|choice|answer)\s+)?
    (?P<bold>\*\*)?(?P<open>[(\[])?(?P<label>[A-Z]){_MARK}
    (?P<close>[).:：．\]]|[ ]?=|(?(bold)(?<=\*\*)(?=\s)|(?!)))
    (?:(?<=[)\]])|(?=\s|\*|\w(?!\.))|(?<=[：．]))  # "A)x" and "A.Yes", but not the "a.m." of a clock
    {_MARK}(?:(?<=[)\]])[.:](?=\s))?{_MARK}
    """,
    re.I | re.X,
)
_DASHED = re.compile(r"^[ \t]*(?P<bold>)(?P<open>)(?P<label>[A-Z])[ \t]+(?P<close>[-–—])(?=[ \t])", re.M)
_LABELLED = re.compile(r"\b(?:image|photo|picture|region|area|zone|patch|crop|part|version|section)\s*$", re.I)
_INSTRUCTION = re.compile(
    r"\?\s.*|[.!]\s+(?:please|answer|choose|select|pick|reply|respond|explain|justify|give|return|only)\b.*",
    re.I | re.S,
)
_ASKED_LAST = re.compile(r"(?:\s[-–—:]|[.;,])\s+(?=(?:which|what|where|choose|pick|select)\b)", re.I)
_ENDS, _BEFORE_OR = " ,;|/，；.?!。？", " ,;|/，；"
_AROUND = " -*•\"'()[]"
_LEAD_IN = re.compile(
    r"\*{0,2}\b(?:(?:choose|pick|select)(?:\s+(?:one|an?\s+\w+|the\s+(?:best|right|correct)(?:\s+\w+)?))?"
    r"(?:\s+(?:from|between|among|of)\b(?:\s+(?:the\s+following|these)(?:\s+(?:options|choices|answers))?)?\s*:?|\s*:)"
    r"|(?:(?:(?:the|possible)\s+)?(?:answer\s+)?(?:options|choices)|possible\s+answers)(?:\s+are)?\s{0,3}\*{0,2}:"
    r"|answer\s+(?:with|in)\s+(?:a\s+|one\s+)(?:single\s+)?word\s*:)\**\s*",
    re.I,
)
_ITEM_NUMBER = re.compile(r"^\s*[(\[]?\d{1,2}[.)\]]\s+")
_YES_NO = re.compile(
    r"""(?:(?:\bplease\s++)?\b(?:answer|respond|reply)\s++(?:with\s++|by\s++|only\s++|just\s++|the\s++word\s++)*+\(?)?
    (?<![\w'-])(?P<first>yes|no)(?:\s*+(?:[/,|]|\bor\b)|[^\S\n]*+\n)\s*+(?!(?P=first))(?P<second>yes|no)\b
    (?:\s*+[)\]]?(?:\s*+of\s++the\s++correct\s++option|\s*+only)?[\s.?!"']*+$  # at the end,
      | (?=\s*:))  # or "Yes or no: ..."
    """,
    re.I | re.X,
)
_WANTS_LETTER = re.compile(r"\bletters?\b", re.I)
_ASKS_FOR_LETTER = re.compile(r"\b(?:letter|options?)\b", re.I)
_BLOCK = re.compile(r"(?:\A|\n\n)Options:\n(?P<lines>(?:[A-Z]\. [^\n]+(?:\n|\Z)){2,26})\s*\Z")
_WITH_LETTER = re.compile(r"[(\[]?([A-Za-z])[).:\]]+\s+(.+)", re.S)


@dataclass(frozen=True)
class _Listed:
    """The options that a question offers, by letter, and the span of the question that lists them."""

    options: dict[str, str]
    start: int
    end: int
    lettered: bool = True


def parse_options(query: str) -> dict[str, str]:
    """Return the options that the question lists, by letter, in order; ``{}`` if it lists none.

    Options with letters are ``A) ..``, ``A. ..``, ``(A) ..``, ``[A] ..``, ``A: ..``, ``A = ..``, ``**A.** ..`` or
    ``A、..``, one per line or in one line, 2 to 26 of them, consecutive from A; small letters are returned as
    capitals. Options without letters ("choose from: X, Y or Z", "Options: X, Y", a closing "Yes or No?", "(Yes/No)",
    "Yes, No") get the letters A, B, .... Instructions that benchmarks add to a question are not part of its options.

    >>> parse_options("Is the sky noisy? A. Yes B. No")
    {'A': 'Yes', 'B': 'No'}
    """
    offer = _offer(without_instructions(query))
    return dict(offer.options) if offer else {}


def lists_letters(query: str, options: Mapping[str, str] | None) -> bool:
    """Return whether the options have letters for the caller: passed as options, or lettered in the text.

    "Choose from: sharp, soft" has no letters and does not request one.

    >>> lists_letters("Is it sharp? A. Yes B. No", None), lists_letters("Is it sharp? Answer yes or no.", None)
    (True, False)
    """
    offer = _offer(without_instructions(query))
    return options is not None or (offer is not None and (offer.lettered or bool(_WANTS_LETTER.search(query))))


def question_part(query: str) -> str:
    """Return the question without options and instructions, or all of it if nothing else remains.

    >>> question_part("Is the sky noisy? A. Yes B. No")
    'Is the sky noisy?'
    """
    question = without_instructions(query)
    offer = _offer(question)
    if not offer:
        return question
    before = _LEAD_IN.sub(lambda match: "" if match.end() == offer.start else match[0], question[: offer.start])
    before = without_trailing(before.rstrip(" \n\t([-*•"))
    after = without_leading(question[offer.end :].lstrip(" \n\t.:;]-–—"))
    return f"{before} {after}".strip() or question


def read_options(options: OptionsArgument | None) -> dict[str, str] | None:
    """Return the caller's options by letter: texts get A, B, ...; a mapping has its own letters.

    Letters in the texts ("A. Blur", "B. Noise") are removed if they are in order. ``None`` stays ``None``.
    Raises UserError, in one line, unless the options are 2 to 26 distinct, non-empty texts with distinct single
    letters and at most 4000 characters.
    """
    if options is None:
        return None
    if isinstance(options, str) or not isinstance(options, Sequence | Mapping):
        raise UserError(f"options must be a list or a mapping of letters to texts, not {type(options).__name__}")
    items = list(options.items()) if isinstance(options, Mapping) else list(zip(ascii_uppercase, options, strict=False))
    if not FEWEST <= len(options) <= MOST:
        raise UserError(f"the number of options is {len(options)}: give {FEWEST} to {MOST}")
    for letter, text in items:
        if not isinstance(letter, str) or len(letter) != 1 or letter.upper() not in ascii_uppercase:
            raise UserError(f"option key {letter!r} must be one letter from A to Z")
        if not isinstance(text, str) or not text.strip():
            what = "is empty" if isinstance(text, str) else f"is a {type(text).__name__}"
            raise UserError(f"option {letter.upper()} {what}: give each option as text")
    texts = [" ".join(well_formed(text).split()) for _, text in items]
    if not isinstance(options, Mapping):
        texts = _without_letters(texts)
    if sum(map(len, texts)) > LONGEST:
        raise UserError(f"the options have {sum(map(len, texts))} characters: shorten them to {LONGEST} in all")
    read = {letter.upper(): text for (letter, _), text in zip(items, texts, strict=True)}
    if len(read) < len(items) or len({text.casefold() for text in texts}) < len(texts):
        raise UserError("two options have the same letter or text: give each only once")
    return read


def lists_options(query: str, options: Mapping[str, str]) -> bool:
    """Return whether the question's text lists exactly these options."""
    listed = parse_options(query)
    return [_folded(text) for text in listed.values()] == [_folded(text) for text in options.values()] and (
        list(listed) == list(options)
    )


def with_options(query: str, options: Mapping[str, str]) -> str:
    """Append the options to the question, one per line; ``parse_options`` reads these before any others.

    A question that already lists exactly these options is unchanged.
    """
    if lists_options(query, options):
        return query
    return "\n".join([f"{query}\n\nOptions:", *(f"{letter}. {text}" for letter, text in options.items())])


def query_for_stages(query: str, options: Mapping[str, str] | None) -> str:
    """Return the question for the stages and their models; ``options`` are those that the caller passed.

    If there are options, benchmark instructions are removed: "respond with only the letter" contradicts the JSON that
    every stage requests, which has the letter in a field. Without options the text is unchanged, because "a single
    word or phrase" is then a request about the answer.
    """
    if options is not None:
        return with_options(without_instructions(query), options)
    return without_instructions(query) if parse_options(query) else query


def beside_options(query: str, options: Mapping[str, str] | None) -> str:
    """Return the question for the Answerer, which gets the options separately; ``options`` as above.

    The caller's options are not shown twice if the query lists the same.
    """
    if options is not None:
        return question_part(query) if lists_options(query, options) else without_instructions(query)
    return query_for_stages(query, None)


@lru_cache(64)
def _offer(query: str) -> _Listed | None:
    """Return the first list of options found; the most explicit forms are tried first."""
    offers = chain([_block(query)], _marked(query), (read(query) for read in (_options_in_words, _yes_no)))
    return next((offer for offer in offers if offer), None)


def _block(query: str) -> _Listed | None:
    """Return the options in the lines that ``with_options`` writes."""
    match = _BLOCK.search(query)
    lines = match["lines"].strip().split("\n") if match else []
    options = {line[0]: _tidy(line[3:]) or line[3:].strip() for line in lines}
    complete = match and len(options) == len(lines) and all(options.values())
    return _Listed(options, match.start(), match.end()) if match and complete else None


def _marked(query: str) -> Iterator[_Listed]:
    """Yield the lists with lettered items."""
    plain = query.translate(_WIDE)
    for pattern in (_LETTER, _DASHED):
        for run in _runs(plain, pattern):
            offer = _options_of_run(query, run)
            if offer and _letters_answers(plain, run):
                yield offer


def _runs(plain: str, pattern: re.Pattern[str]) -> Iterator[list[re.Match[str]]]:
    """Yield runs of markers A, B, C, ... of one style, first those at the beginning of lines."""

    def style(marker: re.Match[str]) -> tuple[bool, str, str, bool]:
        bracketed = bool(marker["open"]) and marker["close"] in ")]"  # "[A. sharp, B. soft]" has one for all
        return bracketed, marker["close"], marker["bold"] or "", marker["label"].isupper()

    for _, group in groupby(sorted(islice(pattern.finditer(plain), MOST_MARKERS), key=style), key=style):
        markers = list(group)
        begin_lines = [marker for marker in markers if _begins_line(plain, marker.start())]
        for some in (begin_lines, markers):
            places = [ascii_uppercase.find(marker["label"].upper()) + 1 for marker in some]
            starts = [index for index, place in enumerate(places) if place == 1]
            for start, end in pairwise([*starts, len(places)]):
                if FEWEST <= end - start <= MOST and places[start:end] == list(range(1, end - start + 1)):
                    yield some[start:end]
                    break


def _begins_line(plain: str, at: int) -> bool:
    """Return whether only blanks and marks precede a position in its line, within a limited distance."""
    _, line_end, before = plain[max(at - LONGEST_BULLET, 0) : at].rpartition("\n")
    return (bool(line_end) or at <= LONGEST_BULLET) and not before.strip(" \t-*•")


def _letters_answers(plain: str, run: list[re.Match[str]]) -> bool:
    """Return whether letters mark options, unlike an initial ("of A. Smith") or a label ("image A: ...")."""
    first, before = run[0], plain[: run[0].start()]
    bare_paren = first["close"] == ")" and not first["open"]
    if bare_paren or not before.strip() or re.search(r"[?:：.!;,)\"'\n](?:[^\S\n]|[*•-])*+$", before[-LONGEST_BEFORE:]):
        return True
    if first["close"] != "." and all(
        _LABELLED.search(plain[max(marker.start() - LONGEST_BEFORE, 0) : marker.start()]) for marker in run
    ):
        return False
    said = first[0].lower().startswith(("option", "choice", "answer")) or _ASKS_FOR_LETTER.search(plain)
    continues = any(not re.match(r"\s*[a-z]", plain[marker.end() :]) or marker["label"].islower() for marker in run)
    return bool(first["open"] or len(run) > FEWEST or said or not continues)


def _options_of_run(query: str, run: list[re.Match[str]]) -> _Listed | None:
    """Return the texts between the markers, and the rest of the last marker's line."""
    last = run[-1]
    tail = _INSTRUCTION.sub("", re.split(r"(?<=\S)\s*\n", query[last.end() :], maxsplit=1)[0])
    if "?" not in query[: run[0].start()]:  # "A. left B. right - which half is darker?"
        tail = _ASKED_LAST.split(tail, maxsplit=1)[0]
    bodies = [query[here.end() : after.start()] for here, after in pairwise(run)]
    texts = [_tidy(body) for body in (*bodies, tail)]
    # "(a) the sky and (b) the sea" is an enumeration, not a choice.
    if not all(texts) or any(re.search(r"\band\s*$", body) for body in bodies):
        return None
    return _listed_texts(texts, run[0].start(), last.end() + len(tail))


def _options_in_words(query: str) -> _Listed | None:
    """Return the options after "Choose from:", "Options:" and the like, in one sentence or one per line.

    Numbers before them are left out.
    """
    lead_in = _LEAD_IN.search(query)
    if not lead_in:
        return None
    tail = query[lead_in.end() :]
    block = tail.split("\n\n")[0]
    items = [line for line in block.split("\n") if line.strip()]
    if len(items) < FEWEST or "\n" not in lead_in[0]:
        block = re.split(r"[.?!](?:\s|$)|\n", tail, maxsplit=1)[0]
        items = re.split(r" ?[,;/|] ?(?:(?:or|and) )?| or ", " ".join(block.split()))
        if "between" in lead_in[0].lower() or (len(items) > 1 and " or " not in block):
            items = [*items[:-1], *items[-1].split(" and ")]
    texts = [_tidy(_ITEM_NUMBER.sub("", item)) for item in items]
    distinct = len({text.casefold() for text in texts}) == len(texts)
    if not (FEWEST <= len(texts) <= MOST and distinct and all(text and len(text.split()) <= 6 for text in texts)):
        return None
    end = lead_in.end() + len(block) + bool(re.match(r"[.?!]", tail[len(block) :]))
    return _listed_texts(texts, lead_in.start(), end, lettered=False)


def _yes_no(query: str) -> _Listed | None:
    match = _YES_NO.search(query)
    return (
        _listed_texts([match["first"], match["second"]], match.start(), match.end(), lettered=False) if match else None
    )


def _listed_texts(texts: Sequence[str], start: int, end: int, *, lettered: bool = True) -> _Listed:
    return _Listed(dict(zip(ascii_uppercase, texts, strict=False)), start, end, lettered)


def _without_letters(texts: list[str]) -> list[str]:
    """Remove the letters A, B, ... from the texts if all texts begin with them in order."""
    matches = [_WITH_LETTER.fullmatch(text) for text in texts]
    letters = [match[1].upper() for match in matches if match]
    return [match[2] for match in matches if match] if letters == list(ascii_uppercase[: len(texts)]) else texts


def _folded(text: str) -> str:
    return _tidy(text).casefold() or text.casefold()


def _tidy(text: str) -> str:
    text = " ".join(text.split()).strip(_AROUND)
    end = len(text)
    while end:
        if text[end - 1] in _ENDS:
            end -= 1
        elif text.startswith("or", end - 2) and end > 2 and text[end - 3] in _BEFORE_OR:
            end -= 2
        else:
            break
    return text[:end].rstrip(_AROUND)
