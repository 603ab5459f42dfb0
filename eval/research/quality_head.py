"""Fit the quality model's head: linear projections of all features, then small networks, in two steps.

The first step is ridge regression. One projection, the shared head, predicts the MOS of labeled photos, in several
views each, and of pristine ones. Each panel also has its own head. The other projections use all images: the score, the
share of quality that remains after a distortion, and the severity of each kind. The second step fits small networks
from the projections and the pixel statistics to the score. They are fitted on held-out projections of the ridge
regression, with one loss on the score and one on the order within a series.

A panel is the group of people who rated one set. A single linear head fits each panel worse than its own head, so each
large set has one, used for images that look like its photos. All heads are fitted together, as a common part and a part
for each panel (T. Evgeniou and M. Pontil, "Regularized multi-task learning", KDD 2004).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
import torch
from numpy.typing import NDArray
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from torch import Tensor
from torch.nn import functional

from agenticiqa.eval.research.quality_network import Array, Networks, Perceptron, standardized

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
Mask = NDArray[np.bool_]

STATISTICS_WEIGHT = 4.0  # weight of the statistics, as they are few compared with the activations
# Penalties relative to the mean squared feature, for an image of weight one.
RIDGE_MOS, RIDGE_SERIES, RIDGE_PANEL, RIDGE_ALIKE = 0.5, 0.5, 1.0, 0.1
FRAME = 0.3  # weight of a pristine photo in the fit to MOS
FEWEST = 300  # least number of images of a set with its own panel
NO_PANEL = -1
SPANNING = 4000  # number of images that span the space of the regressions
LEAST_VARIANCE = 1e-4  # variance added to the mean squared feature of each of them, as some are nearly alike
NETWORKS, EPOCHS, SERIES_PER_STEP, RATE, DECAY = 4, 20, 64, 3e-3, 3e-2
NOISE = 0.25  # standard deviations of noise on the inputs
ORDER_WEIGHT, MARGIN = 1.5, 0.8  # weight of the loss on the order; margin as a share of the target difference
BEND = 0.5  # error in levels; the loss on the score is squared below and absolute above


@dataclass(frozen=True)
class Wanted:
    """The targets of N images: ``targets`` (N, K) of the projections by all images, ``score`` (N,) on 1..5.

    ``authentic`` marks the images that people have rated, ``rated`` these and other views of them. ``series`` numbers
    the distortion series. ``weight`` applies to both steps. ``panel`` (N,) numbers the panel that rated an image or its
    source photo. ``frame`` marks the undistorted frames of pristine photos, each once.
    """

    targets: Array
    score: Floats
    authentic: Mask
    rated: Mask
    series: NDArray[np.int64]
    weight: Floats
    panel: NDArray[np.intp]
    frame: Mask

    @property
    def panels(self) -> int:
        """Return the number of panels."""
        return int(self.panel.max(initial=NO_PANEL)) + 1


def reduction(standard: Array, statistics: int) -> Array:
    """Return weights (F, B) from standardized features to coordinates in the span of the images (B, F).

    No image may occur twice; the last features are statistics. Regressions on the coordinates equal those on all
    features with weights in the span. They need half the time of kernel regression, and a quarter of the memory.
    """
    weights = np.ones(standard.shape[1], np.float32)
    weights[-statistics:] = STATISTICS_WEIGHT
    spanning = standard * weights / np.float32(np.sqrt(standard.shape[1]))
    products = (spanning @ spanning.T).astype(np.float64)
    products[np.diag_indices_from(products)] += LEAST_VARIANCE
    lower = scipy.linalg.cholesky(products, lower=True, overwrite_a=True)
    inward = scipy.linalg.solve_triangular(lower, np.eye(len(lower)), lower=True).astype(np.float32)
    return np.ascontiguousarray((inward @ (spanning * weights / np.float32(np.sqrt(standard.shape[1])))).T)


def ridge_regression(coordinates: Array, wanted: Array, weight: Floats, ridge: float) -> tuple[Array, Array]:
    """Return coefficients (B, K) of a ridge regression from coordinates (N, B) to (N, K), and intercepts (K,)."""
    center = np.average(wanted, axis=0, weights=weight).astype(np.float32)
    model = Ridge(ridge, fit_intercept=False, solver="cholesky").fit(coordinates, wanted - center, weight)
    return np.reshape(model.coef_, (wanted.shape[1], -1)).T.astype(np.float32), center


def members(panel: NDArray[np.intp], count: int) -> Array:
    """Return which of ``count`` panels rated each of N images: 1 or 0, (N, count)."""
    return (panel[:, None] == np.arange(count)).astype(np.float32)


def all_mos(
    coordinates: Array, mos: Floats, weight: Floats, panel: NDArray[np.intp], count: int
) -> tuple[Array, Array]:
    """Return coefficients (B, P) from coordinates (N, B) to the MOS of each of P panels, and intercepts (P,).

    ``panel`` (N,) numbers the panel that rated an image; ``NO_PANEL``, for a small set, contributes only to the common
    part. The penalty limits how far a panel departs from the common part; a panel without images equals it.
    """
    rated = members(panel, count)
    center = np.average(mos, weights=weight)
    kernel = (coordinates @ coordinates.T).astype(np.float64) * (1 + rated @ rated.T)
    dual = KernelRidge(alpha=RIDGE_PANEL, kernel="precomputed").fit(kernel, mos - center, weight).dual_coef_
    return coordinates.T @ (dual[:, None] * (1 + rated)).astype(np.float32), np.full(count, center, np.float32)


def regressions(coordinates: Array, wanted: Wanted, train: Mask) -> tuple[Array, Array]:
    """Return coefficients (B, K) and intercepts (K,) of all projections, fitted on the images of the mask."""
    score = wanted.score[:, None].astype(np.float32)
    alike = members(wanted.panel, wanted.panels)
    everything = np.concatenate([score, wanted.targets], axis=1)
    rows, rated = np.flatnonzero(train), np.flatnonzero(train & (wanted.rated | wanted.frame))
    photos = np.flatnonzero(train & (wanted.authentic | wanted.frame))
    weight = np.where(wanted.frame, FRAME, wanted.weight)[rated]
    parts = [ridge_regression(coordinates[rated], score[rated], weight, RIDGE_MOS)]
    if wanted.panels:
        parts += [
            all_mos(coordinates[rated], wanted.score[rated], weight, wanted.panel[rated], wanted.panels),
            ridge_regression(coordinates[photos], alike[photos], np.ones(len(photos)), RIDGE_ALIKE),
        ]
    parts.append(ridge_regression(coordinates[rows], everything[rows], wanted.weight[rows], RIDGE_SERIES))
    coefficients, centers = zip(*parts, strict=True)
    return np.concatenate(coefficients, axis=1), np.concatenate(centers)


def fit_networks(values: Array, wanted: Wanted, rows: Rows, seed: int) -> Networks:
    """Return networks from inputs (N, T) to scores, fitted on ``rows``."""
    torch.manual_seed(seed)
    mean, spread = values[rows].mean(axis=0), values[rows].std(axis=0) + np.float32(1e-3)
    inputs = standardized(*(torch.from_numpy(array) for array in (values, mean, spread)))
    perceptrons = [_fitted(Perceptron(values.shape[1]), inputs, values[:, 0], wanted, rows) for _ in range(NETWORKS)]
    return Networks(mean, spread, perceptrons).eval()


def _fitted(network: Perceptron, inputs: Tensor, mos: Array, wanted: Wanted, rows: Rows) -> Perceptron:
    """Train a network to change the predicted MOS into the scores; each step takes some series."""
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=DECAY)
    start, score, weight = (torch.from_numpy(array.astype(np.float32)) for array in (mos, wanted.score, wanted.weight))
    order = rows[np.argsort(wanted.series[rows], kind="stable")]
    all_series = np.split(order, np.flatnonzero(np.diff(wanted.series[order])) + 1)
    steps = EPOCHS * -(-len(all_series) // SERIES_PER_STEP)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(EPOCHS):
        for numbers in torch.randperm(len(all_series)).split(SERIES_PER_STEP):
            chosen = [all_series[number] for number in numbers.tolist()]
            batch = np.concatenate(chosen)
            output = start[batch] + network(inputs[batch] + NOISE * torch.randn(len(batch), inputs.shape[1]))
            error = functional.smooth_l1_loss(output, score[batch], reduction="none", beta=BEND)
            loss = (weight[batch] * error).mean() + ORDER_WEIGHT * _disorder(output, score[batch], chosen)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return network


def _disorder(output: Tensor, score: Tensor, all_series: Sequence[Rows]) -> Tensor:
    """Return the mean hinge loss of pairs of a series that are in the wrong order or closer than the margin."""
    number = torch.from_numpy(np.repeat(np.arange(len(all_series)), [len(rows) for rows in all_series]))
    is_pair = (number[:, None] == number[None]) & (score[:, None] > score[None] + 0.05)
    better, worse = is_pair.nonzero(as_tuple=True)
    if not len(better):
        return output.sum() * 0
    return functional.relu(MARGIN * (score[better] - score[worse]) - (output[better] - output[worse])).mean()
