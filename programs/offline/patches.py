"""Severities of distortions in each patch of an image without a reference, by a small trained network.

They come of a network with one hidden layer, trained on photos with damage planted in a part of them, half of which
were saved as JPEG afterwards. The shipped one was made of 1,500 authentic and 43 pristine photos in three sizes by
``eval/research/train_patches.py`` with the labels of CLIVE and BIQ2021, which also prints how well it does.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.images.loaded import LoadedImage
from agenticiqa.programs.offline.detector import Weights, head_outputs
from agenticiqa.programs.offline.patch_features import patch_grid
from agenticiqa.programs.tools.numerics.pixels import RGB
from agenticiqa.programs.tools.numerics.weights import read_weights

Values = NDArray[np.float64]

WEIGHTS = Path(__file__).with_name("patches.npz")
SHA256 = "aa6018995597a9f7a2fb9f6f912080e2ab8cfca58c1d0fe0ae23a9de0fd32ba8"
SMALLEST_SIDE = 64  # pixels
WORST = 4.0  # the highest severity


@dataclass(frozen=True)
class PatchSeverities:
    """``values`` (rows, columns, 7), categories as in ``TRAINED``: 0 (none) to 4 (extreme).

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
