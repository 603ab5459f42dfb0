"""Refit the head of one panel of the trained quality model, on all photos that the panel rated.

    python -m agenticiqa.eval.research.panel_head MODEL.onnx LABELS.csv --panel 0 --never TEST.csv --out DIR

The head of a panel is one column of the weights of the projections (``quality_head``). It is used for images that look
like those of the panel. Every other part of the file stays identical: the other heads, the likeness to each panel's
photos, the networks, and the output of the last stage. DIR caches the features, so the same command continues where it
stopped. It prints the SRCC of the head by folds, in which series of one scene and similar photos stay together, and
writes DIR/quality_model.onnx.
"""

import argparse
import csv
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from agenticiqa.eval.datasets import LabeledImage, folds_by_content
from agenticiqa.eval.intervals import interval
from agenticiqa.eval.labels.own_data import read_labels
from agenticiqa.eval.metrics import srcc
from agenticiqa.eval.research.command import parser_of, run_command
from agenticiqa.eval.research.exported import write_quality_model
from agenticiqa.eval.research.likeness import gray_copies, groups_of
from agenticiqa.eval.research.quality_head import SPANNING, reduction, ridge_regression
from agenticiqa.eval.research.quality_network import STATISTICS
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images import load
from agenticiqa.programs.images.files import sha256_of, write_atomically
from agenticiqa.programs.tools.metrics.learned_iqa import as_input
from agenticiqa.programs.tools.numerics.networks import run_network

Floats = NDArray[np.float32]

FOLDS = 5
RIDGE = 1.0  # penalty for one photo, relative to the mean squared feature


def refuse_held_out(items: Sequence[LabeledImage], table: Path) -> None:
    """Raise UserError if the first column of a table names the file or the source of an item."""
    with table.open(encoding="utf-8-sig", newline="") as file:
        test_photos = {Path(row[0]).name for row in csv.reader(file) if row}
    if names := sorted({Path(item.source or item.name).name for item in items} & test_photos):
        raise UserError(f"{table}: names {len(names)} training photos, such as {names[0]}; remove them from the labels")


def projections_of(graph: onnx.GraphProto) -> tuple[str, onnx.TensorProto, onnx.TensorProto]:
    """Return the name of the standardized features, and the projections' weights and intercepts. Raises UserError."""
    arrays = {tensor.name: tensor for tensor in graph.initializer}
    made = {output: node for node in graph.node for output in node.output}
    for node in graph.node:
        products = made.get(node.input[0]) if node.op_type == "Add" else None
        if products is not None and products.op_type == "MatMul" and products.input[1] in made:
            weight = arrays.get(made[products.input[1]].input[0])
            if weight is not None and weight.dims[0] > 10 * weight.dims[1] and node.input[1] in arrays:
                return products.input[0], weight, arrays[node.input[1]]
    raise UserError("the model has no projections of features; use a file by train_quality_model")


def features_of(files: Sequence[Path], model: Path, cache: Path) -> Floats:
    """Return the standardized features (N, F); ``cache`` keeps them in half precision."""
    digest, rows = sha256_of(model), []
    for file in files:
        kept = cache / f"{zlib.crc32(str(file).encode()):08x}-{file.stem}.npy"
        if not kept.is_file():
            features = run_network(model, digest, "features", as_input(load(file).pixels))[0].astype(np.float16)
            write_atomically(kept, features.tobytes())
        rows.append(np.frombuffer(kept.read_bytes(), np.float16))
    return np.array(rows, np.float32)


def fit_head(coordinates: Floats, mos: Floats) -> tuple[Floats, float]:
    """Return weights (B,) and intercept of the regression from coordinates (N, B) to MOS (N,)."""
    weights, center = ridge_regression(coordinates, mos[:, None], np.ones(len(mos)), RIDGE)
    return weights[:, 0], float(center[0])


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status."""
    parser = parser_of(
        __doc__, "ten minutes on two cores for 10,000 photos, most of it for the features, which are cached"
    )
    parser.add_argument("model", type=Path, help="the model to refit one head of")
    parser.add_argument("labels", type=Path, help="labels.csv of the photos that the panel rated")
    parser.add_argument("--panel", type=int, default=0, help="number of the panel (default: %(default)s)")
    parser.add_argument("--never", type=Path, help="CSV with test photos in its first column; none may be in LABELS")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for all outputs")

    def run(args: argparse.Namespace) -> None:
        items = read_labels(args.labels)
        if args.never:
            refuse_held_out(items, args.never)
        model = onnx.load(args.model)
        _, weight, bias = projections_of(model.graph)
        weights, levels = numpy_helper.to_array(weight).copy(), numpy_helper.to_array(bias).copy()
        args.out.mkdir(parents=True, exist_ok=True)
        standard = features_of([item.image for item in items], args.model, args.out)
        contents = groups_of([item.content for item in items], gray_copies([item.image for item in items]))
        mos = np.array([item.mos for item in items], np.float32)
        span = np.random.default_rng(0).choice(len(items), min(SPANNING, len(items)), replace=False)
        toward = reduction(standard[span], STATISTICS)
        coordinates = standard @ toward
        held_out, folds = np.zeros(len(items)), folds_by_content([str(group) for group in contents], FOLDS, dealt=True)
        for fold in np.unique(folds):
            head, level = fit_head(coordinates[folds != fold], mos[folds != fold])
            held_out[folds == fold] = coordinates[folds == fold] @ head + level
        print(f"SRCC by {FOLDS} folds: {interval(srcc, held_out, mos, [str(group) for group in contents]):.3f}")
        head, _ = fit_head(coordinates, mos)
        # Scaled to the mean and deviation of the previous head on the same photos.
        column, old = 1 + args.panel, standard @ weights[:, 1 + args.panel].astype(np.float32) + levels[1 + args.panel]
        new = standard @ (toward @ head)
        scale = old.std() / new.std()
        weights[:, column], levels[column] = scale * (toward @ head), old.mean() - scale * new.mean()
        weight.CopyFrom(numpy_helper.from_array(weights, weight.name))
        bias.CopyFrom(numpy_helper.from_array(levels, bias.name))
        made = args.out / "quality_model.onnx"
        write_quality_model(model, made)

    return run_command(parser, run, argv)


if __name__ == "__main__":
    raise SystemExit(main())
