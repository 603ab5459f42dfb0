"""Measure what an adapter gains: tables by the number of labels, for scorers that were not trained on the set.

    python -m agenticiqa.eval.research.adapter_figures DATA

DATA has the folders clive, biq2021, agiqa3k and live_r2, each with a ``labels.csv``. A scorer that was not trained on a
set is a ridge regression (penalty 1) on the features of other sets. The shipped model is not changed. Labels are drawn
ten times (AGIQA-3K: whole prompts). The figures are of images of the other scenes. "saved" keeps the old score where
the adapter is refused; "always" applies every adapter. Coverage and width are of the 80 % interval.
"""

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agenticiqa.eval.calibrate import adapter_fit
from agenticiqa.eval.calibrate.adapter_fit import GivenLabels
from agenticiqa.eval.commands.calibrate_adapter import FEWEST_LABELS, seen_images
from agenticiqa.eval.datasets import MosScale
from agenticiqa.eval.labels.own_data import read_labels
from agenticiqa.eval.metrics import rmse, srcc
from agenticiqa.eval.research.command import begin_step, parser_of, run_command
from agenticiqa.programs.fusion.interval import NORMAL_QUANTILES
from agenticiqa.programs.tools.adapter import Adapter
from agenticiqa.programs.tools.numerics.predicted_mos import PredictedMOS

Numbers = NDArray[np.float64]

SCALES = {"clive": (0, 100), "biq2021": (0, 1), "agiqa3k": (0, 5), "live_r2": (0, 100), "avt_ai": (1, 5)}
MEASURED = ("clive", "biq2021", "agiqa3k", "live_r2")
COUNTS, DRAWS = (10, 20, 40, 50, 60, 100, 200), 10
RATER = 0.8  # standard error of one rater, in levels
STATISTICS, STATISTICS_WEIGHT = 203, 4.0  # the values of quality_head
HEADINGS = "labels, refused, SRCC before, saved, least gain, always, least gain, RMSE, saved, coverage, width, seconds"


@dataclass(frozen=True)
class RatedImages:
    """N images: features (N, F), scores of the scorer to adapt, MOS on 1..5, scenes and generators."""

    features: NDArray[np.float32]
    score: Numbers
    mos: Numbers
    content: NDArray[np.str_]
    generator: NDArray[np.str_]

    def of(self, rows: NDArray[np.intp] | NDArray[np.bool_], score: Numbers | None = None) -> "RatedImages":
        """Return the images of some rows, with other scores if given."""
        own = self.score[rows] if score is None else score
        return RatedImages(self.features[rows], own, self.mos[rows], self.content[rows], self.generator[rows])


def read_set(folder: Path) -> RatedImages:
    """Read the images of a set, scored by the shipped scorer."""
    items, scale = read_labels(folder / "labels.csv"), MosScale(*SCALES[folder.name])
    begin_step(f"{folder.name}: features of {len(items):,} images, which are cached")
    seen = seen_images([item.image for item in items])
    score, features = zip(*((seen[item.image].score, seen[item.image].features) for item in items), strict=True)
    mos = [scale.to_1_5(item.mos) for item in items]
    about = [[item.content for item in items], [(item.generator or "").split("_")[0] for item in items]]
    return RatedImages(np.stack(features), np.array(score), np.array(mos), *map(np.array, about))


def scores_by_others(others: Sequence[RatedImages], images: RatedImages) -> Numbers:
    """Return the scores (N,) of images by a ridge regression fitted to the MOS of other images."""
    weight = np.ones(images.features.shape[1], np.float32)
    weight[-STATISTICS:] = STATISTICS_WEIGHT
    train = np.concatenate([rated.features for rated in others]) * weight
    mos = np.concatenate([rated.mos for rated in others])
    kernel = (train @ train.T).astype(np.float64) / len(weight)
    dual = np.linalg.solve(kernel + np.eye(len(mos)), mos - mos.mean())
    return np.clip(images.features * weight @ (train.T @ dual) / len(weight) + mos.mean(), 1, 5)


def draw(images: RatedImages, count: int, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Draw labeled rows. Return them and the test rows: other scenes, or other images if there are few scenes."""
    rng = np.random.default_rng(seed)
    place = {name: number for number, name in enumerate(rng.permutation(np.unique(images.content)))}
    few = len(place) < 2 * adapter_fit.OUTER
    order = rng.permutation(len(images.mos))
    if not few:
        order = order[np.argsort([place[name] for name in images.content[order]], kind="stable")]
    rest = order[count:]
    return order[:count], rest if few else rest[~np.isin(images.content[rest], images.content[order[:count]])]


def measured(images: RatedImages, count: int, seed: int, labels: str) -> tuple[float, ...] | None:
    """Return the figures of one draw, ``None`` if images are too few; ``labels``: scores, shuffled, rated or pairs."""
    train, test = draw(images, 2 * count if labels == "pairs" else count, seed)
    if len(train) < count or len(test) < 20:
        return None
    if labels == "pairs":
        return _measured_pairs(images, train.reshape(-1, 2), test, seed)
    target = images.mos[train]
    if labels == "shuffled":
        target = np.random.default_rng(seed).permutation(target)
    if labels == "rated":
        target = np.clip(target + np.random.default_rng(seed).normal(0, RATER, count), 1, 5)
    contents = np.stack([images.content[train]] * 2, axis=1)
    sample = GivenLabels(images.features[train], images.score[train], target, np.ones(count), contents)
    began = time.perf_counter()
    fit, weights, held_out = adapter_fit.fit_adapter(sample)
    refused = count < FEWEST_LABELS or not adapter_fit.helps(sample, held_out)
    seconds = time.perf_counter() - began
    spread = adapter_fit.conformal_spread(held_out - target)
    adapter = Adapter("", weights, {"shipped": fit.shipped, "level": fit.level, "spread": spread})
    tested = zip(images.score[test], images.features[test], strict=True)
    after = np.array([adapter.adapted(PredictedMOS(float(score), 1.0), features).score for score, features in tested])
    before, mos, half = images.score[test], images.mos[test], NORMAL_QUANTILES["80"] * spread
    covered = np.abs(after - mos) <= half
    width = np.minimum(after + half, 5) - np.maximum(after - half, 1)
    agreement = [srcc(scores, mos) or 0.0 for scores in (before, after)]
    errors = [rmse(scores, mos) or 0.0 for scores in (before, after)]
    return (float(refused), *agreement, *errors, float(covered.mean()), float(width.mean()), seconds)


def _measured_pairs(
    images: RatedImages, ends: NDArray[np.intp], test: NDArray[np.intp], seed: int
) -> tuple[float, ...]:
    """Return the figures of one draw of pairs, ordered by one rater with the error ``RATER`` for each image."""
    rated = images.mos[ends] + np.random.default_rng(seed).normal(0, RATER, ends.shape)
    better, worse = np.where((rated[:, :1] > rated[:, 1:]), ends, ends[:, ::-1]).T
    ones, contents = np.ones(len(ends)), images.content[ends].copy()
    contents[:, 1] = contents[:, 0]
    features = images.features[better] - images.features[worse]
    pairs = GivenLabels(features, images.score[better] - images.score[worse], ones, ones, contents, True)
    began = time.perf_counter()
    fit, weights, held_out = adapter_fit.fit_adapter(pairs)
    refused = not adapter_fit.helps(pairs, held_out)
    after = fit.shipped * images.score[test] + images.features[test] @ weights
    agreement = [srcc(scores, images.mos[test]) or 0.0 for scores in (images.score[test], after)]
    return (float(refused), *agreement, *[float("nan")] * 4, time.perf_counter() - began)


def line(sets: Sequence[RatedImages], count: int, labels: str = "scores", draws: int = DRAWS) -> str | None:
    """Return one row of the table, the mean over sets and draws, or ``None`` if images are too few."""
    rows = [one for images in sets for seed in range(draws) if (one := measured(images, count, seed, labels))]
    if not rows:
        return None
    refused, before, always, error, after, covered, width, seconds = np.array(rows).T
    saved, kept = np.where(refused, before, always), np.where(refused, error, after)
    cells = [f"{count}", f"{refused.mean():.2f}", f"{before.mean():.3f}"]
    for column in (saved, always):
        cells += [f"{column.mean():.3f}", f"{(column - before).min():+.3f}"]
    cells += [f"{column.mean():.2f}" for column in (error, kept, covered, width, seconds)]
    return f"| {' | '.join(cells)} |"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status."""
    parser = parser_of(__doc__)
    parser.add_argument("data", type=Path, help="a folder with one folder for each set")

    def run(args: argparse.Namespace) -> None:
        clive, biq, generated, live = (read_set(args.data / name) for name in MEASURED)
        families = [generated.generator == name for name in np.unique(generated.generator)]
        photos = [clive, biq]
        everything = np.arange(len(clive.mos))
        unknown = {
            "CLIVE, scorer trained on BIQ2021": [clive.of(everything, scores_by_others([biq], clive))],
            "AGIQA-3K by family, scorer trained on photos and the other families": [
                generated.of(one, scores_by_others([*photos, generated.of(~one)], generated.of(one)))
                for one in families
            ],
            "AGIQA-3K by family, scorer trained on photos": [
                generated.of(one, scores_by_others(photos, generated.of(one))) for one in families
            ],
            "AGIQA-3K, all generators, scorer trained on photos": [
                generated.of(np.arange(len(generated.mos)), scores_by_others(photos, generated))
            ],
            "LIVE r2, scorer trained on photos": [live.of(np.arange(len(live.mos)), scores_by_others(photos, live))],
        }
        known = {"CLIVE, shipped": [clive], "BIQ2021, shipped": [biq], "AGIQA-3K, shipped": [generated]}
        for name, sets in (unknown | known).items():
            print(f"\n{name}\n\n| {HEADINGS.replace(', ', ' | ')} |\n|{' ---: |' * 12}", flush=True)
            for count in COUNTS if name in unknown else (50,):
                if row := line(sets, count):
                    print(row, flush=True)
        for labels in ("rated", "pairs", "shuffled"):
            print(f"\nCLIVE, scorer trained on BIQ2021, labels: {labels}", flush=True)
            for count in (20, 50, 100, 200):
                print(line(unknown["CLIVE, scorer trained on BIQ2021"], count, labels), flush=True)

    return run_command(parser, run, argv)


if __name__ == "__main__":
    raise SystemExit(main())
