"""Recognize images unlike the quality model's training set, which are photos of usual size.

Logistic regression classifies the look of a picture from cheap measurements (``statistics.pictorial``) and features of
the quality model's backbone, a recognition network. ``eval.research.outside_photos`` makes the pictures, fits the
regression and the constants below, and measures both on other pictures.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from agenticiqa.programs.tools.numerics.pixels import RGB
from agenticiqa.programs.tools.numerics.predicted_mos import PredictedMOS
from agenticiqa.programs.tools.numerics.weights import outputs_of, read_weights
from agenticiqa.programs.tools.statistics.parts import WORKING_SIDE, Luma, whole_luma, working_copy
from agenticiqa.programs.tools.statistics.pictorial import pictorial
from agenticiqa.programs.tools.statistics.tonal import monochrome_of

if TYPE_CHECKING:
    from agenticiqa.programs.images import LoadedImage

Look: TypeAlias = Literal["photo", "graphic", "page", "medical", "instrument"]
Reason: TypeAlias = Literal[
    "too small", "thin", "blank", "graphic", "page", "medical", "instrument", "gray", "small", "color"
]
LOOKS: tuple[Look, ...] = get_args(Look)
LOOK = "look"  # the head of the weights
OUTPUTS = {LOOK: LOOKS}
Values: TypeAlias = NDArray[np.float64]
Backbone: TypeAlias = Callable[[RGB], NDArray[np.float32]]
"""From pixels, uint8 RGB (H, W, 3), to the activations (C, h, w) of the last stage of the quality model's backbone."""

WEIGHTS = Path(__file__).with_name("outside_training.npz")
SHA256 = "d89008c91b49b55f4a41f45a1c58742c4a28470a951b857004883eb54dc3fc46"

SMALL_PHOTO = 400  # pixels of the longer side: smaller photos were not in the training set
SMALL_SIDE = 64  # pixels: with a shorter side, neither features nor regions can be measured
THIN = 6.0  # ratio of the sides
BLANK_RANGE = 3  # 8-bit levels between the lowest and the highest value of each channel
MOST_PHOTO = 0.5  # probability of "photo" below which an image is classified as something else
DEVIATIONS = 4.0  # standard deviations: features farther from the training mean are clipped to this
SEEN_SIDE = 256  # pixels of the longer side of the copy for the backbone
SEEN_LEAST = 32  # pixels of its shorter side

# Least standard deviation of the true MOS around the score, in levels. Root mean squares of the errors: 1.5 to
# 2.6 on 28 drawn pictures; on 12 photos 2.0 for parts of 8 x 8 pixels, 0.4 for gray ones. Small: the spread of other
# photos, .75, and the shift of copies of the worst-rated photos of CLIVE at half and at a quarter of their size, .58
# and .96. Studies at commit 0a7818c. Color: the shift of 40 photos of CLIVE that are read as sRGB although they are in
# ProPhoto RGB, HLG or linear, .16, .26 and .43, and in PQ, 1.14, beside the spread of
# other photos.
LEAST_SPREAD: dict[Reason, float] = {
    "too small": 2.0,
    "thin": 2.0,
    "blank": 2.0,
    "graphic": 2.0,
    "page": 2.0,
    "medical": 2.0,
    "instrument": 2.0,
    "gray": 0.9,
    "small": 1.1,
    "color": 0.9,
}
# With this reason, scores are often too high and rarely too low: of 200 photos of CLIVE reduced to 250 pixels, each
# scored by a model trained without it, 5 % have a MOS more than .32 levels above the score, and 10 % have one more than
# 1.17 below it.
ONLY_TOO_HIGH: tuple[Reason, ...] = ("small",)
_MADE_FOR_PHOTOS = "the program is made for photos, so the score is uncertain."
SENTENCES: dict[Reason, str] = {
    "too small": "The image has only {width} x {height} pixels, too few to assess; the score means little.",
    "thin": "The image is a strip of {width} x {height} pixels, too thin to assess; the score means little.",
    "blank": "The image has only one color, so there is nothing to assess; the score means little.",
    "graphic": f"This looks like a screenshot or a drawing; {_MADE_FOR_PHOTOS}",
    "page": f"This looks like a page of a document; {_MADE_FOR_PHOTOS}",
    "medical": f"This looks like a radiograph or another medical image; {_MADE_FOR_PHOTOS}",
    "instrument": f"This looks like an image from a telescope or a microscope; {_MADE_FOR_PHOTOS}",
    "gray": "The image is gray. The training set has hardly any gray photos, so the score is less certain.",
    "small": "The photo has only {width} x {height} pixels. Damage is less visible at this size, so the "
    "score is less certain, and more likely too high.",
    "color": "The colors of the file could not be converted and were read as sRGB, so the score is less certain.",
}

SHORT: Mapping[str, str] = {
    "too small": "too small to assess",
    "thin": "too thin to assess",
    "blank": "only one color, nothing to assess",
    "graphic": "uncertain: screenshot or drawing",
    "page": "uncertain: document page",
    "medical": "uncertain: medical image",
    "instrument": "uncertain: telescope or microscope image",
    "gray": "less certain: gray",
    "small": "less certain: small",
    "color": "less certain: colors not converted",
}


def reasons_for(image: "LoadedImage", backbone: Backbone) -> tuple[Reason, ...]:
    """Return why a loaded image of any size is unlike the training set; empty for a usual photo in color.

    Raises ToolError for damaged weights.
    """
    color: tuple[Reason, ...] = ("color",) if image.has_doubtful_colors else ()
    return (*_reasons_for(image, backbone), *color)


def _reasons_for(image: "LoadedImage", backbone: Backbone) -> tuple[Reason, ...]:
    width, height = image.size
    shorter, longer = min(height, width), max(height, width)
    if longer >= THIN * shorter and shorter * min(1.0, WORKING_SIDE / longer) < SMALL_SIDE * 2:
        return ("thin",)
    if shorter < SMALL_SIDE:
        return ("too small",)
    if _is_blank(image.pixels):
        return ("blank",)
    features = look_features(image.pixels, working_copy(image), backbone, whole_luma(image))
    look = look_of(read_weights(WEIGHTS, SHA256, OUTPUTS), features)
    if look != "photo":
        return (look,)
    gray: tuple[Reason, ...] = ("gray",) if monochrome_of(image) else ()
    return (*gray, "small") if longer < SMALL_PHOTO else gray


def _is_blank(image: RGB) -> bool:
    # By rows first: over both axes at once, numpy reads three values at a time.
    lowest, highest = image.min(axis=0).min(axis=0), image.max(axis=0).max(axis=0)
    return int((highest - lowest).max()) <= BLANK_RANGE


def look_features(image: RGB, copy: RGB, backbone: Backbone, luma: Luma | None = None) -> Values:
    """Return the features (F,) that classify the look of an image of at least 64 x 64 pixels.

    ``copy`` is the image in working size; ``luma`` is its luma, if known.
    """
    factor = SEEN_SIDE / max(copy.shape[:2])
    seen = copy
    if factor < 1:
        size = tuple(max(SEEN_LEAST, round(side * factor)) for side in copy.shape[1::-1])
        seen = np.asarray(Image.fromarray(copy).resize(size, Image.Resampling.BILINEAR))
    return np.concatenate([pictorial(image, luma), backbone(seen).mean(axis=(1, 2), dtype=np.float64)])


def look_of(weights: Mapping[str, NDArray[Any]], features: Values) -> Look:
    """Return the look of a picture from its features (F,): "photo", unless that is unlikely, or the likeliest other."""
    shares = dict(zip(weights[outputs_of(LOOK)].tolist(), looks(weights, features).tolist(), strict=True))
    if shares.pop("photo") >= MOST_PHOTO:
        return "photo"
    return max(shares, key=shares.__getitem__)


def looks(weights: Mapping[str, NDArray[Any]], features: Values) -> Values:
    """Return the probabilities (.., 5) of the looks, in the order of the weights' outputs, from features (.., F)."""
    scaled = np.clip((features - weights["mean"]) / weights["spread"], -DEVIATIONS, DEVIATIONS)
    # einsum, not a matrix product: the last bits of that may depend on the threads of the linear algebra library.
    logits = np.einsum("...f,fc->...c", scaled, weights["weight"]) + weights["bias"]
    shares: Values = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return shares / shares.sum(axis=-1, keepdims=True)


def widened(predicted: PredictedMOS, reasons: Collection[Reason]) -> PredictedMOS:
    """Return the predicted MOS with at least the spread that the reasons require."""
    return replace(predicted, spread=max(predicted.spread, least_spread(reasons)))


def least_spread(reasons: Collection[Reason]) -> float:
    """Return the least standard deviation of the true MOS around the score for these reasons; 0 without any."""
    return max((LEAST_SPREAD[reason] for reason in reasons), default=0.0)


def least_above(reasons: Collection[Reason]) -> float:
    """Return the least standard deviation of the true MOS above the score for these reasons; 0 without any."""
    return least_spread([reason for reason in reasons if reason not in ONLY_TOO_HIGH])


def in_words(reasons: Sequence[Reason], size: tuple[int, int]) -> str:
    """Describe the reasons to users, in one sentence each; ``size`` is width and height in pixels."""
    width, height = size
    return " ".join(SENTENCES[reason].format(width=width, height=height) for reason in reasons)
