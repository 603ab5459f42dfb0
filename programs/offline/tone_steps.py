"""Find a part of an image with other brightness, contrast or color than the rest, by its straight borders.

A part of another tone looks like the scene's own objects, but for its border: at a straight line, one pixel wide, every
pixel changes, and what the scene shows goes on behind it. Objects have no such border: their edges are some pixels
wide, seldom straight along a whole side, and what lies on both sides of them differs. The change is then read off the
pixels on both sides: the kind of ``distort`` that explains it best, at its level.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.images.places import name_of_place
from agenticiqa.programs.offline.findings import Finding, LocalDamage
from agenticiqa.programs.tools.distort import KINDS
from agenticiqa.programs.tools.numerics.pixels import LUMA_WEIGHTS, RGB
from agenticiqa.programs.tools.statistics.parts import WHOLE_PIXELS
from agenticiqa.signatures.types import Box
from agenticiqa.signatures.vocabulary import DETECTABLE, DetectableDistortion

Values = NDArray[np.float64]
Strengths = NDArray[np.float32]  # (segments, lines): how strong the step is at each line, in each segment of it
Change = tuple[str, float, float]  # kind, strength, and the share of the difference that they leave
Sides = list[tuple[Values, Values, Values, Values]]  # of each side the pixels (N, 3) from far outside to deep inside

SMALLEST_SIDE = 96  # pixels of an image
SEGMENT = 16  # pixels along a line
REACH = 3  # pixels on both sides of a line whose steps it is compared with
FAINT = 3.0  # gray levels, the sum of three channels: smaller steps mean little
GRID = 8  # pixels: the steps of JPEG are at all lines of such a grid alike
LEAST_RUN, CANDIDATES, APART = 1.2, 6, 4  # of a line that may be a side; how many of an orientation, and pixels apart
SEEN = 0.45  # logarithm of a step's ratio to those beside it, from which a segment counts for a line
SMALLEST_PART, SHARE_OF_SIDE = 48, 1 / 8  # of a part's sides: pixels, and share of the image's side
LARGEST_SHARE = 0.75  # of the image's area
# Chosen for no false alarm on 150 training photos of CLIVE and BIQ2021: of every side the least
# mean strength, and share of segments with a clear step; a part with one side only, as a half has, needs more.
CLEAR = 0.4
LEAST_STRENGTH, LEAST_CLEAR = 0.8, 0.8
LEAST_STRENGTH_ALONE, LEAST_CLEAR_ALONE = 1.2, 0.9
TRIED = 6  # parts, with the clearest sides first
GOES_ON = 0.5  # correlation of luma on both sides of the border, along it
UNEXPLAINED = 0.4  # of the difference at the border beyond usual detail, what one kind of change may leave
PLAIN = 0.5  # of the detail behind the border, what a loss of contrast may leave
CLIPPED_LOW, CLIPPED_HIGH = 3, 252  # values beyond may be clipped
CLIPPED_MORE = 0.03  # difference of shares of clipped pixels that tells which half is the damaged one
LEAST_CHROMA = 2.0  # gray levels, the mean difference from luma: less is no color
LEAST_LEVEL = 2.0  # a slighter change may be the scene
SEVERITY_OF_LEVEL = (0.0, 0.8, 1.6, 2.5, 3.3, 4.0)
# By kind: the subtype that findings have, the strength that changes nothing, and what the border shows.
MEANING: dict[str, tuple[str, float, str]] = {
    "darken": ("underexposure", 1.0, "{:.0%} of the brightness around it"),
    "brighten": ("overexposure", 1.0, "{:.0%} of the brightness around it"),
    "low_contrast": ("low contrast", 1.0, "{:.0%} of the contrast around it"),
    "high_contrast": ("high contrast", 1.0, "{:.0%} of the contrast around it"),
    "desaturate": ("desaturation", 1.0, "{:.0%} of the saturation around it"),
    "oversaturate": ("oversaturation", 1.0, "{:.0%} of the saturation around it"),
    "color_cast": ("color cast", 0.0, "a tint that changes one color by {:.0%}"),
}
REDUCING = ("darken", "low_contrast", "desaturate")


@dataclass(frozen=True)
class ToneStep:
    """A part of an image with another tone: the category of the distortion, what was found of it, and where."""

    category: DetectableDistortion
    part: Finding
    damage: LocalDamage


def tone_step(image: RGB) -> ToneStep | None:
    """The part with another tone behind straight borders, of an image, uint8 (H, W, 3); ``None`` if there is no such.

    At most one is found: that with the clearest borders. A soft or a round border is none.
    """
    height, width = image.shape[:2]
    if min(height, width) < SMALLEST_SIDE:
        return None
    for box in _parts(image)[:TRIED]:
        part, (kind, strength, unexplained) = _explained(image, box)
        level = level_of(kind, strength)
        if unexplained <= UNEXPLAINED and level >= LEAST_LEVEL:
            return _step(part, kind, strength, level, (width, height))
    return None


def step_strengths(image: RGB) -> Strengths:
    """How strong the step from each column to the next is, beside the steps near it: (segments, W - 1), -1..2.

    The logarithm of the ratio, for each segment of 16 rows (more in an image of over two megapixels). What all lines of
    an 8-pixel grid have in common is taken off.
    """
    rows = np.moveaxis(image[:: 2 * _coarser(image)], -1, 0).astype(np.int16, order="C")
    change = np.abs(rows[:, :, 1:] - rows[:, :, :-1]).sum(axis=0, dtype=np.int16)
    each = SEGMENT // 2
    segments = len(change) // each
    sums = change[: segments * each].reshape(segments, each, -1).sum(axis=1, dtype=np.int32)
    mean = sums.astype(np.float32) / each
    total = np.cumsum(np.pad(mean, ((0, 0), (REACH + 1, REACH)), mode="reflect"), axis=1)
    beside = (total[:, 2 * REACH + 1 :] - total[:, : -2 * REACH - 1] - mean) / (2 * REACH)
    strength = np.log((mean + FAINT) / (np.maximum(beside, 0) + FAINT))
    for place in range(GRID):
        strength[:, place::GRID] -= max(0.0, float(strength[:, place::GRID].mean()))
    return np.clip(strength, -1, 2)


def level_of(kind: str, strength: float) -> float:
    """The level, 0 to 5, at which ``distort`` has a strength; 5 beyond its last one, 0 below what changes anything."""
    strengths = np.array([MEANING[kind][1], *KINDS[kind].strengths], float)
    sign = 1.0 if strengths[-1] > strengths[0] else -1.0
    return float(np.interp(sign * strength, sign * strengths, range(6)))


@dataclass(frozen=True)
class _Lines:
    """Lines of one orientation that may be sides: their places, and sums of strength and clearness along each."""

    places: list[int]
    strength: Values
    clear: Values
    segment: int

    def surplus(self, place: int, start: int, stop: int, *, is_alone: bool) -> float | None:
        """By how much a stretch of a line is stronger than what is just seen; ``None`` where it is no clear side."""
        column = self.places.index(place)
        first, last = -(-start // self.segment), min(stop // self.segment, len(self.strength) - 1)
        count = last - first
        strength = float(self.strength[last, column] - self.strength[first, column])
        clear = float(self.clear[last, column] - self.clear[first, column])
        least, share = (LEAST_STRENGTH_ALONE, LEAST_CLEAR_ALONE) if is_alone else (LEAST_STRENGTH, LEAST_CLEAR)
        return strength - SEEN * count if count > 1 and strength >= least * count and clear >= share * count else None


def _lines(image: RGB) -> _Lines:
    strengths = step_strengths(image)
    run, best = np.zeros(strengths.shape[1]), np.zeros(strengths.shape[1])
    for row in strengths - SEEN:
        run = np.maximum(run + row, 0)
        best = np.maximum(best, run)
    best[:GRID] = best[-GRID:] = 0
    places: list[int] = []
    while len(places) < CANDIDATES and best.max() >= LEAST_RUN:
        column = int(best.argmax())
        places.append(column + 1)
        best[max(0, column - APART) : column + APART + 1] = 0
    places.sort()
    chosen = strengths[:, [place - 1 for place in places]].astype(float)
    strength, clear = (
        np.cumsum(np.pad(each, ((1, 0), (0, 0))), axis=0) for each in (chosen, (chosen > CLEAR).astype(float))
    )
    return _Lines(places, strength, clear, SEGMENT * _coarser(image))


def _parts(image: RGB) -> list[Box]:
    """The rectangles with clear sides, behind which the scene goes on; that with the clearest first."""
    height, width = image.shape[:2]
    upright, level = _lines(image), _lines(image.swapaxes(0, 1))
    rated = sorted(_rated(upright, level, width, height), reverse=True)
    return [box for _, box in rated[: 2 * TRIED] if _goes_on(_sides(image, box))]


def _step(box: Box, kind: str, strength: float, level: float, size: tuple[int, int]) -> ToneStep:
    severity = float(np.interp(level, range(6), SEVERITY_OF_LEVEL))
    subtype, _, what = MEANING[kind]
    left, top, right, bottom = box
    share = (right - left) * (bottom - top) / (size[0] * size[1])
    category = next(name for name in DETECTABLE if name == KINDS[kind].category)
    return ToneStep(
        category,
        Finding(severity, subtype, f"Behind its straight border it has {what.format(strength)}."),
        LocalDamage(severity, box, name_of_place(box, size), share),
    )


def _rated(upright: _Lines, level: _Lines, width: int, height: int) -> Iterator[tuple[float, Box]]:
    columns = _pairs(upright.places, width)
    for top, bottom in _pairs(level.places, height):
        for left, right in columns:
            if (right - left) * (bottom - top) > LARGEST_SHARE * width * height:
                continue
            sides = [(upright, place, top, bottom) for place in (left, right) if 0 < place < width]
            sides += [(level, place, left, right) for place in (top, bottom) if 0 < place < height]
            total = 0.0
            for lines, place, start, stop in sides:
                surplus = lines.surplus(place, start, stop, is_alone=len(sides) == 1)
                if surplus is None:
                    break
                total += surplus
            else:
                yield total, (left, top, right, bottom)


def _pairs(places: list[int], length: int) -> list[tuple[int, int]]:
    """Places of two opposite sides of a part, the image's own among them."""
    least = max(SMALLEST_PART, length * SHARE_OF_SIDE)
    return [(start, stop) for start, stop in combinations([0, *places, length], 2) if stop - start >= least]


def _sides(image: RGB, box: Box) -> Sides:
    """Of each side inside the image the pixels two outside and two inside of it, each the mean of two across it."""
    left, top, right, bottom = box
    height, width = image.shape[:2]
    lying = image.swapaxes(0, 1)
    places = [(image, left, top, bottom, False, width), (image, right, top, bottom, True, width)]
    places += [(lying, top, left, right, False, height), (lying, bottom, left, right, True, height)]
    sides: Sides = []
    for along, place, start, stop, is_end, length in places:
        if 0 < place < length:
            strips = [
                along[start:stop, place + first : place + first + 2].mean(axis=1, dtype=float)
                for first in (-4, -2, 0, 2)
            ]
            sides.append(tuple(reversed(strips)) if is_end else tuple(strips))
    return sides


def _goes_on(sides: Sides) -> bool:
    weights = np.array(LUMA_WEIGHTS)
    shared = size = 0.0
    for _, outside, inside, _ in sides:
        out, within = ((pixels @ weights) for pixels in (outside, inside))
        out, within = out - out.mean(), within - within.mean()
        shared += float(out @ within)
        size += float(np.sqrt((out @ out) * (within @ within)))
    return shared > GOES_ON * size


def _explained(image: RGB, box: Box) -> tuple[Box, Change]:
    """The damaged part and its change; of two parts along one line it is the one that looks changed."""
    sides = _sides(image, box)
    beyond, outside, inside, within = (np.concatenate(pixels) for pixels in zip(*sides, strict=True))
    of_box, of_rest = _means(image, box)
    change = _change(outside, inside, of_rest, float(np.abs(inside - within).mean()))
    if len(sides) > 1:
        return box, change
    other = _change(inside, outside, of_box, float(np.abs(outside - beyond).mean()))
    more = _clipped(outside) - _clipped(inside)
    if change[0] == "color_cast":
        is_other = _tint(outside) > _tint(inside)
    else:
        reduces_other = change[0] not in REDUCING and other[0] in REDUCING
        is_other = more > CLIPPED_MORE or (more > -CLIPPED_MORE and reduces_other)
    return (_rest(box, image.shape), other) if is_other else (box, change)


def _change(before: Values, after: Values, mean: float, detail: float) -> Change:
    """The kind and strength that turn the pixels (N, 3) into the others with the least error, and what they leave.

    ``mean`` is that of the unchanged part of the image, about which contrast changes; ``detail`` is by how much the
    others differ from those next to them, which no change explains.
    """
    kept = ((after > CLIPPED_LOW) & (after < CLIPPED_HIGH)).all(axis=1)
    if kept.sum() >= SEGMENT:
        before, after = before[kept], after[kept]
    weights = np.array(LUMA_WEIGHTS)
    luma = (before @ weights)[:, None]
    gain, contrast = _slope(before, after), _slope(before - mean, after - mean)
    found = [
        (gain * before, "darken" if gain < 1 else "brighten", gain),
        (mean + contrast * (before - mean), "low_contrast" if contrast < 1 else "high_contrast", contrast),
    ]
    if max(np.abs(pixels - (pixels @ weights)[:, None]).mean() for pixels in (before, after)) >= LEAST_CHROMA:
        color = _slope(before - luma, after - luma)
        gains = (before * after).sum(axis=0) / np.maximum((before * before).sum(axis=0), 1)
        gains /= max(float(gains @ weights), 1e-3)
        found.append((luma + color * (before - luma), "desaturate" if color < 1 else "oversaturate", color))
        found.append((before * gains, "color_cast", float(np.abs(gains - 1).max())))
    errors = [float(np.abs(after - np.clip(expected, 0, 255)).mean()) for expected, _, _ in found]
    best = int(np.argmin(errors))
    _, kind, strength = found[best]
    plain = float(np.abs(after - after.mean(axis=0)).mean())
    if kind == "low_contrast" and errors[best] > PLAIN * plain:
        return kind, strength, 1.0  # a plain face of something, which shows nothing of what is beside it
    whole = float(np.abs(after - before).mean())
    return kind, max(strength, 0.0), (errors[best] - detail) / (whole - detail) if whole > detail else 1.0


def _slope(before: Values, after: Values) -> float:
    return float((before * after).sum() / max(float((before * before).sum()), 1e-9))


def _means(image: RGB, box: Box) -> tuple[float, float]:
    """The mean inside and outside of a box."""
    left, top, right, bottom = box
    inside = image[top:bottom, left:right]
    total, part = float(image.sum(dtype=np.int64)), float(inside.sum(dtype=np.int64))
    return part / inside.size, (total - part) / (image.size - inside.size)


def _clipped(pixels: Values) -> float:
    return float(((pixels >= CLIPPED_HIGH + 1) | (pixels <= CLIPPED_LOW - 1)).any(axis=1).mean())


def _tint(pixels: Values) -> float:
    """How far the mean color is from gray."""
    return float(np.abs((pixels - (pixels @ np.array(LUMA_WEIGHTS))[:, None]).mean(axis=0)).sum())


def _rest(box: Box, shape: tuple[int, ...]) -> Box:
    """The other part of the image, of two parts along one line."""
    left, top, right, bottom = box
    height, width = shape[:2]
    if (top, bottom) == (0, height):
        return (right, 0, width, height) if left == 0 else (0, 0, left, height)
    return (0, bottom, width, height) if top == 0 else (0, 0, width, top)


def _coarser(image: RGB) -> int:
    """Every so many pixels along a line are looked at, in an image of over two megapixels."""
    return max(1, round(float(np.sqrt(image.shape[0] * image.shape[1] / WHOLE_PIXELS))))
