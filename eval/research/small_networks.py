"""Fit small networks with one hidden layer: severities from the features of an image.

Ours, not scikit-learn's MLPRegressor, which has neither Huber's loss nor a weight for each output; torch's Adam would
not repeat the shipped weights bit for bit.
"""

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.offline.detector import MAX_DEVIATION

Values = NDArray[np.float64]

NETWORKS = 4
EPOCHS = 40
BATCH = 128
RATE = 3e-3
DECAY = 3e-3
JITTER = 0.3  # standard deviations of noise on the features: the few training photos vary too little
WORST = 4.0  # the highest severity


def fit_networks(
    given: Values,
    truth: Values,
    weight: Values,
    hidden: int,
    seed: int,
    *,
    networks: int = NETWORKS,
    epochs: int = EPOCHS,
    batch: int = BATCH,
    decay: float = DECAY,
    jitter: float = JITTER,
) -> dict[str, Values]:
    """Fit a few networks of ``hidden`` units from features (N, T) to severities (N, C), with weights (N, C).

    The loss is Huber's; an output below 0 for a truth of 0, or above 4 for a truth of 4, is no error, because outputs
    are clipped. The learning rate of Adam falls to zero along a cosine. Returns the arrays that
    ``agenticiqa.programs.offline.detector.head_outputs`` takes: mean and spread (T), inward (K, T, H), inner (K, H),
    outward (K, H, C), outer (K, C), for K networks.
    """
    mean, spread = given.mean(axis=0), given.std(axis=0) + 1e-3
    scaled = np.clip((given - mean) / spread, -MAX_DEVIATION, MAX_DEVIATION)
    fitted = [
        _fit(scaled, truth, weight, hidden, epochs, batch, decay, jitter, np.random.default_rng([seed, number]))
        for number in range(networks)
    ]
    parts = dict(zip(("inward", "inner", "outward", "outer"), map(np.stack, zip(*fitted, strict=True)), strict=True))
    return {"mean": mean, "spread": spread, **parts}


def _fit(
    scaled: Values,
    truth: Values,
    weight: Values,
    hidden: int,
    epochs: int,
    batch: int,
    decay: float,
    jitter: float,
    rng: np.random.Generator,
) -> list[Values]:
    n_features, n_outputs = scaled.shape[1], truth.shape[1]
    inward = rng.normal(0, n_features**-0.5, (n_features, hidden))
    outward = rng.normal(0, hidden**-0.5, (hidden, n_outputs))
    network = [inward, np.zeros(hidden), outward, np.zeros(n_outputs)]
    means, squares = [np.zeros_like(part) for part in network], [np.zeros_like(part) for part in network]
    per_epoch = len(scaled) // batch
    steps = epochs * per_epoch
    for step in range(steps):
        if step % per_epoch == 0:
            order = rng.permutation(len(scaled))
        rows = order[step % per_epoch * batch :][:batch]
        noisy = scaled[rows] + jitter * rng.standard_normal((batch, n_features))
        rate = RATE / 2 * (1 + np.cos(np.pi * step / steps))
        gradients = _gradients(network, noisy, truth[rows], weight[rows])
        for part, gradient, mean, square in zip(network, gradients, means, squares, strict=True):
            mean += 0.1 * (gradient - mean)
            square += 0.001 * (gradient**2 - square)
            step_size = mean / (1 - 0.9 ** (step + 1)) / (np.sqrt(square / (1 - 0.999 ** (step + 1))) + 1e-8)
            part -= rate * (step_size + (decay * part if part.ndim == 2 else 0))
    return network


def _gradients(network: list[Values], features: Values, truth: Values, weight: Values) -> list[Values]:
    inward, inner, outward, outer = network
    hidden = np.tanh(features @ inward + inner)
    output = hidden @ outward + outer
    error = output - truth
    error[(truth == 0) & (output < 0) | (truth == WORST) & (output > WORST)] = 0
    error = weight * np.clip(error, -1, 1) / len(features)
    back = error @ outward.T * (1 - hidden**2)
    return [features.T @ back, back.sum(axis=0), hidden.T @ error, error.sum(axis=0)]
