"""BRISQUE: quality predicted from the statistics of natural photos. Lower is better.

It computes the same kind of features as NIQE, over the whole image, for a support vector machine that its authors
trained on subjective scores.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.tools.numerics.pixels import RGB, check_image, gray_levels
from agenticiqa.programs.tools.numerics.weights import read_weights
from agenticiqa.programs.tools.statistics.mscn import (
    Moments,
    Scale,
    band_height,
    coefficients,
    fit_aggd,
    full_scale,
    half_scale,
    moments,
    neighbor_products,
    symmetric_shape,
)
from agenticiqa.programs.tools.tool import Tool

SMALLEST_SIDE = 32
SHA256 = "ef5826e5fa5376627ec9d1c6b7fc8ca4089667e5dcf70da8315587505f653017"


def brisque(image: RGB) -> float:
    """Predict DMOS with the Blind/Referenceless Image Spatial Quality Evaluator (BRISQUE).

    Its authors trained it on the whole of LIVE release 2; agreement with MOS on that set is agreement on its training
    data. Equals the authors' release, to 0.01 where nothing in the image is flat, else to 3 points: in flat areas the
    release counts the sign of a rounding error, so its value depends on the order of its sums, and here such pixels
    count as zero (see ``mscn``). MATLAB's own function of this name has another model.
    Source: Mittal, Moorthy, Bovik, "No-Reference Image Quality Assessment in the Spatial Domain", IEEE TIP 2012.

    Args:
        image: uint8 RGB, shape (H, W, 3), sides of at least 32 pixels.

    Returns:
        A predicted DMOS, lower is better: 0..100 for most photos. It is not clipped: the best fall below 0, the worst
        reach about 130, and an image unlike its training set tends to 153.6.

    Raises:
        ToolError: The array is of another kind, a side is under 32 pixels, or the image has no contrast.
    """
    check_image(image, SMALLEST_SIDE)
    model = read_weights(Path(__file__).with_name("brisque.npz"), SHA256)
    levels = gray_levels(image)
    if levels.min() == levels.max():
        raise ToolError("BRISQUE is not defined for an image without contrast")
    features = np.hstack([_features(scale) for scale in (full_scale(levels), half_scale(levels))])

    scaled = 2 * (features - model["feat_min"]) / model["feat_range"] - 1
    distances = ((model["sv"] - scaled) ** 2).sum(axis=1)
    return float((np.exp(-model["gamma"] * distances) * model["sv_coef"]).sum() - model["rho"].item())


def _features(scale: Scale) -> NDArray[np.float64]:
    """Return shapes and variances of the fits to all coefficients of one scale: (18,)."""
    count, step = scale.height * scale.width, band_height(scale.width)
    sums = np.zeros((5, 5))
    above = coefficients(scale, scale.height - 1, scale.height, "constant")  # the plane is a torus
    for top in range(0, scale.height, step):
        band = np.vstack([above, coefficients(scale, top, min(top + step, scale.height), "constant")])
        torus = np.hstack([band[:, -1:], band])[None]
        sums += [np.hstack(moments(values)) for values in neighbor_products(torus)]
        above = band[-1:]
    whole = Moments(*sums[0])
    features = [symmetric_shape(whole, count), whole.energy / count]
    for row in sums[1:]:
        fit = fit_aggd(Moments(*row), count)
        features += [fit.shape, fit.mean, fit.left**2, fit.right**2]
    return np.stack(features)


TOOL = Tool(
    name="BRISQUE",
    kind="NR",
    higher_is_better=False,
    raw_range=(0.0, 100.0),
    description="Deviation of local contrast statistics from those of rated images.",
    source="Mittal et al. 2012, IEEE TIP 21(12); trained on LIVE r2",
    cost_ms=20,
    measure=brisque,
    smallest=SMALLEST_SIDE,
    trained_on=("live_r2",),
)
