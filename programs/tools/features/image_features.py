"""Compute the features of an image that the networks of ``offline.measured.detector`` take: about a hundred numbers.

Texture: mean magnitude, peakedness and share of near-zero coefficients of Haar wavelet bands, over four scales of luma
and two of chroma; the distribution of detail over blocks; the share of gray levels in use. Noise fills every band and
makes it Gaussian, blur empties the fine bands, and compression leaves coefficients that are zero or large. Tone: the
distribution of brightness and color. Both end with the statistics of ``by_name``.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.tools.features.by_name import all_statistics
from agenticiqa.programs.tools.numerics.filters import haar
from agenticiqa.programs.tools.numerics.pixels import RGB
from agenticiqa.programs.tools.shared import Measurable, shared
from agenticiqa.programs.tools.statistics.parts import WHOLE_PIXELS, Luma, luma_parts, parts_of
from agenticiqa.programs.tools.statistics.tonal import Tone, tone_of

Plane = NDArray[np.floating]
Values = NDArray[np.float64]

MIN_SIDE = 64  # pixels
SCALES = 4
CHROMA_SCALES = 2
BLOCK = 16  # pixels
ROUNDING = 0.6  # gray levels; smaller coefficients are rounding errors
MAX_FILL = 0.3  # share of gray levels in use that counts as all, because stretched tones have gaps, too
PERCENTILES = (5, 25, 50, 75, 95)
TEXTURE_FEATURES = 78  # number of texture features; the rest are of tone
SMOOTHEST_COLOR = 63  # index of that texture feature
# The measurements of ``by_name`` among the features of texture and of tone. The weights were trained on these,
# in this order, so a measurement that is added there is no feature.
TEXTURE_MEASURED = ("blur_extent", "noise_sigma", "isolated_pixels", "blockiness", "edge_sharpness", "overshoot")
TONE_MEASURED = (
    "mean_luma",
    "shadow_level",
    "highlight_level",
    "clipped_dark",
    "clipped_bright",
    "rms_contrast",
    "tonal_range",
    "colorfulness",
    "color_cast",
    "red_tint",
    "yellow_tint",
)
LOG_OFFSET = 0.2  # gray levels, added before a logarithm is taken
# Measurements that are compared by ratio, so by logarithm, with the offset that is added before.
LOG_OFFSETS = {"noise_sigma": 0.2, "isolated_pixels": 2e-4, "blockiness": 0.05, "edge_sharpness": 0.05}


@dataclass(frozen=True)
class Features:
    """The features of an image: finite values in a fixed order."""

    texture: Values
    tone: Values

    @property
    def all(self) -> Values:
        """Texture, then tone, in one array."""
        return np.concatenate([self.texture, self.tone])

    @property
    def lost_detail(self) -> float:
        """The share of the finest luma coefficients that are not above rounding, 0 to 1."""
        return float(self.texture[[2, 5, 8]].mean())

    @property
    def color_noise(self) -> float:
        """Standard deviation of the colors in the smoothest parts, in gray levels."""
        mean_sum = max(np.exp(self.texture[SMOOTHEST_COLOR]) - LOG_OFFSET, 0)
        return float(mean_sum / 4.8)  # the sum of six bands, each with a mean magnitude of 0.8 standard deviations


def has_features(image: Measurable) -> bool:
    """Return whether both sides of an image have at least the 64 pixels that the features need."""
    return min(image.pixels.shape[:2]) >= MIN_SIDE


@shared
def features(image: Measurable) -> Features:
    """Return the features of an image of at least 64 x 64 pixels.

    Texture features depend on the scale of the image, so a large image is not scaled down: above two megapixels they
    are the mean over parts, as for the spatial measurements.
    """
    measurements = all_statistics(image)
    both = zip(parts_of(image.pixels), luma_parts(image), strict=True)
    parts = [_texture(part, plane) for part, plane in both]
    return Features(
        np.array([*np.mean(parts, axis=0), *_named(measurements, TEXTURE_MEASURED)]),
        np.array([*_tone(tone_of(image)), *_named(measurements, TONE_MEASURED), *_clipping(image.pixels)]),
    )


def _named(measurements: Mapping[str, float], names: Sequence[str]) -> list[float]:
    return [
        np.log(measurements[name] + LOG_OFFSETS[name]) if name in LOG_OFFSETS else measurements[name] for name in names
    ]


def _texture(pixels: RGB, plane: Luma) -> list[float]:
    chroma = np.stack([pixels[..., 0] - plane, pixels[..., 2] - plane])
    return [*_detail(plane), *_color_detail(chroma), *_diagonals(plane), *_fill(pixels)]


def _band(magnitudes: Plane) -> list[float]:
    """Return the log of the mean magnitude, the peakedness, and the share of magnitudes below rounding."""
    mean, rms = float(magnitudes.mean()), float(np.sqrt(np.mean(magnitudes * magnitudes)))
    return [np.log(mean + 0.05), np.log((rms + 0.05) / (mean + 0.05)), _share(magnitudes < ROUNDING)]


def _detail(plane: Plane) -> list[float]:
    values: list[float] = []
    by_block: list[Plane] = []
    for scale in range(SCALES):
        plane, magnitudes = haar(plane)
        bands = [_band(band) for band in magnitudes]
        values += [*np.ravel(bands), abs(bands[0][0] - bands[1][0])]
        by_block.append(np.log(_block_means(magnitudes.sum(axis=0), BLOCK >> scale + 1) + LOG_OFFSET))
    rows, columns = by_block[-1].shape
    fine, middle, coarse = (blocks[:rows, :columns] for blocks in by_block[:3])
    strong = middle >= np.percentile(middle, 80)
    for spread in (fine, fine - middle, (fine - middle)[strong], (middle - coarse)[strong]):
        values += list(np.percentile(spread, PERCENTILES))
    return values


def _color_detail(chroma: Plane) -> list[float]:
    values: list[float] = []
    for scale in range(CHROMA_SCALES):
        chroma, magnitudes = haar(chroma)
        values += _band(magnitudes)
        if scale == 0:
            blocks = _block_means(magnitudes.sum(axis=(0, 1)), BLOCK // 2)
            values += list(np.log(np.percentile(blocks, (5, 50)) + LOG_OFFSET))
    return values


def _diagonals(plane: Plane) -> list[float]:
    """Return the differences of the gradients along both diagonals, which show diagonal motion blur."""
    values = []
    for step in (1, 3):
        falling = np.abs(plane[step:, step:] - plane[:-step, :-step]).mean()
        rising = np.abs(plane[step:, :-step] - plane[:-step, step:]).mean()
        values.append(float(abs(np.log((falling + 0.1) / (rising + 0.1)))))
    return values


def _fill(pixels: RGB) -> list[float]:
    """Return the share of equal neighbors, and the log of the share of gray levels in use."""
    green = np.ascontiguousarray(pixels[..., 1])
    present = np.flatnonzero(np.bincount(green.ravel(), minlength=256) > 1e-4 * green.size)
    filled = len(present) / (present[-1] - present[0] + 1)
    return [_share(green[:, 1:] == green[:, :-1]), float(np.log(min(filled, MAX_FILL)))]


def _tone(tone: Tone) -> list[float]:
    highest, lowest = tone.rgb.max(axis=-1), tone.rgb.min(axis=-1)
    saturation = (highest - lowest) / (highest + 8)
    tints = np.stack([tone.rgb[..., 0] - tone.luma, tone.rgb[..., 2] - tone.luma])
    strength, contrast = float(np.hypot(*tints).mean()), float(tone.luma.std())
    neutral = saturation <= np.percentile(saturation, 20)
    return [
        *np.percentile(tone.luma, (1, *PERCENTILES, 99)),
        *np.percentile(saturation, PERCENTILES),
        _share(highest >= 250),
        _share(lowest <= 3),
        _share(highest <= 5),
        strength,
        float(np.hypot(*tints.mean(axis=(1, 2)))) / (strength + 2),
        float(np.hypot(*[tint[neutral].mean() for tint in tints])),
        float(np.hypot(*tints.std(axis=(1, 2)))) / (contrast + 5),
    ]


def _clipping(pixels: RGB) -> list[float]:
    """Return log shares of black or white: in a channel, in a saturated color, in all channels."""
    step = math.ceil(math.sqrt(pixels.shape[0] * pixels.shape[1] / WHOLE_PIXELS))
    red, green, blue = np.ascontiguousarray(np.moveaxis(pixels[::step, ::step], -1, 0))
    lowest, highest = np.minimum(np.minimum(red, green), blue), np.maximum(np.maximum(red, green), blue)
    black, white = lowest <= 2, highest >= 253
    shares = [black, white, black & (highest > 80), white & (lowest < 200), highest <= 2, lowest >= 253]
    return [float(np.log(_share(chosen) + 1e-3)) for chosen in shares]


def _share(chosen: NDArray[np.bool_]) -> float:
    return np.count_nonzero(chosen) / chosen.size


def _block_means(plane: Plane, side: int) -> Plane:
    rows, columns = plane.shape[0] // side, plane.shape[1] // side
    by_row = plane[: rows * side, : columns * side].reshape(rows, side, -1).sum(axis=1)
    means: Plane = by_row.reshape(rows, columns, side).sum(axis=2) / side**2
    return means
