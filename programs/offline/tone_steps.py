"""Find a part of an image with other brightness, contrast or color than the rest, by its straight borders.

A part of another tone looks like the scene's own objects, but for its border: along a straight line every pixel changes
by the same rule, and what the scene shows goes on behind it. Objects have no such border: their edges are seldom
straight along a whole side, and what lies on both sides of them differs. Borders are looked for in several ways
(``step_lines.Look``); the change is then read off the pixels on both sides (``tone_change``).
"""

from dataclasses import dataclass

import numpy as np

from agenticiqa.programs.images.places import name_of_place
from agenticiqa.programs.offline.findings import Finding, LocalDamage
from agenticiqa.programs.offline.step_lines import Look, parts_between_lines, planes_both_ways
from agenticiqa.programs.offline.tone_change import Change, continuity, explained, sides_of
from agenticiqa.programs.tools.distort import KINDS
from agenticiqa.programs.tools.numerics.pixels import RGB
from agenticiqa.signatures.types import Box
from agenticiqa.signatures.vocabulary import DETECTABLE, DetectableDistortion

SMALLEST_SIDE = 96  # pixels of an image
# Limits chosen on the 1,500 training photos of CLIVE and BIQ2021, with and without JPEG, and on parts planted in them.
# Something is found in four of these photos; one does have such a part, the others show a window, a shelf and a wall.
TONE = Look(is_color=False, scale=1, gap=1, faint=3.0, luma_share=0.0, seen=0.45, least=0.95, least_alone=1.2)
COLOR = Look(is_color=True, scale=1, gap=1, faint=5.0, luma_share=0.0, seen=0.3, least=0.5, least_alone=0.6)
JPEG_COLOR = Look(is_color=True, scale=2, gap=2, faint=5.0, luma_share=0.25, seen=0.3, least=0.65, least_alone=0.75)
LOOKS = (TONE, COLOR, JPEG_COLOR)
TRIED = 8  # parts of each look, with the clearest sides first
GOES_ON, GOES_ON_ALONE = 0.5, 0.7  # correlation of luma on both sides of the border, along it
UNEXPLAINED = 0.2  # of the difference at the border, what a change may leave, or explain beyond usual detail
LEAST_LEVEL = 2.0  # a slighter change may be the scene
SEVERITY_OF_LEVEL = (0.0, 0.8, 1.6, 2.5, 3.3, 4.0)
# By kind: the subtype that findings have, and what the border shows.
MEANING: dict[str, tuple[str, str]] = {
    "darken": ("underexposure", "{:.0%} of the brightness around it"),
    "brighten": ("overexposure", "{:.0%} of the brightness around it"),
    "low_contrast": ("low contrast", "{:.0%} of the contrast around it"),
    "high_contrast": ("high contrast", "{:.0%} of the contrast around it"),
    "desaturate": ("desaturation", "{:.0%} of the saturation around it"),
    "oversaturate": ("oversaturation", "{:.0%} of the saturation around it"),
    "color_cast": ("color cast", "a tint that changes one color by {:.0%}"),
}


@dataclass(frozen=True)
class ToneStep:
    """A part of an image with another tone: the category of the distortion, what was found of it, and where."""

    category: DetectableDistortion
    part: Finding
    damage: LocalDamage


def tone_step(image: RGB) -> ToneStep | None:
    """The part with another tone behind straight borders, of an image, uint8 (H, W, 3); ``None`` if there is no such.

    At most one is found: that with the clearest borders. A soft or a round border is none.
    """
    height, width = image.shape[:2]
    if min(height, width) < SMALLEST_SIDE:
        return None
    both = planes_both_ways(image)
    for look in LOOKS:
        for box in parts_between_lines(image, both, look)[:TRIED]:
            sides = sides_of(image, box, look)
            if continuity(sides) <= (GOES_ON if len(sides) > 1 else GOES_ON_ALONE):
                continue
            part, change = explained(image, box, sides, is_color=look.is_color)
            if abs(change.unexplained) <= UNEXPLAINED and change.level >= LEAST_LEVEL:
                return _step(part, change, (width, height))
    return None


def _step(box: Box, change: Change, size: tuple[int, int]) -> ToneStep:
    severity = float(np.interp(change.level, range(6), SEVERITY_OF_LEVEL))
    subtype, what = MEANING[change.kind]
    left, top, right, bottom = box
    share = (right - left) * (bottom - top) / (size[0] * size[1])
    category = next(name for name in DETECTABLE if name == KINDS[change.kind].category)
    return ToneStep(
        category,
        Finding(severity, subtype, f"Behind its straight border it has {what.format(change.strength)}."),
        LocalDamage(severity, box, name_of_place(box, size), share),
    )
