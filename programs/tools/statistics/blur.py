"""How blurred an image is, without a reference.

Takes the luma, 0..255, of one or more parts of an image, float32 arrays (h, w) of any size from one pixel up, and
returns one finite float for all of them together. It compares neighboring pixels, so it needs unscaled pixels:
scaling an image changes the result.
"""

from collections.abc import Sequence

import numpy as np

from agenticiqa.programs.tools.statistics.mscn import mirrored
from agenticiqa.programs.tools.statistics.parts import Luma

WINDOW = 11  # pixels, as in the paper of the blur effect


def blur_extent(parts: Sequence[Luma]) -> float:
    """Return how little the image changes when it is blurred again: 0 (completely) to 1 (not at all: already blurred).

    On Sobel gradients, the worse of the two directions. Sharp photos lie between 0.2 and 0.42. A flat image has no edge
    and gets 0.
    Source: Crete, Dolmiere, Ladret, Nicolas, "The blur effect: perception and estimation with a new no-reference
    perceptual blur metric", SPIE 6492, 2007.
    """
    extents = [0.0]
    for axis in (0, 1):
        pairs = [[gradient.sum(dtype=float) for gradient in gradients(part, axis)] for part in parts]
        total, left = np.sum(pairs, axis=0)
        if total > 1e-6:
            extents.append(float(left / total))
    return max(extents)


def gradients(part: Luma, axis: int) -> tuple[Luma, Luma]:
    """Return the magnitude of Sobel's gradient along an axis, and its upper bound after blurring along that axis.

    (h, w) in, two of (h - 3, w - 3) out, for the pixels from (2, 2) on; empty for a part that is smaller than that.
    """
    if min(part.shape) < 4:
        return (np.zeros((0, 0), np.float32),) * 2
    along = part.T if axis else part
    across = along[:, 1:-2] + along[:, 3:]
    across += 2 * along[:, 2:-1]
    before = np.abs(across[3:] - across[1:-2])
    # The gradient of a running mean is the difference of the pixels that enter and those that leave its window.
    reach = WINDOW // 2
    around = across[mirrored(np.arange(1 - reach, len(along) + reach), len(along))]
    pairs = around[1:] + around[:-1]
    after = np.abs(pairs[WINDOW:] - pairs[:-WINDOW])
    after /= WINDOW
    np.minimum(before, after, out=after)
    return (before.T, after.T) if axis else (before, after)
