"""LEARNED-IQA: mean opinion score predicted from frozen EfficientNet-Lite0 features and statistics. Higher is better.

``quality_model.md`` describes the training of the head and its limits.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.tools.adapter import Adapter, read_adapter
from agenticiqa.programs.tools.numerics.networks import run_for, run_network, value_names
from agenticiqa.programs.tools.numerics.pixels import RGB, Plane, check_image
from agenticiqa.programs.tools.numerics.predicted_mos import PredictedMOS
from agenticiqa.programs.tools.outside_training import Reason, reasons_for, widened
from agenticiqa.programs.tools.shared import Measurable, shared
from agenticiqa.programs.tools.statistics.parts import SMALLEST_SIDE, in_working_size, working_copy
from agenticiqa.programs.tools.tool import Tool
from agenticiqa.programs.tools.tool_curves import ToolCurve

if TYPE_CHECKING:
    from agenticiqa.programs.images import LoadedImage
    from agenticiqa.signatures.vocabulary import ImageKind

MODEL = Path(__file__).with_name("quality_model.onnx")
SHA256 = "5fea2c3438a24583f16ee26986fd13766bf595aea88e812258d11ed2e10230a9"
FEATURES = 18_123  # standardized features of the head
BACKBONE = 5_930_622  # first bytes of the model, which are a smaller model of the backbone alone

READING = ("score", "novelty", "likeness", "generated")
"""The values of the output "reading", which the file has in an order of its own.

They are the predicted MOS, the distance from the training set, the likeness to the photos of all panels, and the weight
of the head for AI-generated images.
"""

TILE, STEP, CELL = 192, 96, 48  # pixels, of the local map

# Standard deviations of the MOS below the score, in levels; ``fusion.interval.MOST_ABOVE`` limits those above a photo's
# score. ``eval/research/interval_figures.py`` fits SPREAD, for photos, and prints the coverage of the intervals.
# SPREAD_UNLIKE is for images unlike the photos of every panel, which are of unknown origin. A low score is as certain
# for these: of the 120 images of AGIQA-3K with likeness below LIKE and a score below 2.5, 7 % have a MOS more than .83
# below it, of the others 35 %. SPREAD_GENERATED is the root mean square error over six generators, each held out from
# the head of AI-generated images. SPREAD_PER_NOVELTY was fitted on predictions for whole sets that the head was not
# trained on (``eval/research/train_quality_model.py``).
SPREAD, SPREAD_PER_NOVELTY, SPREAD_GENERATED, SPREAD_UNLIKE = 0.57, 0.675, 0.59, 1.0
UNLIKE, LIKE = 0.5, 0.7  # likeness to the photos of all panels; 79 % of unseen photos of BIQ2021 have .7 or more
LOW, HIGH = 2.0, 3.0  # scores between which SPREAD_UNLIKE takes the place of SPREAD
GENERATED_FROM = 0.5  # weight of the head for AI-generated images from which on an image counts as one


@shared
def learned_iqa(image: Measurable) -> float:
    """Predict MOS from frozen EfficientNet-Lite0 features and statistics of the pixels.

    Args:
        image: uint8 RGB, shape (H, W, 3), sides of at least 32 pixels.

    Returns:
        1..5, higher is better.

    Raises:
        ToolError: The array is of another kind, a side is under 32 pixels, or the model file is missing or damaged.
    """
    return mos_and_features(image)[0].score


def learned_iqa_map(image: RGB) -> Plane:
    """Return how far each part by itself is below excellent, 0..4, in 48-pixel cells. Raises as ``learned_iqa``.

    Tiles of 192 pixels, half overlapping, are assessed one by one, in the working size; a cell has the mean of the
    tiles that cover it. Good photos have about 1 all over.
    """
    check_image(image, SMALLEST_SIDE)
    image = in_working_size(image)
    height, width = image.shape[:2]
    side = min(TILE, height, width)
    tops, lefts = _starts(height, side), _starts(width, side)
    total = np.zeros((-(-height // CELL), -(-width // CELL)))
    count = np.zeros_like(total)
    for top in tops:
        for left in lefts:
            cells = (slice(top // CELL, -(-(top + side) // CELL)), slice(left // CELL, -(-(left + side) // CELL)))
            total[cells] += 5.0 - learned_iqa(image[top : top + side, left : left + side])
            count[cells] += 1
    return total / np.maximum(count, 1)


@shared
def mos_and_features(image: Measurable) -> tuple[PredictedMOS, NDArray[np.float32]]:
    """Return the predicted MOS, and the standardized features (F,) from which the network computes it.

    Same image and ToolError as for ``learned_iqa``.
    """
    check_image(image.pixels, SMALLEST_SIDE)
    reading, features = run_for(MODEL, SHA256, ("reading", "features"), as_input(working_copy(image)))
    names = value_names(MODEL, SHA256, "reading", READING)
    return predicted_by(dict(zip(names, reading[0].tolist(), strict=True))), features[0]


def predicted_by(reading: Mapping[str, float]) -> PredictedMOS:
    """Return the predicted MOS from the values of ``READING``."""
    score, generated = reading["score"], reading["generated"]
    unlike = float(np.interp(reading["likeness"], (UNLIKE, LIKE), (1, 0)) * np.interp(score, (LOW, HIGH), (0, 1)))
    of_photo = SPREAD + unlike * (SPREAD_UNLIKE - SPREAD)
    usual = generated * SPREAD_GENERATED**2 + (1 - generated) * of_photo**2
    spread = float(np.sqrt(usual + (SPREAD_PER_NOVELTY * max(0.0, reading["novelty"] - 1)) ** 2))
    return PredictedMOS(float(np.clip(score, 1.0, 5.0)), spread, "generated" if generated > GENERATED_FROM else "photo")


def predicted_mos(image: "LoadedImage", adapter: Adapter | None = None) -> PredictedMOS:
    """Return the predicted MOS of a loaded image, widened if the image is unlike the training set.

    With an adapter it is the MOS predicted by the labels that the adapter was fitted to.
    """
    predicted, features = mos_and_features(image)
    reasons = outside_training(image)
    if adapter is None:
        return widened(predicted, reasons)
    known = adapter.about["kinds"]
    return widened(adapter.adapted(predicted, features), [reason for reason in reasons if reason not in known])


def adapter_in(file: str | os.PathLike[str]) -> Adapter:
    """Return the adapter of this scorer in a file. Raises UserError as ``read_adapter`` does."""
    return read_adapter(file, SHA256, FEATURES)


def adapted_tool(adapter: Adapter) -> Tool:
    """Return the tool for the adapted score, which is on 1..5 without a curve."""
    origin = f"no curve; adapter {adapter.about['digest']}"
    return replace(
        TOOL,
        curve=ToolCurve((0.0, 1.0, 3.0, 1.0, 0.0), TOOL.raw_range, origin),
        measure=partial(_adapted_score, adapter),
        spread=partial(_spread_of, adapter=adapter),
        image_kind=partial(_image_kind, adapter=adapter),
        adapter=adapter,
    )


def _adapted_score(adapter: Adapter, image: RGB | Measurable) -> float:
    return adapter.adapted(*mos_and_features(image)).score


def outside_training(image: "LoadedImage") -> tuple[Reason, ...]:
    """Return why a loaded image is unlike the training photos; empty for a usual photo. Computed once per image."""
    return image.memo.once("outside_training", lambda: reasons_for(image, last_stage))


def last_stage(image: RGB) -> NDArray[np.float32]:
    """Return the backbone's last activations (320, ceil(H / 32), ceil(W / 32)). Same image as ``learned_iqa``."""
    activations: NDArray[np.float32] = run_network(MODEL, SHA256, "late", as_input(image), BACKBONE)[0]
    return activations


def _spread_of(image: "LoadedImage", adapter: Adapter | None = None) -> float:
    return predicted_mos(image, adapter).spread


def _image_kind(image: "LoadedImage", adapter: Adapter | None = None) -> "ImageKind | None":
    return predicted_mos(image, adapter).image_kind


def as_input(image: RGB) -> NDArray[np.float32]:
    """Return an image in working size as input of the network: float32 (1, 3, H, W) in 0..255."""
    return np.ascontiguousarray(in_working_size(image).transpose(2, 0, 1)[None], dtype=np.float32)


def _starts(side: int, tile: int) -> list[int]:
    count = 1 + -(-(side - tile) // STEP)
    return [int(start) for start in np.linspace(0, side - tile, count)]


TOOL = Tool(
    name="LEARNED-IQA",
    kind="NR",
    higher_is_better=True,
    raw_range=(1.0, 5.0),
    description="Mean opinion score predicted from frozen EfficientNet-Lite0 features and statistics of the pixels.",
    source="this package, on EfficientNet-Lite0 (Tan and Le 2019, ICML); see quality_model.md",
    cost_ms=60,
    measure=learned_iqa,
    is_shared=True,
    map=learned_iqa_map,
    map_start=1.4,
    map_end=3.6,
    smallest=SMALLEST_SIDE,
    trained_on=("live_r2", "clive", "biq2021", "biq2021_train", "avt_ai", "agiqa3k", "package_photos"),
    spread=_spread_of,
    image_kind=_image_kind,
)
