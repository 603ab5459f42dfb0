"""Distortions by level: 0 returns the image unchanged, 5 is the worst, the same bytes each time.

Every function takes a level and an RGB image, uint8 of shape (H, W, 3) and any size, and returns a new such array.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from agenticiqa.eval.research.distort import distort
from agenticiqa.programs.tools.numerics.pixels import RGB

ToLevel = Callable[[int, RGB], RGB]

ALL_LEVELS = range(6)


def _to_level(kind: str) -> ToLevel:
    return lambda level, rgb: distort(rgb, kind, level)


blur = _to_level("gaussian_blur")
noise = _to_level("white_noise")
jpeg = _to_level("jpeg")
darken = _to_level("darken")
desaturate = _to_level("desaturate")
low_contrast = _to_level("low_contrast")

AT_LEVEL: dict[str, ToLevel] = {
    "blur": blur,
    "noise": noise,
    "jpeg": jpeg,
    "darken": darken,
    "brighten": _to_level("brighten"),
    "desaturate": desaturate,
    "low_contrast": low_contrast,
    "pixelate": _to_level("pixelate"),
}


def scene(height: int = 192, width: int = 256, seed: int = 0) -> RGB:
    """Return a synthetic picture with a photo's statistics: 1/f texture, muted colors, shapes with sharp edges."""
    return _scene(height, width, seed).copy()


@lru_cache(maxsize=32)
def _scene(height: int, width: int, seed: int) -> RGB:
    rng = np.random.default_rng(seed)
    rows, columns = np.fft.fftfreq(height)[:, None], np.fft.fftfreq(width)[None, :]
    frequency = np.maximum(np.hypot(rows, columns), 1 / max(height, width))
    draw = rng.standard_normal((height, width, 1)) + 0.25 * rng.standard_normal((height, width, 3))
    spectrum = np.fft.fft2(draw, axes=(0, 1)) / frequency[..., None]
    texture = np.fft.ifft2(spectrum, axes=(0, 1)).real
    picture = 115 + 30 * texture / max(texture.std(), 1e-9)
    y, x = np.ogrid[:height, :width]
    for _ in range(12):
        top, left = rng.uniform(0, height), rng.uniform(0, width)
        radius = rng.uniform(0.04, 0.2) * min(height, width)
        distance = np.hypot if rng.random() < 0.5 else np.maximum
        part = _around(top, radius, height), _around(left, radius, width)
        inside = distance(abs(y[part[0]] - top), abs(x[:, part[1]] - left)) < radius
        shape = picture[part]
        shape[inside] = 0.35 * shape[inside] + 0.65 * rng.uniform(10, 245, 3)
    return np.clip(np.rint(picture), 0, 255).astype(np.uint8)


def _around(place: float, radius: float, length: int) -> slice:
    return slice(max(0, int(place - radius)), min(length, int(place + radius) + 2))
