"""FR-FUSION: the mean of three full-reference metrics, each mapped to 1..5 by its own curve. Higher is better.

The members measure different things: wavelet detail (HaarPSI), edges with chromaticity (MDSI), and information (VIF).
A curve has two parameters, and the mean has none: weights fitted to a few contents would fit only these.

To add a member, add a line to ``MEMBERS`` with its tool, its best value, and the two numbers that
``python -m agenticiqa.eval.research.fr_fusion`` prints for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.tools.metrics import haarpsi, mdsi, vif
from agenticiqa.programs.tools.numerics.pixels import RGB, Plane, check_pair
from agenticiqa.programs.tools.numerics.similarity import enlarge
from agenticiqa.programs.tools.tool import Tool

SMALLEST_SIDE = 8


@dataclass(frozen=True)
class Member:
    """A metric and its curve: 5 at ``best``, 3 at the distance ``middle`` from it, falling towards 1 beyond."""

    tool: Tool
    best: float
    middle: float
    steepness: float

    def distance(self, raw: float) -> float:
        """Return the distance of a raw value from the best, 0 or more."""
        return max(0.0, self.best - raw if self.tool.higher_is_better else raw - self.best)

    def quality(self, raw: float) -> float:
        """Return the score in 1..5 of a raw value."""
        return 1 + 4 / (1 + (self.distance(raw) / self.middle) ** self.steepness)


# Fitted on LIVE r2: 72 images of 4 scenes, 100 - DMOS.
MEMBERS: dict[str, Member] = {
    "HaarPSI": Member(haarpsi.TOOL, best=1, middle=0.2363, steepness=1.2436),
    "MDSI": Member(mdsi.TOOL, best=0, middle=0.3285, steepness=3.4637),
    "VIF": Member(vif.TOOL, best=1, middle=0.5731, steepness=2.3265),
}


def fr_fusion(image: RGB, reference: RGB) -> float:
    """Return ``full_reference_quality`` of a pair of images: the mean of HaarPSI, MDSI and VIF, each by its own curve.

    An image too small for a member is assessed by the others.

    Args:
        image: uint8 RGB, shape (H, W, 3), sides of at least 8 pixels.
        reference: The pristine image, of the same kind and size.

    Returns:
        1..5, higher is better: 5 for identical images.

    Raises:
        ToolError: An array is of another kind, the sizes differ, or a side is under 8 pixels.
    """
    members = _fitting(image, reference)
    return full_reference_quality({name: member.tool.measure(image, reference) for name, member in members})


def fr_fusion_map(image: RGB, reference: RGB) -> Plane:
    """Return the mean of the members' maps, each scaled to its share of the lost quality: (H, W).

    A member's map is scaled to the mean (5 - score) / 4, so that the mean of the result is the share of quality lost:
    0 for identical images, up to 1. Raises ToolError as ``fr_fusion``.
    """
    members = _fitting(image, reference)
    total = np.zeros(image.shape[:2], np.float32)
    for _, member in members:
        assert member.tool.map
        values = member.tool.map(image, reference)
        mean = float(values.mean())
        if mean > 0:
            lost = (5 - member.quality(member.tool.measure(image, reference))) / 4
            values *= lost / mean / len(members)
            total += enlarge(values, total.shape)
        del values
    return total.astype(np.float64)


def full_reference_quality(raws: Mapping[str, float], members: Mapping[str, Member] = MEMBERS) -> float:
    """Return the mean of the members' scores, in 1..5: 5 exactly for an image that equals its reference.

    ``raws`` maps names of metrics to raw values; names that are not members' are ignored, and members may be missing.
    Raises ToolError without any member.
    """
    scores = [member.quality(raws[name]) for name, member in members.items() if name in raws]
    if not scores:
        raise ToolError(f"expected a value of at least one of {', '.join(members)}, got {', '.join(raws) or 'none'}")
    return float(np.mean(scores))


def _fitting(image: RGB, reference: RGB) -> list[tuple[str, Member]]:
    """Return the members that an image is large enough for."""
    check_pair(image, reference, smallest=SMALLEST_SIDE)
    return [(name, member) for name, member in MEMBERS.items() if member.tool.smallest <= min(image.shape[:2])]


TOOL = Tool(
    name="FR-FUSION",
    kind="FR",
    higher_is_better=True,
    raw_range=(1.0, 5.0),
    description="Mean of HaarPSI, MDSI and VIF, each mapped to 1..5 by its own curve.",
    source="this package; curves fitted on LIVE r2",
    cost_ms=70,
    measure=fr_fusion,
    map=fr_fusion_map,
    map_end=1.1,
    smallest=SMALLEST_SIDE,
    trained_on=("live_r2",),
)
