"""Tone and color of an image, without a reference: brightness, clipping, tonal range, color cast.

Each function returns one finite float for an image. It measures the ``Tone``, which is the means of 8 x 8 pixels, so
that noise, fine texture and a little blur do not count.

``monochrome_of`` returns whether an image has one hue at most: gray, or toned with one color, as sepia prints are.
"""

import math
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.tools.numerics.pixels import LUMA_WEIGHTS, RGB, Plane
from agenticiqa.programs.tools.shared import Measurable, shared
from agenticiqa.programs.tools.statistics.parts import WHOLE_PIXELS

BLOCK = 8  # side of a block in pixels
BLACK, WHITE = 5, 250  # luma beyond which nothing visibly differs from black and white


class Tone:
    """The colors of an image of any size in blocks of 8 x 8 pixels (fewer at the right and lower border).

    ``rgb`` is float64 of shape (ceil(H / 8), ceil(W / 8), 3) in 0..255, ``pixels`` (the same without the 3) how many
    pixels each block has. With a ``step`` only every ``step``-th row and column of blocks is read.
    """

    def __init__(self, image: RGB, step: int = 1) -> None:
        height, width = image.shape[:2]
        tops, lefts = np.arange(0, height, BLOCK), np.arange(0, width, BLOCK)
        bands = np.stack([image[top : top + BLOCK].sum(axis=0, dtype=np.uint16) for top in tops[::step]])
        sums = np.add.reduceat(bands, lefts, axis=1, dtype=np.int64)[:, ::step]
        heights, widths = np.minimum(BLOCK, height - tops[::step]), np.minimum(BLOCK, width - lefts[::step])
        self.pixels: NDArray[np.int64] = heights[:, None] * widths
        self.rgb: Plane = sums / self.pixels[..., None]

    @cached_property
    def luma(self) -> Plane:
        """BT.601 luma, 0..255."""
        red, green, blue = (weight * self.rgb[..., channel] for channel, weight in enumerate(LUMA_WEIGHTS))
        return red + green + blue

    @property
    def mean(self) -> float:
        """The mean luma of all pixels."""
        return float(np.average(self.luma, weights=self.pixels))

    @cached_property
    def lab(self) -> Plane:
        """CIELAB (D65, 2 degrees), of pixels in sRGB: L* 0..100, a*, b*."""
        coded = np.clip(self.rgb / 255, 0, 1)
        linear = np.where(coded > 0.04045, ((coded + 0.055) / 1.055) ** 2.4, coded / 12.92)
        to_xyz = np.array(
            [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
        )
        # einsum and not a matrix product: that one's last bits depend on the threads of the linear algebra library.
        relative = np.einsum("ijk,lk->ijl", linear, to_xyz / to_xyz.sum(axis=1, keepdims=True))
        root = np.where(relative > 216 / 24389, np.cbrt(relative), (24389 / 27 * relative + 16) / 116)
        x, y, z = np.moveaxis(root, -1, 0)
        return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)


@shared
def tone_of(image: Measurable) -> Tone:
    """Return the tone of an image. Blocks of a large image are sampled, about as many as two megapixels have."""
    height, width = image.pixels.shape[:2]
    return Tone(image.pixels, max(1, math.isqrt(height * width // WHOLE_PIXELS)))


@shared
def mean_luma(image: Measurable) -> float:
    """Return the mean brightness of all pixels, 0 (black) to 255 (white)."""
    return tone_of(image).mean


@shared
def shadow_level(image: Measurable) -> float:
    """Return the first percentile of luma, 0..255: how dark the darkest parts are."""
    return float(np.percentile(tone_of(image).luma, 1))


@shared
def highlight_level(image: Measurable) -> float:
    """Return the 99th percentile of luma, 0..255: how bright the brightest parts are."""
    return float(np.percentile(tone_of(image).luma, 99))


@shared
def clipped_dark(image: Measurable) -> float:
    """Return the share of the image that is black, luma 5 or less: 0 to 1."""
    return float(np.mean(tone_of(image).luma <= BLACK))


@shared
def clipped_bright(image: Measurable) -> float:
    """Return the share of the image that is white, luma 250 or more: 0 to 1."""
    return float(np.mean(tone_of(image).luma >= WHITE))


@shared
def tonal_range(image: Measurable) -> float:
    """Return Michelson's contrast of the 1st and the 99th percentile of luma, (high - low) / (high + low): 0 to 1.

    Scaling all values, as darkening does, leaves it alone; haze and a flat tone curve lower it.
    """
    low, high = np.percentile(tone_of(image).luma, (1, 99))
    return float((high - low) / (high + low)) if high > 0 else 0.0


@shared
def color_cast(image: Measurable) -> float:
    """Return the tint of neutral areas: their distance from gray in CIELAB's a*b* plane, 0 to about 130.

    Nearly every scene has neutral areas, so the least saturated fifth of the pixels (chroma over L*) represents them;
    black and white ones, L* below 10 or above 95, are excluded. Below 20 in nearly all photos.
    """
    return math.hypot(*neutral_tint(image))


@shared
def neutral_tint(image: Measurable) -> tuple[float, float]:
    """Return the tint of neutral areas: CIELAB a* (towards red) and b* (towards yellow), about -110 to 100."""
    lightness, a, b = np.moveaxis(tone_of(image).lab, -1, 0)
    seen = (lightness >= 10) & (lightness <= 95)
    if not seen.any():
        return 0.0, 0.0
    a, b = a[seen], b[seen]
    saturation = np.hypot(a, b) / lightness[seen]
    neutral = saturation <= np.percentile(saturation, 20)
    return float(a[neutral].mean()), float(b[neutral].mean())


@shared
def red_tint(image: Measurable) -> float:
    """Return the mean of CIELAB a*: positive towards red, negative towards green, about -90 to 100."""
    return float(tone_of(image).lab[..., 1].mean())


@shared
def yellow_tint(image: Measurable) -> float:
    """Return the mean of CIELAB b*: positive towards yellow, negative towards blue, about -110 to 95."""
    return float(tone_of(image).lab[..., 2].mean())


Monochrome: TypeAlias = Literal["gray", "toned"]

DEGREE = 5  # degree of the polynomial that predicts chroma from luma
GRAY_REST, GRAY_CHROMA = 1.5, 8.0  # ignored chroma in 8-bit levels: apart from the toning, and of the toning
TONED_REST, TONED_SHARE = 6.0, 0.15  # the same for toned images, and its largest share of the chroma


@shared
def monochrome_of(image: Measurable) -> Monochrome | None:
    """Return "gray", "toned", or ``None`` for an image with colors.

    The chroma of a toned image follows from its luma, so a polynomial of luma predicts nearly all of it. Only
    warm tones (yellow to orange) count as intended: an image that is all blue or green may have a color cast. Of 300
    authentic photos 5 are called monochrome; of gray and sepia copies of 300 photos all are.
    """
    tone = tone_of(image)
    chroma, luma = _chroma(tone), tone.luma.ravel()
    # With few blocks, the polynomial would fit any colors.
    toning = _predicted(chroma, luma) if len(luma) > 2 * (DEGREE + 1) else chroma.mean(axis=0)
    rest = _rms(chroma - toning)
    strength = _rms(chroma)
    if rest < GRAY_REST and strength < GRAY_CHROMA:
        return "gray"
    red, yellow = chroma.mean(axis=0)
    warm = yellow > 0 and -0.25 * yellow <= red <= yellow
    return "toned" if warm and rest < TONED_REST and rest < TONED_SHARE * strength else None


def _predicted(chroma: Plane, luma: Plane) -> Plane:
    """Return the chroma that the best polynomial of luma predicts, (N, 2).

    By the normal equations: least squares over all blocks would start the threads of the linear algebra library, which
    then wait busily for more, on every core.
    """
    middle, half = (luma.max() + luma.min()) / 2, max(np.ptp(luma) / 2, 1e-9)
    powers = np.polynomial.legendre.legvander((luma - middle) / half, DEGREE)
    products = np.einsum("ni,nj->ij", powers, powers)
    weights = np.linalg.lstsq(products, np.einsum("ni,nc->ic", powers, chroma), rcond=None)[0]
    fitted: Plane = np.einsum("ni,ic->nc", powers, weights)
    return fitted


def _chroma(tone: Tone) -> Plane:
    """Return red minus green, and yellow minus blue, of each block, (N, 2)."""
    red, green, blue = tone.rgb.reshape(-1, 3).T
    return np.stack([red - green, (red + green) / 2 - blue], axis=1)


def _rms(vectors: Plane) -> float:
    return float(np.sqrt((vectors**2).sum(axis=1).mean()))
