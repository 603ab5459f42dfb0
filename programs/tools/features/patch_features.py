"""Compute the features of each patch of an image, and of its surroundings.

A patch is 32 x 32 pixels. An image of more than two megapixels is not scaled down, which would hide noise: its grid is
coarser, and each cell has one patch at full resolution.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.tools.metrics.blockiness import FAINT_STEP, LARGEST_STEP
from agenticiqa.programs.tools.numerics.filters import haar
from agenticiqa.programs.tools.numerics.pixels import LUMA_WEIGHTS, RGB
from agenticiqa.programs.tools.statistics.parts import GRID, WHOLE_PIXELS
from agenticiqa.programs.tools.statistics.spatial import isolated_in
from agenticiqa.programs.tools.statistics.tonal import BLACK, WHITE

Patches = NDArray[np.float32]  # (N, 32, 32)
Values = NDArray[np.float64]

SIDE = 32  # pixels of a patch
ROUNDING = 0.6  # gray levels; smaller Haar coefficients are rounding errors
NEAR, FAR = 3, 7  # sides, in cells, of the two neighborhoods that a patch is compared with
SCALES = 3
AT_ONCE = 96  # patches per step, few enough for a processor's cache


@dataclass(frozen=True)
class Grid:
    """A grid of square cells of ``side`` pixels, from the image's top left; the last cells may exceed the image.

    ``values`` (rows, columns, n) are finite features.
    """

    values: Values
    side: int


def patch_grid(image: RGB) -> Grid:
    """Return the features of each patch and its surroundings, for an image, uint8 (H, W, 3), of at least 32 x 32."""
    patches, (rows, columns), side = _tiles(image)
    chunks = [_own_features(patches[:, first : first + AT_ONCE]) for first in range(0, rows * columns, AT_ONCE)]
    own, steps = (np.concatenate(arrays).reshape(rows, columns, -1) for arrays in zip(*chunks, strict=True))
    blocking = np.stack([_blocking(_around(steps, size)) for size in (NEAR, FAR - 2)], axis=-1)
    own = np.concatenate([own, blocking], axis=-1)
    near, far = _around(own, NEAR), _around(own, FAR)
    usual = np.median(own, axis=(0, 1))
    ranked = np.sort(near.reshape(rows * columns, -1), axis=0)
    spread = ranked[math.ceil(0.9 * (len(ranked) - 1))] - ranked[int(0.1 * (len(ranked) - 1))]
    whole = np.broadcast_to(np.concatenate([usual, spread]), (rows, columns, 2 * len(usual)))
    return Grid(np.concatenate([own, near, near - far, near - usual, whole], axis=-1), side)


def _own_features(colors: NDArray[np.uint8]) -> tuple[Values, Values]:
    """Return the own features of patches (3, N, 32, 32): (N, features), and their steps on the grid: (N, 16)."""
    red, _, blue = planes = colors.astype(np.float32)
    luma = sum(np.float32(weight) * plane for weight, plane in zip(LUMA_WEIGHTS, planes, strict=True))
    own = np.stack([*_tone(luma), *_detail(luma), *_noise(luma), *_color(colors, red, blue, luma)], axis=-1)
    steps = np.concatenate([_grid_steps(luma), _grid_steps(luma.swapaxes(1, 2))], axis=-1)
    return own.astype(float), steps


def _tiles(image: RGB) -> tuple[NDArray[np.uint8], tuple[int, int], int]:
    """Return the patches (3, N, 32, 32), the rows and columns of the grid, and the side of its cells in pixels."""
    height, width = image.shape[:2]
    coarser = max(1, math.ceil(math.sqrt(height * width / WHOLE_PIXELS)))
    side = SIDE * coarser
    rows, columns = -(-height // side), -(-width // side)
    if coarser > 1:
        # Patches begin on the grid of JPEG, as the cells do.
        tops, lefts = (
            np.minimum(np.arange(count) * side + (side - SIDE) // 2 // GRID * GRID, (length - SIDE) // GRID * GRID)
            for count, length in ((rows, height), (columns, width))
        )
        down, across = ((starts[:, None] + np.arange(SIDE)).ravel() for starts in (tops, lefts))
        image = image[down][:, across]
    else:
        image = np.pad(image, [(0, rows * SIDE - height), (0, columns * SIDE - width), (0, 0)], mode="symmetric")
    cut = image.reshape(rows, SIDE, columns, SIDE, 3).transpose(4, 0, 2, 1, 3)
    return cut.reshape(3, -1, SIDE, SIDE), (rows, columns), side


def _tone(luma: Patches) -> list[Values]:
    return [
        luma.mean(axis=(1, 2)),
        np.log(_deviation(luma) + 0.5),
        _share(luma >= WHITE),
        _share(luma <= BLACK),
    ]


def _deviation(plane: Patches) -> Values:
    flat = plane.reshape(len(plane), -1)
    mean = flat.mean(axis=1)
    return np.sqrt(np.maximum(np.einsum("ij,ij->i", flat, flat) / flat.shape[1] - mean * mean, 0))


def _share(chosen: NDArray[np.bool_]) -> Values:
    """Return the share of chosen pixels of each patch."""
    flat = chosen.reshape(len(chosen), -1)
    # A third of the time of mean.
    shares: Values = np.add.reduce(flat.view(np.uint8), axis=1, dtype=np.uint32) / flat.shape[1]
    return shares


def _detail(luma: Patches) -> list[Values]:
    features: list[Values] = []
    plane = luma
    for scale in range(SCALES):
        plane, bands = haar(plane)
        means = [band.mean(axis=(1, 2)) for band in bands]
        features += [np.log(mean + 0.05) for mean in means]
        if scale < 2:
            sizes = [np.sqrt(np.square(band).mean(axis=(1, 2))) for band in (bands[0] + bands[1], bands[2])]
            features += [
                np.log((size + 0.05) / (mean + 0.05))
                for size, mean in zip(sizes, (means[0] + means[1], means[2]), strict=True)
            ]
        if scale == 0:
            features += [_share(band < ROUNDING) for band in (np.minimum(bands[0], bands[1]), bands[2])]
    return features


def _noise(luma: Patches) -> list[Values]:
    """Return features of Immerkaer's residual, and the shares of isolated and of equal pixels."""
    down = luma[:, :-2] + luma[:, 2:] - 2 * luma[:, 1:-1]
    rough = np.abs(down[:, :, :-2] + down[:, :, 2:] - 2 * down[:, :, 1:-1])
    blocks = [rough[:, y : y + 15, x : x + 15].reshape(len(luma), -1) for y in (0, 15) for x in (0, 15)]
    medians = np.stack([np.partition(block, 112, axis=1)[:, 112] for block in blocks]) / 4.05
    isolated = sum(np.bincount(planes, minlength=len(luma)) / (SIDE - 2) ** 2 for planes in isolated_in(luma))
    return [
        np.log(medians.mean(axis=0) + 0.2),
        np.log(medians.min(axis=0) + 0.2),
        np.log(isolated + 5e-4),
        _share(luma[:, :, 1:] == luma[:, :, :-1]),
    ]


def _color(colors: NDArray[np.uint8], red: Patches, blue: Patches, luma: Patches) -> list[Values]:
    features: list[Values] = []
    fine, coarse = np.full(len(luma), 0.1), np.full(len(luma), 0.1)
    for channel in (red, blue):
        tint = channel - luma
        half, bands = haar(tint)
        for detail, total in ((bands, fine), (haar(half)[1], coarse)):
            for band in detail:
                total += band.mean(axis=(1, 2))
        features += [tint.mean(axis=(1, 2)), np.log(_deviation(tint) + 0.5)]
    highest, lowest = colors.max(axis=0), colors.min(axis=0)  # maxima of bytes, which are several times faster
    clipped = _share((highest >= WHITE) | (lowest <= BLACK))
    return [*features, np.log(fine), np.log(coarse), (highest - lowest).astype(np.float32).mean(axis=(1, 2)), clipped]


def _grid_steps(luma: Patches) -> Values:
    """Return the excess difference of rows over their neighbors, for each of the eight offsets on the grid: (N, 8)."""
    step = np.abs(luma[:, 1:] - luma[:, :-1])
    beyond = step[:, :-2] + step[:, 2:]
    beyond *= np.float32(-0.5)
    beyond += step[:, 1:-1]
    excess = np.clip(beyond, 0, LARGEST_STEP, out=beyond).mean(axis=2)
    return np.stack([excess[:, place::GRID].mean(axis=1) for place in range(GRID)], axis=-1)


def _blocking(steps: Values) -> Values:
    """Return the log ratio of the strongest of the eight grids to the others, mean of both axes; steps (.., 16)."""
    ratios = []
    for half in (steps[..., :GRID], steps[..., GRID:]):
        highest = half.max(axis=-1)
        ratios.append(np.log((highest + FAINT_STEP) / ((half.sum(axis=-1) - highest) / (GRID - 1) + FAINT_STEP)))
    return (ratios[0] + ratios[1]) / 2


def _around(grid: Values, size: int) -> Values:
    """Return the means of ``size`` x ``size`` cells around each cell of a mirrored grid (rows, columns, n)."""
    reach = size // 2
    for axis in (0, 1):
        sides = [(reach, reach) if dimension == axis else (0, 0) for dimension in range(3)]
        padded = np.moveaxis(np.pad(grid, sides, mode="symmetric"), axis, 0)
        total = padded[: 1 - size].copy()  # sums of slices: a fifth of the time of SciPy's filter on so small a grid
        for first in range(1, size):
            total += padded[first : len(padded) - size + 1 + first]
        grid = np.moveaxis(total / size, 0, axis)
    return grid
