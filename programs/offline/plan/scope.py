"""The regions that a question names, and which distortions it names for which of them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agenticiqa.programs.offline.plan import words
from agenticiqa.programs.offline.plan.region_phrases import Phrase, excluded_tokens, region_phrases
from agenticiqa.programs.offline.plan.tokens import Token, tokenize
from agenticiqa.signatures.types import GLOBAL, unique
from agenticiqa.signatures.vocabulary import Distortion

# Phrases in which a distortion word does not name one, but describes the answer, the subject or an attribute.
_IDIOMS = re.compile(
    r"\bend(?:s|ed)? up\b|\bin (?:more |great |full |further )?details?\b"
    r"|\bdetailed(?= (?:description|explanation|analysis|assessment|answer|report|feedback|review|evaluation))"
    r"|\bwhat colou?rs?\b|\b(?:main|primary|central) focus\b|\bfocus of attention\b"
    r"|(?:^|(?<=[.;,!?])|(?<=please)|(?<=and))\s*\bfocus on\b"
    r"|\b(?:in|by) contrast\b|\bclear (?=evidence|signs?\b|indication|that|whether|why)",
    re.I,
)
_THINGS = words.THINGS | words.PLACES | words.GENERIC
_BREAKS = frozenset({"and", "or", "but", "while", "whereas", "than", "nor", "plus", *",;:().?!"})
_ASKING = frozenset({"is", "are", "was", "were", "do", "does", "did", "has", "have", "how", "why", "what", "can"})
_ENDS = frozenset({".", "?", "!"})
_WHICH_PART = re.compile(
    r"\b(?:which|what)\b[^?.]{0,60}?\b(?:part|region|area|object|element|side|subject|one)s?\b"
    r"|\bwhich of (?:these|the following)\b",
    re.I,
)


@dataclass(frozen=True)
class Scope:
    """The regions named, in order (none: the whole image), and the distortions named for them or for ``Global``."""

    regions: list[str]
    distortions: dict[str, list[Distortion]]


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


def names_thing(region: str) -> bool:
    """Whether a region's name has a word for a place, or for what is often seen in pictures."""
    return any(word in _THINGS for word in region.lower().split())


def without_idioms(text: str) -> str:
    """The text with blanks for phrases in which a distortion word means something else ("in detail")."""
    return _IDIOMS.sub(lambda match: " " * len(match[0]), text)


def read_scope(question: str, options: Mapping[str, str]) -> Scope:
    """The scope of a question without idioms, tool names and options, and of the options beside it.

    A distortion belongs to the region whose attribute it is ("the noisy sky"), otherwise to the regions of the same
    part of the question: "is the car sharp but the background noisy" has two parts. A distortion named by an option
    belongs to every region.
    """
    tokens = tokenize(question)
    excluded = excluded_tokens(question, tokens)
    found = [phrase for phrase in region_phrases(question, tokens) if phrase.start not in excluded]
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
        phrases = region_phrases(determined, tokens)
        if len(phrases) == 1 and phrases[0].name and phrases[0].end == len(tokens) and not phrases[0].distortions:
            regions.append(phrases[0].name)
    return unique(regions)
