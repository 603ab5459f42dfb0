"""What a question asks for, by a trained classifier: for wordings that the rules do not know.

Logistic regression on hashed n-grams, trained on questions that people of many kinds might ask, in which the names of
distortions are replaced (``word_patterns``); ``eval/train/train_intents.py`` trains it and prints how well it reads.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.offline.language.word_patterns import hashed_ngrams
from agenticiqa.programs.tools.numerics.weights import read_weights

WEIGHTS = Path(__file__).with_name("intents.npz")
SHA256 = "896b4980748072000b6bd17e235d2b5c49c40b34b3b9925eaebfddda160f95fa"

INTENTS = (
    "yes",
    "no",
    "degree",
    "which",
    "where",
    "half",
    "half-clean",
    "part-yes",
    "part-no",
    "compare-yes",
    "compare-no",
    "compare-image",
    "compare-reference",
    "compare-category",
    "reference-yes",
    "reference-no",
    "metric",
    "rating",
    "unanswerable",
)
"""What may be asked for. "yes" and "no" are the true answers where the distortion is there: "no" for "Is it sharp?".

With "part" of a part of the image, with "reference" of the reference; "compare" is with the reference: whether there is
more of it, which of the two has it ("image", "reference"), or what differs. "half" is which half has it, "half-clean"
which one has less.
"""


@dataclass(frozen=True)
class Intent:
    """What is asked for, one of ``INTENTS``, and how probable that is (0..1)."""

    name: str
    probability: float


def intent_of(question: str, asking: str) -> Intent:
    """The likeliest intent of a question without options, of which ``asking`` is the part that asks.

    Raises ToolError for damaged weights.
    """
    return likeliest(read_weights(WEIGHTS, SHA256), hashed_ngrams(question, asking))


def likeliest(weights: Mapping[str, NDArray[np.float64]], ngrams: Mapping[int, float]) -> Intent:
    """What weights read: ``weights`` (buckets x intents), their ``scale`` and ``bias`` (intents)."""
    scores = np.array(list(ngrams.values())) @ weights["weights"][list(ngrams)] * weights["scale"] + weights["bias"]
    shares = np.exp(scores - scores.max())
    best = int(shares.argmax())
    return Intent(INTENTS[best], float(shares[best] / shares.sum()))
