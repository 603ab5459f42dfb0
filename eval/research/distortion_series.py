"""Make distortion series for training the quality model from pristine and labeled photos.

A series has the undistorted frame and the same frame with the same distortion at rising strengths. Most series have one
kind of distortion. Others have two or three kinds at once, or damage to a part of the image. Labeled photos are also
used in other views that people would rate alike: cropped, resized, mirrored.
"""

import io
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import scipy
from numpy.typing import NDArray
from PIL import Image
from sklearn.isotonic import IsotonicRegression

from agenticiqa.eval.research.distort import DISTORTION_STRENGTHS, KINDS
from agenticiqa.eval.research.photos import as_jpeg, opened_photo
from agenticiqa.programs.images import load
from agenticiqa.programs.images.files import write_atomically
from agenticiqa.programs.offline.measured.detector import TONE
from agenticiqa.programs.tools import fr_fusion
from agenticiqa.programs.tools.metrics.learned_iqa import as_input
from agenticiqa.programs.tools.numerics.pixels import RGB
from agenticiqa.programs.tools.statistics.parts import in_working_size
from agenticiqa.signatures.categories import COMPRESSION, NOISE

LARGEST_PHOTO = 2600  # pixels of the longer side
LONGEST = (256, 512)  # range of a frame's longer side, in pixels
HELD_OUT_LONGEST = 512  # pixels, longer side of the frames of held-out scenes
FRAMES = 4  # frames of a training photo; each series uses one of them
MIXED, LOCAL = 2, 3  # series of several kinds and of a part, for each pristine photo
MIXED_AT = (1.5, 3.0, 4.5)  # strengths of the images of a mixture
LABELED_SIDE = 288  # pixels, side of the part of a labeled photo that is distorted
TONE_FRAMES, TONES = 3, 4  # further frames of a training photo, and series of tone for each of them
COMPARED = 9  # FR-FUSION scores the series of one in this many training photos
PART, SEVERAL = "@", "+"  # marks in the name of a kind: damage of a part, several kinds
RATED, VIEW = "", "view"  # marks in place of a kind: a photo as people rated it, and another view of it
VIEWS = 4  # views of a labeled photo

Floats = NDArray[np.float64]
FeaturesOf = Callable[[NDArray[np.float32]], NDArray[np.float32]]


@dataclass(frozen=True)
class SeriesImages:
    """N distorted images, one per row of every array.

    ``series`` numbers the series of a photo. ``level`` is the strength, 0 (the frame) to 5. ``share`` is the share of
    the image that is distorted. ``compared`` is FR-FUSION with the frame as the reference, NaN if not computed.
    ``features`` (N, F) are in half precision.
    """

    series: NDArray[np.int64]
    kind: NDArray[np.str_]
    level: NDArray[np.float64]
    share: NDArray[np.float64]
    compared: NDArray[np.float64]
    features: NDArray[np.float16]


SeriesImage = tuple[str, float, float, RGB]  # kind, strength, share, pixels


def cached_series(file: Path, cache: Path, features_of: FeaturesOf, how: str) -> SeriesImages:
    """Return the series of a photo, computed once and kept in the folder ``cache``.

    ``how`` is "train" or "measure" for a pristine photo, "labeled" for one with a MOS, "labeled well" for one with a
    MOS above most others, and "views" for other views of a labeled photo.
    """
    kept = cache / f"{zlib.crc32(str(file).encode()):08x}-{file.stem}-{how}-series.npz"
    if not kept.is_file():
        images = series_of(file, features_of, how)
        archive = io.BytesIO()
        np.savez(archive, **{field.name: getattr(images, field.name) for field in fields(images)})
        write_atomically(kept, archive.getvalue())
    with np.load(kept) as arrays:
        return SeriesImages(**arrays)


def series_of(file: Path, features_of: FeaturesOf, how: str) -> SeriesImages:
    """Return the series of a photo: all kinds for a pristine one, one for a labeled one, also tones for a good one."""
    number = zlib.crc32(file.name.encode())
    rng = np.random.default_rng(number)
    all_series: list[Iterator[SeriesImage]]
    if how == "views":
        all_series = [iter([(VIEW, 0.0, 0.0, view) for view in views(in_working_size(load(file).pixels), rng)])]
    elif how in ("labeled", "labeled well"):
        photo = in_working_size(load(file).pixels)
        all_series = [iter([(RATED, 0.0, 0.0, photo)]), labeled_series(_part(photo, rng), rng)]
        if how == "labeled well":
            all_series += of_tone(_part(photo, rng), 2, rng)
    else:
        whole = opened_photo(file, LARGEST_PHOTO)
        frames = [_frame(whole, rng, how) for _ in range(FRAMES if how == "train" else 1)]
        all_series = [
            *(one_kind(frames[i % len(frames)], kind, _strengths(how, rng), rng) for i, kind in enumerate(KINDS)),
        ]
        if how == "train":
            all_series += [mixture(frames[i % len(frames)], rng) for i in range(MIXED)]
            all_series += [of_a_part(frames[(i + 2) % len(frames)], rng) for i in range(LOCAL)]
            frames += [_frame(whole, rng, how) for _ in range(TONE_FRAMES)]
            all_series += [series for frame in frames[FRAMES:] for series in of_tone(frame, TONES, rng)]
    rows: dict[str, list[object]] = {field.name: [] for field in fields(SeriesImages)}
    of_frames: dict[int, NDArray[np.float16]] = {}
    for place, series in enumerate(all_series):
        frame = None
        for kind, strength, share, pixels in series:
            frame = pixels if frame is None else frame
            compares = how == "train" and number % COMPARED == 0 and strength > 0
            compared = fr_fusion(pixels, frame) if compares else np.nan
            if id(pixels) not in of_frames or strength:
                of_frames[id(pixels)] = features_of(as_input(pixels)).astype(np.float16)
            for name, value in zip(rows, (place, kind, strength, share, compared, of_frames[id(pixels)]), strict=True):
                rows[name].append(value)
    return SeriesImages(**{name: np.array(values) for name, values in rows.items()})


def _strengths(how: str, rng: np.random.Generator) -> Sequence[float]:
    """Return all strengths to measure; for training three random ones, the last often the highest."""
    if how == "measure":
        return DISTORTION_STRENGTHS
    return [float(rng.uniform(0.5, 2)), float(rng.uniform(2, 3.5)), min(float(rng.uniform(3.5, 6)), 5.0)]


def one_kind(frame: RGB, kind: str, strengths: Sequence[float], rng: np.random.Generator) -> Iterator[SeriesImage]:
    """Yield the frame and one distortion at the strengths."""
    draw = int(rng.integers(1 << 31))
    yield kind, 0.0, 0.0, frame
    for strength in strengths:
        yield kind, strength, 1.0, distorted(frame, kind, strength, draw)


def mixture(frame: RGB, rng: np.random.Generator, strengths: Sequence[float] = MIXED_AT) -> Iterator[SeriesImage]:
    """Yield the frame with two or three kinds in succession, each at its own share of the strengths."""
    kinds = sorted(rng.choice(list(KINDS), int(rng.integers(2, 4)), replace=False), key=_order)
    draws = [int(draw) for draw in rng.integers(1 << 31, size=len(kinds))]
    shares = rng.uniform(0.4, 1, len(kinds))
    shares /= shares.max()
    name = SEVERAL.join(kinds)
    yield name, 0.0, 0.0, frame
    for strength in strengths:
        pixels = frame
        for kind, draw, share in zip(kinds, draws, shares, strict=True):
            pixels = distorted(pixels, kind, strength * share, draw)
        yield name, strength, 1.0, pixels


def of_a_part(frame: RGB, rng: np.random.Generator, strengths: Sequence[float] = MIXED_AT) -> Iterator[SeriesImage]:
    """Yield the frame with one kind in a rectangle or an ellipse of a tenth to a half of the image."""
    kind, draw = str(rng.choice(list(KINDS))), int(rng.integers(1 << 31))
    height, width = frame.shape[:2]
    share = rng.uniform(0.1, 0.5)
    tall = share ** rng.uniform(0.2, 0.8)
    half = np.array([tall, share / tall]) / 2
    center = rng.uniform(half, 1 - half)
    y, x = np.abs(np.mgrid[:height, :width] / np.array([height, width])[:, None, None] - center[:, None, None])
    y, x = y / half[0], x / half[1]
    inside = (np.maximum(y, x) if rng.random() < 0.6 else np.hypot(y, x)) < 1
    soft = scipy.ndimage.gaussian_filter(inside.astype(float), float(rng.choice([0, 4, 12])))[..., None]
    yield PART + kind, 0.0, 0.0, frame
    for strength in strengths:
        pixels = distorted(frame, kind, strength, draw) * soft + frame * (1 - soft)
        yield PART + kind, strength, float(inside.mean()), np.rint(pixels).astype(np.uint8)


def labeled_series(frame: RGB, rng: np.random.Generator) -> Iterator[SeriesImage]:
    """Yield distorted frames of a labeled photo: mostly with one kind, sometimes with several."""
    strengths = [float(rng.uniform(0.8, 3)), min(float(rng.uniform(3, 6)), 5.0)]
    draw = rng.random()
    if draw < 0.8:
        yield from one_kind(frame, str(rng.choice(list(KINDS))), strengths, rng)
    else:
        yield from mixture(frame, rng, strengths) if draw < 0.9 else of_a_part(frame, rng, strengths)


def of_tone(frame: RGB, count: int, rng: np.random.Generator) -> list[Iterator[SeriesImage]]:
    """Return series of brightness, contrast or color changes, which are hard to detect without a reference."""
    kinds = rng.choice([kind for kind in KINDS if KINDS[kind].category in TONE], count, replace=False)
    return [
        one_kind(frame, str(kind), [float(rng.uniform(0.6, 2.6)), float(rng.uniform(2.6, 5))], rng) for kind in kinds
    ]


def views(photo: RGB, rng: np.random.Generator) -> list[RGB]:
    """Return views of a photo that people would rate alike: cropped, slightly smaller, as good JPEG, or mirrored."""
    image = Image.fromarray(photo)
    made = [
        _cut(image, 0.8, 0.95, rng),
        _cut(image, 0.8, 1, rng),
        _smaller(image, 0.8, rng),
        as_jpeg(_smaller(_cut(image, 0.85, 1, rng), 0.85, rng), rng),
    ]
    if rng.random() < 0.5:
        made = [view.transpose(Image.Transpose.FLIP_LEFT_RIGHT) for view in made]
    return [np.asarray(view) for view in made]


def distorted(pixels: RGB, kind: str, strength: float, draw: int) -> RGB:
    """Return the pixels with a distortion of ``distort`` at any strength from 0 to 5; 0 changes nothing."""
    if strength <= 0.2:
        return pixels
    amounts = np.array(KINDS[kind].amounts, float)
    below = NEUTRAL.get(kind, 0.0)
    amount = float(np.interp(strength, range(6), [below, *amounts]))
    changed = KINDS[kind].apply(pixels.astype(float), amount, np.random.default_rng(draw))
    return np.clip(np.rint(changed), 0, 255).astype(np.uint8)


# The amount that changes nothing, if it is not 0.
NEUTRAL = {
    "low_resolution": 1,
    "jpeg": 95,
    "jpeg2000": 4,
    "webp": 95,
    "banding": 64,
    "darken": 1,
    "brighten": 1,
    "low_contrast": 1,
    "high_contrast": 1,
    "desaturate": 1,
    "oversaturate": 1,
    "pixelate": 1,
}


def _part(photo: RGB, rng: np.random.Generator) -> RGB:
    """Return a random part of a photo, with sides of at most ``LABELED_SIDE`` pixels."""
    height, width = (min(side, LABELED_SIDE) for side in photo.shape[:2])
    top, left = (int(rng.integers(all_ - part + 1)) for all_, part in zip(photo.shape, (height, width), strict=False))
    return photo[top : top + height, left : left + width]


def _order(kind: str) -> int:
    """Return the place of a kind in a camera: blur and exposure come before noise, and coding comes last."""
    return {NOISE: 1, COMPRESSION: 2}.get(KINDS[kind].category, 0)


def _frame(photo: Image.Image, rng: np.random.Generator, how: str) -> RGB:
    """Return the photo in a random size; for training also mirrored, saved as JPEG, or cropped."""
    longest = float(np.exp(rng.uniform(*np.log(LONGEST)))) if how == "train" else HELD_OUT_LONGEST
    if how == "train" and rng.random() < 0.4:
        photo = _cut(photo, 0.5, 0.9, rng)
    scale = min(longest / max(photo.size), 1.0)
    frame = photo.resize([max(96, round(side * scale)) for side in photo.size], Image.Resampling.LANCZOS)
    if how == "train" and rng.random() < 0.5:
        frame = frame.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    if how == "train" and rng.random() < 0.25:
        frame = as_jpeg(frame, rng)
    return np.ascontiguousarray(frame)


def _cut(photo: Image.Image, low: float, high: float, rng: np.random.Generator) -> Image.Image:
    """Return a random crop; each side is between ``low`` and ``high`` of the photo's side."""
    width, height = (round(side * rng.uniform(low, high)) for side in photo.size)
    left, top = int(rng.integers(photo.width - width + 1)), int(rng.integers(photo.height - height + 1))
    return photo.crop((left, top, left + width, top + height))


def _smaller(photo: Image.Image, least: float, rng: np.random.Generator) -> Image.Image:
    scale = rng.uniform(least, 1)
    return photo.resize([round(side * scale) for side in photo.size], Image.Resampling.LANCZOS)


# The share of quality that an image keeps follows from the strength and from FR-FUSION. FR-FUSION falls with the
# strength of every kind, but not below a minimum, and it underestimates gray photos and color casts. The strengths of
# ``distort`` are chosen by eye, and about equal over the kinds.
PRISTINE_SCORE = 4.3  # score of a pristine photo; hardly any image has a higher MOS
KEPT_AT_STRENGTH = (1.0, 0.84, 0.66, 0.46, 0.27, 0.10)  # share of the score above 1 kept at the strengths 0..5
COMPARED_SHARE = 0.4  # weight of FR-FUSION; the strength has the rest
LOWEST_COMPARED = 1.7  # score by FR-FUSION of a completely destroyed image
AREA_EXPONENT = 0.4  # power of a part's share that multiplies its loss, as the worst part matters most
MIXTURE_STRENGTH = 0.8  # mean strength of the kinds of a mixture, as a share of its strength


def kept_by_compared(compared: Floats) -> Floats:
    """Return the share of quality kept by an FR-FUSION score."""
    return np.clip((compared - LOWEST_COMPARED) / (5 - LOWEST_COMPARED), 0, 1)


def kept_curves(kinds: NDArray[np.str_], strengths: Floats, compared: Floats) -> dict[str, Floats]:
    """Return, by kind, the quality kept at the strengths 0..5, from images (N,), some with FR-FUSION scores."""
    curves = {}
    for kind in KINDS:
        rows = (kinds == kind) & np.isfinite(compared)
        falling = np.zeros(6)
        if rows.any():
            model = IsotonicRegression(increasing=False, out_of_bounds="clip")
            falling = model.fit(strengths[rows], kept_by_compared(compared[rows])).predict(np.arange(6.0))
        share = COMPARED_SHARE if rows.any() else 0.0
        curves[kind] = np.array([1.0, *((1 - share) * np.array(KEPT_AT_STRENGTH) + share * falling)[1:]])
    return curves


def kept_quality(kind: str, strength: float, share: float, compared: float, curves: dict[str, Floats]) -> float:
    """Return the share of quality, 0 to 1, that an image of a series keeps; for the arguments see ``SeriesImages``."""
    if strength == 0:
        return 1.0
    kinds = kind.removeprefix(PART).split(SEVERAL)
    if len(kinds) == 1:
        kept = float(np.interp(strength, range(6), curves[kinds[0]]))
        if not kind.startswith(PART):
            return kept
        kept = 1 - (1 - kept) * share**AREA_EXPONENT
    else:
        kept = float(np.prod([np.interp(MIXTURE_STRENGTH * strength, range(6), curves[part]) for part in kinds]))
    if np.isfinite(compared):
        kept = 0.5 * kept + 0.5 * float(kept_by_compared(np.array(compared)))
    return kept
