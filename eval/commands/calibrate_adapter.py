"""Fit an adapter of the learned scorer to the user's labels, and write it where it is shown to help."""

import io
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from agenticiqa.eval.calibrate import adapter_fit
from agenticiqa.eval.calibrate.adapter_fit import FEWEST_CONTENTS, FEWEST_LABELS, AdapterFit, Given
from agenticiqa.eval.commands.label_options import labels_named
from agenticiqa.eval.intervals import Interval, accuracy, difference_interval, interval, rmse_interval
from agenticiqa.eval.labels.sources import holds_labels, open_source
from agenticiqa.eval.metrics import plcc, rmse, srcc
from agenticiqa.programs.backends.cores import available_cores, workers_given
from agenticiqa.programs.cli import render
from agenticiqa.programs.cli.printable import print_error
from agenticiqa.programs.cli.status import OK, SOME_FAILED
from agenticiqa.programs.errors import ImageError, ToolError, UserError
from agenticiqa.programs.fusion.interval import NORMAL_QUANTILES
from agenticiqa.programs.images import load
from agenticiqa.programs.images.files import cache_folder, digest, sha256_of, write_atomically
from agenticiqa.programs.tools.adapter import write_adapter
from agenticiqa.programs.tools.metrics.learned_iqa import (
    FEATURE_COUNT,
    SHA256,
    TOOL,
    opinion_and_features,
    outside_training,
)
from agenticiqa.programs.tools.training_images import trained_on_count

OUT = Path("adapter.npz")
FEWEST_GROUPS = 10  # of pairs that share no image with another group; with fewer, folds are made of images
Pair = tuple[Path, Path]
KIND_SHARE = 0.2  # of the labeled images, from which on the error holds for images of a kind of ``outside_training``


class Seen(NamedTuple):
    """What is used of an image: SHA-256, shipped score, features (F,), and why it is unlike the shipped training."""

    sha256: str
    score: float
    features: NDArray[np.float32]
    kinds: list[str]


class Labels(NamedTuple):
    """Labels as they were read: what to fit without its images' features, whose files are in ``rows``, and a digest."""

    rows: Sequence[Pair]  # an image with itself where the label is a score
    target: NDArray[np.float64]
    weight: NDArray[np.float64]
    contents: NDArray[np.str_]
    digest: str
    pairs: bool = False


def run(args: Namespace, data: Path | None) -> int:
    """Fit an adapter, print what it gains on held-out labels, and write it unless it is not shown to help."""
    out = args.out or OUT
    if data is None:
        raise UserError("--adapt needs labels: a table with the columns image and mos, or better and worse")
    if out.exists() and not args.force:
        raise UserError(f"{out} exists already: name another file, or replace it with --force")
    labels = _pairs(data) or _scores(args, data)
    kind, count = "comparisons" if labels.pairs else "labels", len(labels.rows)
    if count < FEWEST_LABELS or len(np.unique(labels.contents)) < FEWEST_CONTENTS:
        print(f"Not saved: at least {FEWEST_LABELS} {kind} of {FEWEST_CONTENTS} contents are needed; {count} are here.")
        return SOME_FAILED
    seen = seen_images(sorted({file for row in labels.rows for file in row}), args)
    given = _given(labels, seen)
    fit = adapter_fit.fit_adapter(given)
    known = np.flatnonzero(np.isfinite(fit.held_out))
    tested = replace(given, **{name: getattr(given, name)[known] for name in vars(given) if name != "pairs"})
    figures = _figures(tested, fit.held_out[known])
    lines = [[name, *(f"{found:.3f}" for found in both), f"{gain:+.3f}"] for name, *both, gain in figures]
    render.print_lines((f"{len(known)} held-out {kind}", "before", "after", "difference"), lines)
    if trained := trained_on_count(TOOL, seen):
        print_error(f"the scorer was trained on {trained} of these images: what it has before is too good for new ones")
    if len(known) < FEWEST_LABELS or not adapter_fit.helps(tested, fit.held_out[known]):
        print(f"Not saved: on held-out images these {count} {kind} are not shown to help. More of them may.")
        return SOME_FAILED
    about = _about(labels, fit, tested, fit.held_out[known], seen)
    about["held_out"] = {name: [before.value, after.value] for name, before, after, _ in figures}
    write_adapter(out, fit.weights, sorted({each.sha256 for each in seen.values()}), about)
    print(f"{out}: {fit.shipped:.2f} of the shipped score, and a regression on {count} {kind} of {len(seen)} images.")
    if spread := about["spread"]:
        print(f"The 80 % interval is the score +- {NORMAL_QUANTILES['80'] * spread:.2f}, by errors on held-out labels.")
    print(f'To use it: --adapter {out}, or "adapter: {out}" in a configuration.')
    return OK


def _about(
    labels: Labels, fit: AdapterFit, tested: Given, found: NDArray[np.float64], seen: dict[Path, Seen]
) -> dict[str, Any]:
    """What an adapter says of itself."""
    level, errors = fit.level, found - tested.target
    kinds = Counter(kind for each in seen.values() for kind in each.kinds)
    if labels.pairs:  # which say nothing of the level: that of the shipped scores stays
        level = float(
            (1 - fit.shipped) * np.mean([each.score for each in seen.values()])
            - np.mean([each.features @ fit.weights for each in seen.values()])
        )
    return {
        "scorer": SHA256,
        "features": FEATURE_COUNT,
        "labels": len(labels.rows),
        "labels_sha256": labels.digest,
        "kind": "pairs" if labels.pairs else "scores",
        "way": fit.choice.way,
        "shipped": float(fit.shipped),
        "penalty": fit.choice.penalty,
        "level": level,
        "error": None if labels.pairs else rmse(found, tested.target),
        "spread": None if labels.pairs else adapter_fit.conformal_spread(errors),
        "kinds": sorted(kind for kind, number in kinds.items() if number >= KIND_SHARE * len(seen)),
        "version": version("agenticiqa"),
        "date": date.today().isoformat(),
    }


def _scores(args: Namespace, data: Path) -> Labels:
    read = labels_named(args, data)
    scale, items = read.any_scale(), read.labels
    print(f"opinion scores {scale.low:g} to {scale.high:g} stand for 1 to 5", file=sys.stderr)
    weight = np.ones(len(items))
    if any(item.mos_std is not None or item.raters for item in items):
        levels = 4 / (scale.high - scale.low)
        std = [None if item.mos_std is None else item.mos_std * levels for item in items]
        weight = adapter_fit.label_weights(std, [item.raters for item in items])
    target = np.array([scale.to_1_5(item.mos) for item in items])
    contents = np.array([[item.content] * 2 for item in items])
    return Labels([(item.image, item.image) for item in items], target, weight, contents, read.digest)


def _pairs(data: Path) -> Labels | None:
    """The comparisons in a table with the columns better and worse; ``None`` for any other."""
    if not holds_labels(data):
        return None
    source = open_source(data)
    rows = [(place, {name.lower(): cell for name, cell in cells.items() if name}) for place, cells in source.rows]
    if not rows or not {"better", "worse"} <= rows[0][1].keys():
        return None
    found: list[Pair] = []
    for place, cells in rows:
        names = [str(cells.get(name) or "").strip() for name in ("better", "worse")]
        files = (source.folder / names[0], source.folder / names[1])
        if not all(names) or files[0] == files[1]:
            raise UserError(f"{source.title}: {place}: expected two different images as better and worse")
        if missing := [file for file in files if not file.is_file()]:
            raise UserError(f"{source.title}: {place}: {missing[0]} is missing")
        found.append(files)
    places = {file: number for number, file in enumerate(dict.fromkeys(file for pair in found for file in pair))}
    ends = np.array([[places[file] for file in pair] for pair in found])
    graph = coo_array((np.ones(len(ends)), ends.T), shape=(len(places), len(places)))
    groups, group_of = connected_components(graph, directed=False)
    contents = (group_of[ends] if groups >= FEWEST_GROUPS else ends).astype(str)
    ones = np.ones(len(found))
    return Labels(found, ones, ones, contents, digest([[str(cell) for cell in pair] for pair in found]), pairs=True)


def _given(labels: Labels, seen: dict[Path, Seen]) -> Given:
    def column(place: int) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        rows = [seen[row[place]] for row in labels.rows]
        return np.stack([each.features for each in rows]), np.array([each.score for each in rows])

    features, shipped = column(0)
    if labels.pairs:
        others, scores = column(1)
        features, shipped = features - others, shipped - scores
    return Given(features, shipped, labels.target, labels.weight, labels.contents, labels.pairs)


def seen_images(files: Sequence[Path], args: Namespace) -> dict[Path, Seen]:
    """The shipped score and the features of each image, kept in the cache folder. Raises UserError for a bad image."""
    folder = cache_folder() / f"features-{SHA256[:12]}"

    def seen(file: Path) -> Seen:
        sha256 = sha256_of(file)
        kept = folder / f"{sha256}.npz"
        try:
            with np.load(kept, allow_pickle=False) as arrays:
                return Seen(
                    sha256, float(arrays["score"]), arrays["features"].astype(np.float32), [*map(str, arrays["kinds"])]
                )
        except (OSError, ValueError, KeyError, EOFError):  # not there yet, or cut short
            pass
        try:
            image = load(file)
            opinion, features = opinion_and_features(image.pixels)
            kinds = outside_training(image)
        except (ImageError, ToolError) as error:
            raise UserError(f"{file}: {error}; take it out of the labels") from error
        content = io.BytesIO()
        np.savez(content, score=opinion.score, features=features.astype(np.float16), kinds=np.array(kinds, np.str_))
        write_atomically(kept, content.getvalue())
        return Seen(sha256, opinion.score, features.astype(np.float16).astype(np.float32), [*kinds])

    with ThreadPoolExecutor(workers_given(args.workers, available_cores())) as pool:
        found = render.progress(pool.map(seen, files), len(files), "reading")
        return dict(zip(files, found, strict=True))


def _figures(given: Given, found: NDArray[np.float64]) -> list[tuple[str, Interval, Interval, Interval]]:
    """By name what the shipped and the adapted scores have on held-out labels, and the difference."""
    contents = [str(each) for each in given.contents[:, 0]]
    before, target = given.shipped, given.target
    if given.pairs:
        both = [accuracy((each > 0).tolist(), contents) for each in (before, found)]
        return [("share in order", *both, difference_interval(_in_order, found, before, target, contents))]
    return [
        ("SRCC", *_both(srcc, given, found, contents)),
        ("PLCC", *_both(plcc, given, found, contents)),
        (
            "error, in levels",
            rmse_interval(before, target, contents),
            rmse_interval(found, target, contents),
            difference_interval(rmse, found, before, target, contents),
        ),
    ]


def _both(measure: Any, given: Given, found: NDArray[np.float64], contents: list[str]) -> tuple[Interval, ...]:
    old, new = (interval(measure, each, given.target, contents) for each in (given.shipped, found))
    return old, new, difference_interval(measure, found, given.shipped, given.target, contents)


def _in_order(found: NDArray[np.float64], _: NDArray[np.float64]) -> float:
    return float((found > 0).mean())
