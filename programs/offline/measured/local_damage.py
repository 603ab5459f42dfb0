"""Find local damage: regions of patches with more of a distortion than the rest of the image.

A region is a connected set of patches with the same distortion. Its difference from the rest of the image, its
uniformity and its compactness decide whether it is damage or part of the scene. An out-of-focus background is not
damage: blur counts only if detail ends at a straight line, or inside a frame that is sharp all around.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its modules load on use, which is only with a reference
from numpy.typing import NDArray

from agenticiqa.programs.images.boxes import name_of_place
from agenticiqa.programs.offline.measured.findings import LocalDamage
from agenticiqa.programs.offline.measured.patches import patch_severities, region_weights
from agenticiqa.programs.tools.numerics.pixels import RGB
from agenticiqa.programs.tools.shared import Measurable, shared
from agenticiqa.signatures.categories import BLURS, CATEGORIES
from agenticiqa.signatures.types import Box
from agenticiqa.signatures.vocabulary import TRAINED, DetectableDistortion

Values = NDArray[np.float64]
Mask = NDArray[np.bool_]
Damage = dict[DetectableDistortion, LocalDamage]

FROM = 0.6  # severity from which a patch belongs to a region
CORE_FROM = 0.45  # share of the severity that a fifth of a region exceeds
SQUARE = np.ones((3, 3), bool)
FEWEST = 4  # patches of a region
LARGEST_SHARE = 0.75  # share of the image; a larger region is not local
LEAST_SEVERITY = 0.8  # points of severity: "slight"
# Log odds, chosen on the training photos (``eval/research/train_patches.py``) so that one in sixty has a false alarm.
# Plain skies are often mistaken for low contrast, and little is mistaken for noise.
LEAST_CONFIDENCE: dict[DetectableDistortion, float] = {row.name: row.least_confidence for row in CATEGORIES if row.head}
# For the straight edges of blur:
ENCLOSED = 3.0  # log odds from which blur inside a sharp frame needs no straight edge
STRAIGHT = 0.35  # share of a line; synthetic blur has 0.4 to 1, outlines of objects in focus have less than 0.2
REACH, SEGMENT, BESIDE = 40, 16, 5  # pixels to either side of a box's side, along it, and compared across it
FAINT, CLEAR_STEP = 0.3, 0.6  # gray levels of detail without meaning; log of a visible ratio of detail
# For differences from a reference:
CHANGE_CELL = 16  # pixels
LEAST_CHANGE = 1.0  # gray levels, the mean over a cell
CHANGED_FROM = 0.2  # share of the change that a cell in twenty exceeds
UNCHANGED_BELOW = 0.05  # share of the mean change; a local change does not affect the rest


@dataclass(frozen=True)
class Region:
    """A connected set of patches, ``mask`` (rows, columns), with the features (n,) that show if it is damage."""

    mask: Mask
    evidence: Values


@shared
def local_damage(image: Measurable) -> Damage:
    """Return the distortions in only a part of an image, the likeliest region of each.

    Raises ToolError for damaged weights.
    """
    damage: Damage = {}
    patches = patch_severities(image)
    if patches is None:
        return damage
    weights, (height, width) = region_weights(), image.pixels.shape[:2]
    for name in TRAINED:
        of_category = patches.by_category[name]
        likely = [
            (confidence(region.evidence, weights[name]), number, region)
            for number, region in enumerate(regions(of_category))
        ]
        odds, _, region = max(likely, default=(-np.inf, 0, None))
        if region is None or odds < LEAST_CONFIDENCE[name]:
            continue
        core = _core(of_category, region.mask)
        severity = float(of_category[core].mean())
        box = _box(core, patches.side, (width, height))
        if severity >= LEAST_SEVERITY and (name != BLURS or _is_no_depth_of_field(image.pixels, box, odds)):
            damage[name] = LocalDamage(severity, box, name_of_place(box, (width, height)), float(core.mean()))
    return damage


def local_change(image: RGB, reference: RGB) -> LocalDamage | None:
    """Return the only part of an image that differs from its reference, both uint8 (H, W, 3), or ``None``.

    Its ``severity`` is 0, because a pixel difference does not show the kind of change.
    """
    difference = np.abs(image.astype(np.int16) - reference).mean(axis=2)
    rows, columns = (np.arange(0, side, CHANGE_CELL) for side in difference.shape)
    sums = np.add.reduceat(np.add.reduceat(difference, rows, axis=0), columns, axis=1)
    height, width = difference.shape
    counts = np.diff([*rows, height])[:, None] * np.diff([*columns, width])
    change = sums / counts
    changed = scipy.ndimage.binary_closing(
        np.pad(change >= max(LEAST_CHANGE, CHANGED_FROM * np.quantile(change, 0.95)), 1), SQUARE
    )[1:-1, 1:-1]
    labels, count = scipy.ndimage.label(changed)
    if not count:
        return None
    mask = labels == 1 + np.argmax(np.bincount(labels.ravel())[1:])
    share = float(mask.mean())
    around = scipy.ndimage.binary_dilation(mask, SQUARE)
    if share > LARGEST_SHARE or mask.sum() < FEWEST or around.all():
        return None
    if change[~around].mean() > UNCHANGED_BELOW * change[mask].mean():
        return None
    box = _box(mask, CHANGE_CELL, (width, height))
    return LocalDamage(0.0, box, name_of_place(box, (width, height)), share)


def regions(severities: Values) -> Iterator[Region]:
    """Yield the regions of one distortion that may be local damage, from its severity per patch (rows, columns)."""
    if severities.max() < FROM:
        return  # most images have no region, and the mean below cannot exceed the maximum
    for mask in _connected((severities + _around(severities).mean(axis=0)) / 2 >= FROM):
        if FEWEST <= np.count_nonzero(mask) <= LARGEST_SHARE * mask.size:
            yield Region(mask, _evidence(severities, mask))


def _around(cells: NDArray[Any]) -> NDArray[Any]:
    """Return each cell of a grid (rows, columns) with its eight neighbors, (9, rows, columns); borders are mirrored."""
    padded = np.pad(cells, 1, mode="symmetric")
    rows, columns = cells.shape
    return np.stack([padded[down : down + rows, right : right + columns] for down in range(3) for right in range(3)])


def _connected(cells: Mask) -> Iterator[Mask]:
    """Yield the sets of chosen cells that touch along a side, each as a mask, from the top left."""
    left = dict.fromkeys(map(tuple, np.argwhere(cells).tolist()))
    while left:
        mask, edge = np.zeros_like(cells), [next(iter(left))]
        while edge:
            if (cell := edge.pop()) in left:
                del left[cell]
                mask[cell] = True
                row, column = cell
                edge += [(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)]
        yield mask


def confidence(evidence: Values, weights: Values) -> float:
    """Return the log odds that a region is damage; ``weights`` (3, features + 1) has means, deviations and weights."""
    mean, deviation, weight = weights
    return float(np.sum((evidence - mean[:-1]) / deviation[:-1] * weight[:-1]) + weight[-1])


def _evidence(severities: Values, mask: Mask) -> Values:
    around = _around(mask).any(axis=0)
    inside, rim, beyond = severities[mask], severities[around & ~mask], severities[~around]
    beyond = beyond if beyond.size else rim
    rows, columns = mask.any(axis=1).sum(), mask.any(axis=0).sum()
    return np.array(
        [
            inside.mean(),
            _quantile(inside, 0.2),
            rim.mean(),
            beyond.mean(),
            _quantile(beyond, 0.9),
            np.log(mask.mean()),
            np.log(mask.sum()),
            mask.sum() / (rows * columns),
        ]
    )


def _quantile(values: Values, share: float) -> float:
    """Return NumPy's quantile of one dimension, five times as fast for the few values of a region."""
    ranked = np.sort(values)
    place = share * (len(ranked) - 1)
    below = int(place)
    return float(ranked[below] + (place - below) * (ranked[min(below + 1, len(ranked) - 1)] - ranked[below]))


def _is_no_depth_of_field(image: RGB, box: Box, odds: float) -> bool:
    inside = box[0] > 0 and box[1] > 0 and box[2] < image.shape[1] and box[3] < image.shape[0]
    return (inside and odds >= ENCLOSED) or straight_edge(image[..., 1], box) >= STRAIGHT


def straight_edge(plane: NDArray[np.uint8], box: Box) -> float:
    """Return the share, 0 to 1, of a straight line near a side of a box at which detail ends towards the inside.

    It is the maximum over the sides inside the image, (H, W), and over parallel lines up to 40 pixels away. Natural
    defocus ends at the outline of an object, so it has a low share on any straight line.
    """
    left, top, right, bottom = box
    sides = [(plane, left, top, bottom, 1), (plane, right, top, bottom, -1)]
    sides += [(plane.T, top, left, right, 1), (plane.T, bottom, left, right, -1)]
    largest = 0.0
    for along, place, start, stop, inward in sides:
        length = along.shape[1]
        if not SEGMENT <= place <= length - SEGMENT or stop - start < 2 * SEGMENT:
            continue
        rows = slice(start, start + (stop - start) // SEGMENT * SEGMENT)
        strip = along[rows, max(place - REACH, 0) : min(place + REACH, length)].astype(np.float32)
        detail = np.abs(strip[1:, 1:] + strip[:-1, :-1] - strip[1:, :-1] - strip[:-1, 1:])
        by_segment = np.vstack([detail, detail[-1:]]).reshape(-1, SEGMENT, detail.shape[1]).mean(axis=1)
        total = np.cumsum(np.pad(by_segment, ((0, 0), (1, 0))), axis=1)
        means = (total[:, BESIDE:] - total[:, :-BESIDE]) / BESIDE
        step = inward * np.log((means[:, :-BESIDE] + FAINT) / (means[:, BESIDE:] + FAINT))
        largest = max(largest, float((step > CLEAR_STEP).mean(axis=0).max(initial=0)))
    return largest


def _core(severities: Values, mask: Mask) -> Mask:
    """Return the patches of a region without its rim, because features partly depend on neighboring patches."""
    return mask & (severities >= CORE_FROM * _quantile(severities[mask], 0.8))


def _box(mask: Mask, side: int, size: tuple[int, int]) -> Box:
    """Return the rows and columns that the region fills at least a third as much as the fullest row or column."""
    rows, columns = (np.flatnonzero(filled * 3 >= filled.max()) for filled in (mask.sum(axis=1), mask.sum(axis=0)))
    width, height = size
    left, top = int(columns[0]) * side, int(rows[0]) * side
    return left, top, min(int(columns[-1] + 1) * side, width), min(int(rows[-1] + 1) * side, height)
