"""NIQE: how far an image is from the statistics of pristine photos. Lower is better.

An undistorted photo, normalized by the local mean and deviation of its brightness (its MSCN coefficients), has nearly
Gaussian values and slightly correlated neighbors; blur, noise and compression change both. Generalized Gaussians fitted
to the coefficients and to the products of neighbors measure by how much, at full and at half size: 36 numbers, which
NIQE compares with those of pristine photos.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.tools.numerics.pixels import RGB, Plane, check_image, gray_levels
from agenticiqa.programs.tools.numerics.weights import read_weights
from agenticiqa.programs.tools.statistics.mscn import (
    CHUNK,
    coefficients,
    fit_aggd,
    full_scale,
    half_scale,
    moments,
    neighbor_products,
)
from agenticiqa.programs.tools.tool import Tool

Values = NDArray[np.float64]

SMALLEST_SIDE = 192
BLOCK = 96
SHA256 = "2a7c182a68c9e7f1b2e2e5ec723279d6f65d912b6fcaf37eb2bf03d7367c4296"
USUAL_DISTANCE = 9.0  # distance of a block of a good photo


def niqe(image: RGB) -> float:
    """Compute the Natural Image Quality Evaluator (NIQE), which was not fitted to subjective scores.

    The Mahalanobis-like distance between the features of the image's 96 x 96 blocks and those of pristine photos.
    Blocks without any contrast are left out. Equals the authors' release, to 1e-12 where nothing in the image is flat,
    else to a few hundredths (see ``mscn``); MATLAB's own function of this name has another model and another scale.
    Source: Mittal, Soundararajan, Bovik, "Making a Completely Blind Image Quality Analyzer", IEEE SPL 2013, Eq. 10.

    Args:
        image: uint8 RGB, shape (H, W, 3), sides of at least 192 pixels.

    Returns:
        A distance of 0 or more without an upper end, lower is better: about 2..5 for good photos, 8..20 for bad ones.

    Raises:
        ToolError: The array is of another kind, a side is under 192 pixels, or fewer than two blocks have any contrast.
    """
    features = _features(image).reshape(-1, 36)
    features = features[np.isfinite(features).all(axis=1)]
    if len(features) < 2:
        raise ToolError("NIQE needs at least two blocks of 96 x 96 pixels with some contrast; this image is flat")
    mean, spread = _pristine()
    centered = features - features.mean(axis=0)
    # einsum and not a matrix product: that one's last bits depend on how many threads the linear algebra library has.
    spread = (np.einsum("ni,nj->ij", centered, centered) / (len(features) - 1) + spread) / 2
    offset = features.mean(axis=0) - mean
    return float(np.sqrt(offset @ np.linalg.solve(spread, offset)))


def niqe_map(image: RGB) -> Plane:
    """Return each 96 x 96 block's excess distance from pristine photos: (ceil(H / 96), ceil(W / 96)).

    0 where a block is no farther than blocks of good photos, or has no contrast. A remainder at the right and lower
    border has the value of the nearest block. Same image and ToolError as for ``niqe``.
    """
    mean, spread = _pristine()
    offsets = _features(image) - mean
    distance = np.sqrt(np.einsum("rci,ij,rcj->rc", offsets, np.linalg.inv(spread), offsets))
    excess = np.maximum(np.nan_to_num(distance) - USUAL_DISTANCE, 0)
    missing = [(0, -(-side // BLOCK) - blocks) for side, blocks in zip(image.shape[:2], excess.shape, strict=True)]
    return np.pad(excess, missing, mode="edge")


def _pristine() -> tuple[Values, Values]:
    """Return the mean (36,) and covariance (36, 36) of the features of pristine photos' blocks."""
    model = read_weights(Path(__file__).with_name("niqe.npz"), SHA256)
    return model["mu_pris_param"].ravel(), model["cov_pris_param"]


def _features(image: RGB) -> Values:
    """Return the features of the whole 96 x 96 blocks, (rows, columns, 36); NaN where a block has no contrast."""
    check_image(image, SMALLEST_SIDE)
    rows, columns = (side // BLOCK for side in image.shape[:2])
    levels = gray_levels(image[: rows * BLOCK, : columns * BLOCK])
    features = np.empty((rows, columns, 36))
    for part, (scale, side) in enumerate([(full_scale(levels), BLOCK), (half_scale(levels), BLOCK // 2)]):
        step = max(1, CHUNK // side**2)
        for row in range(rows):
            band = coefficients(scale, row * side, (row + 1) * side, "edge").reshape(side, columns, side)
            for first in range(0, columns, step):
                blocks = band[:, first : first + step].swapaxes(0, 1)
                features[row, first : first + step, 18 * part : 18 * (part + 1)] = _block_features(blocks)
    return features


def _block_features(blocks: Values) -> Values:
    """Return shapes and scales of the fits to n blocks of coefficients: (n, side, side) in, (n, 18) out."""
    # Each block is a torus: the products of neighbors wrap round at its edges.
    torus = np.concatenate([blocks[:, -1:], blocks], axis=1)
    torus = np.concatenate([torus[:, :, -1:], torus], axis=2)
    whole, *products = (fit_aggd(moments(values), values[0].size) for values in neighbor_products(torus))
    features = [whole.shape, (whole.left + whole.right) / 2 * whole.unit]
    for fit in products:
        features += [fit.shape, fit.mean, fit.left * fit.unit, fit.right * fit.unit]
    return np.stack(features, axis=-1)


TOOL = Tool(
    name="NIQE",
    kind="NR",
    higher_is_better=False,
    raw_range=(2.0, 20.0),
    description="Distance of local contrast statistics from those of pristine photographs.",
    source="Mittal et al. 2013, IEEE SPL 20(3)",
    cost_ms=20,
    measure=niqe,
    map=niqe_map,
    map_end=15.0,  # more than extreme blur, noise and JPEG reach, since parts of good photos reach 10
    smallest=SMALLEST_SIDE,
)
