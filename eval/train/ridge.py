"""Linear readings of features by ridge regression, solved over images rather than features."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CLIP = 5.0  # standard deviations: beyond it a feature says no more

Array = NDArray[np.float32]


@dataclass(frozen=True)
class Head:
    """A linear reading of standardised features: ``clip((f - mean) / spread) @ weight + bias``."""

    mean: Array
    spread: Array
    weight: Array
    bias: float

    def standardised(self, features: Array) -> Array:
        """Features (N, F) in deviations from the training images' mean, -5..5."""
        return np.clip((features - self.mean) / self.spread, -CLIP, CLIP)

    def __call__(self, features: Array) -> NDArray[np.float64]:
        """What it says of features (N, F)."""
        return (self.standardised(features) @ self.weight + self.bias).astype(np.float64)


def fit_head(features: Array, opinions: NDArray[np.float64], weights: NDArray[np.float64], ridge: float) -> Head:
    """The reading of features (N, F) that comes nearest to opinions (N,), each image counted ``weights`` times.

    ``ridge`` is the penalty against the mean squared feature, for an image of weight one.
    """
    bias = float(np.average(opinions, weights=weights))
    spread = features.std(axis=0) + np.float32(1e-3)
    blank = Head(features.mean(axis=0), spread, np.zeros_like(spread), bias)
    standard = blank.standardised(features)
    kernel = (standard @ standard.T).astype(np.float64) / standard.shape[1]
    kernel[np.diag_indices(len(kernel))] += ridge / weights
    weight = standard.T @ np.linalg.solve(kernel, opinions - bias).astype(np.float32) / standard.shape[1]
    return Head(blank.mean, spread, weight, bias)
