"""A question asked again in words that the rules know, once it is clear what it asks for and of which distortion."""

import re
from collections.abc import Sequence

from agenticiqa.programs.offline.language.intents import Intent
from agenticiqa.programs.offline.language.question import Asked
from agenticiqa.signatures.lexicon import LOWER, Meaning, Subject, terms_in

RESTATED, OVERRULED = 0.6, 0.8  # least probability of the intent where the rules give no answer, and where they do
_WORDS = {
    "yes": "Is there {noun}?",
    "no": "Is it free of {noun}?",
    "degree": "How severe is the {noun}?",
    "which": "What is the main distortion?",
    "where": "Where is the {noun}?",
    "half": "Which half has more {noun}, {halves}?",
    "half-clean": "Which half has less {noun}, {halves}?",
    "part-yes": "Is there {noun} in {part}?",
    "part-no": "Is {part} free of {noun}?",
    "compare-yes": "Is there more {noun} than in the reference?",
    "compare-no": "Is there no more {noun} than in the reference?",
    "compare-image": "Which has more {noun}, the image or the reference?",
    "compare-reference": "Which has less {noun}, the image or the reference?",
    "compare-category": "What is the main distortion compared with the reference?",
    "reference-yes": "Is there {noun} in the reference?",
    "reference-no": "Is the reference free of {noun}?",
}
_NOUNS: dict[Subject, str] = {
    "Blurs": "blur",
    "clarity": "blur",
    "Noise": "noise",
    "Compression": "compression artifacts",
    "Brightness change": "brightness change",
    "Contrast": "contrast problem",
    "Color distortions": "color distortion",
    "Sharpness": "oversharpening",
}
_VERTICAL = re.compile(r"\b(?:top|bottom|upper|lower|above|below)\b", re.I)


def in_plain_words(question: str, asking: str, intent: Intent, regions: Sequence[str]) -> str:
    """The question in plain words; "" if it is not clear what it asks, or of which distortion or part.

    ``asking`` is the part of it that asks, and ``regions`` are the parts of the image that it names.
    """
    name = intent.name if intent.probability >= RESTATED else ""
    if name in ("yes", "no") and regions:
        name = f"part-{name}"
    if name not in _WORDS or (name.startswith("part") and len(regions) != 1):
        return ""
    words, noun = _WORDS[name], distortion_named(question, asking)
    if not (noun if "{noun}" in words else terms_in(question)):
        return ""
    halves = "the top or the bottom" if _VERTICAL.search(question) else "the left or the right"
    return words.format(noun=noun, halves=halves, part=regions[0] if regions else "")


def overrules(intent: Intent, asked: Asked) -> bool:
    """Whether a question for a part or for one of two pictures was surely taken for one that is answered yes or no."""
    named = intent.name in ("where", "half", "half-clean", "compare-image", "compare-reference")
    return asked == "presence" and named and intent.probability >= OVERRULED


def distortion_named(question: str, asking: str) -> str:
    """The noun for the one distortion that a question names; "" if it names none or several, or one not measured."""
    for part in (asking, question):
        if meanings := [term.meaning for term in terms_in(part) if term.meaning.subject not in ("any", "quality")]:
            return _noun(meanings)
    return ""


def _noun(meanings: Sequence[Meaning]) -> str:
    judged = [meaning for meaning in meanings if meaning.sense != "neutral"] or meanings
    kinds = {meaning.kind for meaning in judged} - {"", LOWER["Sharpness"]}
    if len({meaning.scale for meaning in judged}) > 1 or len(kinds) > 1:
        return ""
    first = judged[0]
    if first.scale == "clarity" and first.sense == "virtue":
        return _NOUNS["clarity"]
    if kinds:
        return kinds.pop()
    return _NOUNS["clarity"] if first.kind == LOWER["Sharpness"] else _NOUNS.get(first.subject, "")
