"""Fitting small networks with one hidden layer in plain numpy: severities from the traits of an image."""

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.offline.detector import FARTHEST

Values = NDArray[np.float64]

NETWORKS = 4
EPOCHS = 40
BATCH = 128
RATE = 3e-3
DECAY = 3e-3
JITTER = 0.3  # standard deviations: traits of other photos differ more than those of these few
WORST = 4.0


def fit_networks(given: Values, truth: Values, weight: Values, hidden: int, seed: int) -> dict[str, Values]:
    """NETWORKS networks of ``hidden`` units from traits (N, T) to severities (N, C), errors counting by weight (N, C).

    The loss is Huber's; an output below 0 for a truth of 0, or above 4 for one of 4, is no error, as outputs are
    clipped. Adam with a rate that falls to zero along a cosine. Gives the arrays that
    ``agenticiqa.programs.offline.detector.read`` takes: mean and spread (T), inward (K, T, H), inner (K, H), outward
    (K, H, C), outer (K, C).
    """
    mean, spread = given.mean(axis=0), given.std(axis=0) + 1e-3
    scaled = np.clip((given - mean) / spread, -FARTHEST, FARTHEST)
    fitted = [_fit(scaled, truth, weight, hidden, np.random.default_rng([seed, number])) for number in range(NETWORKS)]
    parts = dict(zip(("inward", "inner", "outward", "outer"), map(np.stack, zip(*fitted, strict=True)), strict=True))
    return {"mean": mean, "spread": spread, **parts}


def _fit(scaled: Values, truth: Values, weight: Values, hidden: int, rng: np.random.Generator) -> list[Values]:
    traits, categories = scaled.shape[1], truth.shape[1]
    inward, outward = rng.normal(0, traits**-0.5, (traits, hidden)), rng.normal(0, hidden**-0.5, (hidden, categories))
    network = [inward, np.zeros(hidden), outward, np.zeros(categories)]
    first, second = [np.zeros_like(part) for part in network], [np.zeros_like(part) for part in network]
    steps = EPOCHS * (len(scaled) // BATCH)
    for step in range(steps):
        if step % (len(scaled) // BATCH) == 0:
            order = rng.permutation(len(scaled))
        rows = order[step % (len(scaled) // BATCH) * BATCH :][:BATCH]
        seen = scaled[rows] + JITTER * rng.standard_normal((BATCH, traits))
        rate = RATE / 2 * (1 + np.cos(np.pi * step / steps))
        slopes = _slopes(network, seen, truth[rows], weight[rows])
        for part, slope, mean, square in zip(network, slopes, first, second, strict=True):
            mean += 0.1 * (slope - mean)
            square += 0.001 * (slope**2 - square)
            moved = mean / (1 - 0.9 ** (step + 1)) / (np.sqrt(square / (1 - 0.999 ** (step + 1))) + 1e-8)
            part -= rate * (moved + (DECAY * part if part.ndim == 2 else 0))
    return network


def _slopes(network: list[Values], seen: Values, truth: Values, weight: Values) -> list[Values]:
    inward, inner, outward, outer = network
    hidden = np.tanh(seen @ inward + inner)
    output = hidden @ outward + outer
    error = output - truth
    error[(truth == 0) & (output < 0) | (truth == WORST) & (output > WORST)] = 0
    error = weight * np.clip(error, -1, 1) / len(seen)
    back = error @ outward.T * (1 - hidden**2)
    return [seen.T @ back, back.sum(axis=0), hidden.T @ error, error.sum(axis=0)]
