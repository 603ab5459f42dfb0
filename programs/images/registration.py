"""Find where one image lies in another: in place, shifted, cropped, scaled, turned, or not at all.

Pictures are compared by structure: luma without its coarse tones, divided by its local contrast, so that changes of
brightness, contrast and color do not count. Normalized cross-correlation of small copies finds scale and place. Phase
correlation in windows refines them to a fraction of a pixel.

Sources: J. P. Lewis, "Fast normalized cross-correlation", 1995; D. Padfield, "Masked object registration in the Fourier
domain", IEEE TIP 21(5), 2012; C. D. Kuglin and D. C. Hines, "The phase correlation image alignment method", 1975.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import scipy  # its parts load when they are first used, which is never without a reference
from numpy.typing import NDArray
from PIL import Image

Pixels = NDArray[np.uint8]
Plane = NDArray[np.floating]
Size = tuple[int, int]  # width, height
Span = NDArray[np.floating]  # ((left, top), (right, bottom)) in pixels

SMALLEST_SIDE = 32  # pixels: smaller images are not searched
COARSE = 128  # pixels of the longer side of the copies that are searched
WIDEST = 384  # pixels of the longer side of such a copy where the other picture may be a small part of it
FEWEST = 24  # pixels of the shorter side of such a copy: smaller copies match by chance
SCALES = [2 ** (step / 7) for step in range(-14, 15)]
SCALES_OF_ONE_SIZE = SCALES[7:-7]  # scales of pictures of the same size
WINDOW = 128  # pixels, for refining
GRID = (0.15, 0.5, 0.85)  # shares of the way from the first place of a window to the last one
PYRAMID = 4  # each level of refining has so many times more pixels per side than the one before
CLEAR_PEAK = 0.25  # a lower peak of a window's phase correlation is ignored
WHOLE_PIXELS = 0.75  # pixels: a scale that moves the ends by less counts as 1

TURNS = {
    Image.Transpose.FLIP_LEFT_RIGHT: "mirrored",
    Image.Transpose.ROTATE_180: "upside down",
    Image.Transpose.ROTATE_90: "rotated by 90 degrees",
    Image.Transpose.ROTATE_270: "rotated by 90 degrees",
    Image.Transpose.FLIP_TOP_BOTTOM: "mirrored top to bottom",
}

# A similarity is the correlation of structure where two pictures overlap. For 400 pairs of different CLIVE photos it is
# at most 0.12 in place and 0.37 at the best place; for a photo and its strongest distortions at least 0.5.
SAME_IN_PLACE = 0.25
SAME_ELSEWHERE = 0.5
# Smaller pictures match by chance more often: at 64 pixels, 19 of 40 pairs of different CLIVE photos reach 0.5 and
# none exceeds 0.75; all of 40 shifted photos do. So the bound grows below COARSE, up to this.
SAME_ELSEWHERE_SMALL = 0.75
NEARLY_ALIGNED = 0.7  # pictures less similar than this in place may be better aligned at another scale
LEAST_EXPLAINED = 0.3  # share of a simpler match's disagreement that a less simple one must explain
CLEARLY_BETTER = 0.1  # least gain in similarity of an unexpected place

LEAST_OVERLAP = 0.3  # share of the smaller picture's area
CONTRAST_FLOOR = 2.0  # gray levels: weaker structure is damped, as it may be noise
FINE, BROAD = 0.7, 6.0  # pixels of a small copy: the structure that is compared, as standard deviations
LOW_PASS = 0.12  # cycles per pixel: standard deviation of the weights of the phase correlation


@dataclass(frozen=True, eq=False)
class Match:
    """The place of an image in another one, its reference; both are gray.

    The point (x, y) of the image, in pixels, shows the point ``origin + scale * (x, y)`` of the reference. The scale is
    1 where both have the same; its two numbers differ where one is stretched. ``similarity`` is the correlation of
    structure in the overlap, -1 to 1. ``confidence`` is the height of the peak of the phase correlation, 0 to 1.
    """

    image: Image.Image
    reference: Image.Image
    scale: Plane
    origin: Plane
    similarity: float = 0.0
    confidence: float = 0.0

    @property
    def one_size(self) -> bool:
        """Whether both pictures have the same width and height."""
        return self.image.size == self.reference.size

    @property
    def one_scale(self) -> bool:
        """Whether a pixel of the image shows as much as one of the reference."""
        return bool((self.scale == 1).all())

    @property
    def shift(self) -> Plane:
        """Return by how many of its pixels the image's content lies right of and below its place in the reference."""
        return 0.0 - self.origin / self.scale

    @property
    def overlap(self) -> Span:
        """The span of the image that the reference shows, too."""
        return np.clip((np.array([(0, 0), self.reference.size]) - self.origin) / self.scale, 0, self.image.size)

    @property
    def shows_same(self) -> bool:
        """Return whether both pictures show the same."""
        if self.one_size and self.scale[0] == 1 and np.abs(self.shift).max() < 0.02 * max(self.image.size):
            return self.similarity >= SAME_IN_PLACE
        side = min(max(self.image.size), max(self.reference.size))
        if self.one_size and side < COARSE:
            return self.similarity >= min(SAME_ELSEWHERE_SMALL, SAME_ELSEWHERE * COARSE / side)
        return self.similarity >= SAME_ELSEWHERE

    def in_reference(self, span: Span | None = None) -> Span:
        """Map a span of the image, by default all of it, to the reference; it may end outside."""
        return self.origin + self.scale * (np.array([(0, 0), self.image.size]) if span is None else span)

    def within_reference(self, span: Span | None = None) -> Span:
        """Return what ``in_reference`` does, without what lies outside the reference."""
        return np.clip(self.in_reference(span), 0, self.reference.size)


def corners(span: Span) -> tuple[float, float, float, float]:
    """Return a span as left, top, right, bottom."""
    left, top, right, bottom = span.ravel().tolist()
    return left, top, right, bottom


def find_match(image: Pixels, reference: Pixels) -> Match | None:
    """Return the best place of ``image`` in ``reference``, both uint8 RGB (H, W, 3), of any two sizes.

    Scales from 1/4 to 4 are searched if the pictures do not match in place. If several places explain the pair about
    equally well, the simplest one is returned: in place, then a shift, then another scale. The result is ``None`` where
    a side is below 32 pixels, or a picture has almost no structure.
    """
    gray, pristine = Image.fromarray(image).convert("L"), Image.fromarray(reference).convert("L")
    if min(*gray.size, *pristine.size) < SMALLEST_SIDE:
        return None
    match = _search(_as_it_is(gray, pristine))
    return match and _final(match)


def find_turn(match: Match) -> str:
    """Describe how a reference shows the image rotated or mirrored; return "" if it does not show the image."""
    small = structure(_copy(match.image, max(1.0, max(match.image.size) / COARSE)))
    for turn, words in TURNS.items():
        turned = structure(_resized(match.reference.transpose(turn), (small.shape[1], small.shape[0])))
        if correlation(small, turned) >= SAME_ELSEWHERE:
            return words
    return ""


def _as_it_is(image: Image.Image, reference: Image.Image) -> Match:
    """Return the match of the whole image with the whole reference."""
    return Match(image, reference, np.divide(reference.size, image.size), np.zeros(2))


def _search(best: Match) -> Match | None:
    """Return the best match on small copies; ``None`` without any structure."""
    factor = max(1.0, max(best.image.size) / COARSE)
    small = structure(_copy(best.image, factor))
    fitted = structure(_resized(best.reference, (small.shape[1], small.shape[0])))
    if not (small.any() and fitted.any()):
        return None
    best = replace(best, similarity=correlation(small, fitted))
    for scales in ([1.0], SCALES_OF_ONE_SIZE) if best.one_size else (SCALES,):
        if best.one_size and best.similarity >= NEARLY_ALIGNED:
            break
        other = max((_placed(best, small, factor, scale) for scale in scales), key=lambda match: match.similarity)
        if other.similarity > best.similarity + CLEARLY_BETTER:
            best = other
    return best


def _placed(match: Match, small: Plane, factor: float, scale: float) -> Match:
    """Return the best place at one scale of a small copy's structure, (H, W).

    It is the highest normalized correlation where enough of the two pictures overlaps.
    """
    reference, factor = match.reference, factor * scale
    if min(reference.size) < FEWEST * factor or max(reference.size) > WIDEST * factor:
        return replace(match, similarity=-1.0)
    large = structure(_copy(reference, factor))
    shape = np.add(small.shape, large.shape) - 1
    padded = [scipy.fft.next_fast_len(int(side), real=True) for side in shape]

    def slid(first: Plane, second: Plane) -> Plane:
        spectra = scipy.fft.rfft2(first[::-1, ::-1], s=padded) * scipy.fft.rfft2(second, s=padded)
        return np.asarray(scipy.fft.irfft2(spectra, s=padded)[: shape[0], : shape[1]])

    sides = zip(small.shape, large.shape, strict=True)
    count = np.outer(*(np.convolve(np.ones(a, np.float32), np.ones(b, np.float32)) for a, b in sides))
    energies = slid(small**2, np.ones_like(large)), slid(np.ones_like(small), large**2)
    floor = 1e-3 * count
    correlations = slid(small, large) / np.sqrt(np.maximum(energies[0], floor) * np.maximum(energies[1], floor))
    surface = np.where(count >= LEAST_OVERLAP * min(small.size, large.size), correlations, -1)
    row, column = divmod(int(surface.argmax()), surface.shape[1])
    origin = (np.subtract((column, row), small.shape[::-1]) + 1.0) * factor
    return replace(match, scale=np.full(2, scale), origin=origin, similarity=float(surface[row, column]))


def _final(match: Match) -> Match:
    """Return the match at full resolution, with its similarity and confidence."""
    simplest, match = _measured(_simplest(_refined(match))), _measured(match)
    best = match if match.similarity > simplest.similarity + CLEARLY_BETTER else simplest
    if best.shows_same or not best.one_size:
        return best
    in_place = _measured(_as_it_is(match.image, match.reference))
    return in_place if in_place.similarity >= SAME_IN_PLACE else best


def _refined(match: Match) -> Match:
    """Return the match refined by phase correlation in windows, of copies that grow up to full resolution."""
    factor = max(1.0, max(match.image.size) / COARSE)
    while True:
        factor = max(1.0, factor / PYRAMID)
        points = []
        for here, planes in _windows(match, factor):
            shift, peak = phase_shift(*planes)
            if peak >= CLEAR_PEAK:
                there = match.in_reference(here).mean(0) - shift * factor * match.scale
                points.append((here.mean(0), there, peak))
        if points:
            match = _fitted(match, *map(np.array, zip(*points, strict=True)))
        if factor == 1:
            return match


def _fitted(match: Match, here: Plane, there: Plane, weight: Plane) -> Match:
    """Return the match that fits best to points of the image and where the reference shows them, both (N, 2)."""
    scale, side = match.scale, max(match.image.size)
    origin = _median(there - scale * here, weight)
    near = np.hypot(*(there - scale * here - origin).T) < 0.03 * side * max(scale[0], 1)
    if near.sum() >= 4 and np.ptp(here[near], axis=0).all():
        here, there, weight = here[near], there[near], weight[near]
        centered = here - np.average(here, axis=0, weights=weight)
        products, squares = weight @ (centered * there), weight @ centered**2
        scale = products / squares
        if abs(scale[0] - scale[1]) * side < 2 * WHOLE_PIXELS:
            scale = np.full(2, products.sum() / squares.sum())
        if np.abs(scale - 1).max() * side / 2 < WHOLE_PIXELS:
            scale = np.ones(2)
        origin = _median(there - scale * here, weight)
    confidence = min(1.0, float(_median(weight[:, None], weight)[0]))
    return replace(match, scale=scale, origin=origin, confidence=confidence)


def _median(values: Plane, weight: Plane) -> Plane:
    """Return the weighted median of each column."""
    medians = []
    for column in values.T:
        order = np.argsort(column, kind="stable")
        below = np.cumsum(weight[order]) - weight[order] / 2
        medians.append(np.interp(weight.sum() / 2, below, column[order]))
    return np.array(medians)


def _simplest(match: Match) -> Match:
    """Return the simplest match that agrees about as well as ``match``: in place, at one scale, or ``match``."""
    as_it_is = replace(_as_it_is(match.image, match.reference), confidence=match.confidence)
    if np.abs(match.in_reference() - as_it_is.in_reference()).max() < 0.25:
        return as_it_is
    at_one_scale = replace(match, scale=np.ones(2), origin=match.origin + (match.scale - 1) * match.overlap.mean(0))
    best = _agreement(match)
    for simpler in (as_it_is,) if match.one_scale else (as_it_is, at_one_scale):
        agreement = _agreement(simpler)
        if best - agreement < LEAST_EXPLAINED * (1 - agreement):
            return simpler
    return match


def _agreement(match: Match) -> float:
    """Return the correlation of structure at full resolution, in windows; -1 without any."""
    pairs = [[structure(plane) for plane in planes] for _, planes in _windows(match, 1.0)]
    return correlation(*map(np.stack, zip(*pairs, strict=True))) if pairs else -1.0


def _windows(match: Match, factor: float) -> Iterator[tuple[Span, tuple[Plane, Plane]]]:
    """Yield spans of the overlap, and both pictures there in copies smaller by ``factor``."""
    start, end = match.overlap
    width, height = sides = [min(WINDOW, math.floor(length / factor)) for length in end - start]
    if min(sides) < SMALLEST_SIDE / 2:
        return
    size = np.array(sides) * factor
    for down, across in product(GRID, repeat=2):
        corner = start + (end - start - size) * (across, down)
        here = np.array([corner, corner + size])
        yield here, _planes(match, here, (width, height))


def _measured(match: Match) -> Match:
    """Return the match with its similarity over all of the overlap, on small copies; -1 without any."""
    here = match.overlap
    sides = here[1] - here[0]
    if sides.min() < 1:
        return replace(match, similarity=-1.0)
    width, height = (max(1, round(side / max(1.0, sides.max() / COARSE))) for side in sides)
    return replace(match, similarity=correlation(*map(structure, _planes(match, here, (width, height)))))


def _planes(match: Match, here: Span, size: Size) -> tuple[Plane, Plane]:
    """Return a span of the image, and its counterpart in the reference, at this size."""
    return _resized(match.image, size, here), _resized(match.reference, size, match.within_reference(here))


def _copy(picture: Image.Image, factor: float) -> Plane:
    """Return a copy that is smaller by this factor (larger below 1)."""
    return _resized(picture, (max(1, round(picture.width / factor)), max(1, round(picture.height / factor))))


def _resized(picture: Image.Image, size: Size, span: Span | None = None) -> Plane:
    box = None if span is None else corners(span)
    return np.asarray(picture.resize(size, Image.Resampling.BILINEAR, box=box), np.float32)


def structure(plane: Plane) -> Plane:
    """Return the detail between two sizes over its own local contrast, about 1 in size, of (H, W) gray levels."""
    detail = scipy.ndimage.gaussian_filter(plane, FINE) - scipy.ndimage.gaussian_filter(plane, BROAD)
    contrast = np.sqrt(scipy.ndimage.gaussian_filter(detail * detail, BROAD))
    if contrast.max() < CONTRAST_FLOOR / 4:
        return np.zeros_like(detail)
    return np.asarray(detail / (contrast + CONTRAST_FLOOR))


def correlation(first: Plane, second: Plane) -> float:
    """Return the correlation of two planes of structure of one shape, -1 to 1."""
    return float((first * second).sum() / math.sqrt(float((first**2).sum() * (second**2).sum()) + 1e-9))


def phase_shift(image: Plane, reference: Plane) -> tuple[Plane, float]:
    """Return by how many pixels ``image`` is shifted right and down against ``reference``, and a confidence, 0 to 1.

    Both are planes of one shape. Fine detail, which distortions change most, has little weight.
    """
    height, width = image.shape
    window = np.outer(np.hanning(height + 2)[1:-1], np.hanning(width + 2)[1:-1]).astype(np.float32)
    spectra = [scipy.fft.rfft2((plane - plane.mean()) * window) for plane in (image, reference)]
    cross = spectra[0] * np.conj(spectra[1])
    size = np.abs(cross)
    squares = scipy.fft.fftfreq(height)[:, None] ** 2 + scipy.fft.rfftfreq(width)[None] ** 2
    weights = np.exp(-squares / (2 * LOW_PASS**2)).astype(np.float32)
    weights[0, 0] = 0
    surface = scipy.fft.irfft2(cross / (size + 1e-3 * size.mean() + 1e-12) * weights, s=image.shape)
    # The transform of real planes has half of the spectrum; its last column has next to no weight.
    surface *= image.size / float(weights[:, 0].sum() + 2 * weights[:, 1:].sum())
    row, column = divmod(int(surface.argmax()), width)
    peak = float(surface[row, column])
    return np.array((_peak(surface[row], column), _peak(surface[:, column], row))), min(1.0, max(0.0, peak))


def _peak(line: Plane, index: int) -> float:
    """Return the place of the peak of a circular line at an index, between samples, as a signed offset."""
    before, here, after = (math.log(max(float(line[(index + step) % len(line)]), 1e-3)) for step in (-1, 0, 1))
    bend = before - 2 * here + after
    offset = (before - after) / (2 * bend) if bend < 0 else 0.0
    return (index - len(line) if index > len(line) // 2 else index) + min(max(offset, -0.5), 0.5)
