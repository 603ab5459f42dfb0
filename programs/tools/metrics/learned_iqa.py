"""The learned no-reference model: a score, its uncertainty and the probabilities of the five levels.

EfficientNet-Lite0 (Tan and Le, ICML 2019) as it was trained to recognise things, and a linear reading of the
activations inside it, fitted to opinion scores. How it was made and what it cannot do is in ``quality_model.md``.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from agenticiqa.programs.tools.numerics.networks import run_network
from agenticiqa.programs.tools.numerics.opinion import Opinion
from agenticiqa.programs.tools.numerics.pixels import RGB, Plane, check_image

if TYPE_CHECKING:
    from agenticiqa.programs.images import LoadedImage

MODEL = Path(__file__).with_name("quality_model.onnx")
SHA256 = "474dd1f07ed24b2e0a178ef965f9093a21b8df1a9952b4e5e18d4a6cd1e266c7"

LONGEST = 1024  # pixels of the longer side: a larger image is looked at in this size
SMALLEST = 32

TILE, STEP, CELL = 192, 96, 48  # pixels, of the local map

# Fitted on predictions for whole sets that the reading was not trained on, by ``eval/train/train_quality_model.py``.
SPREAD, SPREAD_PER_NOVELTY = 0.725, 0.825


def opinion(image: RGB) -> Opinion:
    """What the model thinks of an image, uint8 RGB of shape (H, W, 3), both sides at least 32 pixels.

    Raises ToolError for another array, and for a missing or damaged model file.
    """
    check_image(image, SMALLEST)
    score, novelty = map(float, run_network(MODEL, SHA256, "reading", as_input(image))[0])
    spread = float(np.hypot(SPREAD, SPREAD_PER_NOVELTY * max(0.0, novelty - 1)))
    return Opinion(float(np.clip(score, 1.0, 5.0)), spread)


def opinion_of(image: "LoadedImage") -> Opinion:
    """As ``opinion``, computed once per loaded image."""
    return image.memo.once("opinion", lambda: opinion(image.pixels))


def learned_quality_of(image: "LoadedImage") -> float:
    """As ``learned_quality``, computed once per loaded image."""
    return opinion_of(image).score


def learned_quality(image: RGB) -> float:
    """The score in [1, 5] alone, higher is better."""
    return opinion(image).score


def learned_damage(image: RGB) -> Plane:
    """How much worse than excellent each part looks by itself, 0..4: a map of 48-pixel cells.

    Tiles of 192 pixels, half overlapping, are judged one by one, in the working size; a cell has the mean of the tiles
    that cover it. Good photos have about 1.5 all over.
    """
    check_image(image, SMALLEST)
    image = in_working_size(image)
    height, width = image.shape[:2]
    side = min(TILE, height, width)
    tops, lefts = _starts(height, side), _starts(width, side)
    total = np.zeros((-(-height // CELL), -(-width // CELL)))
    count = np.zeros_like(total)
    for top in tops:
        for left in lefts:
            cells = (slice(top // CELL, -(-(top + side) // CELL)), slice(left // CELL, -(-(left + side) // CELL)))
            total[cells] += 5.0 - learned_quality(image[top : top + side, left : left + side])
            count[cells] += 1
    return total / np.maximum(count, 1)


def as_input(image: RGB) -> NDArray[np.float32]:
    """An image as the network takes it: float32 (1, 3, H, W) in 0..255, the longer side at most 1024 (Lanczos)."""
    return np.ascontiguousarray(in_working_size(image).transpose(2, 0, 1)[None], dtype=np.float32)


def in_working_size(image: RGB) -> RGB:
    """The image, or where its longer side exceeds 1024 pixels a smaller copy of it."""
    longest = max(image.shape[:2])
    if longest <= LONGEST:
        return image
    width, height = (max(SMALLEST, round(side * LONGEST / longest)) for side in image.shape[1::-1])
    return np.asarray(Image.fromarray(image).resize((width, height), Image.Resampling.LANCZOS))


def _starts(side: int, tile: int) -> list[int]:
    count = 1 + -(-(side - tile) // STEP)
    return [int(start) for start in np.linspace(0, side - tile, count)]
