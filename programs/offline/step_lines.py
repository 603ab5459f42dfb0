"""Find straight lines at which the tone or the color of an image changes, and the rectangles that they may enclose.

A ``Look`` says what is compared: all channels or color alone, neighbors, or pairs of pixels with one between them. JPEG
spreads a change of color over some pixels, for it stores color at half the size. The scene's own steps are larger over
some pixels, too, so each look has limits of its own.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.tools.numerics.pixels import RGB
from agenticiqa.programs.tools.statistics.parts import WHOLE_PIXELS
from agenticiqa.signatures.types import Box

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
