"""The quality model's head: linear projections of all features, then small networks, fitted in two steps.

First step, ridge regression: one projection is the mean opinion by photos that people have judged, in several views
each, and by pristine ones; one is that of each panel (``panels``); the others are by all images: the score, the share
of quality that a distortion left, and the severity of each kind. Second step: small networks from the projections and
the statistics of the pixels to the score. They are fitted on projections of images that the ridge regression was not
fitted on, with a loss on the score and one on the order within a ladder.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy
from numpy.typing import NDArray

from agenticiqa.eval.research.panels import NO_PANEL, RIDGE_ALIKE, members, opinions, with_panels
from agenticiqa.programs.errors import UserError

if TYPE_CHECKING:
    import torch

Array = NDArray[np.float32]
Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
Mask = NDArray[np.bool_]

CLIP = 5.0  # standard deviations beyond which an input is clipped
STATISTICS_WEIGHT = 4.0  # the statistics are few beside the activations
RIDGE_OPINION, RIDGE_LADDERS = 0.5, 0.5  # penalties relative to the mean squared feature, for an image of weight one
FRAME = 0.3  # weight of a pristine photo among the opinions
SPANNING = 4000  # images whose features span the space that the regressions work in
LEAST_VARIANCE = 1e-4  # added to the mean squared feature of each of these, as some are nearly alike
NETWORKS, HIDDEN, LAST = 4, 48, 16
EPOCHS, LADDERS_PER_STEP, RATE, DECAY = 20, 64, 3e-3, 3e-2
NOISE, DROPOUT = 0.25, 0.25  # standard deviations of noise on the inputs, share of hidden units left out
ORDER_WEIGHT, MARGIN = 1.5, 0.8  # of the loss on the order; the margin is that share of the difference wanted
# The networks' difference from the opinion counts two thirds, and in full where they see damage: from about 0.8 levels.
SHARE, DAMAGE, WIDTH = 0.65, 0.8, 0.2
BEND = 0.5  # levels, where the loss on the score turns from squared to absolute


@dataclass(frozen=True)
class Projections:
    """``standardized(features) @ weight + bias``: features (N, F) to projections (N, K), with those of the panels.

    The last features are the statistics of the pixels; the networks take the projections and these statistics.
    """

    mean: Array
    spread: Array
    weight: Array
    bias: Array
    panels: int

    def standardized(self, features: NDArray[np.floating]) -> Array:
        """Features (N, F) in deviations from the authentic images' mean, clipped to -5..5."""
        return np.clip((features.astype(np.float32) - self.mean) / self.spread, -CLIP, CLIP)

    def of_standardized(self, standard: Array) -> Array:
        """The projections (N, K) of standardized features (N, F)."""
        return with_panels(standard @ self.weight + self.bias, self.panels)


@dataclass(frozen=True)
class Networks:
    """M networks of inputs (N, T) to scores: two hidden layers (SiLU) and a linear part.

    Their mean is added to the first input, the opinion, in part or where it is a large loss in full.
    """

    mean: Array
    spread: Array
    inward: Array  # (T, M * HIDDEN)
    inner: Array
    middle: Array  # (M, HIDDEN, LAST)
    center: Array  # (M, LAST)
    outward: Array  # (M, LAST)
    straight: Array  # (T,)
    bias: float

    def __call__(self, given: Array) -> Floats:
        """The scores (N,)."""
        x = np.clip((given - self.mean) / self.spread, -CLIP, CLIP)
        hidden = _silu(x @ self.inward + self.inner).reshape(len(x), len(self.middle), -1)
        last = _silu(np.einsum("nmh,mhl->nml", hidden, self.middle) + self.center)
        change = np.einsum("nml,ml->n", last, self.outward) + x @ self.straight + self.bias
        seen = 1 / (1 + np.exp((change + DAMAGE) / WIDTH))
        return given[:, 0] + change * (SHARE + (1 - SHARE) * seen)


@dataclass(frozen=True)
class Wanted:
    """What N images are to give: ``targets`` (N, K) of the projections by all images, ``score`` (N,) on 1..5.

    ``authentic`` marks the images that people have judged, ``judged`` these and other views of them, ``ladder`` numbers
    the ladders, ``weight`` is of both steps.
    ``panel`` (N,) numbers the panel that judged an image, or the photo that it is made of. ``frame`` marks the
    undistorted frames of pristine photos, each once.
    """

    targets: Array
    score: Floats
    authentic: Mask
    judged: Mask
    ladder: NDArray[np.int64]
    weight: Floats
    panel: NDArray[np.intp]
    frame: Mask

    @property
    def panels(self) -> int:
        """The number of panels."""
        return int(self.panel.max(initial=NO_PANEL)) + 1


@dataclass(frozen=True)
class Reduction:
    """Features in deviations (N, F) to coordinates (N, B) in the span of B images, and weights on these back.

    The regressions are as on all features, but their weights lie in that span: half of the work of solving for all
    pairs of images, and a quarter of the memory.
    """

    toward: Array  # (F, B)

    @classmethod
    def of(cls, standard: Array, statistics: int) -> "Reduction":
        """The span of the images (B, F), of which none may repeat; the last features are statistics."""
        weights = _feature_weights(standard.shape[1], statistics)
        spanning = standard * weights / np.float32(np.sqrt(standard.shape[1]))
        products = (spanning @ spanning.T).astype(np.float64)
        products[np.diag_indices_from(products)] += LEAST_VARIANCE
        lower = scipy.linalg.cholesky(products, lower=True, overwrite_a=True)
        inward = scipy.linalg.solve_triangular(lower, np.eye(len(lower)), lower=True).astype(np.float32)
        scaled = spanning * weights / np.float32(np.sqrt(standard.shape[1]))
        return cls(np.ascontiguousarray((inward @ scaled).T))


def ridge_regression(coordinates: Array, wanted: Array, weight: Floats, ridge: float) -> tuple[Array, Array]:
    """The coefficients (B, K) of a ridge regression from coordinates (N, B) to (N, K), and the intercepts (K,)."""
    center = np.average(wanted, axis=0, weights=weight).astype(np.float32)
    weighted = coordinates * weight.astype(np.float32)[:, None]
    system = weighted.T @ coordinates
    system[np.diag_indices_from(system)] += np.float32(ridge)
    found = scipy.linalg.solve(system, weighted.T @ (wanted - center), assume_a="pos", overwrite_a=True)
    return found.astype(np.float32), center


def regressions(coordinates: Array, wanted: Wanted, train: Mask) -> tuple[Array, Array]:
    """Coefficients (B, K) and intercepts of all projections, fitted on the images of the mask ``train``."""
    score = wanted.score[:, None].astype(np.float32)
    alike = members(wanted.panel, wanted.panels)
    everything = np.concatenate([score, wanted.targets], axis=1)
    rows, judged = np.flatnonzero(train), np.flatnonzero(train & (wanted.judged | wanted.frame))
    photos = np.flatnonzero(train & (wanted.authentic | wanted.frame))
    weight = np.where(wanted.frame, FRAME, wanted.weight)[judged]
    parts = [
        ridge_regression(coordinates[judged], score[judged], weight, RIDGE_OPINION),
        opinions(coordinates[judged], wanted.score[judged], weight, wanted.panel[judged], wanted.panels),
        ridge_regression(coordinates[photos], alike[photos], np.ones(len(photos)), RIDGE_ALIKE),
        ridge_regression(coordinates[rows], everything[rows], wanted.weight[rows], RIDGE_LADDERS),
    ]
    coefficients, centers = zip(*parts, strict=True)
    return np.concatenate(coefficients, axis=1), np.concatenate(centers)


def _feature_weights(size: int, statistics: int) -> Array:
    weights = np.ones(size, np.float32)
    weights[-statistics:] = STATISTICS_WEIGHT
    return weights


def fit_networks(given: Array, wanted: Wanted, rows: Rows, seed: int) -> Networks:
    """Fit the networks from inputs (N, T) of the rows. Raises UserError without torch."""
    try:
        import torch
    except ImportError as missing:
        raise UserError('training needs torch: pip install "agenticiqa[train]"') from missing
    mean, spread = given[rows].mean(axis=0), given[rows].std(axis=0) + np.float32(1e-3)
    scaled = torch.from_numpy(np.clip((given - mean) / spread, -CLIP, CLIP).astype(np.float32))
    start = torch.from_numpy(given[:, 0].astype(np.float32))
    fitted = [_fit_network(scaled, start, wanted, rows, [seed, number]) for number in range(NETWORKS)]
    inward, inner, middle, center, outward, straight, bias = zip(*fitted, strict=True)
    return Networks(
        mean,
        spread,
        np.concatenate(inward, axis=1),
        np.concatenate(inner),
        np.stack(middle),
        np.stack(center),
        (np.stack(outward) / NETWORKS).astype(np.float32),
        np.mean(straight, axis=0),
        float(np.mean(bias)),
    )


def _fit_network(
    scaled: "torch.Tensor", opinion: "torch.Tensor", wanted: Wanted, rows: Rows, seed: Sequence[int]
) -> tuple[Array, ...]:
    import torch

    rng = np.random.default_rng(seed)
    generator = torch.Generator().manual_seed(int(rng.integers(1 << 31)))
    torch.manual_seed(int(rng.integers(1 << 31)))
    first, second = torch.nn.Linear(scaled.shape[1], HIDDEN), torch.nn.Linear(HIDDEN, LAST)
    third, straight = torch.nn.Linear(LAST, 1), torch.nn.Linear(scaled.shape[1], 1)
    torch.nn.init.zeros_(straight.weight)
    torch.nn.init.zeros_(third.weight)
    layers = torch.nn.ModuleList([first, second, third, straight])
    optimizer = torch.optim.AdamW(layers.parameters(), lr=RATE, weight_decay=DECAY)
    score = torch.from_numpy(wanted.score.astype(np.float32))
    weight = torch.from_numpy(wanted.weight.astype(np.float32))
    order = rows[np.argsort(wanted.ladder[rows], kind="stable")]
    groups = np.split(order, np.flatnonzero(np.diff(wanted.ladder[order])) + 1)
    steps = EPOCHS * -(-len(groups) // LADDERS_PER_STEP)
    done = 0
    for _ in range(EPOCHS):
        shuffled = rng.permutation(len(groups))
        for start in range(0, len(groups), LADDERS_PER_STEP):
            chosen = [groups[number] for number in shuffled[start : start + LADDERS_PER_STEP]]
            batch = np.concatenate(chosen)
            x = scaled[batch]
            x = x + NOISE * torch.randn(x.shape, generator=generator)
            keep = (torch.rand(len(batch), HIDDEN, generator=generator) >= DROPOUT) / (1 - DROPOUT)
            hidden = torch.nn.functional.silu(first(x)) * keep
            found = opinion[batch] + (third(torch.nn.functional.silu(second(hidden))) + straight(x))[:, 0]
            off = torch.nn.functional.smooth_l1_loss(found, score[batch], reduction="none", beta=BEND)
            loss = (weight[batch] * off).mean() + ORDER_WEIGHT * _disorder(found, score[batch], chosen)
            for group in optimizer.param_groups:
                group["lr"] = RATE / 2 * (1 + np.cos(np.pi * done / steps))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            done += 1
    return (
        first.weight.detach().numpy().T.copy(),
        first.bias.detach().numpy(),
        second.weight.detach().numpy().T.copy(),
        second.bias.detach().numpy(),
        third.weight.detach().numpy()[0],
        straight.weight.detach().numpy()[0],
        third.bias.detach().numpy()[0] + straight.bias.detach().numpy()[0],
    )


def _disorder(found: "torch.Tensor", score: "torch.Tensor", ladders: Sequence[Rows]) -> "torch.Tensor":
    """How much, on average, pairs of a ladder are nearer to each other than by the margin, or the wrong way round."""
    import torch

    number = torch.from_numpy(np.repeat(np.arange(len(ladders)), [len(rows) for rows in ladders]))
    better, worse = torch.nonzero(
        (number[:, None] == number[None]) & (score[:, None] > score[None] + 0.05), as_tuple=True
    )
    if not len(better):
        return found.sum() * 0
    return torch.relu(MARGIN * (score[better] - score[worse]) - (found[better] - found[worse])).mean()


def _silu(x: NDArray[np.floating]) -> NDArray[np.floating]:
    return x / (1 + np.exp(-x))
