"""One verdict from several full-reference metrics: each on 1..5 by a curve of its own, and their mean.

The members look at different things: wavelet detail, edges with chromaticity, and information. A curve has two
parameters, and the mean has none: weights that are fitted to few contents follow those contents.

Another member is one more line in ``MEMBERS``: its two functions, its best value, and the two numbers that
``python -m agenticiqa.eval.studies.fr_fusion`` prints for it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.tools.metrics.gradient import mdsi, mdsi_damage
from agenticiqa.programs.tools.metrics.haarpsi import haarpsi, haarpsi_damage
from agenticiqa.programs.tools.metrics.vif import SMALLEST_SIDE as VIF_SMALLEST
from agenticiqa.programs.tools.metrics.vif import vif, vif_damage
from agenticiqa.programs.tools.numerics.maps import enlarge
from agenticiqa.programs.tools.numerics.pixels import RGB, Plane, check_pair

SMALLEST_SIDE = 8


@dataclass(frozen=True)
class Member:
    """A metric and its curve: 5 at ``best``, 3 where it is off by ``middle``, towards 1 beyond, never turning round."""

    measure: Callable[[RGB, RGB], float]
    damage: Callable[[RGB, RGB], Plane]
    best: float
    higher_is_better: bool
    middle: float
    steepness: float
    smallest: int = SMALLEST_SIDE

    def distance(self, raw: float) -> float:
        """How far a raw value is from the best, 0 or more."""
        return max(0.0, self.best - raw if self.higher_is_better else raw - self.best)

    def quality(self, raw: float) -> float:
        """The score in 1..5 of a raw value."""
        return 1 + 4 / (1 + (self.distance(raw) / self.middle) ** self.steepness)


# Fitted on LIVE r2: 72 images of 4 contents, 100 - DMOS.
MEMBERS: dict[str, Member] = {
    "HaarPSI": Member(haarpsi, haarpsi_damage, best=1, higher_is_better=True, middle=0.2363, steepness=1.2436),
    "MDSI": Member(mdsi, mdsi_damage, best=0, higher_is_better=False, middle=0.3285, steepness=3.4637),
    "VIF": Member(
        vif, vif_damage, best=1, higher_is_better=True, middle=0.5731, steepness=2.3265, smallest=VIF_SMALLEST
    ),
}


def full_reference_quality(raws: Mapping[str, float], members: Mapping[str, Member] = MEMBERS) -> float:
    """The mean of the members' scores, in 1..5: 5 exactly for an image that equals its reference.

    ``raws`` maps names of metrics to raw values; those that are no members are passed over, and members may be
    missing. Raises ToolError when no member is there.
    """
    scores = [member.quality(raws[name]) for name, member in members.items() if name in raws]
    if not scores:
        raise ToolError(f"expected a value of at least one of {', '.join(members)}, got {', '.join(raws) or 'none'}")
    return float(np.mean(scores))


def consensus(image: RGB, reference: RGB) -> float:
    """``full_reference_quality`` of a pair of images: 1..5, 5 for identical ones.

    An image too small for a member is judged by the others. Raises ToolError for a pair that is not two uint8 RGB
    images of one size, and for sides under 8 pixels.
    """
    members = _fitting(image, reference)
    return full_reference_quality({name: member.measure(image, reference) for name, member in members})


def consensus_damage(image: RGB, reference: RGB) -> Plane:
    """The mean of the members' maps, of the image's shape, each scaled to its part of the verdict.

    A member's map has the mean (5 - score) / 4, so that of the result is the share of quality lost: 0 for identical
    images, up to 1. Raises ToolError as consensus does.
    """
    members = _fitting(image, reference)
    total = np.zeros(image.shape[:2], np.float32)
    for _, member in members:
        values = member.damage(image, reference)
        mean = float(values.mean())
        if mean > 0:
            lost = (5 - member.quality(member.measure(image, reference))) / 4
            values *= lost / mean / len(members)
            total += enlarge(values, total.shape)
        del values
    return total.astype(np.float64)


def _fitting(image: RGB, reference: RGB) -> list[tuple[str, Member]]:
    """The members that an image is large enough for."""
    check_pair(image, reference, smallest=SMALLEST_SIDE)
    return [(name, member) for name, member in MEMBERS.items() if member.smallest <= min(image.shape[:2])]
