"""Noun phrases: which regions of the picture a question names, read without a grammar, by lists of words."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agenticiqa.programs.offline import words
from agenticiqa.signatures.vocabulary import Distortion, distortions_in

_TOKEN = re.compile(r"[^\W_][\w'-]*|[^\w\s]")
# Adjectives that tell regions apart ("the dark coat") as often as they find fault ("the coat is dark").
_DESCRIPTIVE = re.compile(r"(?:dark|bright|dim|vivid|vibrant|colou?rful|colou?red|well.lit)(?:e?r|e?st)?", re.I)
_EXCLUSION = re.compile(
    r"\b(?:ignor(?:e|es|ing)|disregard(?:ing)?|apart from|aside from|other than|besides|except(?: for)?|regardless of"
    r"|not counting|leaving aside|never mind)\s+",
    re.I,
)
_SUBORDINATE = re.compile(
    r"(?:^|(?<=[.?!;,]))\s*(?:and\s+)?(?:before|after|because|since|when|if|although|though|once)\b[^.?!;,]*,",
    re.I,
)
_ADEQUATE = frozenset(
    {"enough", "suitable", "usable", "good", "fit", "ready", "used", "appropriate", "acceptable", "use"}
)
_OWN = frozenset({"a", "an", "my", "our", "his", "her", "their", "your"})


@dataclass(frozen=True)
class Token:
    """A word, a punctuation mark, or a whole distortion phrase (then with its category)."""

    text: str
    start: int
    distortion: Distortion | None = None

    @property
    def lower(self) -> str:
        """The word in lower case, without 's."""
        return self.text.lower().removesuffix("'s").removesuffix("'")

    @property
    def is_possessive(self) -> bool:
        """Whether it ends in 's or s'."""
        return self.text.lower().endswith(("'s", "s'"))

    @property
    def is_name_like(self) -> bool:
        """Whether it is a word that no list of function words has."""
        return self.text[0].isalnum() and not self.distortion and self.text.lower() not in words.FUNCTION_WORDS

    @property
    def is_descriptive(self) -> bool:
        """Whether it is a distortion word that may merely describe: dark, bright, colourful."""
        return bool(self.distortion and _DESCRIPTIVE.fullmatch(self.text))


@dataclass(frozen=True)
class Phrase:
    """The tokens ``[start, end)``; ``name`` is a region, or ``""`` for the whole picture, or ``None`` for neither."""

    start: int
    end: int
    name: str | None
    distortions: tuple[Token, ...] = ()


def tokenize(text: str) -> list[Token]:
    """The words, marks and distortion phrases of a text, in order."""
    text = text.replace("’", "'")
    tokens: list[Token] = []
    position = 0
    for phrase, category in distortions_in(text):
        found = re.compile(rf"(?<![\w-]){re.escape(phrase)}(?!\w)").search(text, position)
        start = found.start() if found else position
        tokens += _plain_tokens(text, position, start)
        tokens.append(Token(phrase, start, category))
        position = start + len(phrase)
    return tokens + _plain_tokens(text, position, len(text))


def phrases(text: str, tokens: Sequence[Token]) -> list[Phrase]:
    """The regions and the mentions of the whole picture in a text, in order."""
    asides = [
        match.span() for match in _SUBORDINATE.finditer(text) if not any(t.distortion for t in tokenize(match[0]))
    ]
    found: list[Phrase] = []
    index = 0
    while index < len(tokens):
        phrase = _linked_phrase(tokens, index)
        in_aside = any(start <= tokens[index].start < end for start, end in asides)
        if phrase.name is not None and not in_aside and not _is_circumstance(tokens, index):
            found.append(phrase)
        index = max(phrase.end, index + 1)
    return found


def excluded(text: str, tokens: Sequence[Token]) -> set[int]:
    """The indices of the tokens that the question sets aside: "apart from the noise", "ignoring the sky"."""
    out: set[int] = set()
    for cue in _EXCLUSION.finditer(text):
        index = next((i for i, token in enumerate(tokens) if token.start >= cue.end()), len(tokens))
        while index < len(tokens):
            end = max(_linked_phrase(tokens, index).end, index + 1)
            out.update(range(index, end))
            again = end + 1 < len(tokens) and tokens[end].lower in ("and", "or")
            if not (again and (tokens[end + 1].distortion or tokens[end + 1].lower in words.DETERMINERS)):
                break
            out.add(end)
            index = end + 1
    return out


def _plain_tokens(text: str, start: int, end: int) -> list[Token]:
    return [Token(match[0], match.start()) for match in _TOKEN.finditer(text, start, end)]


def _linked_phrase(tokens: Sequence[Token], index: int) -> Phrase:
    """The phrase at ``index`` with what is linked to it: "the face of the man" is one region."""
    phrase = _phrase(tokens, index)
    while phrase.name is not None and phrase.end + 1 < len(tokens):
        link = tokens[phrase.end]
        if link.distortion or link.lower not in words.LINKS:
            break
        linked = _phrase(tokens, phrase.end + 1)
        if phrase.name and linked.name:
            article = tokens[linked.start].text + " " if tokens[linked.start].lower in words.DETERMINERS else ""
            name = f"{phrase.name} {link.text} {article}{linked.name}"
            phrase = Phrase(phrase.start, linked.end, name, phrase.distortions + linked.distortions)
        elif phrase.name == "" and linked.name and link.lower == "of":
            phrase = Phrase(phrase.start, _linked_phrase(tokens, linked.start).end, "")  # "this photo of a cat"
        else:
            break
    return phrase


def _phrase(tokens: Sequence[Token], start: int) -> Phrase:
    """The noun phrase that starts exactly here; one without a name when none does."""
    determined = not tokens[start].distortion and tokens[start].lower in words.DETERMINERS
    name: list[Token] = []
    within: list[Token] = []
    end = start + determined
    while end < len(tokens):
        token, has_noun = tokens[end], any(map(_is_noun, name))
        if token.distortion:
            if has_noun:
                break
            within.append(token)
            name += [token] if token.is_descriptive else []
        elif not (determined and not name and token.lower in words.DEGREES):
            if has_noun and _ends_name(token):
                break
            if not token.is_name_like and (has_noun or token.lower not in words.MODIFIERS):
                break
            name.append(token)
        end += 1
    region = _region(name, bool(within))
    if region and not determined and not _stands_alone(name, after=tokens[start - 1].lower if start else ""):
        region = None
    if region is None:
        return Phrase(start, end if determined else start, None)
    return Phrase(start, end, region, tuple(within))


def _stands_alone(name: Sequence[Token], after: str) -> bool:
    """Whether a phrase names a region without an article: "sky", "Anna's face", "are penguins"."""
    of_things = all(not _is_noun(token) or token.lower in words.THINGS for token in name)
    return of_things or name[0].is_possessive or (after in ("are", "were") and name[-1].text.endswith("s"))


def _region(name: Sequence[Token], faulted: bool) -> str | None:
    core = list(name)
    while core and core[-1].lower in words.ABSTRACT:
        if " ".join(token.lower for token in core[-2:]) in words.COMPOUNDS:
            break
        core.pop()
    while len(core) > 1 and core[0].lower in words.WHOLE:
        core.pop(0)
    if not core:
        return None
    last = core[-1]
    if last.lower in words.WHOLE:
        return ""
    if last.lower in words.GENERIC:
        named = len(core) > 1
    elif len(core) < len(name):  # "a dramatic mood" has no thing in it, "the sky quality" and "the car's quality" have
        named = last.is_possessive or last.lower in words.THINGS
    else:
        named = any(map(_is_noun, core)) or (last.lower in words.PLACES and not faulted)
    if not named:
        return None
    parts = [token.text for token in core]
    parts[-1] = re.sub(r"'s$|(?<=s)'$", "", parts[-1])
    if core[0].start == 0 and parts[0][1:].islower():
        parts[0] = parts[0].lower()
    return " ".join(parts)


def _is_noun(token: Token) -> bool:
    word = token.lower
    describes = token.distortion or word in words.MODIFIERS or word in words.PREDICATES or _is_participle(word)
    return not describes and word not in words.DEGREES


def _is_participle(word: str) -> bool:
    return (word.endswith("ing") and word not in words.ING_NOUNS) or (
        word.endswith("ed") and word not in words.ED_NOUNS
    )


def _ends_name(token: Token) -> bool:
    word = token.lower
    adverb = word.endswith("ly") and word not in words.LY_NOUNS
    adjective = bool(re.search(r"(?:able|ible|ful|ous|less|ish)$", word)) and word not in words.ABLE_NOUNS
    return word in words.PREDICATES or adverb or adjective or _is_participle(word)


def _is_circumstance(tokens: Sequence[Token], index: int) -> bool:
    """Whether the phrase tells for what, with what or where the picture was taken, rather than what is in it."""
    before = tokens[index - 1].lower if index else ""
    earlier = tokens[index - 2].lower if index > 1 else ""
    own = tokens[index].lower in _OWN
    return (
        (before == "for" and (own or earlier in _ADEQUATE))
        or (before == "with" and own)
        or before in ("using", "by", "via")
        or (before in words.PREPOSITIONS and earlier in ("taken", "shot", "captured", "photographed", "took"))
    )
