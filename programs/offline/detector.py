"""The trained half of perception: severities that small networks read from the traits of an image.

Three heads, each a few networks with one hidden layer, whose mean counts: texture and tone of an image by itself, and
what changed against a reference. They know synthetic distortions of pristine photos, level by level;
``eval/train/train_detector.py`` made them and says how well they do.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.offline.features import has_traits, traits
from agenticiqa.programs.tools.numerics.weights import read_weights
from agenticiqa.signatures.vocabulary import DETECTABLE, DetectableDistortion

Values = NDArray[np.float64]
Weights = Mapping[str, Values]

WEIGHTS = Path(__file__).with_name("detector.npz")
SHA256 = "2ba4044cef5c0a5e03f82bb2493d488e76a3b6740d3abdfd2cd7572173ad22fd"

TEXTURE: tuple[DetectableDistortion, ...] = ("Blurs", "Compression", "Noise", "Sharpness")
TONE: tuple[DetectableDistortion, ...] = ("Color distortions", "Brightness change", "Contrast")
HEADS: dict[str, tuple[DetectableDistortion, ...]] = {"texture": TEXTURE, "tone": TONE, "compared": DETECTABLE}
# The kinds that are told apart within a category, as findings name them.
SUBTYPES: dict[DetectableDistortion, tuple[str, ...]] = {
    "Blurs": ("defocus or motion blur",),
    "Color distortions": ("desaturation", "oversaturation", "color cast"),
    "Compression": ("JPEG blocking", "coding artifacts", "banding"),
    "Noise": ("Gaussian noise", "impulse noise", "color noise"),
    "Brightness change": ("underexposure", "overexposure"),
    "Sharpness": ("oversharpening",),
    "Contrast": ("low contrast", "high contrast"),
}
# How much of a severity is what the networks see, the rest being what the curves over single measures say. On photos
# that the networks did not know they did best alone for blur and coding, and with the curves for the others.
TRUST: dict[DetectableDistortion, float] = {
    "Blurs": 1.0,
    "Color distortions": 0.67,
    "Compression": 1.0,
    "Noise": 0.75,
    "Brightness change": 0.67,
    "Sharpness": 0.67,
    "Contrast": 0.67,
}
GENTLE = 0.2  # how far around 0 and 4 the outputs bend into severities, so that order is kept to the ends
FARTHEST = 4.0  # standard deviations: nothing is concluded from how much farther a trait lies from the usual


@dataclass(frozen=True)
class Seen:
    """What the networks see of one category: its severity, and that of each of its SUBTYPES; all 0 to 4."""

    severity: float
    subtypes: Mapping[str, float]


def detect(image: LoadedImage) -> dict[DetectableDistortion, Seen] | None:
    """What is seen of each category in an image by itself; ``None`` for an image too small to have traits."""
    if not has_traits(image):
        return None
    found, weights = traits(image), read_weights(WEIGHTS, SHA256)
    return judge(weights, "texture", found.texture) | judge(weights, "tone", found.tone)


def detect_change(image: LoadedImage, reference: LoadedImage) -> dict[DetectableDistortion, Seen] | None:
    """As ``detect``, of what tells an image from its reference of the same size; all 0 where no trait differs."""
    if not has_traits(image):
        return None
    change = traits(image).all - traits(reference).all
    seen = judge(read_weights(WEIGHTS, SHA256), "compared", change)
    return seen if change.any() else {name: Seen(0.0, dict.fromkeys(one.subtypes, 0.0)) for name, one in seen.items()}


def judge(weights: Weights, head: str, values: Values) -> dict[DetectableDistortion, Seen]:
    """What one head sees in the traits of one image, or in the change of them."""
    severities = iter(graded(read(weights, head, values)).tolist())
    worst = {name: next(severities) for name in HEADS[head]}
    return {name: Seen(worst[name], {kind: next(severities) for kind in SUBTYPES[name]}) for name in HEADS[head]}


def read(weights: Weights, head: str, values: Values) -> Values:
    """The mean output of a head's networks, not clipped: (.., traits) in, (.., outputs) out.

    The outputs are the severities of the head's categories and after these of their subtypes, in order.
    """
    mean, spread, inward, inner, outward, outer = (
        weights[f"{head}_{part}"] for part in ("mean", "spread", "inward", "inner", "outward", "outer")
    )
    scaled = np.clip((values - mean) / spread, -FARTHEST, FARTHEST)
    # einsum and not matrix products: their last bits may depend on the threads of the linear algebra library.
    hidden = np.tanh(np.einsum("...t,kth->...kh", scaled, inward) + inner)
    return (np.einsum("...kh,khc->...kc", hidden, outward) + outer).mean(axis=-2)


def graded(outputs: Values) -> Values:
    """Severities in 0..4 from outputs: about the output itself from 0.5 to 3.5, bending gently towards the ends."""
    above = GENTLE * np.logaddexp(0, outputs / GENTLE)
    return np.maximum(4 - GENTLE * np.logaddexp(0, (4 - above) / GENTLE), 0)
