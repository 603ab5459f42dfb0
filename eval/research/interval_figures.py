"""Measure how often the offline 80 % interval contains the MOS, on photos and on images of unknown origin.

    python -m agenticiqa.eval.research.interval_figures DATA

DATA has the folders clive, biq2021, live_r2, agiqa3k and avt_ai, each with a ``labels.csv``. The features of images are
cached (ten minutes). The first table has one line for each set, with the scores of the shipped file. It was trained on
these sets, so coverage is too high. In the second table, a ridge regression on the shipped features takes the place of
the head, as in ``adapter_figures``: for CLIVE and BIQ2021 by ten folds, for LIVE r2 and AVT without the whole set. For
AGIQA-3K, the lines "recognized" have a head for AI-generated images without the family of generators. The lines "not
recognized" have the shipped score before that head, which was fitted without AGIQA-3K, as was the likeness to photos.

Deviations are those of the shipped file, which knows that LIVE r2 and AVT are unlike the panels' photos. The last lines
have the error for ``SPREAD_GENERATED``, the share for ``SPREAD_UNLIKE``, in which each generator counts alike, and the
share of images with a wider interval, which are unlike the photos of all panels. Brackets are Wilson's 95 % intervals.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnx.shape_inference
import onnx.utils
from numpy.typing import NDArray

from agenticiqa.eval.datasets import folds_by_content
from agenticiqa.eval.intervals import wilson
from agenticiqa.eval.metrics import rmse
from agenticiqa.eval.research.adapter_figures import Numbers, RatedImages, read_set, scores_by_others
from agenticiqa.eval.research.command import parser_of, run_command
from agenticiqa.programs.fusion.interval import PHOTO_SHARE, score_interval
from agenticiqa.programs.tools.metrics.learned_iqa import LIKE, MODEL, predicted_by
from agenticiqa.programs.tools.numerics.networks import silent_onnxruntime

SETS = ("clive", "biq2021", "live_r2", "agiqa3k", "avt_ai")
FOLDS = 10
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class ReadImages:
    """The images of a set, what the shipped file gives for each, (N, 4), and its scores before the last head (N,)."""

    rated: RatedImages
    reading: NDArray[np.float32]
    before: Numbers

    def coverage(
        self, scores: Numbers, rows: Mask | None = None, recognized: bool | None = None
    ) -> tuple[int, float, float]:
        """Return the number of these rows, the share of their MOS that is in the interval, and the mean width.

        ``recognized`` replaces the share of "generated".
        """
        rows = np.ones(len(scores), bool) if rows is None else rows
        inside, width = 0, 0.0
        for reading, score, mos in zip(self.reading[rows], scores[rows], self.rated.mos[rows], strict=True):
            share = reading[3] if recognized is None else float(recognized)
            predicted = predicted_by(np.array([score, *reading[1:3], share], np.float32))
            error = predicted.spread * (PHOTO_SHARE if predicted.image_kind == "photo" else 1)
            low, high = score_interval(predicted.score, error)["80"]
            inside, width = inside + (low <= mos <= high), width + high - low
        count = int(rows.sum())
        return count, inside / count, width / count

    def line(self, title: str, scores: Numbers, rows: Mask | None = None, recognized: bool | None = None) -> str:
        """Return the line of a table with the ``coverage`` of these rows."""
        count, share, width = self.coverage(scores, rows, recognized)
        low, high = wilson(round(share * count), count)
        return f"| {title} | {count} | {share:.1%} [{low:.1%}, {high:.1%}] | {width:.2f} |"


def read_all(data: Path) -> dict[str, ReadImages]:
    """Return the images of all sets, with the results of the shipped file from their features."""
    model = onnx.load(MODEL)
    before = next(node for node in model.graph.node if "told_difference" in node.output).input[1]
    extractor = onnx.utils.Extractor(onnx.shape_inference.infer_shapes(model))
    head = extractor.extract_model(["features"], ["reading", before]).SerializeToString()
    session = silent_onnxruntime().InferenceSession(head, providers=["CPUExecutionProvider"])
    sets = {}
    for name in SETS:
        rated = read_set(data / name)
        outputs = [session.run(["reading", before], {"features": row[None]}) for row in rated.features]
        reading, scores = (np.concatenate(column) for column in zip(*outputs, strict=True))
        sets[name] = ReadImages(rated, reading, scores[:, 0].astype(float))
    return sets


def held_out_scores(images: RatedImages, others: Sequence[RatedImages], groups: NDArray[np.generic]) -> Numbers:
    """Return the scores of each group of images by a ridge regression on the other groups and on other sets."""
    scores = np.zeros(len(images.mos))
    for group in np.unique(groups):
        here = groups == group
        scores[here] = scores_by_others([*others, images.of(~here)], images.of(here))
    return scores


def tables(sets: Mapping[str, ReadImages]) -> list[str]:
    """Return the lines of all tables."""
    head = ["", "| images | n | MOS inside | mean width |", "| --- | ---: | --- | ---: |"]
    lines = ["The shipped file", *head]
    lines += [images.line(name, images.reading[:, 0].astype(float)) for name, images in sets.items()]
    lines += ["", "Held out", *head]
    clive, biq, live, made, avt = (sets[name] for name in SETS)
    for name, images, other in (("CLIVE, ten folds", clive, biq), ("BIQ2021, ten folds", biq, clive)):
        folds = folds_by_content(images.rated.content.tolist(), FOLDS, dealt=True)
        lines.append(images.line(name, held_out_scores(images.rated, [other.rated, live.rated], folds)))
    photos = [clive.rated, biq.rated]
    lines.append(live.line("LIVE r2, whole set", scores_by_others(photos, live.rated)))
    is_made = ~np.char.startswith(avt.rated.content, "own_")  # file names of its real photos
    of_avt = scores_by_others([*photos, live.rated], avt.rated)
    lines.append(avt.line("AVT, whole set, AI-generated", of_avt, is_made))
    family = made.rated.generator
    own = held_out_scores(made.rated, [], family)
    for name in ("all", *np.unique(family)):
        rows = (family == name) | (name == "all")
        lines.append(made.line(f"AGIQA-3K, {name}, recognized", own, rows, recognized=True))
        lines.append(made.line(f"AGIQA-3K, {name}, not recognized", made.before, rows, recognized=False))
    errors = [rmse(own[family == name], made.rated.mos[family == name]) or 0.0 for name in np.unique(family)]
    error = np.sqrt(np.mean(np.square(errors)))
    lines += ["", f"RMSE of the head without the family, over {len(errors)} families: {error:.2f}"]
    shares = [made.coverage(made.before, family == name, recognized=False)[1] for name in np.unique(family)]
    shares.append(avt.coverage(of_avt, is_made)[1])
    lines.append(f"MOS inside if not recognized, mean of AVT and {len(errors)} families: {np.mean(shares):.1%}")
    for name, images in sets.items():
        lines.append(f"likeness below {LIKE}, {name}: {(images.reading[:, 2] < LIKE).mean():.1%}")
    return lines


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status."""
    parser = parser_of(__doc__)
    parser.add_argument("data", type=Path, help="a folder with one folder for each set")

    def run(args: argparse.Namespace) -> None:
        print("\n".join(tables(read_all(args.data))))

    return run_command(parser, run, argv)


if __name__ == "__main__":
    raise SystemExit(main())
