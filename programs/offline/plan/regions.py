"""The regions that a question names, found by word lists, and which distortions it names for which of them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agenticiqa.programs.offline.plan import words
from agenticiqa.programs.questions.instructions import LONGEST_READ
from agenticiqa.signatures.lexicon import distortions_in
from agenticiqa.signatures.types import GLOBAL, unique
from agenticiqa.signatures.vocabulary import Distortion

_TOKEN = re.compile(r"[^\W_][\w'-]*|[^\w\s]")
_ADJECTIVE = re.compile(r"(?:able|ible|ful|ous|less|ish)$")
# Adjectives that identify a region ("the dark coat") as often as they find fault with it ("the coat is dark").
_DESCRIPTIVE = re.compile(r"(?:dark|bright|dim|vivid|vibrant|colou?rful|colou?red|well.lit)(?:e?r|e?st)?", re.I)
_EXCLUSION = re.compile(
    r"\b(?:ignor(?:e|es|ing)|disregard(?:ing)?|apart from|aside from|other than|besides|except(?: for)?|regardless of"
    r"|not counting|leaving aside|never mind|(?:enough|suitable|usable|good|fit|ready|acceptable|appropriate) for)\s+",
    re.I,
)
_SIDES = words.PLACES | {"upper", "lower"}
# Phrases in which a distortion word does not name one, but describes the answer, the subject or an attribute.
_IDIOMS = re.compile(
    r"\bend(?:s|ed)? up\b|\bin (?:more |great |full |further )?details?\b"
    r"|\bdetailed(?= (?:description|explanation|analysis|assessment|answer|report|feedback|review|evaluation))"
    r"|\bwhat colou?rs?\b|\b(?:main|primary|central) focus\b|\bfocus of attention\b"
    r"|(?:^|(?<=[.;,!?])|(?<=please)|(?<=and))\s*\bfocus on\b"
    r"|\b(?:in|by) contrast\b|\bclear (?=evidence|signs?\b|indication|that|whether|why)",
    re.I,
)
_BREAKS = frozenset({"and", "or", "but", "while", "whereas", "than", "nor", "plus", *",;:().?!"})
_ASKING = frozenset({"is", "are", "was", "were", "do", "does", "did", "has", "have", "how", "why", "what", "can"})
_ENDS = frozenset({".", "?", "!"})
_WHICH_PART = re.compile(
    r"\b(?:which|what)\b[^?.]{0,60}?\b(?:part|region|area|object|element|side|subject|one)s?\b"
    r"|\bwhich of (?:these|the following)\b",
    re.I,
)


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
        """Whether it is a word and not a function word."""
        return self.text[0].isalpha() and not self.distortion and self.lower not in words.FUNCTION_WORDS

    @property
    def is_descriptive(self) -> bool:
        """Whether it is a distortion word that may only describe: dark, bright, colorful."""
        return bool(self.distortion and _DESCRIPTIVE.fullmatch(self.text))

    @property
    def is_degree(self) -> bool:
        """Whether it is an adverb of degree, not part of a region's name: "the most severely affected part"."""
        return self.lower in words.DEGREES or (self.lower.endswith("ly") and self.lower not in words.NOUNS)

    @property
    def is_noun(self) -> bool:
        """Whether neither a word list nor its ending marks it as something else."""
        listed = any(self.lower in some for some in (words.MODIFIERS, words.PREDICATES, words.DEGREES))
        superlative = self.lower.endswith("est") and len(self.lower) > 5 and self.lower not in words.NOUNS
        return not (self.distortion or listed or superlative or self._is_participle or self.text.isdigit())

    @property
    def distinguishes(self) -> bool:
        """Whether it makes "part" or "object" a region: a place, a color, a thing; but not "the affected part"."""
        return self.is_noun or self.is_descriptive or self.lower in words.MODIFIERS

    @property
    def ends_name(self) -> bool:
        """Whether it is a predicate of the noun before it: "is the dog happy", "is the text readable"."""
        adjective = _ADJECTIVE.search(self.lower) and self.lower not in words.NOUNS
        return bool(adjective) or self.lower in words.PREDICATES or self.is_degree or self._is_participle

    @property
    def _is_participle(self) -> bool:
        return self.lower.endswith(("ing", "ed")) and self.lower not in words.NOUNS


def tokenize(text: str) -> list[Token]:
    """The words, marks and distortion phrases of a text, in order."""
    text = text.replace("’", "'")
    tokens: list[Token] = []
    position = 0
    for phrase, category in distortions_in(text):
        start = next(re.compile(rf"(?<![\w-]){re.escape(phrase)}(?!\w)").finditer(text, position)).start()
        tokens += _plain_tokens(text, position, start)
        tokens.append(Token(phrase, start, category))
        position = start + len(phrase)
    return tokens + _plain_tokens(text, position, len(text))


def _plain_tokens(text: str, start: int, end: int) -> list[Token]:
    return [Token(match[0], match.start()) for match in _TOKEN.finditer(text, start, end)]


@dataclass(frozen=True)
class Phrase:
    """The tokens ``[start, end)``; ``name`` is a region, ``""`` for the whole image, or ``None`` for neither."""

    start: int
    end: int
    name: str | None
    distortions: tuple[Token, ...] = ()


def region_phrases(tokens: Sequence[Token]) -> list[Phrase]:
    """The phrases of a text that name a region or the whole image, in order."""
    found: list[Phrase] = []
    index = 0
    while index < len(tokens):
        phrase = _linked_phrase(tokens, index)
        if phrase.name is not None:
            found.append(phrase)
        index = max(phrase.end, index + 1)
    return found


def excluded_tokens(text: str, tokens: Sequence[Token]) -> set[int]:
    """The indices of the tokens that the question excludes: "apart from the noise", "ignoring the sky"."""
    excluded: set[int] = set()
    for cue in _EXCLUSION.finditer(text):
        index = next((i for i, token in enumerate(tokens) if token.start >= cue.end()), len(tokens))
        while index < len(tokens):
            end = max(_linked_phrase(tokens, index).end, index + 1)
            excluded.update(range(index, end))
            again = end + 1 < len(tokens) and tokens[end].lower in ("and", "or")
            if not (again and (tokens[end + 1].distortion or tokens[end + 1].lower in words.DETERMINERS)):
                break
            excluded.add(end)
            index = end + 1
    return excluded


def _linked_phrase(tokens: Sequence[Token], index: int) -> Phrase:
    """The phrase at ``index`` with phrases linked to it: "the face of the man" is one region."""
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
    """The noun phrase that starts at this token; one without a name if none does."""
    determined = not tokens[start].distortion and tokens[start].lower in words.DETERMINERS
    name: list[Token] = []
    within: list[Token] = []
    end = start + determined
    while end < len(tokens):
        token, has_noun = tokens[end], any(t.is_noun for t in name) or _is_place(tokens, start, end)
        if token.distortion:
            if has_noun:
                break
            within.append(token)
            name += [token] if token.is_descriptive else []
        elif not (determined and not name and token.is_degree):
            if has_noun and token.ends_name:
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


def _is_place(tokens: Sequence[Token], start: int, end: int) -> bool:
    """Whether ``[start, end)`` is a place: "on the right", "the top is"; but not "the right exposure"."""
    if end != start + 2 or tokens[end - 1].lower not in words.PLACES:
        return False
    has_predicate = bool(tokens[end].distortion) or tokens[end].ends_name
    if start and tokens[start - 1].lower in ("on", "at", "to", "from", "in"):
        return has_predicate
    before_noun = end + 1 < len(tokens) and tokens[end + 1].is_name_like
    return has_predicate and tokens[end - 1].lower != "right" and not before_noun


def _stands_alone(name: Sequence[Token], after: str) -> bool:
    """Whether a phrase names a region without an article: "sky", "Anna's face", "are penguins"."""
    of_things = all(not token.is_noun or token.lower in words.THINGS for token in name)
    placed = len(name) > 1 and name[-1].lower in words.GENERIC and name[-2].lower in _SIDES
    return (
        placed
        or (of_things and name[-1].lower in words.THINGS)
        or name[0].is_possessive
        or (after in ("are", "were") and name[-1].text.endswith("s"))
    )


def _region(name: Sequence[Token], faulted: bool) -> str | None:
    core = list(name)
    while core and core[-1].lower in words.ABSTRACT:
        if " ".join(token.lower for token in core[-2:]) in words.COMPOUNDS:
            break
        core.pop()
    stripped = len(core) < len(name)
    while len(core) > 1 and core[0].lower in words.WHOLE:
        core.pop(0)
    if not core or core[0].lower == "quality":
        return None
    last = core[-1]
    if last.lower in words.WHOLE:
        return ""
    if last.lower in words.GENERIC:
        named = any(token.distinguishes for token in core[:-1])
    elif stripped:  # "a dramatic mood" names no thing, "the sky quality" and "the car's quality" do
        named = last.is_possessive or last.lower in words.THINGS
    else:
        named = any(token.is_noun for token in core) or (last.lower in words.PLACES and not faulted)
    if not named:
        return None
    parts = [token.text for token in core]
    parts[-1] = re.sub(r"'s$|(?<=s)'$", "", parts[-1])
    if core[0].start == 0 and parts[0][1:].islower():
        parts[0] = parts[0].lower()
    return " ".join(parts)


@dataclass(frozen=True)
class Scope:
    """The regions named, in order (none: the whole image), and the distortions named for them or for ``Global``."""

    regions: list[str]
    distortions: dict[str, list[Distortion]]

    @property
    def of_image(self) -> "Scope":
        """The same distortions, named for the whole image."""
        named = unique(name for names in self.distortions.values() for name in names)
        return Scope([], {GLOBAL: named} if named else {})


@dataclass
class _Group:
    """A part of the question whose distortions belong to its regions."""

    regions: list[str] = field(default_factory=list)
    whole: bool = False
    asks: bool = False
    distortions: list[Distortion] = field(default_factory=list)

    def is_complete(self) -> bool:
        return bool(self.distortions) and (self.whole or bool(self.regions))

    def absorb(self, other: "_Group") -> None:
        self.regions += other.regions
        self.whole |= other.whole
        self.distortions += other.distortions


def without_idioms(text: str) -> str:
    """The text with blanks for phrases in which a distortion word means something else ("in detail")."""
    return _IDIOMS.sub(lambda match: " " * len(match[0]), text)


def read_scope(question: str, options: Mapping[str, str]) -> Scope:
    """The scope of a question without idioms, tool names and options, and of the options beside it.

    A distortion belongs to the region whose attribute it is ("the noisy sky"), otherwise to the regions of the same
    part of the question: "is the car sharp but the background noisy" has two parts. A distortion named by an option
    belongs to every region.
    """
    question = question[: LONGEST_READ // 2]  # what follows takes time by the square of the words
    tokens = tokenize(question)
    excluded = excluded_tokens(question, tokens)
    found = [phrase for phrase in region_phrases(tokens) if phrase.start not in excluded]
    bound = _bound(tokens, found, excluded)
    named: dict[str, list[Distortion]] = {}
    for token, region in bound.items():
        if region and token.distortion:
            named.setdefault(region, []).append(token.distortion)
    for group in _groups(tokens, found, excluded | {i for i, token in enumerate(tokens) if token in bound}):
        for region in group.regions or [GLOBAL]:
            named.setdefault(region, []).extend(group.distortions)

    regions = unique(phrase.name for phrase in found if phrase.name)
    candidates = _offered_regions(options) if _WHICH_PART.search(question) and not regions else []
    if candidates:
        regions, named = candidates, {region: list(named.get(GLOBAL, [])) for region in candidates}
    else:
        offered = [t.distortion for text in options.values() for t in tokenize(without_idioms(text)) if t.distortion]
        for region in regions or [GLOBAL]:
            named.setdefault(region, []).extend(offered)
    return Scope(regions, {region: list(dict.fromkeys(names)) for region, names in named.items() if names})


def _bound(tokens: Sequence[Token], found: Sequence[Phrase], excluded: set[int]) -> dict[Token, str | None]:
    """The distortion words inside a region's phrase, with the region; ``None`` for those that only describe it."""
    counted = [token for index, token in enumerate(tokens) if token.distortion and index not in excluded]
    only_descriptions = all(token.is_descriptive for token in counted)
    return {
        token: None if token.is_descriptive and not only_descriptions else phrase.name
        for phrase in found
        if phrase.name
        for token in phrase.distortions
    }


def _groups(tokens: Sequence[Token], found: Sequence[Phrase], skipped: set[int]) -> list[_Group]:
    """The parts of the question.

    A new part starts where both sides name a region and a distortion, or with a clause that is a question of its own.
    """
    starts = {phrase.start: phrase for phrase in found}
    groups = [_Group()]
    segment = _Group()
    inside = begin = 0
    for index, token in enumerate(tokens):
        segment.asks |= index == begin and token.lower in _ASKING
        if phrase := starts.get(index):
            segment.regions += [phrase.name] if phrase.name else []
            segment.whole |= phrase.name == ""
            inside = phrase.end
        if token.distortion and index not in skipped:
            segment.distortions.append(token.distortion)
        if (token.lower in _BREAKS and index >= inside) or index + 1 == len(tokens):
            if segment.is_complete() and (groups[-1].is_complete() or segment.asks):
                groups.append(_Group())
            groups[-1].absorb(segment)
            segment, begin = _Group(), index + 1
            if token.text in _ENDS and groups[-1].distortions:
                groups.append(_Group())
    return groups


def _offered_regions(options: Mapping[str, str]) -> list[str]:
    regions = []
    for text in options.values():
        determined = text if text.split()[0].lower() in words.DETERMINERS else f"the {text[0].lower()}{text[1:]}"
        tokens = tokenize(determined)
        phrases = region_phrases(tokens)
        if len(phrases) == 1 and phrases[0].name and phrases[0].end == len(tokens) and not phrases[0].distortions:
            regions.append(phrases[0].name)
    return unique(regions)
