"""Simple inverses of the seven distortion categories, for measuring whether a named distortion is really there.

Each is decided by the image alone (whether it is too dark or too bright, say), so that they serve for whoever named
the category. They need scikit-image: ``pip install 'agenticiqa[studies]'``.
"""

from collections.abc import Callable

import numpy as np
import scipy
from numpy.typing import NDArray

from agenticiqa.programs.errors import UserError
from agenticiqa.programs.tools import noise_sigma
from agenticiqa.programs.tools.numerics.pixels import LUMA_WEIGHTS, RGB
from agenticiqa.signatures.vocabulary import DetectableDistortion

Values = NDArray[np.float64]  # (H, W, 3) in 0..1

MIDDLE_GRAY = 0.45  # mean luma of a photo that is neither dark nor bright, gamma-coded
USUAL_CONTRAST = 0.22  # standard deviation of its luma
USUAL_CHROMA = 0.12  # mean distance from gray of the same luma
OVERSHOOT = 0.5  # share of an unsharp mask of radius 1.5 that is taken back
ISOLATED = 0.2  # distance from the median of its 3 x 3 neighbors from which a pixel is salt or pepper


def restore(pixels: RGB, category: DetectableDistortion) -> RGB:
    """The image, uint8 (H, W, 3), with the inverse of a category applied once, at a strength that it needs.

    Noise: salt and pepper by the median, the rest by non-local means (Buades et al. 2005) as NOISE-SIGMA measures it.
    Blurs: an unsharp mask. Sharpness: half of the overshoot taken back where edges overshoot, else an unsharp mask.
    Compression: total variation (Chambolle 2004). Brightness change: the gamma that takes the mean luma to middle
    gray. Contrast: the distances from the mean scaled half the way to the usual ones. Color distortions: gray world
    (Buchsbaum 1980) half the way, then the distances from gray likewise.

    Raises UserError, with the pip command, without scikit-image.
    """
    return (np.clip(RESTORATIONS[category](pixels / 255), 0, 1) * 255).round().astype(np.uint8)


def denoise(rgb: Values) -> Values:
    """Isolated pixels replaced by the median of their neighbors, then non-local means."""
    restoration = _skimage_restoration()
    median = scipy.ndimage.median_filter(rgb, size=(3, 3, 1))
    rgb = np.where((np.abs(rgb - median) > ISOLATED).any(axis=-1, keepdims=True), median, rgb)
    sigma = noise_sigma((np.clip(rgb, 0, 1) * 255).round().astype(np.uint8)) / 255
    smoothed: Values = restoration.denoise_nl_means(
        rgb, patch_size=5, patch_distance=5, h=0.8 * sigma, sigma=sigma, fast_mode=True, channel_axis=-1
    )
    return smoothed


def deblur(rgb: Values) -> Values:
    """An unsharp mask of radius 2."""
    return rgb + (rgb - _blurred(rgb, 2.0))


def mend_sharpness(rgb: Values) -> Values:
    """Less overshoot, where there is more detail at one pixel than at three; else an unsharp mask."""
    fine, coarse = rgb - _blurred(rgb, 1.0), _blurred(rgb, 1.0) - _blurred(rgb, 3.0)
    if fine.std() > coarse.std():
        return rgb - OVERSHOOT * (rgb - _blurred(rgb, 1.5))
    return deblur(rgb)


def deblock(rgb: Values) -> Values:
    """Total variation."""
    smoothed: Values = _skimage_restoration().denoise_tv_chambolle(rgb, weight=0.04, channel_axis=-1)
    return smoothed


def expose(rgb: Values) -> Values:
    """The gamma that takes the mean luma to middle gray."""
    mean = float(np.clip(_luma(rgb).mean(), 0.02, 0.98))
    return np.power(rgb, float(np.clip(np.log(MIDDLE_GRAY) / np.log(mean), 0.4, 2.5)))


def mend_contrast(rgb: Values) -> Values:
    """Distances from the mean, half the way to the usual ones."""
    luma = _luma(rgb)
    gain = float(np.clip(USUAL_CONTRAST / max(luma.std(), 0.01), 0.25, 6.0)) ** 0.5
    return luma.mean() + (rgb - luma.mean()) * gain


def mend_color(rgb: Values) -> Values:
    """Channel means half the way to their mean, then distances from gray half the way to the usual ones."""
    means = rgb.mean(axis=(0, 1))
    balanced = rgb * (means.mean() / np.maximum(means, 0.01)) ** 0.5
    gray = _luma(balanced)[..., None]
    chroma = float(np.abs(balanced - gray).mean())
    gain = float(np.clip(USUAL_CHROMA / max(chroma, 0.01), 0.25, 4.0)) ** 0.5
    return gray + (balanced - gray) * gain


RESTORATIONS: dict[DetectableDistortion, Callable[[Values], Values]] = {
    "Blurs": deblur,
    "Color distortions": mend_color,
    "Compression": deblock,
    "Noise": denoise,
    "Brightness change": expose,
    "Sharpness": mend_sharpness,
    "Contrast": mend_contrast,
}


def _blurred(rgb: Values, sigma: float) -> Values:
    return scipy.ndimage.gaussian_filter(rgb, (sigma, sigma, 0))


def _luma(rgb: Values) -> Values:
    return rgb @ np.array(LUMA_WEIGHTS)


def _skimage_restoration():  # type: ignore[no-untyped-def]  # scikit-image has no types
    try:
        from skimage import restoration
    except ImportError as error:
        raise UserError("restoring an image needs scikit-image: pip install 'agenticiqa[studies]'") from error
    return restoration
