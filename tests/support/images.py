"""Pixels as the program has them: loaded images."""

import numpy as np
from PIL import Image

from agenticiqa.programs.images import LoadedImage, load


def loaded(pixels: np.ndarray) -> LoadedImage:
    """An image of these pixels, uint8 RGB (H, W, 3) or gray (H, W)."""
    return load(Image.fromarray(pixels))
