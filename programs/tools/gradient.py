"""Metrics that compare how edges changed: GMSD (lower is better) and FSIM (higher is better)."""

import numpy as np

from agenticiqa.programs.tools.maps import gradient_magnitude, pool, shrink, similarity
from agenticiqa.programs.tools.phase import phase_congruency
from agenticiqa.programs.tools.pixels import RGB, check_pair, grey, yiq

SMALLEST_SIDE = 8
PREWITT = np.array([1.0, 1.0, 1.0]) / 3
SCHARR = np.array([3.0, 10.0, 3.0]) / 16


def gmsd(image: RGB, reference: RGB) -> float:
    """Gradient magnitude similarity deviation of the grey levels: 0 for equal ones, in practice up to about 0.35.

    The standard deviation of the similarity between Prewitt gradients at half resolution, constant 170 (Xue, Zhang,
    Mou and Bovik, "Gradient magnitude similarity deviation", IEEE TIP 23(2), 2014). Symmetric; colour is not seen,
    and brightness only at the border, outside of which the authors' code takes the image to be black.

    Raises ToolError for a pair that is not two uint8 RGB images of one size, and for sides under 8 pixels.
    """
    check_pair(image, reference, smallest=SMALLEST_SIDE)
    first, second = (gradient_magnitude(shrink(grey(rgb), 2), PREWITT) for rgb in (image, reference))
    return float(similarity(first, second, 170).std(ddof=1))


def fsim(image: RGB, reference: RGB) -> float:
    """Feature similarity with colour, FSIMc: in practice 0..1, 1 for identical images. Symmetric.

    Similarity of phase congruency, of Scharr gradients of luma, and (with exponent 0.03) of the chroma planes I and
    Q, weighted by phase congruency, so that it counts where the eye looks for structure; the plain mean where
    neither image has any. The images are first reduced to a shorter side of about 256 pixels by block means
    (Zhang, Zhang, Mou and Zhang, "FSIM: a feature similarity index for image quality assessment", IEEE TIP 20(8),
    2011; T1 0.85, T2 160, T3 = T4 = 200).

    Raises ToolError as gmsd does.
    """
    check_pair(image, reference, smallest=SMALLEST_SIDE)
    factor = max(1, int(min(image.shape[:2]) / 256 + 0.5))
    (y1, i1, q1), (y2, i2, q2) = (yiq(shrink(rgb, factor)) for rgb in (image, reference))
    congruency1, congruency2 = phase_congruency([y1, y2])
    gradient1, gradient2 = gradient_magnitude(y1, SCHARR), gradient_magnitude(y2, SCHARR)
    structure = similarity(congruency1, congruency2, 0.85) * similarity(gradient1, gradient2, 160)
    chroma = similarity(i1, i2, 200) * similarity(q1, q2, 200)
    # Opposite hues make the product negative; the authors keep the real part of its complex power.
    colour = np.abs(chroma) ** 0.03 * np.where(chroma < 0, np.cos(0.03 * np.pi), 1.0)
    return pool(structure * colour, np.maximum(congruency1, congruency2))
