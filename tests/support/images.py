"""Pixels as the program has them: loaded images."""

import numpy as np
import skimage.data
from PIL import Image

from agenticiqa.programs.images import LoadedImage, load


def loaded(pixels: np.ndarray) -> LoadedImage:
    """Return an image of these pixels, uint8 RGB (H, W, 3) or gray (H, W)."""
    return load(Image.fromarray(pixels))


def as_gray(plane: np.ndarray) -> np.ndarray:
    """Return a plane of gray levels (H, W), rounded and clipped, as RGB pixels."""
    return np.repeat(np.clip(np.rint(plane), 0, 255).astype(np.uint8)[..., None], 3, axis=2)


def coffee() -> np.ndarray:
    """Return a part of a sharp photo, (240, 320, 3)."""
    return np.ascontiguousarray(skimage.data.coffee()[:240, 120:440])
