"""How far an image is from the statistics of natural photos: NIQE and BRISQUE. For both, lower is better.

They share their features. An undistorted photo, normalised by the local mean and deviation of its brightness (its
MSCN coefficients), has nearly Gaussian values and slightly correlated neighbours; blur, noise and compression bend the
one and the other. Generalised Gaussians fitted to the coefficients and to the products of neighbours tell by how much,
at full and at half size: 36 numbers. NIQE compares them with those of pristine photos, BRISQUE has learned opinion
scores from them.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import scipy
from numpy.typing import NDArray

from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.tools.pixels import RGB, Plane, check_image, gaussian, grey
from agenticiqa.programs.tools.weights import read_weights

Values = NDArray[np.float64]

NIQE_SMALLEST = 192
NIQE_BLOCK = 96
NIQE_SHA256 = "2a7c182a68c9e7f1b2e2e5ec723279d6f65d912b6fcaf37eb2bf03d7367c4296"

BRISQUE_SMALLEST = 32
BRISQUE_SHA256 = "ef5826e5fa5376627ec9d1c6b7fc8ca4089667e5dcf70da8315587505f653017"

# Right, down, and the two diagonals.
NEIGHBOURS = ((0, 1), (1, 0), (1, 1), (-1, 1))


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
    check_image(image, NIQE_SMALLEST)
    pristine = read_weights(Path(__file__).with_name("niqe.npz"), NIQE_SHA256)
    plane = grey(image)
    height, width = (side - side % NIQE_BLOCK for side in plane.shape)
    plane = plane[:height, :width]

    full = niqe_features(_blocks(mscn(plane, "nearest"), NIQE_BLOCK))
    half = niqe_features(_blocks(mscn(halve(plane), "nearest"), NIQE_BLOCK // 2))
    features = np.hstack([full, half])
    features = features[np.isfinite(features).all(axis=1)]
    if len(features) < 2:
        raise ToolError("NIQE needs at least two blocks of 96 x 96 pixels with some contrast, this image is flat")

    offset = features.mean(axis=0) - pristine["mu_pris_param"].ravel()
    spread = (np.cov(features, rowvar=False) + pristine["cov_pris_param"]) / 2
    return float(np.sqrt(offset @ np.linalg.solve(spread, offset)))


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
    plane = grey(image)
    if plane.min() == plane.max():
        raise ToolError("BRISQUE is not defined for an image without contrast")
    features = np.hstack([brisque_features(mscn(scale, "constant")) for scale in (plane, halve(plane))])

    scaled = 2 * (features - model["feat_min"]) / model["feat_range"] - 1
    distances = ((model["sv"] - scaled) ** 2).sum(axis=1)
    return float(np.exp(-model["gamma"] * distances) @ model["sv_coef"] - model["rho"])


def mscn(plane: Plane, border: str) -> Plane:
    """Mean-subtracted, contrast-normalised coefficients of brightness in 0..255 (BRISQUE paper, Eq. 1 to 3).

    ``border`` says what lies outside: "nearest" repeats the edge, "constant" is black.
    """
    window = gaussian(7, 7 / 6)

    def local_mean(values: Plane) -> Plane:
        return scipy.ndimage.correlate1d(
            scipy.ndimage.correlate1d(values, window, axis=0, mode=border), window, axis=1, mode=border
        )

    mean = local_mean(plane)
    deviation = np.sqrt(np.abs(local_mean(plane**2) - mean**2))
    difference = plane - mean
    # Where the image is flat the difference is rounding error. Its sign would decide on which side of zero the pixel
    # counts in the fits below: the authors' release lets it, so flat regions make its values depend on the machine.
    difference[np.abs(difference) < 1e-9] = 0
    return difference / (deviation + 1)


def halve(plane: Plane) -> Plane:
    """Half the size by an antialiased bicubic filter, as MATLAB's imresize does it: (ceil(H / 2), ceil(W / 2))."""
    distance = np.abs(np.arange(8) - 3.5) / 2
    near = 1.5 * distance**3 - 2.5 * distance**2 + 1
    far = -0.5 * distance**3 + 2.5 * distance**2 - 4 * distance + 2
    weights = np.where(distance <= 1, near, far)
    weights /= weights.sum()
    # An even window has no middle: origin -1 puts output 2i between inputs 2i and 2i + 1.
    rows = scipy.ndimage.correlate1d(plane, weights, axis=0, mode="reflect", origin=-1)[::2]
    return scipy.ndimage.correlate1d(rows, weights, axis=1, mode="reflect", origin=-1)[:, ::2]


def niqe_features(blocks: Values) -> Values:
    """Shapes and scales of the fits to n blocks of MSCN coefficients: (n, side, side) in, (n, 18) out.

    NaN where a block has no contrast.
    """
    shape, left, right = fit_aggd(blocks)
    features = [shape, (left + right) / 2 * _scale(shape)]
    for products in _neighbour_products(blocks):
        shape, left, right = fit_aggd(products)
        features += [shape, _mean(shape, left, right), left * _scale(shape), right * _scale(shape)]
    return np.stack(features, axis=-1)


def brisque_features(coefficients: Plane) -> Values:
    """Shapes and variances of the fits to one plane of MSCN coefficients: (H, W) in, (18,) out."""
    magnitude = np.mean(np.abs(coefficients), axis=(-2, -1))
    energy = np.mean(coefficients**2, axis=(-2, -1))
    features = [_shape(magnitude**2 / energy), energy]
    for products in _neighbour_products(coefficients):
        shape, left, right = fit_aggd(products)
        features += [shape, _mean(shape, left, right), left**2, right**2]
    return np.stack(features)


def fit_aggd(values: Values) -> tuple[Values, Values, Values]:
    """Shape, left and right deviation of the asymmetric generalised Gaussian with the moments of ``values``.

    (..., H, W) in, three arrays (...) out; the shape lies in [0.2, 10] and is NaN where all values are zero.
    Source: Lasmar, Stitou, Berthoumieu, "Multiscale skewed heavy tailed model for texture analysis", ICIP 2009.
    """
    below, above = np.minimum(values, 0), np.maximum(values, 0)
    below_squares, above_squares = (np.einsum("...ij,...ij->...", side, side) for side in (below, above))
    left = np.sqrt(below_squares / np.maximum(np.count_nonzero(below, axis=(-2, -1)), 1))
    right = np.sqrt(above_squares / np.maximum(np.count_nonzero(above, axis=(-2, -1)), 1))
    count = values.shape[-2] * values.shape[-1]
    magnitude = (above.sum(axis=(-2, -1)) - below.sum(axis=(-2, -1))) / count
    energy = (below_squares + above_squares) / count
    skewed = magnitude**2 * (left**3 + right**3) * (left + right)
    total = energy * (left**2 + right**2) ** 2
    ratio = np.divide(skewed, total, out=np.full_like(total, np.nan), where=total > 0)
    return _shape(ratio), left, right


def _neighbour_products(coefficients: Values) -> Iterator[Values]:
    """Each coefficient times its neighbour, wrapping round at the edges, one direction after the other."""
    for shift in NEIGHBOURS:
        yield coefficients * np.roll(coefficients, shift, axis=(-2, -1))


def _blocks(plane: Plane, side: int) -> Values:
    height, width = plane.shape
    tiles = plane.reshape(height // side, side, width // side, side).swapaxes(1, 2)
    return tiles.reshape(-1, side, side)


@cache
def _shape_table() -> tuple[Values, Values]:
    """The shapes 0.2, 0.201, .. 10, and the ratios of moments where the nearest of them changes."""
    shapes = np.linspace(0.2, 10, 9801)
    ratios = scipy.special.gamma(2 / shapes) ** 2 / (scipy.special.gamma(1 / shapes) * scipy.special.gamma(3 / shapes))
    return shapes, (ratios[1:] + ratios[:-1]) / 2


def _shape(ratio: Values) -> Values:
    """The shape whose generalised Gaussian has this ratio of squared mean magnitude to mean square; NaN stays NaN."""
    shapes, changes = _shape_table()
    return np.where(np.isnan(ratio), np.nan, shapes[np.searchsorted(changes, ratio)])


def _scale(shape: Values) -> Values:
    return np.sqrt(scipy.special.gamma(1 / shape) / scipy.special.gamma(3 / shape))


def _mean(shape: Values, left: Values, right: Values) -> Values:
    return (right - left) * _scale(shape) * scipy.special.gamma(2 / shape) / scipy.special.gamma(1 / shape)
