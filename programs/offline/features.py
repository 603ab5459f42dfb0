"""What the detector of distortions reads from an image: a hundred numbers about detail, texture, tone and colour.

Texture is the strength, peakedness and stillness of Haar wavelet bands over four scales of luma and two of chroma; how
unevenly detail is spread over blocks, and how fine it is where it is strong; how few values there are. Noise fills
every band and makes it Gaussian, blur empties the fine ones, coding leaves them still here and peaked there. Tone is
how values and colours are spread. To both the measures by name are added.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.tools.numerics.pixels import RGB, luma
from agenticiqa.programs.tools.statistics.by_name import SPATIAL, TONAL, all_statistics
from agenticiqa.programs.tools.statistics.parts import WHOLE_PIXELS, parts_of
from agenticiqa.programs.tools.statistics.tonal import Tone

Plane = NDArray[np.floating]
Values = NDArray[np.float64]

LEAST_SIDE = 64  # pixels
SCALES = 4
CHROMA_SCALES = 2
BLOCK = 16  # pixels
STILL = 0.6  # grey levels: a coefficient below is rounding
MOST_FILLED = 0.3  # share of the grey levels that are in use: gains leave gaps too, and mean nothing by them
SPREAD = (5, 25, 50, 75, 95)  # percentiles
TEXTURE_TRAITS = 78  # how many there are; the rest are of tone
SMOOTHEST_COLOR = 63  # the place of that trait
FAINT = 0.2  # grey levels, added before a logarithm is taken
# Measures whose ratios count, not their differences, and what is too little of them to matter.
BY_RATIO = {"noise_sigma": 0.2, "isolated_pixels": 2e-4, "blockiness": 0.05, "edge_sharpness": 0.05}


@dataclass(frozen=True)
class Traits:
    """The traits of an image, each in a fixed place and finite."""

    texture: Values
    tone: Values

    @property
    def all(self) -> Values:
        """Texture and tone after one another."""
        return np.concatenate([self.texture, self.tone])

    @property
    def lost_detail(self) -> float:
        """The share of the finest luma detail that is rounding at most, 0 to 1."""
        return float(self.texture[[2, 5, 8]].mean())

    @property
    def color_noise(self) -> float:
        """Standard deviation of the colours in the smoothest parts, in grey levels."""
        return float(max(np.exp(self.texture[SMOOTHEST_COLOR]) - FAINT, 0) / 4.8)  # a sum of six bands, each 0.8 of it


def has_traits(image: LoadedImage) -> bool:
    """Whether both sides of an image have the 64 pixels that its traits need."""
    return min(image.size) >= LEAST_SIDE


def traits(image: LoadedImage) -> Traits:
    """The traits of an image that has them; taken once per loaded image.

    Texture is about neighbouring pixels, so scaling an image changes it; of an image over two megapixels it is the mean
    over parts, as for the spatial measures.
    """
    return image.memo.once("traits", lambda: _traits(image))


def _traits(image: LoadedImage) -> Traits:
    measures = all_statistics(image)
    parts = [_texture(part) for part in parts_of(image.pixels)]
    return Traits(
        np.array([*np.mean(parts, axis=0), *_named(measures, SPATIAL)]),
        np.array([*_tone(Tone(image.pixels)), *_named(measures, TONAL), *_clipping(image.pixels)]),
    )


def _named(measures: Mapping[str, float], names: Mapping[str, object]) -> list[float]:
    return [np.log(measures[name] + BY_RATIO[name]) if name in BY_RATIO else measures[name] for name in names]


def _texture(pixels: RGB) -> list[float]:
    plane = luma(pixels).astype(np.float32)
    chroma = np.stack([pixels[..., 0] - plane, pixels[..., 2] - plane])
    return [*_detail(plane), *_color_detail(chroma), *_diagonals(plane), *_fill(pixels)]


def _haar(plane: Plane) -> tuple[Plane, Plane]:
    """Half the size, and the magnitudes of upright, level and diagonal detail: (3, .., H // 2, W // 2), grey levels."""
    height, width = plane.shape[-2] // 2 * 2, plane.shape[-1] // 2 * 2
    a, b = plane[..., 0:height:2, 0:width:2], plane[..., 0:height:2, 1:width:2]
    c, d = plane[..., 1:height:2, 0:width:2], plane[..., 1:height:2, 1:width:2]
    top, bottom, left, right = a + b, c + d, a - b, c - d
    return (top + bottom) / 4, np.abs(np.stack([left + right, top - bottom, left - right])) / 2


def _band(sizes: Plane) -> list[float]:
    """Strength, peakedness and stillness of the magnitudes of a band."""
    mean, rms = float(sizes.mean()), float(np.sqrt(np.mean(sizes * sizes)))
    return [np.log(mean + 0.05), np.log((rms + 0.05) / (mean + 0.05)), float(np.mean(sizes < STILL))]


def _detail(plane: Plane) -> list[float]:
    found: list[float] = []
    by_block: list[Plane] = []
    for scale in range(SCALES):
        plane, sizes = _haar(plane)
        bands = [_band(band) for band in sizes]
        found += [*np.ravel(bands), abs(bands[0][0] - bands[1][0])]
        by_block.append(np.log(_block_means(sizes.sum(axis=0), BLOCK >> scale + 1) + FAINT))
    rows, columns = by_block[-1].shape
    fine, middle, coarse = (blocks[:rows, :columns] for blocks in by_block[:3])
    strong = middle >= np.percentile(middle, 80)
    for spread in (fine, fine - middle, (fine - middle)[strong], (middle - coarse)[strong]):
        found += list(np.percentile(spread, SPREAD))
    return found


def _color_detail(chroma: Plane) -> list[float]:
    found: list[float] = []
    for scale in range(CHROMA_SCALES):
        chroma, sizes = _haar(chroma)
        found += _band(sizes)
        if scale == 0:
            blocks = _block_means(sizes.sum(axis=(0, 1)), BLOCK // 2)
            found += list(np.log(np.percentile(blocks, (5, 50)) + FAINT))
    return found


def _diagonals(plane: Plane) -> list[float]:
    """How much the changes along one diagonal differ from those along the other, as motion blur makes them."""
    found = []
    for step in (1, 3):
        falling = np.abs(plane[step:, step:] - plane[:-step, :-step]).mean()
        rising = np.abs(plane[step:, :-step] - plane[:-step, step:]).mean()
        found.append(float(abs(np.log((falling + 0.1) / (rising + 0.1)))))
    return found


def _fill(pixels: RGB) -> list[float]:
    """Share of equal neighbours, and of the values between the darkest and the brightest that occur at all."""
    green = pixels[..., 1]
    present = np.flatnonzero(np.bincount(green.ravel(), minlength=256) > 1e-4 * green.size)
    filled = len(present) / (present[-1] - present[0] + 1)
    return [float(np.mean(green[:, 1:] == green[:, :-1])), float(np.log(min(filled, MOST_FILLED)))]


def _tone(tone: Tone) -> list[float]:
    highest, lowest = tone.rgb.max(axis=-1), tone.rgb.min(axis=-1)
    saturation = (highest - lowest) / (highest + 8)
    tints = np.stack([tone.rgb[..., 0] - tone.luma, tone.rgb[..., 2] - tone.luma])
    strength, contrast = float(np.hypot(*tints).mean()), float(tone.luma.std())
    neutral = saturation <= np.percentile(saturation, 20)
    return [
        *np.percentile(tone.luma, (1, *SPREAD, 99)),
        *np.percentile(saturation, SPREAD),
        float(np.mean(highest >= 250)),
        float(np.mean(lowest <= 3)),
        float(np.mean(highest <= 5)),
        strength,
        float(np.hypot(*tints.mean(axis=(1, 2)))) / (strength + 2),
        float(np.hypot(*[tint[neutral].mean() for tint in tints])),
        float(np.hypot(*tints.std(axis=(1, 2)))) / (contrast + 5),
    ]


def _clipping(pixels: RGB) -> list[float]:
    """How often a channel ends at black or white, alone or with the others, and in colours that are not dark."""
    apart = math.ceil(math.sqrt(pixels.shape[0] * pixels.shape[1] / WHOLE_PIXELS))
    red, green, blue = np.moveaxis(pixels[::apart, ::apart], -1, 0)
    lowest, highest = np.minimum(np.minimum(red, green), blue), np.maximum(np.maximum(red, green), blue)
    black, white = lowest <= 2, highest >= 253
    shares = [black, white, black & (highest > 80), white & (lowest < 200), highest <= 2, lowest >= 253]
    return [float(np.log(share.mean() + 1e-3)) for share in shares]


def _block_means(plane: Plane, side: int) -> Plane:
    rows, columns = plane.shape[0] // side, plane.shape[1] // side
    return plane[: rows * side, : columns * side].reshape(rows, side, columns, side).mean(axis=(1, 3))
