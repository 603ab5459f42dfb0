"""HaarPSI, which compares two images by the coefficients of the simplest of all wavelets. Higher is better."""

import numpy as np
import scipy

from agenticiqa.programs.tools.maps import pool, shrink, similarity
from agenticiqa.programs.tools.pixels import RGB, Plane, check_pair, yiq

SMALLEST_SIDE = 8
CONSTANT = 30.0
STEEPNESS = 4.2


def haarpsi(image: RGB, reference: RGB) -> float:
    """Haar wavelet-based perceptual similarity index with colour: 0..1, 1 for identical images. Symmetric.

    At half resolution, the Haar coefficients of two fine scales are compared, those of a third say how much a place
    counts; local similarities are averaged through a logistic (Reisenhofer, Bosse, Kutyniok and Wiegand, "A Haar
    wavelet-based perceptual similarity index for image quality assessment", Signal Processing: Image Communication
    61, 2018; C = 30, alpha = 4.2).

    Raises ToolError for a pair that is not two uint8 RGB images of one size, and for sides under 8 pixels.
    """
    check_pair(image, reference, smallest=SMALLEST_SIDE)
    (y1, i1, q1), (y2, i2, q2) = (yiq(shrink(rgb, 2)) for rgb in (image, reference))
    similarities, weights = [], []
    for axis in (0, 1):
        fine1, middle1, coarse1 = (np.abs(_haar(y1, scale, axis)) for scale in (1, 2, 3))
        fine2, middle2, coarse2 = (np.abs(_haar(y2, scale, axis)) for scale in (1, 2, 3))
        similarities.append((similarity(fine1, fine2, CONSTANT) + similarity(middle1, middle2, CONSTANT)) / 2)
        weights.append(np.maximum(coarse1, coarse2))
    chroma = [similarity(np.abs(_mean4(a)), np.abs(_mean4(b)), CONSTANT) for a, b in ((i1, i2), (q1, q2))]
    similarities.append((chroma[0] + chroma[1]) / 2)
    weights.append((weights[0] + weights[1]) / 2)
    pooled = pool(1 / (1 + np.exp(-STEEPNESS * np.stack(similarities))), np.stack(weights))
    return float((np.log(pooled / (1 - pooled)) / STEEPNESS) ** 2)


def _haar(plane: Plane, scale: int, axis: int) -> Plane:
    """Coefficients of the Haar wavelet of 2^scale x 2^scale pixels that looks along ``axis``, at every pixel."""
    half = 2 ** (scale - 1)
    step, box = np.repeat([-1.0, 1.0], half), np.ones(2 * half)
    across = scipy.ndimage.correlate1d(plane, box, axis=1 - axis, mode="constant", origin=-1)
    return scipy.ndimage.correlate1d(across, step, axis=axis, mode="constant", origin=-1) / 2**scale


def _mean4(plane: Plane) -> Plane:
    """Mean of each pixel, its right, its lower and its lower right neighbour."""
    pair = np.array([0.5, 0.5])
    down = scipy.ndimage.correlate1d(plane, pair, axis=0, mode="constant", origin=-1)
    return scipy.ndimage.correlate1d(down, pair, axis=1, mode="constant", origin=-1)
