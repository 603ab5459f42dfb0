"""A rating in one sentence of everyday words: "Poor quality: strong compression artifacts and visible noise." """

import re
from typing import Any

from agenticiqa.signatures.types import GLOBAL
from agenticiqa.signatures.vocabulary import SEVERITIES, everyday_name

MOST_NAMED = 3
# The severities in a photographer's words.
STRENGTHS = {"slight": "slight", "moderate": "visible", "severe": "strong", "extreme": "extreme"}
GOOD = ("Excellent", "Good")
BLUR, SOFT = "Blurs", "Sharpness"  # a blurred region is not sharp: named once
# How the score was computed: the live view of -v and the JSON have it.
ARITHMETIC = re.compile(r"Score \d[^ ]* \(\w+\), .*?\(levels from .*?\)\.\s*")
OFFLINE_SOURCES = ("measurements", "learned")


def verdict(row: dict[str, Any]) -> str:
    """The level of a rating and its main distortions, where they are; empty for a result without a score.

    ``row`` is the JSON of a result. The strongest distortions come first, at most three; slight ones are only named
    where nothing is stronger.
    """
    level = row["quality_level"]
    if row["quality_score"] is None or level is None:
        return ""
    analysis = row["executor_evidence"]["distortion_analysis"]
    parts = row["executor_evidence"].get("local_damage") or {}
    found = [
        (SEVERITIES.index(item["severity"]), item["type"], _place(parts, region, item["type"]))
        for region, items in (analysis or {}).items()
        for item in items
        if item["severity"] in STRENGTHS and not (item["type"] == SOFT and _is_blurred(items))
    ]
    if not found:
        nothing = "no visible distortion" if level in GOOD else "no single distortion stands out"
        return f"{level} quality{': ' + nothing if analysis is not None else ''}."
    clear = [each for each in found if each[0] > 1] or found
    named = [_phrase(*each) for each in sorted(clear, key=lambda each: -each[0])]
    more = [f"{len(named) - MOST_NAMED} more"] if len(named) > MOST_NAMED else []
    parts = [*dict.fromkeys(named[:MOST_NAMED]), *more]
    listed = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    if clear[0][0] == 1:
        return f"{level} quality{': only' if level in GOOD else ', though with only'} {listed}."
    return f"{level} quality{' with ' if level in GOOD else ': '}{listed}."


def explanation(row: dict[str, Any]) -> str:
    """The reasoning of a result without the arithmetic of its score.

    Offline, the findings before the arithmetic are left out, too, because the card lists them.
    """
    reasoning = str(row["quality_reasoning"])
    score = ARITHMETIC.search(reasoning)
    if score is None:
        return reasoning
    by_model = row["probability_source"] not in OFFLINE_SOURCES
    return (reasoning[: score.start()] if by_model else "") + reasoning[score.end() :].strip()


def _is_blurred(items: list[dict[str, Any]]) -> bool:
    return any(item["type"] == BLUR and item["severity"] in STRENGTHS for item in items)


def _place(parts: dict[str, list[dict[str, Any]]], region: str, distortion: str) -> str:
    """The part of the image where a distortion of the whole image is, if it is in a part only, else the region."""
    return next((part["place"] for part in parts.get(region, []) if part["type"] == distortion), region)


def _phrase(severity: int, distortion: str, region: str) -> str:
    what = f"{STRENGTHS[SEVERITIES[severity]]} {everyday_name(distortion)}"
    if region == GLOBAL:
        return what
    named = region.split()[0].lower() in ("the", "a", "an", "my", "both") or not region[0].islower()
    return f"{what} in {region if named else f'the {region}'}"
