"""Find the regions that a question names: places in the frame, the subject, the background, and other things.

Places, subject and background have words of their own. For any other thing the network that reads questions decides
whether the question is about one; the words after "the" or "my" are then its name. Nothing offline locates such a
thing, but the answer can say so.
"""

import re
from collections.abc import Mapping

from agenticiqa.programs.images.regions import OF_THE_FRAME, PICTURES, PLACE_NOUNS
from agenticiqa.programs.offline.answers.asked import extent_of
from agenticiqa.signatures.lexicon import terms_in

# Words that end a name: "the sky | in the", "the dog | doing".
_END = (
    r"(?:an?|the|teh|my|our|your|his|her|its|their|this|that|these|it|you|and|or|but|while|if|who|which|of|in|on|at|to"
    r"|from|for|with|without|than|as|by|near|behind|between|is|are|was|were|be|been|being|has|have|had|does|do|did|can"
    r"|could|would|not|no|so|too|very|more|less|most|least|any|all|looks?|appears?|seems?|shows?|suffers?|contains?|got"
    r"|lost|kept|good|bad|better|worse|free|full|enough|just|really|equally|like|doing|according)\b"
)
_WORDS = rf"(?!{_END})[^\W_][\w'-]*(?: (?!{_END}|\w{{3,}}(?:ed|able|ible)\b)[^\W_][\w'-]*)?"
# In these texts "|" stands for words of distortions, "#" for other words of quality, "," for places.
_NAME = re.compile(rf"\b(?:the|teh|my|our|your|his|her) ({_WORDS})\b(?! #)", re.I)
_BARE_NAME = re.compile(rf"\b({_WORDS})(?= \|)", re.I)
_SIDE = r"(?:upper|lower|top|bottom|left|right|cent(?:er|re|ral)|middle)(?:[ -]hand)?"
_PLACE = re.compile(
    rf"\b(?:(?:{_SIDE}[ -]){{1,3}}(?:{'|'.join(sorted(PLACE_NOUNS))})"
    r"|(?<=the )(?:(?:upper|lower|top|bottom)[ -])?(?:left|right(?! [|#])|top|bottom|middle|cent(?:er|re))"
    rf"(?=\s*(?:[^\w\s]|$)|\s+{_END})"
    r"|(?:main|primary|central|principal) (?:subject|object|figure)|subject|foreground|background|backdrop)\b",
    re.I,
)
# What is no thing in the image: the image itself, another one, or a property.
_NO_THING = re.compile(
    rf"(?:\w+ )?(?:{PICTURES}|reference|original|file|copy|version|one|camera|lens|metric|tool|score|level|half|part"
    r"|region|edge|contour|shadow|highlight|tone|colou?r|composition)s?(?: \w+)?",
    re.I,
)


def regions_named(question: str, options: Mapping[str, str]) -> list[str]:
    """Return the regions that a question without idioms and options names, in order; none for the whole image."""
    text = OF_THE_FRAME.sub(",", question)
    for term in terms_in(text):
        mark = "#" if term.meaning.subject in ("any", "quality") else "|"
        text = text[: term.start] + mark * (term.end - term.start) + text[term.end :]
    places = {place.start(): place[0].lower() for place in _PLACE.finditer(text)}
    rest = _PLACE.sub(lambda place: "," * len(place[0]), text)
    named = [*_NAME.finditer(rest)] or ([] if places else [*_BARE_NAME.finditer(rest)])
    things = {name.start(1): name[1] for name in named if not _NO_THING.fullmatch(name[1])}
    extent = extent_of(question, options) if places or things else ""  # else the network need not load
    if extent == "whole":  # the words that look like a region's name are none
        return []
    found = places | things if extent == "part" else places
    return list(dict.fromkeys(found[start] for start in sorted(found)))
