"""All statistics of single distortions by name, each computed once per image.

The spatial ones are taken of the image's parts (see ``parts``), the tonal ones of the whole image. Those that are also
metrics have their own files in ``metrics``.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from agenticiqa.programs.tools.metrics.blockiness import blockiness
from agenticiqa.programs.tools.metrics.blur_extent import blur_extent
from agenticiqa.programs.tools.metrics.colorfulness import colorfulness
from agenticiqa.programs.tools.metrics.edge_sharpness import edge_sharpness
from agenticiqa.programs.tools.metrics.noise_sigma import noise_sigma
from agenticiqa.programs.tools.metrics.rms_contrast import rms_contrast
from agenticiqa.programs.tools.numerics.pixels import RGB
from agenticiqa.programs.tools.shared import Measurable, shared
from agenticiqa.programs.tools.statistics.spatial import isolated_pixels, overshoot
from agenticiqa.programs.tools.statistics.tonal import (
    clipped_bright,
    clipped_dark,
    color_cast,
    highlight_level,
    mean_luma,
    red_tint,
    shadow_level,
    tonal_range,
    yellow_tint,
)

STATISTICS: dict[str, Callable[[RGB | Measurable], float]] = {
    function.__name__: function
    for function in (
        blur_extent,
        noise_sigma,
        isolated_pixels,
        blockiness,
        edge_sharpness,
        overshoot,
        mean_luma,
        shadow_level,
        highlight_level,
        clipped_dark,
        clipped_bright,
        rms_contrast,
        tonal_range,
        colorfulness,
        color_cast,
        red_tint,
        yellow_tint,
    )
}


@shared
def all_statistics(image: Measurable) -> Mapping[str, float]:
    """Return all of ``STATISTICS`` by name, read-only."""
    return MappingProxyType({name: function(image) for name, function in STATISTICS.items()})
