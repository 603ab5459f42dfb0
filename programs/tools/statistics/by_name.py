"""All statistics of single distortions by name.

The spatial ones are taken of the image's parts (see ``parts``), the tonal ones of the whole image.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from agenticiqa.programs.tools.numerics.pixels import RGB, check_image
from agenticiqa.programs.tools.statistics.blocking import blockiness
from agenticiqa.programs.tools.statistics.blur import blur_extent
from agenticiqa.programs.tools.statistics.edges import edge_sharpness, overshoot
from agenticiqa.programs.tools.statistics.noise import isolated_pixels, noise_sigma
from agenticiqa.programs.tools.statistics.parts import Luma, loaded_luma_parts, luma_parts
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
    sampled_tone,
    shadow_level,
    tonal_range,
    tone_of,
    yellow_tint,
)

if TYPE_CHECKING:
    from agenticiqa.programs.images import LoadedImage

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


def statistic(name: str, image: RGB) -> float:
    """Return one of SPATIAL or TONAL, of an image, uint8 RGB of shape (H, W, 3) and any size from one pixel up.

    Raises ToolError for anything that is not such an image.
    """
    check_image(image)
    return SPATIAL[name](luma_parts(image)) if name in SPATIAL else TONAL[name](sampled_tone(image))


def all_statistics(image: "LoadedImage") -> Mapping[str, float]:
    """Return all of SPATIAL and TONAL by name, read-only; computed once per loaded image, also under threads."""
    return image.memo.once("statistics", lambda: MappingProxyType(_compute(image)))


def loaded_statistic(name: str) -> "Callable[[LoadedImage], float]":
    """Return the function of a loaded image that takes this one from ``all_statistics``; it can be pickled."""
    return partial(_from_memo, name)


def _from_memo(name: str, image: "LoadedImage") -> float:
    return all_statistics(image)[name]


def _compute(image: "LoadedImage") -> dict[str, float]:
    parts, tone = loaded_luma_parts(image), tone_of(image)
    values = {name: spatial(parts) for name, spatial in SPATIAL.items()}
    return values | {name: tonal(tone) for name, tonal in TONAL.items()}
