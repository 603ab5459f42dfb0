"""Add a head for AI-generated images to the trained quality model, and a classifier that recognizes them.

    python -m agenticiqa.eval.research.generated_head MODEL.onnx PICTURES.csv PHOTOS.csv ... --packages DIR --out DIR

The head is a ridge regression on the MOS of the generated images. The classifier is a ridge regression on radial basis
functions of 128 principal components of the features; a linear one classifies distorted photos as generated. It is
trained on rated photos and generated images, on distorted copies and other views of some of them, and on distortion
series of pristine photos. An image with visible damage counts as a photo. DIR caches the features, so the same command
continues where it stopped. The command prints, for folds and for held-out generator families and photo sets, how images
are classified and the SRCC of scores with MOS. It writes DIR/folds.csv, the scores by folds, and
DIR/quality_model.onnx. Its output ``reading`` has the share of "generated" as the last number.
"""

import argparse
import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnx.shape_inference
import onnx.utils
from numpy.typing import NDArray
from onnx import numpy_helper
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import euclidean_distances

from agenticiqa.eval.datasets import MosScale, folds_by_content
from agenticiqa.eval.intervals import interval
from agenticiqa.eval.labels.own_data import read_labels
from agenticiqa.eval.metrics import srcc
from agenticiqa.eval.research.command import parser_of, run_command
from agenticiqa.eval.research.distortion_series import cached_series
from agenticiqa.eval.research.exported import write_quality_model
from agenticiqa.eval.research.likeness import gray_copies, groups_of
from agenticiqa.eval.research.panel_head import FOLDS, features_of, fit_head, projections_of
from agenticiqa.eval.research.quality_head import reduction
from agenticiqa.eval.research.quality_network import STATISTICS
from agenticiqa.eval.research.quality_rows import read_photos
from agenticiqa.programs.images.files import sha256_of, write_atomically
from agenticiqa.programs.tools.metrics.learned_iqa import READING
from agenticiqa.programs.tools.numerics.networks import run_network, silent_onnxruntime
from agenticiqa.programs.tools.numerics.weights import outputs_of

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]

DISTORTED, VIEWED = 150, 60  # images of each set that get distorted copies, and other views
DIRECTIONS, SPANNED = 128, 6000  # principal components, and the number of images to compute them from
CENTERS = 1600  # radial basis functions: a third each from generated images, rated photos and distortion series
RIDGE = 1.0
GENERATED_WEIGHT, SERIES_WEIGHT = 3.0, 0.5  # weight of an image, relative to 1 for a photo
# The classifier gives about 1 for generated images and 0 for photos. The head counts from PHOTO, fully at GENERATED.
PHOTO, GENERATED = 0.4, 0.7
PRISTINE = "pristine"


@dataclass(frozen=True)
class Pictures:
    """N images: ``standard`` features (N, F); ``whole`` marks images as people rated them, without changes.

    ``source`` is the family of the generator, or the set of photos; ``mos`` is the MOS on 1..5, NaN without one.
    """

    standard: NDArray[np.float16]
    generated: Mask
    whole: Mask
    source: NDArray[np.str_]
    generator: NDArray[np.str_]
    content: NDArray[np.str_]
    mos: NDArray[np.float64]

    @property
    def weight(self) -> Floats:
        """Return the weight of each image in the fit of the classifier."""
        photos = np.where(self.source == PRISTINE, SERIES_WEIGHT, 1.0)
        return np.where(self.generated, GENERATED_WEIGHT, photos).astype(np.float32)


@dataclass(frozen=True)
class GeneratedClassifier:
    """A classifier: principal components (F, D), basis functions with centers (C, D), width, weights (C,), level."""

    directions: Floats
    centers: Floats
    width: float
    weights: Floats
    level: float


def read_pictures(labels: Sequence[Path], scale: MosScale, packages: Path, model: Path, cache: Path) -> Pictures:
    """Return all images with their features, which ``cache`` keeps; the first labels are of generated images."""
    digest = sha256_of(model)
    rows: list[tuple[NDArray[np.float16], bool, bool, str, str, str, float]] = []

    def features(image: Floats) -> Floats:
        return run_network(model, digest, "features", image)[0]

    for number, table in enumerate(labels):
        items, generated = read_labels(table), number == 0
        scene = [item.content for item in items]
        if not generated:
            groups = groups_of(scene, gray_copies([item.image for item in items]))
            scene = [f"{table.parent.name} {group}" for group in groups]
        about = [
            (item.generator.split("_")[0], item.generator, content, scale.to_1_5(item.mos))
            if generated and item.generator
            else (table.parent.name, "", content, float("nan"))
            for item, content in zip(items, scene, strict=True)
        ]
        print(f"{table}: computing the features of {len(items)} images and of {DISTORTED} distorted ones", flush=True)
        standard = features_of([item.image for item in items], model, cache)
        rows += [(row, generated, True, *of) for row, of in zip(standard.astype(np.float16), about, strict=True)]
        center = np.mean([item.mos for item in items])
        chosen = sorted(range(len(items)), key=lambda place: zlib.crc32(items[place].name.encode()))[:DISTORTED]
        for rank, place in enumerate(chosen):
            well = "labeled well" if items[place].mos > center else "labeled"
            for how in (well, "views") if rank < VIEWED else (well,):
                series = cached_series(items[place].image, cache, features, how).features
                rows += [(row, generated, False, *about[place]) for row in series]
    print(f"{packages}: computing the features of distortion series of pristine photos", flush=True)
    for file, content, is_test in read_photos(packages):
        if not is_test:
            series = cached_series(file, cache, features, "train").features
            rows += [(row, False, False, PRISTINE, "", content, float("nan")) for row in series]
    first, *others = zip(*rows, strict=True)
    return Pictures(np.array(first), *(np.array(column) for column in others))


def projected(standard: NDArray[np.float16], directions: Floats) -> Floats:
    """Return the coordinates (N, D) of images, computed for 1000 at a time to save memory."""
    return np.concatenate(
        [standard[start : start + 1000].astype(np.float32) @ directions for start in range(0, len(standard), 1000)]
    )


def fit_classifier(pictures: Pictures, seed: int = 0) -> tuple[GeneratedClassifier, Callable[[Mask], Floats]]:
    """Fit the classifier to all images. Return it, and a function that gives the outputs (N,) of a fit to a mask."""
    rng = np.random.default_rng(seed)
    whole, all_series = np.flatnonzero(pictures.whole), np.flatnonzero(pictures.source == PRISTINE)
    spanned = rng.choice(np.concatenate([whole, rng.choice(all_series, len(all_series) // 4)]), SPANNED, replace=False)
    pca = PCA(DIRECTIONS, svd_solver="randomized", random_state=seed)
    directions = pca.fit(pictures.standard[spanned].astype(np.float32)).components_.T.astype(np.float32)
    coordinates = projected(pictures.standard, directions)
    kinds = (pictures.generated & pictures.whole, ~pictures.generated & pictures.whole, pictures.source == PRISTINE)
    chosen = np.concatenate([rng.choice(np.flatnonzero(kind), CENTERS // 3, replace=False) for kind in kinds])
    centers = coordinates[chosen]
    distances = euclidean_distances(coordinates, centers, squared=True)
    width = float(np.median(distances[::37]))
    values = np.exp(-distances / width)
    # Ridge regression on these equals kernel ridge regression restricted to the centers (C. Williams, M. Seeger, "Using
    # the Nystroem method to speed up kernel machines", NIPS 2000).
    lengths, vectors = np.linalg.eigh(values[chosen].astype(np.float64))
    inward = (vectors / np.sqrt(np.maximum(lengths, 1e-6))).astype(np.float32)
    inputs, target, weight = values @ inward, pictures.generated.astype(np.float32), pictures.weight

    def fitted(mask: Mask) -> Ridge:
        return Ridge(RIDGE, solver="cholesky").fit(inputs[mask], target[mask], weight[mask])

    model = fitted(np.ones(len(target), bool))
    classifier = GeneratedClassifier(directions, centers, width, inward @ model.coef_, float(model.intercept_))
    return classifier, lambda mask: fitted(mask).predict(inputs)


def share_of(outputs: Floats, seen: Floats) -> Floats:
    """Return how much an image counts as generated, 0..1, from the classifier and the confidence about damage."""
    return np.clip((outputs - PHOTO) / (GENERATED - PHOTO), 0, 1) * (1 - seen)


# The names "told_..." and "reading" are those of the nodes in the shipped file.
NODES = """generated (float[n, f] standard, float[n, 1] score, float[n, 1] novelty, float[n, 1] alike,
    float[n, 1] seen) => (float[n, 4] reading) {
  directions32 = Cast <to = 1> (directions)
  place = MatMul (standard, directions32)
  squares = Mul (place, place)
  length = ReduceSum (squares, second_axis)
  centers32 = Cast <to = 1> (centers)
  toward = MatMul (place, centers32)
  apart = Sub (length, toward)
  distance = Add (apart, lengths)
  exponent = Mul (distance, by_width)
  bases = Exp (exponent)
  weighed = MatMul (bases, weights)
  above = Add (weighed, above_photo)
  whole_share = Clip (above, zero, one)
  undamaged = Sub (one, seen)
  share = Mul (whole_share, undamaged)
  product = MatMul (standard, own)
  opinion = Add (product, own_level)
  difference = Sub (opinion, score)
  change = Mul (difference, share)
  changed = Add (score, change)
  reading = Concat <axis = 1> (changed, novelty, alike, share)
}"""


def with_generated(
    model: onnx.ModelProto, classifier: GeneratedClassifier, own: Floats, level: float
) -> onnx.ModelProto:
    """Return the model with the output ``reading`` (1, 4): score, novelty, likeness and the share of "generated"."""
    made = onnx.ModelProto.FromString(model.SerializeToString())
    graph = made.graph
    last = next(node for node in graph.node if "reading" in node.output)
    names = {"standard": projections_of(graph)[0], "score": last.input[0], "novelty": last.input[1]}
    names["alike"] = last.input[2]
    names |= {"seen": seen_in(graph), "reading": "reading"}
    graph.node.remove(last)
    centers = classifier.centers.astype(np.float16)
    ramp = GENERATED - PHOTO
    held = {
        "directions": classifier.directions.astype(np.float16),
        "centers": 2 * centers.T,  # twice the centers, as twice the product is subtracted
        "lengths": (centers.astype(np.float32) ** 2).sum(axis=1)[None],
        "by_width": np.float32(-1 / classifier.width),
        "weights": (classifier.weights[:, None] / ramp).astype(np.float32),
        "above_photo": np.float32((classifier.level - PHOTO) / ramp),
        "own": own[:, None].astype(np.float32),
        "own_level": np.float32(level),
        "second_axis": np.array([1], np.int64),
        "zero": np.float32(0),
        "one": np.float32(1),
    }
    graph.initializer.extend(numpy_helper.from_array(np.asarray(value), f"told_{name}") for name, value in held.items())
    for node in onnx.parser.parse_graph(NODES).node:
        for values in (node.input, node.output):
            values[:] = [names.get(name, f"told_{name}") for name in values]
        node.name = node.output[0]
        graph.node.append(node)
    next(output for output in graph.output if output.name == "reading").type.tensor_type.shape.dim[1].dim_value = 4
    onnx.helper.set_model_props(made, {outputs_of("reading"): json.dumps(READING)})
    onnx.checker.check_model(made)
    return made


def seen_in(graph: onnx.GraphProto) -> str:
    """Return the name of the networks' confidence about damage, (1, 1) in 0..1, which is their last sigmoid."""
    return [node.output[0] for node in graph.node if node.op_type == "Sigmoid"][-1]


def read_before(model: onnx.ModelProto, pictures: Pictures, rows: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """Return the previous model's score and confidence about damage for the images of ``rows``."""
    standard, seen = projections_of(model.graph)[0], seen_in(model.graph)
    extractor = onnx.utils.Extractor(onnx.shape_inference.infer_shapes(model))
    head = extractor.extract_model([standard], ["reading", seen]).SerializeToString()
    session = silent_onnxruntime().InferenceSession(head, providers=["CPUExecutionProvider"])
    inputs = (pictures.standard[row : row + 1].astype(np.float32) for row in rows)
    outputs = [session.run(["reading", seen], {standard: image}) for image in inputs]
    return np.array([output[0][0, 0] for output in outputs]), np.array([output[1][0, 0] for output in outputs])


def report(name: str, pictures: Pictures, mask: Mask, shares: Floats, before: Floats, scores: Floats) -> None:
    """Print how images of a mask are classified, how far scores move, and how scores correlate with MOS."""
    line = f"{name}: n = {mask.sum()}, generated {(shares[mask] > 0.5).mean():.3f}"
    line += f", change of scores (RMS) {np.sqrt(((scores - before)[mask] ** 2).mean()):.3f}"
    if pictures.generated[mask].any():
        of, mos = pictures.generator[mask], pictures.mos[mask]
        pooled = interval(srcc, scores[mask], mos, pictures.content[mask].tolist())
        within = np.mean([srcc(scores[mask][of == name], mos[of == name]) for name in np.unique(of)])
        error = np.sqrt(((scores[mask] - mos) ** 2).mean())
        line += f", SRCC {srcc(before[mask], mos):.3f} -> {pooled:.3f}"
        line += f", mean SRCC within generators {within:.3f}, RMSE {error:.3f}"
    print(line, flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status."""
    parser = parser_of(__doc__, "an hour on two cores, most of it for the features, which are cached")
    parser.add_argument("model", type=Path, help="the model to extend; its output `reading` has three numbers")
    parser.add_argument("labels", type=Path, nargs="+", help="labels.csv of generated images, then those of photo sets")
    parser.add_argument("--scale", type=float, nargs=2, default=(0, 5), help="MOS scale of the images (default: 0 5)")
    parser.add_argument("--packages", type=Path, required=True, metavar="DIR", help="folder of unpacked packages")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for all outputs")

    def run(args: argparse.Namespace) -> None:
        args.out.mkdir(parents=True, exist_ok=True)
        model = onnx.load(args.model)
        pictures = read_pictures(args.labels, MosScale(*args.scale), args.packages, args.model, args.out)
        classifier, outputs_without = fit_classifier(pictures)
        rows = np.flatnonzero(pictures.whole)
        before, seen = np.full((2, len(pictures.whole)), np.nan, np.float32)
        before[rows], seen[rows] = read_before(model, pictures, rows)
        rated = np.flatnonzero(pictures.generated & pictures.whole)
        standard = pictures.standard[rated].astype(np.float32)
        toward = reduction(standard, STATISTICS)
        coordinates, mos = standard @ toward, pictures.mos[rated].astype(np.float32)

        def held_out_results(held_out: Mask) -> tuple[Floats, Floats]:
            train = ~held_out[rated]
            weights, level = fit_head(coordinates[train], mos[train])
            own = projected(pictures.standard, toward @ weights[:, None])[:, 0] + level
            shares = share_of(outputs_without(~held_out), seen)
            return shares, before + shares * (own - before)

        folds = folds_by_content(pictures.content.tolist(), FOLDS, dealt=True)
        shares, scores = np.zeros_like(before), np.zeros_like(before)
        for fold in range(FOLDS):
            fold_shares, fold_scores = held_out_results(folds == fold)
            shares[folds == fold], scores[folds == fold] = fold_shares[folds == fold], fold_scores[folds == fold]
        for generated in (True, False):
            for source in np.unique(pictures.source[pictures.whole & (pictures.generated == generated)]):
                mask = pictures.whole & (pictures.source == source)
                report(f"{source}, by folds", pictures, mask, shares, before, scores)
        names = [item.name for item in read_labels(args.labels[0])]
        lines = [f"{name},{score:.4f}" for name, score in zip(names, scores[rated].clip(1, 5), strict=True)]
        write_atomically(args.out / "folds.csv", "\n".join(["image,LEARNED-IQA", *lines, ""]))
        report("all generated, by folds", pictures, pictures.generated & pictures.whole, shares, before, scores)
        for source in np.unique(pictures.source[pictures.whole]):
            mask = pictures.source == source
            held_out_shares, held_out_scores = held_out_results(mask)
            shares[mask], scores[mask] = held_out_shares[mask], held_out_scores[mask]
            report(f"{source}, held out", pictures, mask & pictures.whole, shares, before, scores)
        report("all families, each held out", pictures, pictures.generated & pictures.whole, shares, before, scores)
        weights, level = fit_head(coordinates, mos)
        made = args.out / "quality_model.onnx"
        whole = with_generated(model, classifier, (toward @ weights).astype(np.float32), level)
        write_quality_model(whole, made)

    return run_command(parser, run, argv)


if __name__ == "__main__":
    raise SystemExit(main())
