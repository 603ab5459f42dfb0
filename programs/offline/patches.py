"""Severities of distortions in each patch of an image without a reference, by small trained networks.

They are the mean of two networks with one hidden layer, trained on photos with damage planted in a part of them. The
shipped ones come from a first run on 660 authentic and 33 pristine photos in three sizes, each fitted to three quarters
of them, without copies saved as JPEG again; ``eval/train/train_patches.py`` trains such networks anew, and prints how
well they do.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.offline.detector import Weights, head_outputs
from agenticiqa.programs.offline.patch_features import patch_grid
from agenticiqa.programs.tools.numerics.pixels import RGB
from agenticiqa.programs.tools.numerics.weights import read_weights

Values = NDArray[np.float64]

WEIGHTS = Path(__file__).with_name("patches.npz")
SHA256 = "5aaca6359c6913ebf020d9310e26caa632ebb303928f746a78d8d65751df6bc4"
SMALLEST_SIDE = 64  # pixels
WORST = 4.0  # the highest severity


@dataclass(frozen=True)
class PatchSeverities:
    """``values`` (rows, columns, 7), categories as in ``DETECTABLE``: 0 (none) to 4 (extreme).

    A cell is a square of ``side`` pixels, from the image's top left; the last ones may reach beyond the image.
    """

    values: Values
    side: int


def patch_severities(image: LoadedImage) -> PatchSeverities | None:
    """The severities in each patch of an image, computed once per image; ``None`` for a side below 64 pixels.

    Raises ToolError for damaged weights.
    """
    if min(image.size) < SMALLEST_SIDE:
        return None
    return image.memo.once("patch severities", lambda: _severities(image.pixels))


def patch_weights() -> Weights:
    """The weights by name. Raises ToolError where they are damaged."""
    return read_weights(WEIGHTS, SHA256)


def _severities(pixels: RGB) -> PatchSeverities:
    grid = patch_grid(pixels)
    outputs = head_outputs(patch_weights(), "patch", grid.values)
    return PatchSeverities(np.clip(outputs, 0, WORST), grid.side)
