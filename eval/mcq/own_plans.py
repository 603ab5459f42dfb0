"""Queries with their true plans, and images with reference texts, both true by construction."""

from collections.abc import Iterator
from typing import Any

from agenticiqa.eval.mcq.own_choices import KEYS, OBJECTS, Row
from agenticiqa.eval.mcq.own_images import Workshop
from agenticiqa.programs.stages.plan_rules import expected_flags
from agenticiqa.programs.tools import TOOLS
from agenticiqa.programs.tools.distort import KINDS
from agenticiqa.signatures.types import GLOBAL
from agenticiqa.signatures.vocabulary import Distortion

# By kind: the query, and whether it names a region, a distortion, a tool; the last one is not about quality.
QUERIES: dict[str, tuple[str, bool, bool, bool]] = {
    "rating": ("Put a figure on the technical quality of this picture.", False, False, False),
    "distortion": ("How far has {noun} gone in this picture?", False, True, False),
    "region": ("Is the quality of the {thing} any good?", True, False, False),
    "region and distortion": ("Has {noun} marred the {thing}?", True, True, False),
    "tool": ("Take {tool} to put a figure on the quality of this picture.", False, False, True),
    "tool and distortion": ("Measure the {noun} of this picture with {tool}.", False, True, True),
    "other": ("Which mood does this scene put you in?", False, False, False),
}
OTHER = "other"
DEGREES = {2: "A moderate amount of", 3: "Clearly visible", 4: "Severe", 5: "Extreme"}


def plans(shop: Workshop, number: int) -> Iterator[Row]:
    """Two queries about one photo, one of them with the original beside it."""
    for turn in (0, 1):
        name = tuple(QUERIES)[(2 * number + turn) % len(QUERIES)]
        text, has_region, explicit, has_tool = QUERIES[name]
        kind, thing = KEYS[(number + 4 * turn) % len(KEYS)], shop.draw(OBJECTS)[0].lower()
        tool = shop.draw([tool.name for tool in TOOLS.values() if turn or tool.kind == "NR"])[0]
        category: Distortion = KINDS[kind].category
        flags = expected_flags("Other" if name == OTHER else "IQA", has_region, explicit, has_tool)
        plan: dict[str, Any] = {
            "query_type": "Other" if name == OTHER else "IQA",
            "query_scope": [thing] if has_region else GLOBAL,
            "distortion_source": "Explicit" if explicit else "Inferred",
            "distortions": {thing if has_region else GLOBAL: [category]} if explicit else None,
            "reference_mode": "Full-Reference" if turn else "No-Reference",
            "required_tool": tool if has_tool else None,
            "plan": flags.model_dump(),
        }
        yield {
            "id": f"{shop.content} {turn}",
            "query": text.format(noun=shop.wordings.words[kind][1], thing=thing, tool=tool),
            "image_path": shop.image(kind, 3),
            "reference_path": shop.image() if turn else None,
            "kind": name,
            "content": shop.content,
            "plan": plan,
        }


def descriptions(shop: Workshop, number: int) -> Iterator[Row]:
    """One image of a photo with a text that says what was done to it."""
    kind, level = KEYS[(number + 2) % len(KEYS)], 2 + number % 4
    noun = shop.wordings.words[kind][1]
    yield {
        "id": shop.content,
        "query": "Describe in a few sentences which technical flaws this picture has, where, and how strong they are.",
        "image_path": shop.image(kind, level),
        "kind": KINDS[kind].category,
        "content": shop.content,
        "reference_text": f"{DEGREES[level]} {noun} lies over the whole picture, in all of its parts alike. Nothing "
        "else was done to the photo, so there is no other strong flaw.",
    }
