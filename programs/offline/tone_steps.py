"""Find a part of an image with other brightness, contrast or color than the rest, by its straight borders.

A part of another tone looks like the scene's own objects, but for its border: along a straight line every pixel changes
by the same rule, and what the scene shows goes on behind it. Objects have no such border: their edges are seldom
straight along a whole side, and what lies on both sides of them differs.

First come the lines at which tone or color steps, and the rectangles that they may enclose. Borders are looked for in
several ways (``Look``): JPEG spreads a change of color over some pixels, for it stores color at half the size, and the
scene's own steps are larger over some pixels, too, so each has limits of its own. Then comes the change: the kind of
``distort`` that turns the pixels outside of a border into those inside of it with the least error.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.images.boxes import name_of_place
from agenticiqa.programs.offline.findings import Finding, LocalDamage
from agenticiqa.programs.tools.distort import KINDS
from agenticiqa.programs.tools.numerics.pixels import LUMA_WEIGHTS, RGB
from agenticiqa.programs.tools.statistics.parts import WHOLE_PIXELS
from agenticiqa.signatures.types import Box
from agenticiqa.signatures.vocabulary import DetectableDistortion

Rows = NDArray[np.int16]  # (3, rows, columns): every second row of an image, or sums of its pixels
Spans = NDArray[np.int_]  # (N, 2)
Strengths = NDArray[np.float32]  # (segments, lines): how strong the step is at each line, in each segment of it

SEGMENT = 16  # pixels along a line
THINNED = 4  # of so many rows one is looked at
REACH = 3  # steps on both sides of a line that its own is compared with
GRID = 8  # pixels: the steps of JPEG are at all lines of such a grid alike
MARGIN = 8  # pixels from the image's sides, where no line is looked for
CANDIDATES, APART = 6, 4  # lines of an orientation that may be sides, and pixels between two of them
SMALLEST_PART, SHARE_OF_SIDE = 48, 1 / 8  # of a part's sides: pixels, and share of the image's side
LARGEST_SHARE = 0.75  # of the image's area


@dataclass(frozen=True)
class Look:
    """One way to look for steps.

    ``scale`` is how many pixels across a line become one, 1 or 2; ``gap`` is how many of these from one side of a step
    to the other.
    A step of less than ``faint`` gray levels, the sum of the channels, means little, nor does one of color that is less
    than ``luma_share`` of that of luma. The rest are logarithms of a step's ratio to those beside it: ``seen`` is that
    from which a segment counts for a line, and ``least`` the mean along every side of a part; ``least_alone`` is for a
    part with one side only, as a half has.
    """

    is_color: bool
    scale: int
    gap: int
    faint: float
    luma_share: float
    seen: float
    least: float
    least_alone: float


@dataclass(frozen=True)
class Planes:
    """What steps are looked for in, along one orientation: red, green and blue, and two of color and luma."""

    tone: Rows
    color: Rows

    @classmethod
    def of(cls, image: RGB) -> "Planes":
        """The planes of every fourth row of an image, or of fewer of one of over two megapixels."""
        tone = np.empty((3, -(-image.shape[0] // (THINNED * _coarser(image))), image.shape[1]), np.int16)
        tone[:] = np.moveaxis(image[:: THINNED * _coarser(image)], -1, 0)
        red, green, blue = tone
        return cls(tone, np.stack([red - green, blue - green, (red + 2 * green + blue) >> 2]))


def planes_both_ways(image: RGB) -> tuple[Planes, Planes]:
    """The planes of an image, uint8 (H, W, 3), for upright lines and for level ones."""
    return Planes.of(image), Planes.of(image.swapaxes(0, 1))


def parts_between_lines(image: RGB, both: tuple[Planes, Planes], look: Look) -> list[Box]:
    """The rectangles with a clear line along every side inside of an image, the clearest first.

    ``both`` are ``planes_both_ways`` of it.
    """
    height, width = image.shape[:2]
    upright, level = (_Lines.of(step_strengths(planes, look), look, SEGMENT * _coarser(image)) for planes in both)
    if not upright.places and not level.places:
        return []
    return [box for _, box in sorted(_rated(upright, level, look, (width, height)), reverse=True)]


def step_strengths(planes: Planes, look: Look) -> Strengths:
    """How strong the step across each line is, beside the steps near it: (segments, lines), -1..2.

    The logarithm of the ratio, for each segment of 16 rows; 0 too near to the image's sides to tell. What all lines of
    an 8-pixel grid have in common is taken off.
    """
    pixels = planes.color if look.is_color else planes.tone
    if look.scale == 2:
        pixels = pixels[:, :, : pixels.shape[2] // 2 * 2 : 2] + pixels[:, :, 1::2]
    mean = _steps(pixels[:2] if look.is_color else pixels, look.gap) / np.float32(look.scale)
    lines, far = mean.shape[1], look.gap - 1 + REACH
    strength = np.zeros_like(mean)
    usual = np.zeros((len(mean), lines - 2 * far), np.float32)
    for away in range(look.gap, look.gap + REACH):
        usual += mean[:, far - away : lines - far - away]
        usual += mean[:, far + away : lines - far + away]
    usual = usual / np.float32(2 * REACH) + np.float32(look.faint)
    if look.luma_share:
        usual += np.float32(look.luma_share / look.scale) * _steps(pixels[2:], look.gap)[:, far : lines - far]
    np.log((mean[:, far : lines - far] + np.float32(look.faint)) / usual, out=strength[:, far : lines - far])
    grid = GRID // look.scale
    whole = lines // grid * grid
    common = strength[:, :whole].mean(axis=0).reshape(-1, grid).mean(axis=0)
    strength -= np.resize(np.maximum(common, 0), lines)
    return np.clip(strength, -1, 2, out=strength)


def _steps(planes: Rows, gap: int) -> Strengths:
    """The sum over planes of the differences of pixels ``gap`` apart, the mean of each segment's rows."""
    each = SEGMENT // THINNED
    change = np.abs(planes[:, :, gap:] - planes[:, :, :-gap]).sum(axis=0, dtype=np.int16)
    segments = len(change) // each
    sums = change[: segments * each].reshape(segments, each, -1).sum(axis=1, dtype=np.int32)
    return sums.astype(np.float32) / np.float32(each)


@dataclass(frozen=True)
class _Lines:
    """Lines of one orientation that may be sides: their places, and sums of strength along each."""

    places: list[int]
    strength: NDArray[np.float64]
    segment: int

    @classmethod
    def of(cls, strengths: Strengths, look: Look, segment: int) -> "_Lines":
        run, best = (np.zeros(strengths.shape[1], np.float32) for _ in range(2))
        for row in strengths - np.float32(look.seen):
            run = np.maximum(run + row, 0)
            best = np.maximum(best, run)
        margin, apart = MARGIN // look.scale, APART // look.scale
        best[:margin] = best[-margin:] = 0
        columns: list[int] = []
        # A side has at least two segments, which together are twice as strong as its mean has to be.
        while len(columns) < CANDIDATES and best.max() >= 2 * (look.least - look.seen):
            column = int(best.argmax())
            columns.append(column)
            best[max(0, column - apart) : column + apart + 1] = 0
        columns.sort()
        places = [round((column + (look.gap + 1) / 2) * look.scale) for column in columns]
        return cls(places, np.cumsum(np.pad(strengths[:, columns].astype(float), ((1, 0), (0, 0))), axis=0), segment)

    def surplus(self, spans: Spans, look: Look, least: float) -> NDArray[np.float64]:
        """By how much the lines along each span are stronger than what is just seen: (spans, lines + 2).

        It is -inf where a line is no clear side. The first and the last are the image's own sides, for which it is 0.
        """
        first, last = -(-spans[:, 0] // self.segment), np.minimum(spans[:, 1] // self.segment, len(self.strength) - 1)
        count = (last - first)[:, None]
        strength = self.strength[last] - self.strength[first]
        found = np.where((count > 1) & (strength >= least * count), strength - look.seen * count, -np.inf)
        return np.pad(found, ((0, 0), (1, 1)))


def _rated(upright: _Lines, level: _Lines, look: Look, size: tuple[int, int]) -> list[tuple[float, Box]]:
    """The rectangles between lines, and how clear their sides are."""
    width, height = size
    columns, sides_of_columns = _spans(upright.places, width)
    rows, sides_of_rows = _spans(level.places, height)

    def clearness(least: float) -> NDArray[np.float64]:
        beside, above = upright.surplus(rows, look, least), level.surplus(columns, look, least)
        found: NDArray[np.float64] = beside[:, sides_of_columns].sum(axis=2) + above[:, sides_of_rows].sum(axis=2).T
        return found

    area = np.outer(np.ptp(rows, axis=1), np.ptp(columns, axis=1))
    total = np.where(area <= LARGEST_SHARE * width * height, clearness(look.least), -np.inf)
    if total.max() == -np.inf:
        return []  # as in most images; a part with one side only has to be clearer still
    sides = np.add.outer(((rows > 0) & (rows < height)).sum(axis=1), ((columns > 0) & (columns < width)).sum(axis=1))
    total[(sides == 1) & (clearness(look.least_alone) == -np.inf)] = -np.inf
    found = []
    for row, column in np.argwhere(total > -np.inf):
        (left, right), (top, bottom) = columns[column].tolist(), rows[row].tolist()
        found.append((float(total[row, column]), (left, top, right, bottom)))
    return found


def _spans(places: list[int], length: int) -> tuple[Spans, Spans]:
    """From where to where a part may reach, (spans, 2), and which sides these are: 0 and the last are the image's."""
    sides, least = [0, *places, length], max(SMALLEST_PART, length * SHARE_OF_SIDE)
    pairs = [pair for pair in combinations(range(len(sides)), 2) if sides[pair[1]] - sides[pair[0]] >= least]
    return np.array(sides)[np.array(pairs)], np.array(pairs)


def _coarser(image: RGB) -> int:
    """Every so many pixels along a line are looked at, in an image of over two megapixels."""
    return max(1, round(float(np.sqrt(image.shape[0] * image.shape[1] / WHOLE_PIXELS))))


Values = NDArray[np.float64]
Sides = list[tuple[Values, Values, Values, Values]]  # of each side the pixels (N, 3) from far outside to deep inside

UNCHANGED = {"color_cast": 0.0}  # the strength that changes nothing; of all other kinds it is 1
TONES, COLORS = ("darken", "brighten", "low_contrast", "high_contrast"), ("desaturate", "oversaturate")
REDUCING = ("darken", "low_contrast", "desaturate")
TRIED_LEVELS = np.arange(0.5, 5.01, 0.25)
WIDE, WIDE_BORDER = 2, 3  # pixels across a border: of what is compared, and to each side of one spread by JPEG
MOST_PIXELS = 400  # along a border, more say no more
PLAIN = 0.5  # of the detail behind the border, what a loss of contrast may leave
CLEARLY = 1.25  # so many times the difference of pixels inside has to be at the border
CLIPPED_LOW, CLIPPED_HIGH = 2, 253  # values beyond are clipped
CLIPPED_MORE = 0.03  # difference of shares of clipped pixels that tells which half is the damaged one
LEAST_CHROMA = 2.0  # gray levels, the mean difference from luma: less is no color
SAME_MEAN, SAME_SPREAD = 1.2, 1.4  # factors within which luma is the same on both sides of a change of color


@dataclass(frozen=True)
class Change:
    """What was done to a part: the kind of ``distort``, its strength and level, and the share that it leaves."""

    kind: str
    strength: float
    level: float
    unexplained: float


NO_CHANGE = Change("darken", 1.0, 0.0, 1.0)


def level_of(kind: str, strength: float) -> float:
    """The level, 0 to 5, at which ``distort`` has a strength; 5 beyond its last one, 0 below what changes anything."""
    strengths = np.array([UNCHANGED.get(kind, 1.0), *KINDS[kind].strengths], float)
    sign = 1.0 if strengths[-1] > strengths[0] else -1.0
    return float(np.interp(sign * strength, sign * strengths, range(6)))


def sides_of(image: RGB, box: Box, look: Look) -> Sides:
    """Of each side inside the image the pixels twice outside and twice inside of it, each the mean of two across it.

    What a look takes for the border itself is left out, and as much between the two on the same side, so that these
    differ by as much as what the scene shows does across the border.
    """
    left, top, right, bottom = box
    height, width = image.shape[:2]
    lying = image.swapaxes(0, 1)
    places = [(image, left, top, bottom, False, width), (image, right, top, bottom, True, width)]
    places += [(lying, top, left, right, False, height), (lying, bottom, left, right, True, height)]
    border = WIDE_BORDER if look.gap > 1 else 0
    apart = 2 * border + WIDE
    sides: Sides = []
    for along, place, start, stop, is_end, length in places:
        if 0 < place < length:
            first = place + border
            starts = (first - 2 * apart, first - apart, first, first + apart)
            strips = [_strip(along[start:stop], min(max(each, 0), length - WIDE)) for each in starts]
            sides.append((strips[3], strips[2], strips[1], strips[0]) if is_end else tuple(strips))  # type: ignore[arg-type]
    return sides


def continuity(sides: Sides) -> float:
    """The correlation of luma on both sides of the border, along it: -1 to 1."""
    shared = size = 0.0
    for _, outside, inside, _ in sides:
        out, within = _luma(outside), _luma(inside)
        out, within = out - out.mean(), within - within.mean()
        shared += float(out @ within)
        size += float(np.sqrt((out @ out) * (within @ within)))
    return shared / size if size else 0.0


def explained(image: RGB, box: Box, sides: Sides, *, is_color: bool) -> tuple[Box, Change]:
    """The damaged part and its change; of two parts along one line it is the one that looks changed."""
    beyond, outside, inside, within = (np.concatenate(pixels) for pixels in zip(*sides, strict=True))
    of_box, of_rest = _means(image, box)
    if is_color and not _is_same_luma(outside, inside):
        return box, NO_CHANGE
    change = _change(outside, inside, within, of_rest, is_color=is_color)
    if len(sides) > 1:
        return box, change
    other = _change(inside, outside, beyond, of_box, is_color=is_color)
    more = _clipped(outside) - _clipped(inside)
    if change.kind == "color_cast":
        is_other = _tint(outside) > _tint(inside)
    else:
        reduces_other = change.kind not in REDUCING and other.kind in REDUCING
        is_other = more > CLIPPED_MORE or (more > -CLIPPED_MORE and reduces_other)
    return (_rest(box, image.shape), other) if is_other else (box, change)


def _strip(pixels: RGB, first: int) -> Values:
    mean: Values = pixels[:, first : first + WIDE].mean(axis=1, dtype=float)
    return mean


def _change(before: Values, after: Values, within: Values, mean: float, *, is_color: bool) -> Change:
    """The kind and strength that turn the pixels (N, 3) into the others with the least error, and what they leave.

    ``within`` are pixels next to these others: no change explains more than they have in common. ``mean`` is that of
    the unchanged part of the image, about which contrast changes. Of color the differences from luma count alone.
    """
    each = -(-len(before) // MOST_PIXELS)
    before, after, within = before[::each], after[::each], within[::each]
    seen = _chroma if is_color else np.asarray
    luma, wanted = _luma(before)[:, None], seen(after)
    has_color = max(float(np.abs(_chroma(pixels)).mean()) for pixels in (before, after)) >= LEAST_CHROMA
    centers: dict[str, Values | float] = {} if is_color else {k: mean if "contrast" in k else 0.0 for k in TONES}
    centers |= dict.fromkeys(COLORS, luma) if has_color else {}
    found = [_best(kind, center, before, wanted, is_color) for kind, center in centers.items()]
    if has_color:
        gains = (before * after).sum(axis=0) / np.maximum((before * before).sum(axis=0), 1)
        gains /= max(float(gains @ np.array(LUMA_WEIGHTS)), 1e-3)
        error = float(np.abs(seen(np.clip(before * gains, 0, 255)) - wanted).mean())
        found.append((error, "color_cast", float(np.abs(gains - 1).max())))
    if not found:
        return NO_CHANGE
    error, kind, strength = min(found)
    if kind == "low_contrast" and error > PLAIN * float(np.abs(after - after.mean(axis=0)).mean()):
        return NO_CHANGE  # a plain face of something, which shows nothing of what is beside it
    whole, detail = (float(np.abs(wanted - seen(pixels)).mean()) for pixels in (before, within))
    unexplained = (error - detail) / (whole - detail) if whole > CLEARLY * detail else 1.0
    return Change(kind, strength, level_of(kind, strength), unexplained)


def _best(
    kind: str, center: Values | float, before: Values, wanted: Values, is_color: bool
) -> tuple[float, str, float]:
    """The least error of a kind over its levels, at which values may be clipped, and its strength."""
    strengths = np.interp(TRIED_LEVELS, range(6), [1.0, *KINDS[kind].strengths])
    expected = np.clip(center + strengths[:, None, None] * (before - center), 0, 255)
    errors = np.abs((_chroma(expected) if is_color else expected) - wanted).mean(axis=(1, 2))
    best = int(errors.argmin())
    return float(errors[best]), kind, float(strengths[best])


def _luma(pixels: Values) -> Values:
    found: Values = pixels @ np.array(LUMA_WEIGHTS)
    return found


def _chroma(pixels: Values) -> Values:
    return pixels - _luma(pixels)[..., None]


def _is_same_luma(outside: Values, inside: Values) -> bool:
    out, within = _luma(outside), _luma(inside)
    mean = np.log((within.mean() + 1) / (out.mean() + 1))
    spread = np.log((within.std() + 1) / (out.std() + 1))
    return bool(abs(mean) <= np.log(SAME_MEAN) and abs(spread) <= np.log(SAME_SPREAD))


def _means(image: RGB, box: Box) -> tuple[float, float]:
    """The mean inside and outside of a box."""
    left, top, right, bottom = box
    inside = image[top:bottom, left:right]
    total, part = float(image.sum(dtype=np.int64)), float(inside.sum(dtype=np.int64))
    return part / inside.size, (total - part) / (image.size - inside.size)


def _clipped(pixels: Values) -> float:
    return float(((pixels >= CLIPPED_HIGH) | (pixels <= CLIPPED_LOW)).any(axis=1).mean())


def _tint(pixels: Values) -> float:
    """How far the mean color is from gray."""
    return float(np.abs(_chroma(pixels).mean(axis=0)).sum())


def _rest(box: Box, shape: tuple[int, ...]) -> Box:
    """The other part of the image, of two parts along one line."""
    left, top, right, bottom = box
    height, width = shape[:2]
    if (top, bottom) == (0, height):
        return (right, 0, width, height) if left == 0 else (0, 0, left, height)
    return (0, bottom, width, height) if top == 0 else (0, 0, width, top)


SMALLEST_SIDE = 96  # pixels of an image
# Limits chosen on the 1,500 training photos of CLIVE and BIQ2021, with and without JPEG, and on parts planted in them.
# Something is found in four of these photos; one does have such a part, the others show a window, a shelf and a wall.
TONE = Look(is_color=False, scale=1, gap=1, faint=3.0, luma_share=0.0, seen=0.45, least=0.95, least_alone=1.2)
COLOR = Look(is_color=True, scale=1, gap=1, faint=5.0, luma_share=0.0, seen=0.3, least=0.5, least_alone=0.6)
JPEG_COLOR = Look(is_color=True, scale=2, gap=2, faint=5.0, luma_share=0.25, seen=0.3, least=0.65, least_alone=0.75)
LOOKS = (TONE, COLOR, JPEG_COLOR)
TRIED = 8  # parts of each look, with the clearest sides first
GOES_ON, GOES_ON_ALONE = 0.5, 0.7  # correlation of luma on both sides of the border, along it
UNEXPLAINED = 0.2  # of the difference at the border, what a change may leave, or explain beyond usual detail
LEAST_LEVEL = 2.0  # a slighter change may be the scene
SEVERITY_OF_LEVEL = (0.0, 0.8, 1.6, 2.5, 3.3, 4.0)
# By kind: the subtype that findings have, and what the border shows.
MEANING: dict[str, tuple[str, str]] = {
    "darken": ("underexposure", "{:.0%} of the brightness around it"),
    "brighten": ("overexposure", "{:.0%} of the brightness around it"),
    "low_contrast": ("low contrast", "{:.0%} of the contrast around it"),
    "high_contrast": ("high contrast", "{:.0%} of the contrast around it"),
    "desaturate": ("desaturation", "{:.0%} of the saturation around it"),
    "oversaturate": ("oversaturation", "{:.0%} of the saturation around it"),
    "color_cast": ("color cast", "a tint that changes one color by {:.0%}"),
}


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
    both = planes_both_ways(image)
    for look in LOOKS:
        for box in parts_between_lines(image, both, look)[:TRIED]:
            sides = sides_of(image, box, look)
            if continuity(sides) <= (GOES_ON if len(sides) > 1 else GOES_ON_ALONE):
                continue
            part, change = explained(image, box, sides, is_color=look.is_color)
            if abs(change.unexplained) <= UNEXPLAINED and change.level >= LEAST_LEVEL:
                return _step(part, change, (width, height))
    return None


def _step(box: Box, change: Change, size: tuple[int, int]) -> ToneStep:
    severity = float(np.interp(change.level, range(6), SEVERITY_OF_LEVEL))
    subtype, what = MEANING[change.kind]
    left, top, right, bottom = box
    share = (right - left) * (bottom - top) / (size[0] * size[1])
    return ToneStep(
        KINDS[change.kind].category,
        Finding(severity, subtype, f"Behind its straight border it has {what.format(change.strength)}."),
        LocalDamage(severity, box, name_of_place(box, size), share),
    )
