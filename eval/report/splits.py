"""Compute median figures over the test sets of repeated splits, as papers on trained models do.

No model is trained here, so a split only selects images. The figures are shown beside those of all images, for
comparison with papers. The curve before the PLCC is fitted to each test set.
"""

import csv
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agenticiqa.eval.logistic import fit_logistic
from agenticiqa.eval.metrics import Numbers, krcc, plcc, srcc
from agenticiqa.programs.batch.csv_table import rows_of
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.names import closest, folded

SHARE = 0.2  # share of the scenes in a test set
TEST = "test"

Parts = list[NDArray[np.bool_]]  # the test images of each split
Splits = Callable[[Sequence[str], Sequence[str]], Parts]  # a function of the names and the scenes of images


def splits_named(text: str) -> tuple[Splits, str]:
    """Return the given number of random splits, or the splits of a CSV file, with a description.

    Raises UserError for a number below 1 and for a missing file.
    """
    if not text.isdigit():
        if not os.path.isfile(text):
            raise UserError(f"--splits {text}: file not found; give a number of splits or a CSV file")
        return partial(splits_of_file, Path(text)), f"splits of {Path(text).name}"
    if int(text) < 1:
        raise UserError(f"--splits {text}: give a number of at least 1, or a CSV file")
    return partial(random_splits, int(text)), f"{text} random 80/20 splits by scene (seed 0)"


def random_splits(count: int, names: Sequence[str], contents: Sequence[str]) -> Parts:
    """Draw this many test sets, each with a fifth of the scenes and at least one, with seed 0."""
    scenes, content_of = np.unique(np.asarray(contents, dtype=str), return_inverse=True)
    random, size = np.random.default_rng(0), max(1, round(SHARE * len(scenes)))
    return [np.isin(content_of, random.permutation(len(scenes))[:size]) for _ in range(count)]


def splits_of_file(path: Path, names: Sequence[str], contents: Sequence[str]) -> Parts:
    """Return the test sets of a CSV with a column image and a column for each split, in which "test" marks them.

    Images are identified by name, or by its last part. Raises UserError, in one line, for a file of another form
    and for an image that is not in it.
    """
    by_file: dict[str, dict[str, dict[str, str]]] = {}  # rows by image, by the name of its file as it is compared
    try:
        for row in rows_of(path):
            by_file.setdefault(folded(Path(row["image"]).name), {})[row["image"]] = row
    except (OSError, UnicodeDecodeError, csv.Error, KeyError) as error:
        raise UserError(f"{path}: expected a CSV with a column image and one for each split ({error})") from error
    fitting = {name: _images_named(name, by_file.get(folded(Path(name).name), ())) for name in names}
    if absent := [name for name in names if not fitting[name]]:
        raise UserError(f"{path}: {len(absent)} images have no row, such as {absent[0]}; add them")
    if several := next((name for name in names if len(fitting[name]) > 1), None):
        raise UserError(
            f"{path}: {len(fitting[several])} rows fit {several}, such as {' and '.join(fitting[several][:2])}; write "
            "the paths as in the labels"
        )
    listed = [by_file[folded(Path(name).name)][fitting[name][0]] for name in names]
    columns = [column for column in (listed[0] if listed else {}) if column != "image"]
    parts = [np.array([row[column] == TEST for row in listed]) for column in columns]
    tests = [part for part in parts if part.any()]
    if not tests:
        raise UserError(f'{path}: no column marks an image as "{TEST}"; mark the test images of each split')
    return tests


def _images_named(name: str, images: Iterable[str]) -> list[str]:
    """Return the images of this name; if there are none, those whose file has it."""
    return closest(name, images, str) or closest(Path(name).name, images, lambda image: Path(image).name)


def medians(values: Numbers, mos: Numbers, parts: Parts) -> dict[str, Any]:
    """Return the median, over the test sets, of the number of images and each figure; ``None`` if no part has one."""
    here = np.isfinite(values)
    rows = [_figures(values[part & here], mos[part & here]) for part in parts]
    keys = ("n", "srcc", "plcc_fitted", "krcc", "plcc")
    known = {key: [row[key] for row in rows if row[key] is not None] for key in keys}
    return {key: median(column) if column else None for key, column in known.items()}


def _figures(x: Numbers, mos: Numbers) -> Mapping[str, Any]:
    curve = fit_logistic(x, mos)
    return {
        "n": len(x),
        "srcc": srcc(x, mos),
        "plcc_fitted": plcc(x if curve is None else curve.directed(x), mos),
        "krcc": krcc(x, mos),
        "plcc": plcc(x, mos),
    }
