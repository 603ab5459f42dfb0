"""Predict the severities of distortions in each patch of an image without a reference, by a small network.

``tools.features.patch_features`` measures the features of a patch of 32 x 32 pixels and its surroundings. The network
has one hidden layer and was trained on photos with synthetic damage in a part of them, half of which were
saved as JPEG afterwards. The shipped network was trained on 1,500 authentic and 43 pristine photos in three sizes by
``eval/research/train_patches.py`` with the labels of CLIVE and BIQ2021, which also prints its accuracy.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.offline.measured.detector import head_outputs
from agenticiqa.programs.tools.features.patch_features import patch_grid
from agenticiqa.programs.tools.numerics.weights import outputs_of, read_weights
from agenticiqa.programs.tools.shared import Measurable, shared
from agenticiqa.signatures.vocabulary import TRAINED, DetectableDistortion

Values = NDArray[np.float64]

WEIGHTS = Path(__file__).with_name("patches.npz")
SHA256 = "059febdfd12d1daf835e06bc482af522b3aa50eaaa65dab4e4df3086646bfb78"
OUTPUTS = {"patch": TRAINED, "region": TRAINED}  # the names that the weights have, too, in an order of their own
SMALLEST_SIDE = 64  # pixels
WORST = 4.0  # the highest severity


@dataclass(frozen=True)
class PatchSeverities:
    """The severities of each category in the cells of a grid (rows, columns), 0 (none) to 4 (extreme).

    ``side`` is that of a cell, in pixels.
    """

    by_category: Mapping[DetectableDistortion, Values]
    side: int


@shared
def patch_severities(image: Measurable) -> PatchSeverities | None:
    """Return the severities of each patch; ``None`` for a side below 64 pixels.

    Raises ToolError for damaged weights, and for those of another table of categories.
    """
    if min(image.pixels.shape[:2]) < SMALLEST_SIDE:
        return None
    grid, weights = patch_grid(image.pixels), read_weights(WEIGHTS, SHA256, OUTPUTS)
    severities = np.clip(head_outputs(weights, "patch", grid.values), 0, WORST)
    names = weights[outputs_of("patch")].tolist()
    return PatchSeverities({name: severities[..., column] for column, name in enumerate(names)}, grid.side)


def region_weights() -> dict[DetectableDistortion, Values]:
    """Return the weights by which ``local_damage`` decides if a region is damage: (3, features + 1) by category."""
    weights = read_weights(WEIGHTS, SHA256, OUTPUTS)
    return dict(zip(weights[outputs_of("region")].tolist(), weights["region"], strict=True))
