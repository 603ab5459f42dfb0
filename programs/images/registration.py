"""Find where one picture lies in another: in place, shifted, cropped, scaled, or not at all.

Pictures are compared by structure: luma without its coarse tones, divided by its local contrast, so that changes of
brightness, contrast and color do not count. Scale and place are searched on small copies by normalized
cross-correlation, and refined up to full resolution by phase correlation in windows, to a fraction of a pixel.

Sources: J. P. Lewis, "Fast normalized cross-correlation", 1995; D. Padfield, "Masked object registration in the Fourier
domain", IEEE TIP 21(5), 2012; C. D. Kuglin and D. C. Hines, "The phase correlation image alignment method", 1975.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import scipy  # its parts load when they are first used: without a reference none of them is
from numpy.typing import NDArray
from PIL import Image

Plane = NDArray[np.floating]
Span = tuple[float, float, float, float]  # left, top, right, bottom in pixels

SMALLEST_SIDE = 32  # pixels: of smaller images nothing can be said
COARSE = 128  # pixels of the longer side of the copies that are searched
WIDEST = 384  # pixels of the longer side of such a copy where the other picture may be a small part of it
FEWEST = 24  # pixels of the shorter side of such a copy: in less, chance finds a place for anything
WINDOW = 128  # pixels, for refining
GRID = (0.15, 0.5, 0.85)  # of the way from the first place of a window to the last one
PYRAMID = 4  # the next level of refining has so many times the pixels of the one before on each side
SCALES_PER_OCTAVE = 7
OCTAVES = 2  # of scales that are searched, one where both pictures have the same size
CLEAR_PEAK = 0.25  # a lower peak of a window's phase correlation is not believed
WHOLE_PIXELS = 0.75  # by so many pixels at its ends a scale may differ from 1 and still be 1

TURNS = {
    Image.Transpose.FLIP_LEFT_RIGHT: "mirrored",
    Image.Transpose.ROTATE_180: "upside down",
    Image.Transpose.ROTATE_90: "turned by 90 degrees",
    Image.Transpose.ROTATE_270: "turned by 90 degrees",
    Image.Transpose.FLIP_TOP_BOTTOM: "mirrored top to bottom",
}

# A similarity is the correlation of structure where two pictures overlap. Of 400 pairs of different photos of CLIVE it
# is at most 0.12 in place and 0.37 at the best place; of a photo and its strongest distortions at least 0.5.
SAME_IN_PLACE = 0.25
SAME_ELSEWHERE = 0.5
# In smaller pictures chance finds a place more often: of 40 pairs of different CLIVE photos at 64 pixels 19 reach 0.5
# and none more than 0.75, of 40 shifted photos all. So the bound grows below COARSE, up to this.
SAME_ELSEWHERE_SMALL = 0.75
NEARLY_ALIGNED = 0.7  # pictures less similar than this in place may be better aligned at another scale
WORTH = 0.3  # of the disagreement that a simpler match leaves, a less simple one must explain
CLEARLY_BETTER = 0.1  # of a similarity, for a place that is not the expected one


@dataclass(frozen=True)
class Match:
    """Where an image lies in another picture, its reference.

    The image's point (x, y) in pixels shows the reference's point ``(left + across * x, top + down * y)``; ``across``
    and ``down`` are the scale, 1 where both have the same, and differ where one is stretched. ``similarity`` is the
    correlation of structure in the overlap, -1 to 1. ``confidence`` is the height of the phase correlation's peak, 0 to
    1, 1 for pictures that differ by nothing but the place.
    """

    across: float
    down: float
    left: float
    top: float
    similarity: float
    confidence: float = 0.0

    @property
    def shift(self) -> tuple[float, float]:
        """By how many of its pixels the image's content lies right of, and below, its place in the reference."""
        return 0.0 - self.left / self.across, 0.0 - self.top / self.down

    def in_reference(self, span: Span) -> Span:
        """What a span of the image is in the reference."""
        left, top, right, bottom = span
        return (
            self.left + self.across * left,
            self.top + self.down * top,
            self.left + self.across * right,
            self.top + self.down * bottom,
        )

    def overlap(self, image: tuple[int, int], reference: tuple[int, int]) -> Span:
        """The span of the image that the reference shows, too; sizes are (width, height)."""
        left, top = max(0.0, -self.left / self.across), max(0.0, -self.top / self.down)
        right = min(float(image[0]), (reference[0] - self.left) / self.across)
        bottom = min(float(image[1]), (reference[1] - self.top) / self.down)
        return left, top, right, bottom


def find_match(image: NDArray[np.uint8], reference: NDArray[np.uint8]) -> Match | None:
    """The best place of ``image`` in ``reference``, both uint8 RGB (H, W, 3) or gray (H, W), of any two sizes.

    Scales from 1/4 to 4 are searched where the pictures do not fit as they are. Of several places the simplest one that
    explains the pair about as well is taken: in place, then a shift, then another scale. ``None`` where nothing can be
    said: a side below 32 pixels, or a picture that shows next to nothing. Whether the best place is the right one
    ``is_same`` tells.
    """
    pair = Image.fromarray(image).convert("L"), Image.fromarray(reference).convert("L")
    if min(*pair[0].size, *pair[1].size) < SMALLEST_SIDE:
        return None
    found = _search(*pair)
    if found is None:
        return None
    if found.similarity <= -NEARLY_ALIGNED:
        return found
    simplest = _simplest(*pair, _refined(*pair, found))
    places = [replace(place, similarity=_similarity(*pair, place)) for place in dict.fromkeys((simplest, found))]
    best = max(places, key=lambda place: place.similarity + (place is places[0]) * CLEARLY_BETTER)
    if pair[0].size == pair[1].size and not is_same(best, pair[0].size, pair[1].size):
        in_place = Match(1.0, 1.0, 0.0, 0.0, 0.0)
        in_place = replace(in_place, similarity=_similarity(*pair, in_place))
        return in_place if in_place.similarity >= SAME_IN_PLACE else best
    return best


def is_same(found: Match, image: tuple[int, int], reference: tuple[int, int]) -> bool:
    """Whether the two pictures, of sizes (width, height), show the same; ``found`` is where they fit best."""
    in_place = image == reference and max(map(abs, found.shift)) < 0.02 * max(image) and found.across == 1
    if in_place:
        return abs(found.similarity) >= SAME_IN_PLACE
    side = min(max(image), max(reference))
    small = image == reference and side < COARSE
    return found.similarity >= (min(SAME_ELSEWHERE_SMALL, SAME_ELSEWHERE * COARSE / side) if small else SAME_ELSEWHERE)


def find_turn(image: NDArray[np.uint8], reference: NDArray[np.uint8]) -> str | None:
    """How a reference is turned or mirrored that shows the image so, in words; ``None`` where it does not."""
    first, second = (Image.fromarray(pixels).convert("L") for pixels in (image, reference))
    factor = max(1.0, max(first.size) / COARSE)
    small = structure(_copy(first, factor, factor))
    for turn, words in TURNS.items():
        turned = structure(_resized(second.transpose(turn), (small.shape[1], small.shape[0])))
        if correlation(small, turned) >= SAME_ELSEWHERE:
            return words
    return None


def _search(image: Image.Image, reference: Image.Image) -> Match | None:
    """The best match on small copies; ``None`` where one of them has no structure."""
    factor = max(1.0, max(image.size) / COARSE)
    small = structure(_copy(image, factor, factor))
    fitted = structure(_resized(reference, (small.shape[1], small.shape[0])))
    if not (small.any() and fitted.any()):
        return None
    across, down = reference.width / image.width, reference.height / image.height
    best = Match(across, down, 0.0, 0.0, correlation(small, fitted))
    if across == down == 1:
        if abs(best.similarity) < NEARLY_ALIGNED:
            elsewhere = _placed(small, reference, factor, 1.0)
            if elsewhere.similarity > best.similarity + CLEARLY_BETTER:
                best = elsewhere
        if abs(best.similarity) >= NEARLY_ALIGNED:  # of a negative it is -1
            return best
    most = SCALES_PER_OCTAVE * (1 if across == down == 1 else OCTAVES)
    steps = range(-most, most + 1)
    tried = [_placed(small, reference, factor, 2 ** (step / SCALES_PER_OCTAVE)) for step in steps]
    other = max(tried, key=lambda match: match.similarity)
    return other if other.similarity > best.similarity + CLEARLY_BETTER else best


def _placed(small: Plane, reference: Image.Image, factor: float, scale: float) -> Match:
    """The best place of a small copy's structure in the reference at one scale."""
    reduced = max(reference.size) / (factor * scale)
    if min(reference.size) / (factor * scale) < FEWEST or reduced > WIDEST:
        return Match(scale, scale, 0.0, 0.0, -1.0)
    step = factor * scale
    similarity, left, top = best_place(small, structure(_copy(reference, step, step)))
    return Match(scale, scale, left * step, top * step, similarity)


def _refined(image: Image.Image, reference: Image.Image, found: Match) -> Match:
    """The match with scale and place to a fraction of a pixel, and its confidence."""
    factor = max(1.0, max(image.size) / COARSE)
    while True:
        factor = max(1.0, factor / PYRAMID)
        found = _refined_at(image, reference, found, factor)
        if factor == 1:
            break
    return found


def _simplest(image: Image.Image, reference: Image.Image, found: Match) -> Match:
    """The simplest match that agrees about as well as ``found``."""
    candidates = []
    if image.size == reference.size:
        candidates.append(replace(found, across=1.0, down=1.0, left=0.0, top=0.0))
    else:
        across, down = reference.width / image.width, reference.height / image.height
        candidates.append(replace(found, across=across, down=down, left=0.0, top=0.0))
    if not found.across == found.down == 1:
        span = found.overlap(image.size, reference.size)
        x, y = (span[0] + span[2]) / 2, (span[1] + span[3]) / 2
        left, top = found.left + (found.across - 1) * x, found.top + (found.down - 1) * y
        candidates.append(replace(found, across=1.0, down=1.0, left=left, top=top))
    candidates = [candidate for candidate in candidates if candidate != found]
    if not candidates or _is_close(found, candidates[0], image.size):
        return candidates[0] if candidates else found
    best = _agreement(image, reference, found)
    for candidate in candidates:
        agreement = _agreement(image, reference, candidate)
        if best - agreement < WORTH * (1 - agreement):
            return candidate
    return found


def _is_close(first: Match, second: Match, size: tuple[int, int]) -> bool:
    """Whether two matches place every corner of an image of this size within a quarter of a pixel."""
    span = (0.0, 0.0, float(size[0]), float(size[1]))
    return max(abs(a - b) for a, b in zip(first.in_reference(span), second.in_reference(span), strict=True)) < 0.25


def _agreement(image: Image.Image, reference: Image.Image, found: Match) -> float:
    """The correlation of structure at full resolution, in windows."""
    pairs = [[structure(plane) for plane in planes] for _, _, planes in _windows(image, reference, found, 1.0)]
    if not pairs:
        return -1.0
    first, second = (np.stack(planes) for planes in zip(*pairs, strict=True))
    return correlation(first, second)


def _similarity(image: Image.Image, reference: Image.Image, found: Match) -> float:
    """The correlation of structure over all of the overlap, on small copies; -1 without any."""
    span = found.overlap(image.size, reference.size)
    width, height = span[2] - span[0], span[3] - span[1]
    if min(width, height) < 1:
        return -1.0
    factor = max(1.0, max(width, height) / COARSE)
    size = max(1, round(width / factor)), max(1, round(height / factor))
    there = inside(found.in_reference(span), reference.size)
    return correlation(structure(_resized(image, size, span)), structure(_resized(reference, size, there)))


def _windows(
    image: Image.Image, reference: Image.Image, found: Match, factor: float
) -> Iterator[tuple[Span, Span, tuple[Plane, Plane]]]:
    """Windows over the overlap, in copies smaller by ``factor``: the span of each in both pictures, and its planes."""
    span = found.overlap(image.size, reference.size)
    sides = [min(WINDOW, math.floor((span[axis + 2] - span[axis]) / factor)) for axis in (0, 1)]
    if min(sides) < SMALLEST_SIDE / 2:
        return
    size, (width, height) = (sides[0], sides[1]), (side * factor for side in sides)
    for y in GRID:
        for x in GRID:
            left, top = span[0] + x * (span[2] - span[0] - width), span[1] + y * (span[3] - span[1] - height)
            here = (left, top, left + width, top + height)
            there = found.in_reference(here)
            planes = _resized(image, size, here), _resized(reference, size, inside(there, reference.size))
            yield here, there, planes


def _refined_at(image: Image.Image, reference: Image.Image, found: Match, factor: float) -> Match:
    """The match refined by phase correlation in windows of copies that are smaller by ``factor``."""
    points: list[tuple[float, ...]] = []
    for here, there, planes in _windows(image, reference, found, factor):
        right, down, peak = phase_shift(*planes)
        if peak >= CLEAR_PEAK:
            x, y = (here[0] + here[2]) / 2, (here[1] + here[3]) / 2
            u, v = (there[0] + there[2]) / 2, (there[1] + there[3]) / 2
            points.append((x, y, u - right * factor * found.across, v - down * factor * found.down, peak))
    return _fitted(found, np.array(points), image.size) if points else found


def _fitted(found: Match, points: Plane, image: tuple[int, int]) -> Match:
    """The match that fits the windows' places best: rows of x, y in the image, x, y in the reference, and a weight."""
    x, y, u, v, weight = points.T
    across, down = found.across, found.down
    left, top = _median(u - across * x, weight), _median(v - down * y, weight)
    near = np.hypot(u - across * x - left, v - down * y - top) < 0.03 * max(image) * max(across, 1)
    if near.sum() >= 4 and np.ptp(x[near]) > 0 and np.ptp(y[near]) > 0:
        x, y, u, v, weight = points[near].T
        across = _slope(x, u, weight)
        down = _slope(y, v, weight)
        if abs(across - down) * max(image) < 2 * WHOLE_PIXELS:
            across = down = _slope(np.concatenate([x, y]), np.concatenate([u, v]), np.tile(weight, 2), groups=2)
        if abs(across - 1) * max(image) / 2 < WHOLE_PIXELS and abs(down - 1) * max(image) / 2 < WHOLE_PIXELS:
            across = down = 1.0
        left, top = _median(u - across * x, weight), _median(v - down * y, weight)
    return replace(found, across=across, down=down, left=left, top=top, confidence=min(1.0, _median(weight, weight)))


def _slope(x: Plane, u: Plane, weight: Plane, groups: int = 1) -> float:
    """The weighted least-squares slope of u over x, each of equally long groups with an intercept of its own."""
    shape = (groups, -1)
    x, u, weight = x.reshape(shape), u.reshape(shape), weight.reshape(shape)
    total = weight.sum(axis=1, keepdims=True)
    x = x - (weight * x).sum(axis=1, keepdims=True) / total
    u = u - (weight * u).sum(axis=1, keepdims=True) / total
    return float((weight * x * u).sum() / (weight * x * x).sum())


def _median(values: Plane, weight: Plane) -> float:
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weight[order]) - weight[order] / 2
    return float(np.interp(weight.sum() / 2, below, values[order]))


def inside(span: Span, size: tuple[int, int]) -> Span:
    """A span without what rounding puts outside a picture of this size."""
    left, top, right, bottom = span
    return max(0.0, left), max(0.0, top), min(float(size[0]), right), min(float(size[1]), bottom)


def _copy(picture: Image.Image, across: float, down: float) -> Plane:
    """A copy that is smaller by these factors (larger below 1)."""
    return _resized(picture, (max(1, round(picture.width / across)), max(1, round(picture.height / down))))


def _resized(picture: Image.Image, size: tuple[int, int], box: Span | None = None) -> Plane:
    return np.asarray(picture.resize(size, Image.Resampling.BILINEAR, box=box), np.float32)


LEAST_OVERLAP = 0.3  # of the smaller picture's area
CONTRAST_FLOOR = 2.0  # gray levels: weaker structure is damped, as it may be noise
FINE, BROAD = 0.7, 6.0  # pixels of a small copy: the structure that is compared, as standard deviations
LOW_PASS = 0.12  # cycles per pixel: standard deviation of the weights of the phase correlation


def structure(plane: Plane) -> Plane:
    """Detail between two sizes over its own local contrast: (H, W) gray levels in, values about 1 in size out."""
    detail = scipy.ndimage.gaussian_filter(plane, FINE) - scipy.ndimage.gaussian_filter(plane, BROAD)
    contrast = np.sqrt(scipy.ndimage.gaussian_filter(detail * detail, BROAD))
    if contrast.max() < CONTRAST_FLOOR / 4:
        return np.zeros_like(detail)
    return np.asarray(detail / (contrast + CONTRAST_FLOOR))


def correlation(first: Plane, second: Plane) -> float:
    """The correlation of two planes of structure of one shape, -1 to 1."""
    return float((first * second).sum() / math.sqrt(float((first**2).sum() * (second**2).sum()) + 1e-9))


def phase_shift(image: Plane, reference: Plane) -> tuple[float, float, float]:
    """By how many pixels ``image`` is shifted right and down against ``reference``, and how sure that is, 0 to 1.

    Both are planes of one shape. Fine detail, which distortions change most, has little weight.
    """
    window = _hann(image.shape[0], image.shape[1])
    spectra = [scipy.fft.rfft2((plane - plane.mean()) * window) for plane in (image, reference)]
    cross = spectra[0] * np.conj(spectra[1])
    size = np.abs(cross)
    weights = _low_pass(image.shape[0], image.shape[1])
    surface = scipy.fft.irfft2(cross / (size + 1e-3 * size.mean() + 1e-12) * weights, s=image.shape)
    # The transform of real planes has half of the spectrum; its last column has next to no weight.
    surface *= image.size / float(weights[:, 0].sum() + 2 * weights[:, 1:].sum())
    row, column = divmod(int(surface.argmax()), image.shape[1])
    across, down = surface[row], surface[:, column]
    return _peak(across, column), _peak(down, row), min(1.0, max(0.0, float(surface[row, column])))


def best_place(small: Plane, large: Plane) -> tuple[float, float, float]:
    """The normalized correlation of two planes of structure at their best place, and that place in the second."""
    shape = [scipy.fft.next_fast_len(a + b - 1, real=True) for a, b in zip(small.shape, large.shape, strict=True)]

    def spectrum(plane: Plane) -> NDArray[np.complexfloating]:
        return np.asarray(scipy.fft.rfft2(plane, s=shape))

    def correlated(first: NDArray[np.complexfloating], second: NDArray[np.complexfloating]) -> Plane:
        return np.asarray(scipy.fft.irfft2(second * np.conj(first), s=shape))

    ones = spectrum(np.ones_like(small)), spectrum(np.ones_like(large))
    count = correlated(*ones)
    energies = correlated(spectrum(small**2), ones[1]), correlated(ones[0], spectrum(large**2))
    product = correlated(spectrum(small), spectrum(large))
    floor = 1e-3 * np.maximum(count, 1)
    found = product / np.sqrt(np.maximum(energies[0], floor) * np.maximum(energies[1], floor))
    found[count < LEAST_OVERLAP * min(small.size, large.size)] = -1
    row, column = divmod(int(found.argmax()), found.shape[1])
    top = row if row < large.shape[0] else row - shape[0]
    left = column if column < large.shape[1] else column - shape[1]
    return float(found[row, column]), left, top


def _peak(line: Plane, index: int) -> float:
    """The place of the peak of a circular line at an index, between samples, as a signed offset."""
    before, here, after = (math.log(max(float(line[(index + step) % len(line)]), 1e-3)) for step in (-1, 0, 1))
    bend = before - 2 * here + after
    offset = (before - after) / (2 * bend) if bend < 0 else 0.0
    return (index - len(line) if index > len(line) // 2 else index) + min(max(offset, -0.5), 0.5)


@lru_cache(maxsize=16)
def _hann(height: int, width: int) -> Plane:
    return np.outer(np.hanning(height + 2)[1:-1], np.hanning(width + 2)[1:-1]).astype(np.float32)


@lru_cache(maxsize=16)
def _low_pass(height: int, width: int) -> Plane:
    squares = scipy.fft.fftfreq(height)[:, None] ** 2 + scipy.fft.rfftfreq(width)[None] ** 2
    weights = np.exp(-squares / (2 * LOW_PASS**2)).astype(np.float32)
    weights[0, 0] = 0
    return weights
