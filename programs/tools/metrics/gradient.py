"""Metrics that compare how edges changed: GMSD and MDSI (lower is better) and FSIM (higher is better)."""

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.tools.numerics.filters import Maps, Plane32, whole
from agenticiqa.programs.tools.numerics.maps import (
    colour_planes,
    dissimilarity,
    gradient_magnitude,
    grey_levels,
    pool,
    shrink,
    spread,
    working_factor,
)
from agenticiqa.programs.tools.numerics.phase import phase_congruency
from agenticiqa.programs.tools.numerics.pixels import RGB, YIQ_WEIGHTS, Plane, check_pair

SMALLEST_SIDE = 8
PREWITT = (1 / 3, 1 / 3, 1 / 3)
SCHARR = (3 / 16, 10 / 16, 3 / 16)

# Luma and two opponent channels of a Gaussian colour model, as MDSI's paper has them.
LHM_WEIGHTS = ((0.2989, 0.5870, 0.1140), (0.30, 0.04, -0.35), (0.34, -0.60, 0.17))
GRADIENT_SHARE = 0.6


def gmsd(image: RGB, reference: RGB) -> float:
    """Gradient magnitude similarity deviation of the grey levels: 0 for equal ones, in practice up to about 0.35.

    The standard deviation of the similarity between Prewitt gradients at half resolution, constant 170 (Xue, Zhang,
    Mou and Bovik, "Gradient magnitude similarity deviation", IEEE TIP 23(2), 2014). Symmetric; colour is not seen,
    and brightness only at the border, outside of which the authors' code takes the image to be black.

    Raises ToolError for a pair that is not two uint8 RGB images of one size, and for sides under 8 pixels.
    """
    return float(_gradient_losses(image, reference).std(dtype=np.float64, ddof=1))


def gmsd_damage(image: RGB, reference: RGB) -> Plane:
    """What the gradients' similarity lacks of 1, in 0..1, at half the resolution. Raises ToolError as gmsd does."""
    return _gradient_losses(image, reference).astype(np.float64)


def mdsi(image: RGB, reference: RGB) -> float:
    """Mean deviation similarity index: 0 for identical images, in practice up to about 0.6. Not quite symmetric.

    The mean deviation of the fourth root of a similarity that is 0.6 gradients (Prewitt, of luma, and of each image
    with the mean of both) and 0.4 chromaticity; at a shorter side of about 256 pixels, by block means (Nafchi,
    Shahkolaei, Hedjam and Cheriet, "Mean deviation similarity index: efficient and reliable full-reference image
    quality evaluator", IEEE Access 4, 2016; C1 140, C2 55, C3 550, and the sum, not the product).

    Raises ToolError as gmsd does.
    """
    similarity = 1 - _edge_and_colour_losses(image, reference)
    root = np.sqrt(np.sqrt(np.abs(similarity)))
    # The fourth root of a negative number is complex, and so are the mean and the deviations from it.
    turn = np.where(similarity < 0, np.float32(np.sqrt(0.5)), np.float32(0)) * root
    root = np.where(similarity < 0, turn, root)
    deviation = np.hypot(root - root.mean(dtype=np.float64), turn - turn.mean(dtype=np.float64))
    return float(deviation.mean(dtype=np.float64) ** 0.25)


def mdsi_damage(image: RGB, reference: RGB) -> Plane:
    """What the similarity of edges and colour lacks of 1, 0 or more, at MDSI's resolution. Raises as gmsd does."""
    return np.maximum(_edge_and_colour_losses(image, reference), 0, dtype=np.float64)


def fsim(image: RGB, reference: RGB) -> float:
    """Feature similarity with colour, FSIMc: in practice 0..1, 1 for identical images. Symmetric.

    Similarity of phase congruency, of Scharr gradients of luma, and (with exponent 0.03) of the chroma planes I and
    Q, weighted by phase congruency, so that it counts where the eye looks for structure; the plain mean where
    neither image has any. The images are first reduced to a shorter side of about 256 pixels by block means
    (Zhang, Zhang, Mou and Zhang, "FSIM: a feature similarity index for image quality assessment", IEEE TIP 20(8),
    2011; T1 0.85, T2 160, T3 = T4 = 200).

    Raises ToolError as gmsd does.
    """
    return 1 - pool(*_feature_losses(image, reference))


def fsim_damage(image: RGB, reference: RGB) -> Plane:
    """What the features' similarity lacks of 1, weighted as FSIM weighs it, at its resolution: the mean is 1 - FSIM.

    Raises ToolError as gmsd does.
    """
    return spread(*_feature_losses(image, reference))


def _gradient_losses(image: RGB, reference: RGB) -> Plane32:
    check_pair(image, reference, smallest=SMALLEST_SIDE)
    (lost,) = whole(_gradient_loss, grey_levels(image), grey_levels(reference), margin=2, step=2)
    return lost


def _gradient_loss(image: NDArray[np.uint8], reference: NDArray[np.uint8]) -> Maps:
    first, second = (gradient_magnitude(shrink(plane, 2), PREWITT) for plane in (image, reference))
    return (dissimilarity(first, second, 170),)


def _edge_and_colour_losses(image: RGB, reference: RGB) -> Plane32:
    check_pair(image, reference, smallest=SMALLEST_SIDE)
    factor = working_factor(image.shape)
    first, second = (shrink(rgb, factor) for rgb in (image, reference))
    (lost,) = whole(_edge_and_colour_loss, first, second, margin=1)
    return lost


def _edge_and_colour_loss(image: Plane32, reference: Plane32) -> Maps:
    luma1, h1, m1 = colour_planes(image, LHM_WEIGHTS)
    luma2, h2, m2 = colour_planes(reference, LHM_WEIGHTS)
    first, second = gradient_magnitude(luma1, PREWITT), gradient_magnitude(luma2, PREWITT)
    both = gradient_magnitude((luma1 + luma2) / 2, PREWITT)
    gradient = dissimilarity(first, second, 140) + dissimilarity(first, both, 55) - dissimilarity(second, both, 55)
    colour = np.square(h1 - h2) + np.square(m1 - m2)
    colour /= np.square(h1) + np.square(h2) + np.square(m1) + np.square(m2) + np.float32(550)
    return (GRADIENT_SHARE * gradient + (1 - GRADIENT_SHARE) * colour,)


def _feature_losses(image: RGB, reference: RGB) -> Maps:
    """What similarity lacks of 1, and the weights."""
    check_pair(image, reference, smallest=SMALLEST_SIDE)
    factor = working_factor(image.shape)
    (y1, i1, q1), (y2, i2, q2) = (colour_planes(shrink(rgb, factor), YIQ_WEIGHTS) for rgb in (image, reference))
    congruency1, congruency2 = phase_congruency([y1, y2])
    kept = 1 - dissimilarity(congruency1, congruency2, 0.85)
    kept *= 1 - dissimilarity(gradient_magnitude(y1, SCHARR), gradient_magnitude(y2, SCHARR), 160)
    chroma = (1 - dissimilarity(i1, i2, 200)) * (1 - dissimilarity(q1, q2, 200))
    # Opposite hues make the product negative; the authors keep the real part of its complex power.
    kept *= np.abs(chroma) ** np.float32(0.03) * np.where(chroma < 0, np.float32(np.cos(0.03 * np.pi)), np.float32(1))
    return 1 - kept, np.maximum(congruency1, congruency2)
