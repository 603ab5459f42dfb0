"""How far an image is from the statistics of natural photos: NIQE and BRISQUE. For both, lower is better.

They share their features. An undistorted photo, normalised by the local mean and deviation of its brightness (its
MSCN coefficients), has nearly Gaussian values and slightly correlated neighbours; blur, noise and compression bend the
one and the other. Generalised Gaussians fitted to the coefficients and to the products of neighbours tell by how much,
at full and at half size: 36 numbers. NIQE compares them with those of pristine photos, BRISQUE has learned opinion
scores from them.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.tools.numerics.pixels import RGB, Plane, check_image
from agenticiqa.programs.tools.numerics.weights import read_weights
from agenticiqa.programs.tools.statistics.aggd import Moments, fit_aggd, moments, symmetric_shape
from agenticiqa.programs.tools.statistics.mscn import (
    CHUNK,
    Scale,
    band_height,
    coefficients,
    full_scale,
    grey_levels,
    half_scale,
)

Values = NDArray[np.float64]

NIQE_SMALLEST = 192
NIQE_BLOCK = 96
NIQE_SHA256 = "2a7c182a68c9e7f1b2e2e5ec723279d6f65d912b6fcaf37eb2bf03d7367c4296"
USUAL_DISTANCE = 9.0  # of a block of a good photo

BRISQUE_SMALLEST = 32
BRISQUE_SHA256 = "ef5826e5fa5376627ec9d1c6b7fc8ca4089667e5dcf70da8315587505f653017"


def niqe(image: RGB) -> float:
    """Natural Image Quality Evaluator, "completely blind": no opinion scores went into it.

    ``image`` is (H, W, 3) uint8 RGB with sides of at least 192 pixels. Gives a distance >= 0, lower is better: about
    2 to 5 for good photos, 8 to 20 for bad ones; it has no upper end. The Mahalanobis-like distance between the
    features of the image's 96 x 96 blocks and those of pristine photos. Blocks without any contrast are left out.
    Gives what the authors' release gives, to 1e-12 where nothing in the image is flat, else to a few hundredths (see
    ``mscn``); MATLAB's own function of this name has another model and another scale.

    Raises ToolError for a smaller image, or when fewer than two blocks have any contrast.
    Source: Mittal, Soundararajan, Bovik, "Making a Completely Blind Image Quality Analyzer", IEEE SPL 2013, Eq. 10.
    """
    features = _niqe_features(image).reshape(-1, 36)
    features = features[np.isfinite(features).all(axis=1)]
    if len(features) < 2:
        raise ToolError("NIQE needs at least two blocks of 96 x 96 pixels with some contrast, this image is flat")
    mean, spread = _pristine()
    centred = features - features.mean(axis=0)
    # einsum and not a matrix product: that one's last bits depend on how many threads the linear algebra library has.
    spread = (np.einsum("ni,nj->ij", centred, centred) / (len(features) - 1) + spread) / 2
    offset = features.mean(axis=0) - mean
    return float(np.sqrt(offset @ np.linalg.solve(spread, offset)))


def niqe_map(image: RGB) -> Plane:
    """How much farther than usual each block of 96 x 96 pixels is from pristine photos: (ceil(H / 96), ceil(W / 96)).

    0 where a block is no farther than those of good photos, or has no contrast. What is left at the right and lower
    border is no block, and has the value of the nearest one. Same image and ToolError as for ``niqe``.
    """
    mean, spread = _pristine()
    offsets = _niqe_features(image) - mean
    distance = np.sqrt(np.einsum("rci,ij,rcj->rc", offsets, np.linalg.inv(spread), offsets))
    damage = np.maximum(np.nan_to_num(distance) - USUAL_DISTANCE, 0)
    missing = [(0, -(-side // NIQE_BLOCK) - blocks) for side, blocks in zip(image.shape[:2], damage.shape, strict=True)]
    return np.pad(damage, missing, mode="edge")


def brisque(image: RGB) -> float:
    """Blind/Referenceless Image Spatial Quality Evaluator, trained by its authors on the whole of LIVE release 2.

    ``image`` is (H, W, 3) uint8 RGB with sides of at least 32 pixels. Gives a predicted DMOS, lower is better: 0 to
    100 for most photos. It is not clipped: the best fall below 0, the worst reach about 130, and an image unlike all
    that it was trained on tends to 153.6. Agreement with opinions on LIVE release 2 is agreement on its training data.
    Gives what the authors' release gives, to 0.01 where nothing in the image is flat, else to 3 points (see ``mscn``);
    MATLAB's own function of this name has another model.

    Raises ToolError for a smaller image or one without any contrast.
    Source: Mittal, Moorthy, Bovik, "No-Reference Image Quality Assessment in the Spatial Domain", IEEE TIP 2012.
    """
    check_image(image, BRISQUE_SMALLEST)
    model = read_weights(Path(__file__).with_name("brisque.npz"), BRISQUE_SHA256)
    levels = grey_levels(image)
    if levels.min() == levels.max():
        raise ToolError("BRISQUE is not defined for an image without contrast")
    features = np.hstack([_brisque_features(scale) for scale in (full_scale(levels), half_scale(levels))])

    scaled = 2 * (features - model["feat_min"]) / model["feat_range"] - 1
    distances = ((model["sv"] - scaled) ** 2).sum(axis=1)
    return float((np.exp(-model["gamma"] * distances) * model["sv_coef"]).sum() - model["rho"].item())


def _pristine() -> tuple[Values, Values]:
    """Mean (36,) and covariance (36, 36) of the features of pristine photos' blocks."""
    model = read_weights(Path(__file__).with_name("niqe.npz"), NIQE_SHA256)
    return model["mu_pris_param"].ravel(), model["cov_pris_param"]


def _niqe_features(image: RGB) -> Values:
    """The features of the whole 96 x 96 blocks, (rows, columns, 36); NaN where a block has no contrast."""
    check_image(image, NIQE_SMALLEST)
    rows, columns = (side // NIQE_BLOCK for side in image.shape[:2])
    levels = grey_levels(image[: rows * NIQE_BLOCK, : columns * NIQE_BLOCK])
    features = np.empty((rows, columns, 36))
    for part, (scale, side) in enumerate([(full_scale(levels), NIQE_BLOCK), (half_scale(levels), NIQE_BLOCK // 2)]):
        step = max(1, CHUNK // side**2)
        for row in range(rows):
            band = coefficients(scale, row * side, (row + 1) * side, "edge").reshape(side, columns, side)
            for first in range(0, columns, step):
                blocks = band[:, first : first + step].swapaxes(0, 1)
                features[row, first : first + step, 18 * part : 18 * (part + 1)] = _block_features(blocks)
    return features


def _block_features(blocks: Values) -> Values:
    """Shapes and scales of the fits to n blocks of coefficients: (n, side, side) in, (n, 18) out."""
    # Each block is a torus: the products of neighbours wrap round at its edges.
    torus = np.concatenate([blocks[:, -1:], blocks], axis=1)
    torus = np.concatenate([torus[:, :, -1:], torus], axis=2)
    whole, *products = (fit_aggd(moments(values), values[0].size) for values in _with_products(torus))
    features = [whole.shape, (whole.left + whole.right) / 2 * whole.unit]
    for fit in products:
        features += [fit.shape, fit.mean, fit.left * fit.unit, fit.right * fit.unit]
    return np.stack(features, axis=-1)


def _brisque_features(scale: Scale) -> Values:
    """Shapes and variances of the fits to all coefficients of one scale: (18,)."""
    count, step = scale.height * scale.width, band_height(scale.width)
    found = np.zeros((5, 5))
    above = coefficients(scale, scale.height - 1, scale.height, "constant")  # the plane is a torus, too
    for top in range(0, scale.height, step):
        band = np.vstack([above, coefficients(scale, top, min(top + step, scale.height), "constant")])
        torus = np.hstack([band[:, -1:], band])[None]
        found += [np.hstack(moments(values)) for values in _with_products(torus)]
        above = band[-1:]
    whole = Moments(*found[0])
    features = [symmetric_shape(whole, count), whole.energy / count]
    for row in found[1:]:
        fit = fit_aggd(Moments(*row), count)
        features += [fit.shape, fit.mean, fit.left**2, fit.right**2]
    return np.stack(features)


def _with_products(torus: Values) -> Iterator[Values]:
    """The coefficients, then each times the one beside, above, and diagonally: (n, h + 1, w + 1) in, (n, h, w) out.

    The first row and column of ``torus`` are the last ones once more.
    """
    here, beside, above, across = torus[:, 1:, 1:], torus[:, 1:, :-1], torus[:, :-1, 1:], torus[:, :-1, :-1]
    yield here
    yield here * beside
    yield here * above
    yield here * across
    yield beside * above
