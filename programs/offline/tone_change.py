"""Which change of brightness, contrast or color turns what is outside of a border into what is inside of it.

The change is the kind of ``distort`` that explains the pixels on both sides best, at its strength. What the scene shows
has to go on behind the border: luma that varies along it does so on both sides.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.offline.step_lines import Look
from agenticiqa.programs.tools.distort import KINDS
from agenticiqa.programs.tools.numerics.pixels import LUMA_WEIGHTS, RGB
from agenticiqa.signatures.types import Box

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
