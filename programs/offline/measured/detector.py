"""Predict severities of distortions from the features of an image, by small trained networks.

There are three heads, each the mean of a few networks with one hidden layer: "texture" and "tone" of a single image,
and "compared" for the differences from a reference. ``eval/research/train_detector.py``
trained them on synthetic distortions of pristine photos, and the first two also on stylized good photos as undamaged.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.offline.measured.findings import Prediction
from agenticiqa.programs.tools.numerics.weights import outputs_of, read_weights
from agenticiqa.signatures.categories import CATEGORIES
from agenticiqa.signatures.vocabulary import TRAINED, DetectableDistortion

Values = NDArray[np.float64]
Weights = Mapping[str, NDArray[Any]]

WEIGHTS = Path(__file__).with_name("detector.npz")
SHA256 = "7b75043c4dff3c1e7df02129675e126670a910b78e337417357c7fe1d1cb0341"

TEXTURE: tuple[DetectableDistortion, ...] = tuple(row.name for row in CATEGORIES if row.head == "texture")
TONE: tuple[DetectableDistortion, ...] = tuple(row.name for row in CATEGORIES if row.head == "tone")
HEADS: dict[str, tuple[DetectableDistortion, ...]] = {"texture": TEXTURE, "tone": TONE, "compared": TRAINED}
# The kinds of distortion within each category, as findings name them.
SUBTYPES: dict[DetectableDistortion, tuple[str, ...]] = {
    row.name: tuple(subtype.name for subtype in row.subtypes if subtype.is_trained) for row in CATEGORIES if row.head
}


def subtype_output(category: DetectableDistortion, subtype: str) -> str:
    """Return the name of the network output for a subtype; that for a category has the category's name."""
    return f"{category}: {subtype}"


# The names of each head's outputs, with which the weights are trained.
OUTPUTS: dict[str, tuple[str, ...]] = {
    head: (*names, *(subtype_output(name, subtype) for name in names for subtype in SUBTYPES[name]))
    for head, names in HEADS.items()
}
# Those in the weights, in any order.
STORED: dict[str, tuple[str, ...]] = {
    head: (
        *OUTPUTS[head],
        *(subtype_output(row.name, name) for row in CATEGORIES if row.name in names for name in row.unused_outputs),
    )
    for head, names in HEADS.items()
}
BEND = 0.2  # width of the smooth bend at both ends of the scale of severities, so that outputs beyond keep their order
MAX_DEVIATION = 4.0  # standard deviations: features farther from the training mean are clipped to this


def predict(**values: Values) -> dict[DetectableDistortion, Prediction]:
    """Return the predictions of each named head for its input values (see ``features``).

    ``texture`` and ``tone`` are features of an image; ``compared`` is all of its features minus the reference's. If
    this is zero, all severities are 0. Raises ToolError for damaged weights, and for those of another table of
    categories.
    """
    weights = read_weights(WEIGHTS, SHA256, STORED)
    predictions: dict[DetectableDistortion, Prediction] = {}
    for head, inputs in values.items():
        predictions |= severities_from_features(weights, head, inputs)
    if "compared" in values and not values["compared"].any():
        return {name: Prediction(0.0, dict.fromkeys(output.subtypes, 0.0)) for name, output in predictions.items()}
    return predictions


def severities_from_features(weights: Weights, head: str, values: Values) -> dict[DetectableDistortion, Prediction]:
    """Return the predictions of one head for the features of an image, or for differences of features."""
    severities = severities_from_outputs(head_outputs(weights, head, values)).tolist()
    by_output = dict(zip(weights[outputs_of(head)].tolist(), severities, strict=True))
    return {
        name: Prediction(by_output[name], {kind: by_output[subtype_output(name, kind)] for kind in SUBTYPES[name]})
        for name in HEADS[head]
    }


def head_outputs(weights: Weights, head: str, values: Values) -> Values:
    """Return the mean output of a head's networks, not clipped: (.., features) to (.., outputs).

    The outputs are severities of the head's categories and of their subtypes, in the order of ``HEAD_outputs``.
    """
    mean, spread, inward, inner, outward, outer = (
        weights[f"{head}_{part}"] for part in ("mean", "spread", "inward", "inner", "outward", "outer")
    )
    scaled = np.clip((values - mean) / spread, -MAX_DEVIATION, MAX_DEVIATION)
    # einsum, not matrix products: the last bits of those may depend on the threads of the linear algebra library.
    count, features, width = inward.shape
    side_by_side = inward.swapaxes(0, 1).reshape(features, count * width)  # all networks at once take less time
    hidden = np.einsum("...t,th->...h", scaled, side_by_side).reshape(*scaled.shape[:-1], count, width)
    hidden = np.tanh(hidden + inner)
    return (np.einsum("...kh,khc->...kc", hidden, outward) + outer).mean(axis=-2)


def severities_from_outputs(outputs: Values) -> Values:
    """Map outputs to severities in 0..4: almost unchanged from 0.5 to 3.5, with a smooth bend at both ends."""
    above = BEND * np.logaddexp(0, outputs / BEND)
    return np.maximum(4 - BEND * np.logaddexp(0, (4 - above) / BEND), 0)
