"""HaarPSI: similarity to a reference of Haar wavelet coefficients. Higher is better."""

import math

import numpy as np

from agenticiqa.programs.tools.numerics.filters import Maps, Plane32, whole
from agenticiqa.programs.tools.numerics.pixels import RGB, YIQ_WEIGHTS, Plane, check_pair
from agenticiqa.programs.tools.numerics.similarity import color_planes, dissimilarity, framed, pool, shrink, spread
from agenticiqa.programs.tools.tool import Tool

SMALLEST_SIDE = 8
CONSTANT = 30.0
STEEPNESS = 4.2
HALF = np.float32(0.5)
BEST = 1 / (1 + math.exp(-STEEPNESS))
SCALES = (1, 2, 4)


def haarpsi(image: RGB, reference: RGB) -> float:
    """Return the Haar wavelet-based perceptual similarity index (HaarPSI) with color.

    At half resolution, the Haar coefficients of two fine scales are compared, and those of a third are the weights;
    local similarities are averaged through a logistic (C = 30, alpha = 4.2).
    Source: Reisenhofer, Bosse, Kutyniok and Wiegand, "A Haar wavelet-based perceptual similarity index for image
    quality assessment", Signal Processing: Image Communication 61, 2018.

    Args:
        image: uint8 RGB, shape (H, W, 3), sides of at least 8 pixels.
        reference: The pristine image, of the same kind and size.

    Returns:
        0..1, higher is better: 1 for identical images. Symmetric.

    Raises:
        ToolError: An array is of another kind, the sizes differ, or a side is under 8 pixels.
    """
    pooled = BEST - pool(*_losses(image, reference))
    return (math.log(pooled / (1 - pooled)) / STEEPNESS) ** 2


def haarpsi_map(image: RGB, reference: RGB) -> Plane:
    """Loss of the logistic of the similarity, weighted as HaarPSI weights it, at half the resolution: 0 or more.

    Raises ToolError as ``haarpsi``.
    """
    check_pair(image, reference, smallest=SMALLEST_SIDE)
    return spread(*framed(_losses, image, reference, 2))


def _losses(image: RGB, reference: RGB) -> tuple[Plane32, Plane32]:
    """Return the losses and the weights of detail across, detail down, and color: (3, h, w) each."""
    check_pair(image, reference, smallest=SMALLEST_SIDE)
    maps = whole(_compare, image, reference, margin=8, step=2)
    return np.stack(maps[:3]), np.stack(maps[3:])


def _compare(image: RGB, reference: RGB) -> Maps:
    (y1, *chroma1), (y2, *chroma2) = (color_planes(shrink(rgb, 2), YIQ_WEIGHTS) for rgb in (image, reference))
    dissimilarities: list[Plane32] = []
    weights: list[Plane32] = []
    for direction1, direction2 in zip(_haar(y1), _haar(y2), strict=True):
        (fine1, middle1, coarse1), (fine2, middle2, coarse2) = direction1, direction2
        fine, middle = dissimilarity(fine1, fine2, CONSTANT), dissimilarity(middle1, middle2, CONSTANT)
        dissimilarities.append((fine + middle) * HALF)
        weights.append(np.maximum(coarse1, coarse2))
    of_i, of_q = (dissimilarity(_mean4(a), _mean4(b), CONSTANT) for a, b in zip(chroma1, chroma2, strict=True))
    dissimilarities.append((of_i + of_q) * HALF)
    weights.append((weights[0] + weights[1]) * HALF)
    return (*(_logistic_loss(values) for values in dissimilarities), *weights)


def _logistic_loss(lost: Plane32) -> Plane32:
    """Return logistic(a) - logistic(a (1 - lost)), exactly 0 where nothing is lost."""
    grown = np.expm1(np.float32(STEEPNESS) * lost)
    return np.float32(BEST * (1 - BEST)) * grown / (1 + np.float32(1 - BEST) * grown)


def _haar(plane: Plane32) -> tuple[list[Plane32], list[Plane32]]:
    """Return the magnitudes of the Haar coefficients of 2, 4 and 8 pixels at every pixel, down and across."""
    height, width = plane.shape
    # Sums over boxes of 1, 2 and 4 pixels from each pixel on; the widest wavelet starts 3 pixels before its pixel.
    before = SCALES[-1] - 1
    box = np.pad(plane, (before, before + 1))
    downward: list[Plane32] = []
    across: list[Plane32] = []
    for size in SCALES:
        wide, tall = box[:, size:] + box[:, :-size], box[size:] + box[:-size]
        start = before + 1 - size
        window = slice(start, start + height), slice(start, start + width)
        scale = np.float32(1 / (2 * size))
        downward.append(np.abs((wide[size:] - wide[:-size])[window]) * scale)
        across.append(np.abs((tall[:, size:] - tall[:, :-size])[window]) * scale)
        box = wide[size:] + wide[:-size]
    return downward, across


def _mean4(plane: Plane32) -> Plane32:
    """Return the magnitude of the mean of each pixel, its right, lower and lower right neighbor; zeros outside."""
    padded = np.pad(plane, ((0, 1), (0, 1)))
    pairs = padded[1:] + padded[:-1]
    mean: Plane32 = np.abs(pairs[:, 1:] + pairs[:, :-1])
    mean *= np.float32(0.25)
    return mean


TOOL = Tool(
    name="HaarPSI",
    kind="FR",
    higher_is_better=True,
    raw_range=(0.0, 1.0),
    description="Similarity of local Haar wavelet coefficients, in luma and color.",
    source="Reisenhofer et al. 2018, Signal Processing: Image Communication 61",
    cost_ms=7,
    measure=haarpsi,
    map=haarpsi_map,
    map_end=0.05,
    smallest=SMALLEST_SIDE,
)
