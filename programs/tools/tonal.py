"""Measures of tone and colour: brightness, clipping, contrast, colourfulness, colour cast.

Every measure takes an image, uint8 RGB of shape (H, W, 3) and any size from one pixel up, and gives a finite float. It
is taken on the means of 8 x 8 pixels, so that noise, fine texture and a little blur do not count as tone. Raises
ToolError for anything that is not such an image.
"""

import math

import numpy as np

from agenticiqa.programs.tools.pixels import RGB, check_image, luma

BLOCK = 8  # pixels


def mean_luma(image: RGB) -> float:
    """Mean brightness, 0 (black) to 255 (white)."""
    return float(luma(_tone(image)).mean())


def shadow_level(image: RGB) -> float:
    """The first percentile of luma, 0..255: how dark the darkest parts are."""
    return float(np.percentile(luma(_tone(image)), 1))


def highlight_level(image: RGB) -> float:
    """The 99th percentile of luma, 0..255: how bright the brightest parts are."""
    return float(np.percentile(luma(_tone(image)), 99))


def clipped_dark(image: RGB) -> float:
    """Share of the image that is black, luma 5 or less: 0 to 1."""
    return float(np.mean(luma(_tone(image)) <= 5))


def clipped_bright(image: RGB) -> float:
    """Share of the image that is white, luma 250 or more: 0 to 1."""
    return float(np.mean(luma(_tone(image)) >= 250))


def rms_contrast(image: RGB) -> float:
    """Standard deviation of luma, 0 to 127.5 grey levels (Peli, "Contrast in complex images", JOSA A 7, 1990)."""
    return float(luma(_tone(image)).std())


def tonal_range(image: RGB) -> float:
    """Michelson's contrast between the 1st and the 99th percentile of luma, (high - low) / (high + low): 0 to 1.

    Scaling all values, as darkening does, leaves it alone; haze and a flat tone curve lower it.
    """
    low, high = np.percentile(luma(_tone(image)), (1, 99))
    return float((high - low) / (high + low)) if high > 0 else 0.0


def colorfulness(image: RGB) -> float:
    """Colourfulness of Hasler and Süsstrunk, "Measuring colourfulness in natural images", SPIE 5007 (2003).

    0 (grey) to about 190; their words: 15 slightly, 33 moderately, 59 quite, 109 extremely colourful.
    """
    red, green, blue = np.moveaxis(_tone(image), -1, 0)
    red_green, yellow_blue = red - green, (red + green) / 2 - blue
    spread = math.hypot(red_green.std(), yellow_blue.std())
    return float(spread + 0.3 * math.hypot(red_green.mean(), yellow_blue.mean()))


def color_cast(image: RGB) -> float:
    """Strength of the tint of what should be neutral: its distance from grey in CIELAB's a*b* plane, 0 to about 130.

    Nearly every scene holds something without colour, so the least saturated fifth of the pixels (chroma over L*) is
    taken for it; black and white ones, L* below 10 or above 95, are left out. Below 20 in nearly all photos.
    """
    lightness, a, b = np.moveaxis(_lab(_tone(image)), -1, 0)
    seen = (lightness >= 10) & (lightness <= 95)
    if not seen.any():
        return 0.0
    a, b = a[seen], b[seen]
    saturation = np.hypot(a, b) / lightness[seen]
    neutral = saturation <= np.percentile(saturation, 20)
    return math.hypot(a[neutral].mean(), b[neutral].mean())


def red_tint(image: RGB) -> float:
    """Mean of CIELAB a*: positive towards red, negative towards green, about -90 to 100."""
    return float(_lab(_tone(image))[..., 1].mean())


def yellow_tint(image: RGB) -> float:
    """Mean of CIELAB b*: positive towards yellow, negative towards blue, about -110 to 95."""
    return float(_lab(_tone(image))[..., 2].mean())


def _tone(image: RGB) -> np.ndarray:
    """Means of 8 x 8 pixels (fewer at the right and lower border), float64 RGB in 0..255."""
    check_image(image)
    tops, lefts = np.arange(0, image.shape[0], BLOCK), np.arange(0, image.shape[1], BLOCK)
    sums = np.add.reduceat(np.add.reduceat(image, tops, axis=0, dtype=np.int64), lefts, axis=1)
    heights, widths = np.diff([*tops, image.shape[0]]), np.diff([*lefts, image.shape[1]])
    return sums / (heights[:, None] * widths)[..., None]


def _lab(rgb: np.ndarray) -> np.ndarray:
    """CIELAB (D65, 2 degrees) of sRGB values in 0..255: L* 0..100, a*, b*."""
    coded = np.clip(rgb / 255, 0, 1)
    linear = np.where(coded > 0.04045, ((coded + 0.055) / 1.055) ** 2.4, coded / 12.92)
    to_xyz = np.array(
        [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
    )
    relative = linear @ to_xyz.T / to_xyz.sum(axis=1)
    root = np.where(relative > 216 / 24389, np.cbrt(relative), (24389 / 27 * relative + 16) / 116)
    x, y, z = np.moveaxis(root, -1, 0)
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)
