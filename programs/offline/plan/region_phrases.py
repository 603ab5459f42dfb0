"""Find the noun phrases that name regions of the image, by word lists instead of a grammar."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agenticiqa.programs.offline.plan import words
from agenticiqa.programs.offline.plan.tokens import Token, tokenize

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
# Nouns for distortions, unlike adjectives: "the color balance" is no thing in the picture, "the noisy sky" is.
_NOUN = re.compile(
    r"(?:\w+[ -])?(?:noise|grain|blur|shake|art[ei]facts?|compression|banding|blocking|blocks|cast|tint|contrast"
    r"|exposure|saturation|colou?rs?|haze|halos?|sharpening|distortions?|brightness|sharpness)",
    re.I,
)
_SIDES = words.PLACES | {"upper", "lower"}
_OWN = frozenset({"a", "an", "my", "our", "his", "her", "their", "your"})


@dataclass(frozen=True)
class Phrase:
    """The tokens ``[start, end)``; ``name`` is a region, ``""`` for the whole image, or ``None`` for neither."""

    start: int
    end: int
    name: str | None
    distortions: tuple[Token, ...] = ()


def region_phrases(text: str, tokens: Sequence[Token]) -> list[Phrase]:
    """The phrases of a text that name a region or the whole image, in order."""
    subordinate = [
        match.span() for match in _SUBORDINATE.finditer(text) if not any(t.distortion for t in tokenize(match[0]))
    ]
    found: list[Phrase] = []
    index = 0
    while index < len(tokens):
        phrase = _linked_phrase(tokens, index)
        is_subordinate = any(start <= tokens[index].start < end for start, end in subordinate)
        if phrase.name is not None and not is_subordinate and not _is_circumstance(tokens, index, phrase.end):
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
    region = None if _is_of_distortion(tokens, name, within, end) else _region(name, bool(within))
    if region and not determined and not _stands_alone(name, after=tokens[start - 1].lower if start else ""):
        region = None
    if region is None:
        return Phrase(start, end if determined else start, None)
    return Phrase(start, end, region, tuple(within))


def _is_of_distortion(tokens: Sequence[Token], name: Sequence[Token], within: Sequence[Token], end: int) -> bool:
    """Whether the words say more of a distortion and name no thing: "compression damage", "film-like grain"."""
    things = words.THINGS | words.PLACES | words.GENERIC | words.WHOLE
    if not name or name[-1].lower in things or any(token.is_possessive for token in name):
        return False
    return any(token.distortion and _NOUN.fullmatch(token.text) for token in (*within[-1:], *tokens[end : end + 1]))


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


def _is_circumstance(tokens: Sequence[Token], index: int, end: int) -> bool:
    """Whether the phrase is about the speaker, or the purpose, equipment or place of the photo, not its content."""
    after = tokens[end].lower if end < len(tokens) else ""
    before = tokens[index - 1].lower if index else ""
    earlier = tokens[index - 2].lower if index > 1 else ""
    own = tokens[index].lower in _OWN
    return (
        after in words.SPEECH
        or tokens[index].lower == "your"
        or (before == "for" and (own or earlier in _ADEQUATE))
        or (before == "with" and own)
        or (before == "as" and own)
        or before in ("using", "by", "via")
        or (before in words.PREPOSITIONS and earlier in ("taken", "shot", "captured", "photographed", "took"))
    )
