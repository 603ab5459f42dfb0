"""Linear heads on image features, fitted by scikit-learn's ridge regression."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.errors import UserError

CLIP = 5.0  # standard deviations beyond which a feature is clipped

Array = NDArray[np.float32]


@dataclass(frozen=True)
class Head:
    """A linear function of standardized features: ``clip((f - mean) / spread) @ weight + bias``."""

    mean: Array
    spread: Array
    weight: Array
    bias: float

    def standardized(self, features: Array) -> Array:
        """Features (N, F) in deviations from the training images' mean, clipped to -5..5."""
        return np.clip((features - self.mean) / self.spread, -CLIP, CLIP)

    def __call__(self, features: Array) -> NDArray[np.float64]:
        """The predictions (N,) for features (N, F)."""
        return (self.standardized(features) @ self.weight + self.bias).astype(np.float64)


def fit_head(features: Array, opinions: NDArray[np.float64], weights: NDArray[np.float64], ridge: float) -> Head:
    """The head that minimizes the weighted squared error on opinions (N,), with weights (N,), plus the ridge penalty.

    ``ridge`` is the penalty relative to the mean squared feature, for an image of weight one. Features are (N, F).
    Raises UserError without scikit-learn.
    """
    try:
        from sklearn.linear_model import Ridge
    except ImportError as missing:
        raise UserError('training needs scikit-learn: pip install "agenticiqa[train]"') from missing
    bias = float(np.average(opinions, weights=weights))
    spread = features.std(axis=0) + np.float32(1e-3)
    blank = Head(features.mean(axis=0), spread, np.zeros_like(spread), bias)
    standard = blank.standardized(features)
    # In double precision; with fewer images than features scikit-learn solves the N x N dual problem.
    model = Ridge(alpha=ridge * standard.shape[1], fit_intercept=False, solver="cholesky")
    model.fit(standard.astype(np.float64), opinions - bias, sample_weight=weights)
    return Head(blank.mean, spread, model.coef_.astype(np.float32), bias)
