"""Fit the quality model's head on all rows, on those of other folds, or on those of other sets."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from agenticiqa.eval.metrics import srcc
from agenticiqa.eval.research.distort import DISTORTION_STRENGTHS, KINDS
from agenticiqa.eval.research.distortion_series import SeriesImages
from agenticiqa.eval.research.quality_head import SPANNING, Wanted, fit_networks, reduction, regressions
from agenticiqa.eval.research.quality_network import (
    STATISTICS,
    Array,
    Networks,
    Projections,
    networks_input,
    standardized,
    with_panels,
)
from agenticiqa.eval.research.quality_rows import Rows

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Weight of a rated photo with its views in the networks' loss; in the ridge regressions it is 1. The target of the
# networks is the first projection: with the MOS as the target, the held-out SRCC was .68 instead of .79.
RATED_WEIGHT = 10.0
GOOD = 3.0  # points; a score above this is good


@dataclass(frozen=True)
class Training:
    """All rows, with values that are computed once.

    ``standard`` (N, F) are features standardized by ``center`` and ``spread``. ``coordinates`` (N, B) are ``standard``
    times ``toward`` (F, B). ``projected`` (N, K) are the projections of each row by ridge regressions on the training
    rows of other folds.
    """

    wanted: Wanted
    test: Mask
    folds: NDArray[np.intp]
    center: Array
    spread: Array
    standard: Array
    toward: Array
    coordinates: Array
    projected: Array

    @classmethod
    def of(cls, rows: Rows, wanted: Wanted, folds: NDArray[np.intp]) -> "Training":
        """Compute all values; the authentic images standardize the features."""
        features = rows.images.features
        authentic = features[rows.authentic].astype(np.float32)
        center, spread = authentic.mean(axis=0), authentic.std(axis=0) + np.float32(1e-3)
        standard = standardized(*map(torch.from_numpy, (features.astype(np.float32), center, spread))).numpy()
        toward = reduction(standard[_spanning(rows)], STATISTICS)
        coordinates = standard @ toward
        projected = np.zeros((len(standard), 2 + 2 * wanted.panels + wanted.targets.shape[1]), np.float32)
        for fold in np.unique(folds):
            here = (folds == fold) & ~rows.test
            projected[here] = _projected(coordinates, wanted, (folds != fold) & ~rows.test, here)
        return cls(wanted, rows.test, folds, center, spread, standard, toward, coordinates, projected)

    @property
    def novelty(self) -> Floats:
        """Return the mean square of the standardized features (N,)."""
        return np.square(self.standard).mean(axis=1).astype(np.float64)

    def held_out(self) -> Floats:
        """Return the score of each training row by networks fitted on other folds; NaN for test rows."""
        scores = np.full(len(self.test), np.nan)
        for fold in np.unique(self.folds):
            here = (self.folds == fold) & ~self.test
            networks = self._networks((self.folds != fold) & ~self.test, int(fold))
            scores[here] = _scores(networks, self.projected[here], self.standard[here])
        return scores

    def held_out_set(self, here: Mask) -> Floats:
        """Return the scores of the rows of a mask by a head fitted on all other rows; NaN for these."""
        train = ~here & ~self.test
        scores = np.full(len(here), np.nan)
        projected = _projected(self.coordinates, self.wanted, train, here)
        scores[here] = _scores(self._networks(train, 0), projected, self.standard[here])
        return scores

    def fitted(self, seed: int) -> tuple[Projections, Networks]:
        """Return the head fitted on all training rows."""
        coefficients, centers = regressions(self.coordinates, self.wanted, ~self.test)
        projections = Projections(self.center, self.spread, self.toward @ coefficients, centers, self.wanted.panels)
        return projections, self._networks(~self.test, seed)

    def _networks(self, train: Mask, seed: int) -> Networks:
        rated = self.wanted.rated
        wanted = replace(
            self.wanted,
            score=np.where(rated, self.projected[:, 0], self.wanted.score),
            weight=np.where(rated, RATED_WEIGHT, 1.0) * self.wanted.weight,
        )
        inputs = networks_input(*map(torch.from_numpy, (self.projected, self.standard))).numpy()
        return fit_networks(inputs, wanted, np.flatnonzero(train), seed)


def _scores(networks: Networks, projected: Array, standard: Array) -> Floats:
    """Return the scores (N,) of images with these projections and standardized features."""
    with torch.no_grad():
        return networks(networks_input(*map(torch.from_numpy, (projected, standard)))).double().numpy()


def _projected(coordinates: Array, wanted: Wanted, train: Mask, here: Mask) -> Array:
    """Return the projections of the rows of the mask ``here`` by regressions on those of ``train``."""
    coefficients, centers = regressions(coordinates, wanted, train)
    return with_panels(torch.from_numpy(coordinates[here] @ coefficients + centers), wanted.panels).numpy()


def _spanning(rows: Rows) -> NDArray[np.intp]:
    """Return the rows of rated images, and of distorted ones drawn from all training series.

    Rows of held-out folds are included, as the span uses only features, not targets.
    """
    authentic = np.flatnonzero(rows.authentic)
    distorted = np.flatnonzero((rows.images.level > 0) & ~rows.test)
    count = min(max(0, SPANNING - len(authentic)), len(distorted))
    return np.concatenate([authentic, np.random.default_rng(0).choice(distorted, count, replace=False)])


def scores_of(projections: Projections, networks: Networks, features: NDArray[np.floating]) -> Floats:
    """Return the scores (N,) of images with features (N, F)."""
    with torch.no_grad():
        projected, standard = projections(torch.from_numpy(features.astype(np.float32)))
    return _scores(networks, projected.numpy(), standard.numpy())


def series_table(images: SeriesImages, chosen: Mask, scores: Floats) -> list[str]:
    """Return a Markdown table of how the scores (n,) of the chosen rows follow the strengths, by kind and for all.

    "pooled" is the SRCC of all images of a kind with the strength, "within" the mean SRCC within a series,
    "falling" the share of series in which no score rises, "above 3" the share of images at the highest strength with
    such a score.
    """
    kinds, strengths, numbers = images.kind[chosen], images.level[chosen], images.series[chosen]
    scores = np.clip(scores, 1, 5)
    lines = ["| kind | series | pooled | within | falling | above 3 |", "| --- |" + " ---: |" * 5]
    everything: dict[str, list[float]] = {"within": [], "falling": []}
    single = np.isin(kinds, list(KINDS))
    for kind in KINDS:
        rows = kinds == kind
        within, falling = [], []
        for number in np.unique(numbers[rows]):
            series = np.flatnonzero(numbers == number)
            series = series[np.argsort(strengths[series])]
            within.append(srcc(-strengths[series], scores[series]) or 0.0)
            falling.append(bool(np.all(np.diff(scores[series]) <= 0)))
        everything["within"] += within
        everything["falling"] += falling
        lines.append(_line(kind, within, falling, strengths[rows], scores[rows]))
    lines.append(_line("all", everything["within"], everything["falling"], strengths[single], scores[single]))
    return lines


def _line(kind: str, within: Sequence[float], falling: Sequence[float], strengths: Floats, scores: Floats) -> str:
    extreme = scores[strengths == DISTORTION_STRENGTHS[-1]]
    means = [float(np.mean(values)) for values in (within, falling, extreme > GOOD)]
    figures = [srcc(-strengths, scores) or 0.0, *means]
    return f"| {kind} | {len(within)} | {' | '.join(f'{figure:.3f}' for figure in figures)} |"
