"""Fit and measure the regression that recognizes images that are not photos (``programs.tools.outside_training``).

    python -m agenticiqa.eval.research.outside_photos PHOTOS/labels.csv... [--fit FILE.npz]
        [--fit-on LOOK FOLDER]... [--test-on LOOK FOLDER]... [--drawn N] [--photos N]

Prints the share of pictures of each kind that are recognized as non-photos (hits), and the share of photos, in color
and gray, that are wrongly recognized as non-photos (false alarms), with Wilson's 95 % intervals. LOOK is graphic, page,
medical or instrument. With --fit, the regression is fitted and written first; copy its SHA-256 to
``outside_training.py``. Pictures for fitting and testing differ: drawn ones in their seeds, folders in their packages,
photos in their images. The images of scikit-image are for testing only.
"""

import argparse
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from sklearn.linear_model import LogisticRegression

from agenticiqa.eval.intervals import wilson
from agenticiqa.eval.labels.own_data import read_labels
from agenticiqa.eval.research.command import parser_of, run_command
from agenticiqa.eval.research.distort import KINDS as DISTORTIONS
from agenticiqa.eval.research.distort import distort
from agenticiqa.eval.research.drawn_pictures import KINDS, drawn
from agenticiqa.eval.research.named_weights import write_weights
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.loading import load
from agenticiqa.programs.tools.metrics.learned_iqa import last_stage
from agenticiqa.programs.tools.numerics.pixels import RGB
from agenticiqa.programs.tools.numerics.weights import outputs_of, read_weights
from agenticiqa.programs.tools.outside_training import (
    DEVIATIONS,
    LOOK,
    LOOKS,
    OUTPUTS,
    SHA256,
    SMALL_SIDE,
    WEIGHTS,
    Look,
    look_features,
    look_of,
)
from agenticiqa.programs.tools.statistics.parts import in_working_size

PENALTY = 10.0  # penalty on the squared weights, relative to the summed loss
PHOTO_SHARE = 2.0  # total weight of photos, relative to all other pictures: a false alarm is worse than a miss

LOOK_OF: dict[str, Look] = {
    **dict.fromkeys(KINDS, "graphic"),
    **dict.fromkeys(("page", "scan"), "page"),
    **dict.fromkeys(("radiograph", "slice_of_body"), "medical"),
    **dict.fromkeys(("stars", "cells"), "instrument"),
}
# Images in scikit-image's wheel (BSD-3-Clause and public domain, see its data/README.txt).
SKIMAGE: dict[str, Look] = {
    **dict.fromkeys(("page", "text"), "page"),
    **dict.fromkeys(("retina", "immunohistochemistry", "hubble_deep_field", "cell", "microaneurysms"), "instrument"),
    **dict.fromkeys(("logo", "horse", "colorwheel", "checkerboard"), "graphic"),
    **dict.fromkeys(("shepp_logan_phantom",), "medical"),
    **dict.fromkeys(("astronaut", "chelsea", "coffee", "rocket", "camera", "coins", "clock", "brick"), "photo"),
}

Values = NDArray[np.float64]


@dataclass(frozen=True)
class PictureSample:
    """One picture: its true look, its group in the report, whether it is used for fitting, and its features."""

    look: Look
    group: str
    fitted: bool
    values: Values


def fit(samples: Sequence[PictureSample]) -> dict[str, Values]:
    """Return the weights of the regression, fitted to the samples for it; all looks but "photo" count the same."""
    used = [sample for sample in samples if sample.fitted]
    values, truth = np.array([s.values for s in used]), np.array([LOOKS.index(s.look) for s in used])
    mean, spread = values.mean(axis=0), values.std(axis=0) + 1e-3
    scaled = np.clip((values - mean) / spread, -DEVIATIONS, DEVIATIONS)
    share = np.where(np.arange(len(LOOKS)) == 0, PHOTO_SHARE, 1 / (len(LOOKS) - 1)) / np.bincount(truth)
    model = LogisticRegression(C=1 / PENALTY, max_iter=5000)
    model.fit(scaled, truth, sample_weight=share[truth] * len(truth) / share[truth].sum())
    parts = {"mean": mean, "spread": spread, "weight": model.coef_.T, "bias": model.intercept_}
    return {name: part.astype(np.float32).astype(np.float64) for name, part in parts.items()}


def drawn_samples(count: int) -> Iterator[PictureSample]:
    """Yield ``count`` pictures of each drawn kind; every second one is used for fitting."""
    for kind in KINDS:
        for seed in range(count):
            yield PictureSample(LOOK_OF[kind], f"drawn: {kind}", seed % 2 == 0, measured(drawn(kind, seed)))


def folder_samples(look: Look, folder: Path, fitted: bool) -> Iterator[PictureSample]:
    """Yield all images of a folder that are large enough."""
    for path in sorted(file for file in folder.rglob("*") if file.suffix.lower() in (".png", ".jpg", ".jpeg", ".webp")):
        pixels = load(path).pixels
        if min(pixels.shape[:2]) >= SMALL_SIDE:
            yield PictureSample(look, f"{look}: {folder.name}", fitted, measured(pixels))


def skimage_samples() -> Iterator[PictureSample]:
    """Yield the pictures of scikit-image's wheel."""
    import skimage.data

    for name, look in SKIMAGE.items():
        pixels = np.asarray(getattr(skimage.data, name)())
        if pixels.dtype != np.uint8:
            pixels = np.clip(255 * (pixels / pixels.max()), 0, 255).astype(np.uint8)
        rgb = pixels[..., :3] if pixels.ndim == 3 else pixels[..., None].repeat(3, axis=2)
        yield PictureSample(look, f"scikit-image: {look}", False, measured(np.ascontiguousarray(rgb)))


def photo_samples(labels: str, most: int) -> Iterator[PictureSample]:
    """Yield up to ``most`` photos of a set, chosen by a checksum of their names, also gray and distorted.

    The checksum also chooses half of them for fitting. Generated images are a separate group.
    """
    items = sorted(read_labels(labels), key=lambda item: zlib.crc32(f"{item.content}{item.name}".encode()))
    for item in items[:most]:
        name = Path(labels).parent.name
        if item.distortion == "ai-generated":
            yield PictureSample("photo", f"{name}: generated", False, measured(load(item.image).pixels))
            continue
        fitted, pixels = zlib.crc32(item.content.encode()) % 2 == 0, load(item.image).pixels
        yield PictureSample("photo", f"{name}: photos", fitted, measured(pixels))
        yield PictureSample("photo", f"{name}: gray photos", fitted, measured(in_gray(pixels)))
        yield PictureSample("photo", f"{name}: distorted photos", fitted, measured(distorted(pixels, item.name)))


def measured(image: RGB) -> Values:
    """Return the features that the program uses to recognize an image's look."""
    return look_features(image, in_working_size(image), last_stage)


def distorted(image: RGB, name: str) -> RGB:
    """Return the image with one of the distortions at strength 3 to 5, chosen by the checksum of a name."""
    choice = zlib.crc32(name.encode())
    return distort(image, list(DISTORTIONS)[choice % len(DISTORTIONS)], 3 + choice // 64 % 3)


def in_gray(image: RGB) -> RGB:
    """Return the image without color."""
    return np.asarray(Image.fromarray(image).convert("L").convert("RGB"))


def report(weights: Mapping[str, NDArray[Any]], samples: Sequence[PictureSample]) -> list[str]:
    """Return Markdown rows by group, for samples that were not used for fitting."""
    lines = [
        "| pictures | n | recognized as non-photos [95 %] | with the right look |",
        "| --- | --- | --- | --- |",
    ]
    groups: dict[str, list[tuple[Look, Look]]] = {}
    for sample in samples:
        if not sample.fitted:
            pair = (sample.look, look_of(weights, sample.values))
            groups.setdefault(sample.group, []).append(pair)
            if sample.look != "photo":
                groups.setdefault("all non-photos", []).append(pair)
            elif "generated" not in sample.group:
                groups.setdefault(f"all {sample.group.partition(': ')[2]}", []).append(pair)
    for group, pairs in groups.items():
        flagged = [pair for pair in pairs if pair[1] != "photo"]
        low, high = wilson(len(flagged), len(pairs))
        right = f"{sum(a == b for a, b in flagged)} of {len(flagged)}" if pairs[0][0] != "photo" else ""
        lines.append(f"| {group} | {len(pairs)} | {len(flagged) / len(pairs):.1%} [{low:.1%}, {high:.1%}] | {right} |")
    return lines


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status."""
    parser = parser_of(__doc__)
    parser.add_argument("labels", nargs="*", help="labels.csv of photo sets")
    parser.add_argument("--fit", type=Path, metavar="FILE.npz", help="fit the regression and write it to this file")
    for option in ("--fit-on", "--test-on"):
        parser.add_argument(option, nargs=2, action="append", default=[], metavar=("LOOK", "FOLDER"))
    parser.add_argument("--drawn", type=int, default=20, help="number of pictures of each drawn kind (default: 20)")
    parser.add_argument("--photos", type=int, default=400, help="at most this many photos of each set (default: 400)")

    def run(args: argparse.Namespace) -> None:
        samples = [*drawn_samples(args.drawn), *skimage_samples()]
        for fitted, folders in ((True, args.fit_on), (False, args.test_on)):
            for look, folder in folders:
                if look not in LOOKS:
                    raise UserError(f"unknown look {look!r}: use {', '.join(LOOKS)}")
                samples += folder_samples(look, Path(folder), fitted)
        samples += [sample for labels in args.labels for sample in photo_samples(labels, args.photos)]
        if args.fit:
            fitted_weights = fit(samples)
            write_weights(args.fit, fitted_weights, OUTPUTS)
            weights: dict[str, NDArray[Any]] = {**fitted_weights, outputs_of(LOOK): np.array(LOOKS)}
        else:
            weights = read_weights(WEIGHTS, SHA256, OUTPUTS)
        print("\n".join(report(weights, samples)))

    return run_command(parser, run, argv)


if __name__ == "__main__":
    raise SystemExit(main())
