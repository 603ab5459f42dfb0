"""Fit an adapter of the learned scorer to the user's labels, and save it if it helps on held-out labels."""

import io
import os
import shlex
import sys
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from agenticiqa.configs.user_files import read_regular
from agenticiqa.eval.calibrate.adapter_fit import (
    LEAST_SPREAD,
    RULE,
    GivenLabels,
    conformal_spread,
    fit_adapter,
    helps,
    label_weights,
)
from agenticiqa.eval.commands.arguments import CalibrateAdapterOptions
from agenticiqa.eval.commands.label_options import labels_to_fit
from agenticiqa.eval.intervals import accuracy, difference_interval, interval, rmse_interval
from agenticiqa.eval.labels.raters import write_mos
from agenticiqa.eval.labels.sources import holds_labels, open_sources
from agenticiqa.eval.metrics import plcc, rmse, srcc
from agenticiqa.programs.backends.cores import available_cores
from agenticiqa.programs.cli import render
from agenticiqa.programs.cli.output_paths import check_outputs, refuse_inputs
from agenticiqa.programs.cli.printable import print_error, print_note, print_text
from agenticiqa.programs.cli.status import OK, SOME_FAILED
from agenticiqa.programs.errors import ImageError, ToolError, UserError
from agenticiqa.programs.fusion.interval import NORMAL_QUANTILES
from agenticiqa.programs.images import load
from agenticiqa.programs.images.files import cache_folder, digest, sha256_of, write_atomically
from agenticiqa.programs.page.table import Table
from agenticiqa.programs.tools.adapter import write_adapter
from agenticiqa.programs.tools.metrics.learned_iqa import SHA256, TOOL, mos_and_features, outside_training
from agenticiqa.programs.tools.numerics.weights import arrays_in
from agenticiqa.programs.tools.training_images import trained_on_count

FEWEST_LABELS, FEWEST_CONTENTS = 15, 3
# At these numbers, two thirds of the simulated adapters for one person were saved (``eval.research.rating_choice``).
USUALLY_ENOUGH = ": one person needed about 100 for AI-generated images and 150 for photos"
FEWEST_GROUPS = 10  # groups of pairs that share no image; with fewer, folds are made of images


class Seen(NamedTuple):
    """The data used from an image: SHA-256, shipped score, features (F,), and how it differs from training images."""

    sha256: str
    score: float
    features: NDArray[np.float32]
    kinds: list[str]


class Given(NamedTuple):
    """The user's labels, the data used from their images, and a digest of the labels."""

    labels: GivenLabels
    seen: dict[Path, Seen]
    sha256: str

    @property
    def kind(self) -> str:
        """What the labels are, in words."""
        return "comparisons" if self.labels.pairs else "labels"

    @property
    def size(self) -> int:
        """The number of labels."""
        return len(self.labels.target)


class AdaptedScore(NamedTuple):
    """``level`` + ``shipped`` * shipped score + features @ ``weights`` (F,).

    ``spread`` is the deviation of its error and ``error`` the RMSE, on held-out labels; comparisons determine neither.
    """

    weights: NDArray[np.float32]
    level: float
    shipped: float
    spread: float | None = None
    error: float | None = None


def run(args: CalibrateAdapterOptions) -> int:
    """Fit an adapter, print its gain on held-out labels, and save it if the gain is significant."""
    for file in filter(None, (args.out, args.mos_out)):
        if file.exists() and not args.force:
            raise UserError(f"{file} already exists: name another file, or add --force to replace it")
    check_outputs(args)
    given = _pairs(args) or _scores(args)
    labels, scenes = given.labels, len(np.unique(given.labels.contents))
    if given.size < FEWEST_LABELS or scenes < FEWEST_CONTENTS:
        needed = f"{FEWEST_LABELS} of {FEWEST_CONTENTS} scenes"
        print_text(f"Not saved: {given.size} {given.kind} of {scenes} scenes are too few. Use at least {needed}.")
        return SOME_FAILED
    fit, weights, scores = fit_adapter(labels)
    known = np.flatnonzero(np.isfinite(scores))
    tested, scores = labels.at(known), scores[known]
    _print_gain(given, tested, scores)
    if not args.save_anyway and (len(known) < FEWEST_LABELS or not helps(tested, scores)):
        enough = "" if labels.pairs else USUALLY_ENOUGH
        print_text(
            f"Not saved: these {given.size} {given.kind} do not clearly improve the scores of held-out images. "
            f"{RULE}. More {given.kind} may help{enough}. To save it nevertheless, add --save-anyway."
        )
        return SOME_FAILED
    if labels.pairs:
        adapted = _on_shipped_scale(fit.shipped, weights, [*given.seen.values()])
    else:
        spread, error = conformal_spread(scores - tested.target), rmse(scores, tested.target)
        error = None if error is None else max(error, LEAST_SPREAD)
        adapted = AdaptedScore(weights, fit.level, fit.shipped, spread, error)
    write_adapter(args.out, adapted.weights, _about(given, adapted))
    _print_saved(args, given, adapted)
    return OK


def _print_gain(given: Given, tested: GivenLabels, adapted: NDArray[np.float64]) -> None:
    """Print the figures before and after on held-out labels; on stderr, how many images the scorer was trained on."""
    headings = (f"{len(tested.target)} held-out {given.kind}", "before", "after", "difference")
    render.print_table(Table(headings, _figures(tested, adapted)))
    if trained := trained_on_count(TOOL, given.seen):
        print_error(
            f'the shipped scorer was trained on {trained} of these images, so "before" is too optimistic for new images'
        )


def _on_shipped_scale(shipped: float, weights: NDArray[np.float32], images: Sequence[Seen]) -> AdaptedScore:
    """Return the score with the mean and deviation of the shipped scores, because pairs do not determine a scale."""
    before = np.array([image.score for image in images])
    after = shipped * before + np.stack([image.features for image in images]) @ weights
    scale = float(before.std() / max(after.std(), 1e-6))
    return AdaptedScore(weights * np.float32(scale), float(before.mean() - scale * after.mean()), shipped * scale)


def _about(given: Given, adapted: AdaptedScore) -> dict[str, Any]:
    """Describe the adapter in its file."""
    images = given.seen.values()
    return {
        "scorer": SHA256,
        "labels": given.size,
        "labels_sha256": given.sha256,
        "kind": given.kind,
        "level": adapted.level,
        "shipped": adapted.shipped,
        "spread": adapted.spread,
        "error": adapted.error,
        "images": sorted(image.sha256 for image in images),
        "kinds": sorted({kind for image in images for kind in image.kinds}),
        "version": version("agenticiqa"),
        "date": date.today().isoformat(),
    }


def _print_saved(args: CalibrateAdapterOptions, given: Given, adapted: AdaptedScore) -> None:
    """Print the adapted score, its interval, and a command that uses it."""
    print_text(
        f"Saved {args.out}: adapted score = {adapted.shipped:.2f} x shipped score + a regression fitted to "
        f"{given.size} {given.kind} of {len(given.seen)} images."
    )
    if adapted.spread:
        interval_80 = NORMAL_QUANTILES["80"] * adapted.spread
        print_text(f"The 80 % interval is the score +- {interval_80:.2f}, from held-out labels.")
    album = args.root or args.labels[0]
    album = album if album.is_dir() else album.parent
    command = shlex.join(["agenticiqa", "assess", str(album), "--adapter", str(args.out), "--html", "sheet.html"])
    print_text(f'Use it: {command} (in a configuration: "adapter: {args.out}")')


def _scores(args: CalibrateAdapterOptions) -> Given:
    """Return the scores in tables, with their images, and a digest of them; print what is known about the raters."""
    read = labels_to_fit(args)
    for rater in read.panel.raters:
        print_text(f"{rater.name}: {rater.figures}")
    if (best := read.panel.ceiling).value is not None:
        source = f"{best.n} repeats" if best.n else "the differences between raters"
        print_text(
            f"The highest SRCC that a scorer can reach on these labels is about {best:.2f} (ceiling, from {source})."
        )
    if args.mos_out:
        write_mos(args.mos_out, read.labels)
        print_note(f"The MOS of {len(read.labels)} images were written to {args.mos_out}")
    scale, items = read.any_scale(), read.labels
    print(f"MOS {scale.low:g}..{scale.high:g} are mapped to 1..5", file=sys.stderr)
    weight = np.ones(len(items))
    if any(item.mos_std is not None or item.raters for item in items):
        std = [None if item.mos_std is None else item.mos_std * 4 / (scale.high - scale.low) for item in items]
        weight = label_weights(std, [item.raters for item in items])
    seen = seen_images([item.image for item in items], args.workers)
    rows = [seen[item.image] for item in items]
    features, shipped = np.stack([row.features for row in rows]), np.array([row.score for row in rows])
    contents = np.array([[item.content] * 2 for item in items])
    target = np.array([scale.to_1_5(item.mos) for item in items])
    return Given(GivenLabels(features, shipped, target, weight, contents), seen, read.digest)


def _pairs(args: CalibrateAdapterOptions) -> Given | None:
    """Return the comparisons of tables with columns better and worse in the form of ``_scores``, else ``None``."""
    if not all(map(holds_labels, args.labels)):
        return None
    source = open_sources(args.labels, args.root)
    table = [
        (place, {str(name).lower(): str(cell or "").strip() for name, cell in row.items()})
        for place, row in source.rows
    ]
    if not table or not {"better", "worse"} <= table[0][1].keys():
        return None
    if args.mos_out:
        raise UserError(f"--mos-out {args.mos_out}: comparisons have no MOS; remove it, or name a table of ratings")
    table = [(place, row) for place, row in table if any(row.values())]  # the last row only has the column names
    pairs = []
    for place, row in table:
        files = [source.folder / row.get(name, "") for name in ("better", "worse")]
        if files[0] == files[1] or not all(os.path.isfile(file) for file in files):
            pair_text = f"better is {files[0]}, worse is {files[1]}"
            raise UserError(f"{source.title}: {place}: {pair_text}; name two different images that exist")
        pairs.append(files)
    refuse_inputs(args, [file for pair in pairs for file in pair])
    seen = seen_images([file for pair in pairs for file in pair], args.workers)
    place_of = {file: number for number, file in enumerate(seen)}
    ends = np.array([[place_of[file] for file in pair] for pair in pairs])
    groups, group_of = connected_components(coo_array((np.ones(len(ends)), ends.T), shape=(len(seen), len(seen))))
    features = np.stack([seen[better].features - seen[worse].features for better, worse in pairs])
    shipped = np.array([seen[better].score - seen[worse].score for better, worse in pairs])
    contents = (group_of[ends] if groups >= FEWEST_GROUPS else ends).astype(str)
    ones = np.ones(len(pairs))
    return Given(GivenLabels(features, shipped, ones, ones, contents, True), seen, digest([row for _, row in table]))


def seen_images(files: Collection[Path], workers: int | None = None) -> dict[Path, Seen]:
    """Return the data used from each image, cached in the cache folder. Raises UserError for an unusable image."""

    def seen(file: Path) -> Seen:
        sha256 = sha256_of(file)
        kept = cache_folder() / f"features-{SHA256[:12]}" / f"{sha256}.npz"
        with suppress(OSError, ValueError, KeyError):
            arrays = arrays_in(read_regular(kept))
            return Seen(sha256, float(arrays["score"]), arrays["features"].astype(np.float32), arrays["kinds"].tolist())
        try:
            image = load(file)
            (predicted, features), kinds = mos_and_features(image.pixels), [*outside_training(image)]
        except (ImageError, ToolError) as error:
            raise UserError(f"{file}: {error}; remove its row from the labels") from error
        content, features = io.BytesIO(), features.astype(np.float16)
        np.savez(content, score=predicted.score, features=features, kinds=np.array(kinds, np.str_))
        write_atomically(kept, content.getvalue())
        return Seen(sha256, predicted.score, features.astype(np.float32), [*map(str, kinds)])

    files = [*dict.fromkeys(files)]
    with ThreadPoolExecutor(workers or available_cores()) as pool:
        return dict(zip(files, render.progress(pool.map(seen, files), len(files), "reading"), strict=True))


def _figures(labels: GivenLabels, adapted: NDArray[np.float64]) -> list[Sequence[str]]:
    """Return the figures of shipped and adapted scores on held-out labels, and their difference, with intervals."""
    contents, target = labels.contents[:, 0].tolist(), labels.target
    lines: list[Sequence[str]] = []
    if labels.pairs:
        both = [accuracy((scores > 0).tolist(), contents) for scores in (labels.shipped, adapted)]
        gain = difference_interval(lambda x, _: float((x > 0).mean()), adapted, labels.shipped, target, contents)
        return [("pairs ranked correctly", *(f"{scores:.3f}" for scores in both), f"{gain:+.3f}")]
    for name, measure in (("SRCC", srcc), ("PLCC", plcc), ("error, in levels", rmse)):
        both = [
            rmse_interval(scores, target, contents) if measure is rmse else interval(measure, scores, target, contents)
            for scores in (labels.shipped, adapted)
        ]
        gain = difference_interval(measure, adapted, labels.shipped, target, contents)
        lines.append((name, *(f"{scores:.3f}" for scores in both), f"{gain:+.3f}"))
    return lines
