"""Distortions of known order: level 0 gives the image back, level 5 is the worst, the same bytes each time.

Every function takes a level and an RGB image, uint8 of shape (H, W, 3) and any size, and gives a new such array.
"""

from collections.abc import Callable

import numpy as np

from agenticiqa.programs.tools.distort import distort
from agenticiqa.programs.tools.numerics.pixels import RGB

Ladder = Callable[[int, RGB], RGB]

LEVELS = range(6)


def _ladder(kind: str) -> Ladder:
    return lambda level, rgb: distort(rgb, kind, level)


blur = _ladder("gaussian_blur")
noise = _ladder("white_noise")
jpeg = _ladder("jpeg")
darken = _ladder("darken")
desaturate = _ladder("desaturate")
low_contrast = _ladder("low_contrast")

LADDERS: dict[str, Ladder] = {
    "blur": blur,
    "noise": noise,
    "jpeg": jpeg,
    "darken": darken,
    "brighten": _ladder("brighten"),
    "desaturate": desaturate,
    "low_contrast": low_contrast,
    "pixelate": _ladder("pixelate"),
}


def scene(height: int = 192, width: int = 256, seed: int = 0) -> RGB:
    """A made-up picture with a photo's statistics: 1/f texture, muted colours, shapes with sharp edges."""
    rng = np.random.default_rng(seed)
    rows, columns = np.fft.fftfreq(height)[:, None], np.fft.fftfreq(width)[None, :]
    frequency = np.maximum(np.hypot(rows, columns), 1 / max(height, width))
    draw = rng.standard_normal((height, width, 1)) + 0.25 * rng.standard_normal((height, width, 3))
    spectrum = np.fft.fft2(draw, axes=(0, 1)) / frequency[..., None]
    texture = np.fft.ifft2(spectrum, axes=(0, 1)).real
    picture = 115 + 30 * texture / max(texture.std(), 1e-9)
    y, x = np.mgrid[:height, :width]
    for _ in range(12):
        top, left = rng.uniform(0, height), rng.uniform(0, width)
        radius = rng.uniform(0.04, 0.2) * min(height, width)
        inside = np.maximum(abs(y - top), abs(x - left)) < radius
        if rng.random() < 0.5:
            inside = np.hypot(y - top, x - left) < radius
        picture[inside] = 0.35 * picture[inside] + 0.65 * rng.uniform(10, 245, 3)
    return np.clip(np.rint(picture), 0, 255).astype(np.uint8)
