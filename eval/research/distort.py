"""Synthetic distortions: 22 kinds in five strengths each, from slight to extreme, for tests, training and calibration.

>>> from agenticiqa.eval.research.distort import KINDS, distort
>>> worse = distort(pixels, "motion_blur", 3)  # doctest: +SKIP
>>> KINDS["motion_blur"].category
'Blurs'

The strengths 1 to 5 are slight, moderate, visible at a glance, severe and extreme. They are only roughly equal
across kinds: WebP ends at "severe", and the visibility of a strength depends on the image.
"""

import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray
from PIL import Image

from agenticiqa.eval.research.wavelet import coarsen
from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.tools.numerics.pixels import LUMA_WEIGHTS, RGB, check_image
from agenticiqa.signatures.vocabulary import CATEGORY_OF_KIND, Distortion

Values = NDArray[np.float64]
DISTORTION_STRENGTHS = range(1, 6)

YCC_TO_RGB = np.array([[1, 0, 1.402], [1, -0.344136, -0.714136], [1, 1.772, 0]])  # BT.601, chroma about 0


@dataclass(frozen=True)
class Kind:
    """One kind of distortion: its category, its function, and the amounts of its five strengths.

    ``apply`` takes float64 RGB in 0..255 of shape (H, W, 3), an amount (a radius, a factor, ...) and a generator of
    random numbers, and returns values of the same shape, which may lie outside 0..255.
    """

    category: Distortion
    description: str
    amounts: Sequence[float]
    apply: Callable[[Values, float, np.random.Generator], Values]


def distort(pixels: RGB, kind: str, strength: int, *, seed: int = 0) -> RGB:
    """Return the image with one distortion of KINDS.

    All strengths share the random draw, so that a higher strength is more of the same distortion. The same arguments
    always return the same bytes.

    Args:
        pixels: uint8 RGB, shape (H, W, 3), any size.
        kind: The name of the distortion in ``KINDS``.
        strength: 1 (slight) to 5 (extreme); 0 returns a copy.
        seed: Determines the random part of a kind: the noise, the direction of a motion, the hue of a cast.

    Returns:
        uint8 RGB of the same shape.

    Raises:
        ToolError: The kind or strength is unknown, ``pixels`` is another array, or a format cannot hold it (WebP ends
            at 16,383 pixels a side).
    """
    check_image(pixels)
    if kind not in KINDS:
        raise ToolError(f"unknown distortion '{kind}': expected one of {', '.join(KINDS)}")
    if strength not in (0, *DISTORTION_STRENGTHS):
        raise ToolError(f"expected a level from 0 (undistorted) to {DISTORTION_STRENGTHS[-1]}, got {strength!r}")
    if strength == 0:
        return pixels.copy()
    chosen = KINDS[kind]
    return _bytes(chosen.apply(pixels.astype(float), chosen.amounts[strength - 1], np.random.default_rng(seed)))


def gaussian_blur(rgb: Values, sigma: float, rng: np.random.Generator) -> Values:
    """Blur with a Gaussian of a standard deviation in pixels."""
    return scipy.ndimage.gaussian_filter(rgb, (sigma, sigma, 0))


def motion_blur(rgb: Values, length: float, rng: np.random.Generator) -> Values:
    """Return the mean along a straight line of ``length`` pixels in a random direction."""
    angle = rng.uniform(0, math.pi)
    steps = np.linspace(-length / 2, length / 2, 4 * math.ceil(length) + 1)
    return _convolve(rgb, np.stack([steps * math.sin(angle), steps * math.cos(angle)]))


def defocus(rgb: Values, radius: float, rng: np.random.Generator) -> Values:
    """Return the mean over a disk of ``radius`` pixels, the blur of a lens with a round aperture."""
    offsets = np.arange(-radius, radius + 0.1, 0.5)
    disk = np.stack(np.meshgrid(offsets, offsets)).reshape(2, -1)
    return _convolve(rgb, disk[:, np.hypot(*disk) <= radius + 0.1])


def low_resolution(rgb: Values, factor: float, rng: np.random.Generator) -> Values:
    """Scale down by ``factor`` and up again, both bicubic."""
    height, width = rgb.shape[:2]
    small = (max(round(width / factor), 1), max(round(height / factor), 1))
    image = Image.fromarray(_bytes(rgb)).resize(small, Image.Resampling.BICUBIC)
    return np.asarray(image.resize((width, height), Image.Resampling.BICUBIC), float)


def pixelate(rgb: Values, side: float, rng: np.random.Generator) -> Values:
    """Replace squares of ``side`` pixels by their mean color."""
    height, width = rgb.shape[:2]
    rows, columns = (np.arange(0, length, int(side)) for length in (height, width))
    sums = np.add.reduceat(np.add.reduceat(rgb, rows, axis=0), columns, axis=1)
    areas = np.diff([*rows, height])[:, None, None] * np.diff([*columns, width])[None, :, None]
    return (sums / areas)[np.arange(height) // int(side)][:, np.arange(width) // int(side)]


def white_noise(rgb: Values, sigma: float, rng: np.random.Generator) -> Values:
    """Add Gaussian noise of a standard deviation in gray levels, drawn for each pixel and channel."""
    return rgb + sigma * rng.standard_normal(rgb.shape)


def impulse_noise(rgb: Values, share: float, rng: np.random.Generator) -> Values:
    """Return a share of the pixels turned black or white."""
    draw = rng.random(rgb.shape[:2])
    white = rng.random(rgb.shape[:2]) < 0.5
    return np.where((draw < share)[..., None], np.where(white, 255.0, 0.0)[..., None], rgb)


def speckle_noise(rgb: Values, sigma: float, rng: np.random.Generator) -> Values:
    """Multiply the brightness by grain, so dark parts stay clean. ``sigma`` is a share of the value."""
    return rgb * (1 + sigma * rng.standard_normal(rgb.shape[:2])[..., None])


def chroma_noise(rgb: Values, sigma: float, rng: np.random.Generator) -> Values:
    """Add blotches of color about two pixels wide, without a change of luma, as of small sensors in the dark."""
    colors = scipy.ndimage.gaussian_filter(rng.standard_normal(rgb.shape), (0.8, 0.8, 0))
    colors *= 1 / max(colors.std(), 1e-9)
    return rgb + sigma * (colors - _luma(colors))


def jpeg(rgb: Values, quality: float, rng: np.random.Generator) -> Values:
    """Compress as JPEG of a quality (1 to 95) with 4:2:0 chroma."""
    return _coded(rgb, "JPEG", quality=int(quality), subsampling="4:2:0")


def jpeg2000(rgb: Values, ratio: float, rng: np.random.Generator) -> Values:
    """Compress as JPEG 2000 at a compression ratio: 24 is one bit per pixel."""
    resolutions = min(6, 1 + int(math.log2(min(rgb.shape[:2]))))
    return _coded(
        rgb, "JPEG2000", quality_mode="rates", quality_layers=[ratio], irreversible=True, num_resolutions=resolutions
    )


def webp(rgb: Values, quality: float, rng: np.random.Generator) -> Values:
    """Compress as lossy WebP of a quality (0 to 100)."""
    return _coded(rgb, "WEBP", quality=int(quality), method=4)


def fast_fading(rgb: Values, share: float, rng: np.random.Generator) -> Values:
    """Simulate JPEG 2000 over a bad channel: a share of the wavelet code blocks loses its lower bit planes."""
    ycc = np.linalg.inv(YCC_TO_RGB)
    return coarsen(rgb @ ycc.T, share, rng) @ YCC_TO_RGB.T


def banding(rgb: Values, count: float, rng: np.random.Generator) -> Values:
    """Round each channel to ``count`` values."""
    step = 255 / (count - 1)
    return np.rint(rgb / step) * step


def scale_light(rgb: Values, gain: float, rng: np.random.Generator) -> Values:
    """Return every value times ``gain``: underexposure below 1, overexposure with clipped highlights above."""
    return rgb * gain


def scale_contrast(rgb: Values, gain: float, rng: np.random.Generator) -> Values:
    """Multiply the distances from the image's mean by ``gain``."""
    mean = rgb.mean()
    return mean + (rgb - mean) * gain


def scale_color(rgb: Values, gain: float, rng: np.random.Generator) -> Values:
    """Multiply the distances from gray of the same luma by ``gain``: 0 is gray."""
    gray = _luma(rgb)
    return gray + (rgb - gray) * gain


def color_cast(rgb: Values, amount: float, rng: np.random.Generator) -> Values:
    """Apply colored light of a random hue: gains per channel that differ from 1 by up to ``strength``."""
    hue = rng.uniform(0, 2 * math.pi)
    gains = 1 + amount * np.cos(hue + np.array([0, 2, 4]) * math.pi / 3)
    return rgb * (gains / (gains @ LUMA_WEIGHTS))


def oversharpen(rgb: Values, amount: float, rng: np.random.Generator) -> Values:
    """Return an unsharp mask of radius 1.5 pixels, so strong that halos line the edges."""
    return rgb + amount * (rgb - scipy.ndimage.gaussian_filter(rgb, (1.5, 1.5, 0)))


_DEFINITIONS: dict[str, tuple[str, Sequence[float], Callable[[Values, float, np.random.Generator], Values]]] = {
    "gaussian_blur": ("Gaussian blur", (0.7, 1.2, 2.0, 3.2, 5.0), gaussian_blur),
    "motion_blur": ("motion blur along one direction", (3, 6, 10, 17, 28), motion_blur),
    "defocus": ("defocus blur over a disk", (1.2, 2.2, 3.5, 5.5, 8.5), defocus),
    "low_resolution": ("upscaled from fewer pixels", (1.6, 2.4, 3.6, 5.5, 9), low_resolution),
    "white_noise": ("Gaussian noise in every channel", (4, 9, 16, 28, 45), white_noise),
    "impulse_noise": ("salt and pepper", (0.003, 0.01, 0.03, 0.07, 0.15), impulse_noise),
    "speckle_noise": ("grain in the bright parts", (0.04, 0.08, 0.15, 0.26, 0.45), speckle_noise),
    "chroma_noise": ("blotches of color", (7, 13, 22, 36, 60), chroma_noise),
    "jpeg": ("JPEG", (60, 35, 20, 12, 6), jpeg),
    "jpeg2000": ("JPEG 2000", (16, 28, 48, 80, 130), jpeg2000),
    "webp": ("WebP", (50, 25, 10, 4, 0), webp),
    "fast_fading": ("JPEG 2000 with lost packets", (0.12, 0.3, 0.5, 0.75, 1.0), fast_fading),
    "banding": ("few values per channel", (20, 13, 9, 6, 4), banding),
    "darken": ("underexposure", (0.85, 0.7, 0.5, 0.35, 0.2), scale_light),
    "brighten": ("overexposure", (1.15, 1.35, 1.7, 2.2, 3.0), scale_light),
    "low_contrast": ("low contrast", (0.8, 0.6, 0.45, 0.3, 0.15), scale_contrast),
    "high_contrast": ("high contrast with clipped shadows and highlights", (1.25, 1.55, 2.0, 2.8, 4.5), scale_contrast),
    "desaturate": ("faded colors, up to gray", (0.8, 0.6, 0.4, 0.2, 0), scale_color),
    "oversaturate": ("oversaturated colors", (1.35, 1.75, 2.3, 3.2, 5), scale_color),
    "color_cast": ("colored light", (0.05, 0.1, 0.18, 0.3, 0.5), color_cast),
    "oversharpen": ("unsharp mask with halos", (0.7, 1.3, 2.2, 3.6, 6), oversharpen),
    "pixelate": ("squares of one color", (2, 3, 5, 8, 12), pixelate),
}


def _category_of(kind: str) -> Distortion:
    if kind not in CATEGORY_OF_KIND:
        raise ToolError(f"no row of signatures/categories.py has the kind '{kind}': add it to a subtype or other_kinds")
    return CATEGORY_OF_KIND[kind]


KINDS: dict[str, Kind] = {name: Kind(_category_of(name), *made) for name, made in _DEFINITIONS.items()}


def _convolve(rgb: Values, offsets: Values) -> Values:
    """Return the mean over the points at ``offsets``, (2, N) rows and columns; each counts at its nearest pixel."""
    taps, counts = np.unique(np.rint(offsets).astype(int), axis=1, return_counts=True)
    margin = int(np.abs(taps).max())
    height, width = rgb.shape[:2]
    padded = np.pad(rgb, ((margin, margin), (margin, margin), (0, 0)), mode="edge")
    total = np.zeros_like(rgb)
    for (down, right), count in zip(taps.T + margin, counts, strict=True):
        total += count * padded[down : down + height, right : right + width]
    return total / counts.sum()


def _coded(rgb: Values, form: str, **options: object) -> Values:
    file = io.BytesIO()
    try:
        Image.fromarray(_bytes(rgb)).save(file, form, **options)
    except (OSError, ValueError) as error:
        raise ToolError(f"cannot save an image of {rgb.shape[1]} x {rgb.shape[0]} pixels as {form}: {error}") from error
    return np.asarray(Image.open(file).convert("RGB"), float)


def _luma(rgb: Values) -> Values:
    return (rgb @ np.array(LUMA_WEIGHTS))[..., None]


def _bytes(values: Values) -> RGB:
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)
