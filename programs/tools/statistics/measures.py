"""All single-distortion measures of an image by name, from the pixels that each should see.

Tone is that of the whole image. The spatial measures read the whole image up to two megapixels. A larger one is never
scaled down, which would hide noise and blocking: they read nine parts of 448 x 448 pixels spread evenly over it, at
its own resolution, as if these were the image.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.tools.numerics.pixels import RGB, check_image, luma
from agenticiqa.programs.tools.statistics.edges import edge_sharpness, overshoot
from agenticiqa.programs.tools.statistics.spatial import Luma, blockiness, blur_extent, isolated_pixels, noise_sigma
from agenticiqa.programs.tools.statistics.tonal import (
    Tone,
    clipped_bright,
    clipped_dark,
    color_cast,
    colorfulness,
    highlight_level,
    mean_luma,
    red_tint,
    rms_contrast,
    shadow_level,
    tonal_range,
    yellow_tint,
)

WHOLE_PIXELS = 2_000_000
PART = 448
PARTS_PER_SIDE = 3
GRID = 8  # pixels: parts begin on the grid of JPEG, so that all show it at the same place

SPATIAL: dict[str, Callable[[Sequence[Luma]], float]] = {
    "blur_extent": blur_extent,
    "noise_sigma": noise_sigma,
    "isolated_pixels": isolated_pixels,
    "blockiness": blockiness,
    "edge_sharpness": edge_sharpness,
    "overshoot": overshoot,
}
TONAL: dict[str, Callable[[Tone], float]] = {
    "mean_luma": mean_luma,
    "shadow_level": shadow_level,
    "highlight_level": highlight_level,
    "clipped_dark": clipped_dark,
    "clipped_bright": clipped_bright,
    "rms_contrast": rms_contrast,
    "tonal_range": tonal_range,
    "colorfulness": colorfulness,
    "color_cast": color_cast,
    "red_tint": red_tint,
    "yellow_tint": yellow_tint,
}


def measure(image: LoadedImage) -> Mapping[str, float]:
    """Every measure of SPATIAL and TONAL by name, read-only; taken once per loaded image, also under threads."""
    return image.memo.once("measures", lambda: MappingProxyType(_measure_all(image.pixels)))


def take(name: str, image: RGB) -> float:
    """One measure of SPATIAL or TONAL of an image, uint8 RGB of shape (H, W, 3) and any size from one pixel up.

    The number that ``measure`` has for the image. Raises ToolError for anything that is not such an image.
    """
    check_image(image)
    return SPATIAL[name](spatial_parts(image)) if name in SPATIAL else TONAL[name](Tone(image))


def spatial_parts(image: RGB) -> list[Luma]:
    """The luma of the parts of an image that the spatial measures see."""
    return [luma(part).astype(np.float32) for part in parts_of(image)]


def parts_of(image: RGB) -> list[RGB]:
    """The parts of an image that stand for its detail: all of it, or of a large one nine squares."""
    height, width = image.shape[:2]
    if height * width <= WHOLE_PIXELS:
        return [image]
    return [image[top : top + PART, left : left + PART] for top in _part_starts(height) for left in _part_starts(width)]


def _measure_all(pixels: RGB) -> dict[str, float]:
    parts, tone = spatial_parts(pixels), Tone(pixels)
    found = {name: spatial(parts) for name, spatial in SPATIAL.items()}
    return found | {name: tonal(tone) for name, tonal in TONAL.items()}


def _part_starts(side: int) -> list[int]:
    count = min(PARTS_PER_SIDE, -(-side // PART))
    return [int(start) // GRID * GRID for start in np.linspace(0, max(side - PART, 0), count)]
