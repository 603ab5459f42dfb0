"""Distortions of known order: level 0 gives the image back, level 5 is the worst, the same bytes each time.

Every function takes a level and an RGB image, uint8 of shape (H, W, 3) and any size, and gives a new such array.
"""

import io
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.ndimage import gaussian_filter

RGB = NDArray[np.uint8]

LEVELS = range(6)


def blur(level: int, rgb: RGB) -> RGB:
    """Gaussian blur of growing radius."""
    sigma = (0, 0.7, 1.2, 2.0, 3.2, 5.0)[level]
    return _to_bytes(gaussian_filter(rgb.astype(float), (sigma, sigma, 0)))


def noise(level: int, rgb: RGB) -> RGB:
    """White noise, drawn per channel; a higher level scales up the same draw."""
    sigma = (0, 4, 9, 16, 28, 45)[level]
    return _to_bytes(rgb + sigma * np.random.default_rng(0).standard_normal(rgb.shape))


def jpeg(level: int, rgb: RGB) -> RGB:
    """JPEG with 4:2:0 chroma, at falling quality."""
    if level == 0:
        return rgb.copy()
    file = io.BytesIO()
    Image.fromarray(rgb).save(file, "JPEG", quality=(100, 60, 35, 20, 12, 6)[level], subsampling="4:2:0")
    return np.asarray(Image.open(file))


def darken(level: int, rgb: RGB) -> RGB:
    """Less light: every value scaled towards black."""
    return _to_bytes(rgb * (1, 0.85, 0.7, 0.5, 0.35, 0.2)[level])


def brighten(level: int, rgb: RGB) -> RGB:
    """Overexposure: values raised, the highlights clipped."""
    return _to_bytes(rgb * (1, 1.15, 1.35, 1.7, 2.2, 3.0)[level])


def desaturate(level: int, rgb: RGB) -> RGB:
    """Colours drawn towards the grey of the same brightness; level 5 is grey."""
    grey = (rgb @ np.array([0.299, 0.587, 0.114]))[..., None]
    return _to_bytes(grey + (rgb - grey) * (1, 0.8, 0.6, 0.4, 0.2, 0)[level])


def low_contrast(level: int, rgb: RGB) -> RGB:
    """Values drawn towards the image's mean."""
    mean = rgb.mean()
    return _to_bytes(mean + (rgb - mean) * (1, 0.8, 0.6, 0.45, 0.3, 0.15)[level])


def pixelate(level: int, rgb: RGB) -> RGB:
    """Square blocks of one colour each, the mean of what they cover."""
    block = (1, 2, 3, 5, 8, 12)[level]
    height, width = rgb.shape[:2]
    rows, columns = np.arange(0, height, block), np.arange(0, width, block)
    sums = np.add.reduceat(np.add.reduceat(rgb.astype(float), rows, axis=0), columns, axis=1)
    area = np.diff([*rows, height])[:, None, None] * np.diff([*columns, width])[None, :, None]
    means = (sums / area)[np.arange(height) // block][:, np.arange(width) // block]
    return _to_bytes(means)


LADDERS: dict[str, Callable[[int, RGB], RGB]] = {
    "blur": blur,
    "noise": noise,
    "jpeg": jpeg,
    "darken": darken,
    "brighten": brighten,
    "desaturate": desaturate,
    "low_contrast": low_contrast,
    "pixelate": pixelate,
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
    return _to_bytes(picture)


def _to_bytes(values: np.ndarray) -> RGB:
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)
