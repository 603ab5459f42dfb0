"""VIF: the share of the reference's visual information that the image preserves. Higher is better."""

from collections.abc import Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.tools.numerics.filters import Maps, Plane32, correlate, whole
from agenticiqa.programs.tools.numerics.pixels import RGB, STRIP_PIXELS, Plane, check_pair, gray_levels
from agenticiqa.programs.tools.tool import Tool

SMALLEST_SIDE = 65
SCALES = 4
BLOCK = 3
EYE_NOISE = 0.4
NEGLIGIBLE = 1e-6

# The upper left quarters of the kernels "sp5" of Simoncelli's steerable pyramid with six orientations (Karasaridis and
# Simoncelli, "A filter design technique for steerable pyramid image transforms", ICASSP 1996); the rest is symmetric.
_FIRST_LOW_PASS = (
    (0.00341614, -0.01551246, -0.03848215),
    (-0.01551246, 0.05586982, 0.15925570),
    (-0.03848215, 0.15925570, 0.40304148),
)
_LOW_PASS = (
    (0.00170808, -0.00489834, -0.00775624, -0.01888864, -0.01924108),
    (-0.00489834, -0.01046562, -0.01322234, 0.00821200, 0.02005976),
    (-0.00775624, -0.01322234, 0.02793492, 0.06554076, 0.07962786),
    (-0.01888864, 0.00821200, 0.06554076, 0.12852666, 0.16339236),
    (-0.01924108, 0.02005976, 0.07962786, 0.16339236, 0.20193080),
)
_BAND_PASS = (
    (0.00277643, -0.00986904, -0.01021852, 0.0),
    (0.00496194, -0.00893064, -0.03075356, 0.0),
    (0.01026699, 0.01189859, -0.08226445, 0.0),
    (0.01455399, 0.02755155, -0.11732297, 0.0),
)


class Band(NamedTuple):
    """One subband, block by block: bits of information kept, bits in the reference, and the variance of the noise.

    ``clear`` blocks at each border are left out.
    """

    kept: Plane32
    total: Plane32
    noise: Plane32
    clear: int


def vif(image: RGB, reference: RGB) -> float:
    """Return the visual information fidelity (VIF) of the gray levels, in the wavelet domain.

    In the authors' setting: the horizontal and vertical subbands of four pyramid levels, Gaussian scale
    mixtures over blocks of 3 x 3 coefficients, variance of the eye's noise 0.4. A reference without any detail has no
    information to lose; the value is then the formula's limit for faint detail that is kept with gain 1: 1 for an image
    without detail too, the nearer to 0 the more was added to it.
    Source: Sheikh and Bovik, "Image information and visual quality", IEEE TIP 15(2), 2006.

    Args:
        image: uint8 RGB, shape (H, W, 3), sides of at least 65 pixels: the coarsest level needs a block clear of the
            border.
        reference: The pristine image, of the same kind and size.

    Returns:
        0 (nothing preserved) to 1 (equal), higher is better; above 1 where the contrast was raised cleanly, unlike all
        other metrics here. Not symmetric.

    Raises:
        ToolError: An array is of another kind, the sizes differ, or a side is under 65 pixels.
    """
    kept = total = 0.0
    limits = []
    for band in _bands(image, reference):
        kept += float(band.kept.sum(dtype=np.float64))
        total += float(band.total.sum(dtype=np.float64))
        limits.append(EYE_NOISE / (EYE_NOISE + float(band.noise.mean(dtype=np.float64))))
    return kept / total if total > 0 else float(np.mean(limits))


def vif_map(image: RGB, reference: RGB) -> Plane:
    """Bits that each pixel lost in all subbands, over the mean bits of a pixel of the reference: (H, W), 0 or more.

    Where the reference has no detail: noise / (noise + the eye's noise). Raises ToolError as ``vif``.
    """
    bands = list(_bands(image, reference))
    detailed = any(band.total.any() for band in bands)
    height, width = image.shape[:2]
    shapes = [(-(-height // 2**level), -(-width // 2**level)) for level in range(SCALES)]
    lost = np.zeros(shapes[-1], np.float32)
    mean = 0.0
    for level in reversed(range(SCALES)):
        rows, columns = shapes[level]
        lost = lost.repeat(2, axis=0).repeat(2, axis=1)[:rows, :columns]
        lost /= 4
        for band in bands[2 * level : 2 * level + 2]:
            values = np.maximum(band.total - band.kept, 0) if detailed else band.noise / (band.noise + EYE_NOISE)
            framed = np.pad(values / BLOCK**2, band.clear, mode="edge").repeat(BLOCK, axis=0).repeat(BLOCK, axis=1)
            beyond = [(0, side - full) for side, full in zip((rows, columns), framed.shape, strict=True)]
            if any(map(any, beyond)):
                framed = np.pad(framed, beyond, mode="edge")
            lost += framed
            del framed
            mean += float(band.total.mean(dtype=np.float64) if detailed else 1) / (BLOCK * 2**level) ** 2
    return np.divide(lost, mean, dtype=np.float64)


def _bands(image: RGB, reference: RGB) -> Iterator[Band]:
    """Yield two oriented subbands per level, finest level first; sides halve (rounded up) from level to level."""
    check_pair(image, reference, smallest=SMALLEST_SIDE)
    band_pass = np.pad(_BAND_PASS, ((0, 3), (0, 0)), mode="reflect")
    band_pass = np.pad(band_pass, ((0, 0), (0, 3)), mode="reflect", reflect_type="odd")
    low_pass = np.pad(_LOW_PASS, (0, 4), mode="reflect")
    first, second = _filtered(gray_levels(image), gray_levels(reference), np.pad(_FIRST_LOW_PASS, (0, 2), "reflect"))
    for level in range(SCALES):
        for kernel in (band_pass, band_pass.T):
            band, reference_band = _filtered(first, second, kernel)
            yield _measure(band, reference_band, 2 ** (SCALES - level) + 1)
        if level < SCALES - 1:
            first, second = _filtered(first, second, low_pass, step=2)


def _measure(band: Plane32, reference: Plane32, window: int) -> Band:
    """Return the information in a subband, from its blocks that are clear of the border."""
    clear = _clear(window)
    band, reference = _whole_blocks(band), _whole_blocks(reference)
    gain, noise = whole(partial(_channel, window=window), band, reference, margin=clear * BLOCK, step=BLOCK)
    energy, variances = _mixture(reference)
    inside = slice(clear, -clear), slice(clear, -clear)
    gain, noise, energy = gain[inside], noise[inside], energy[inside]
    kept = _information(energy * np.square(gain) / (noise + np.float32(EYE_NOISE)), variances)
    return Band(kept, _information(energy / np.float32(EYE_NOISE), variances), noise, clear)


def _channel(band: Plane32, reference: Plane32, window: int) -> Maps:
    """Return the distortion as gain and added noise variance about the center of each block, by regression.

    Zero for blocks with a window that reaches beyond the planes.
    """
    clear = _clear(window)
    rows, columns = (side // BLOCK - 2 * clear for side in band.shape)
    start = BLOCK * clear + BLOCK // 2 - window // 2
    box = (1 / window,) * window

    def mean_of(plane: Plane32) -> Plane32:
        down = correlate(plane[start:], box, axis=0, step=BLOCK)[:rows]
        return correlate(down[:, start:], box, axis=1, step=BLOCK)[:, :columns]

    # One product for each: BLAS rounds columns of one product by their position, so equal planes would differ.
    mean, reference_mean = mean_of(band), mean_of(reference)
    square, reference_square, product = mean_of(band * band), mean_of(reference * reference), mean_of(band * reference)
    variance = _beyond_rounding(square - np.square(mean))
    reference_variance = _beyond_rounding(reference_square - np.square(reference_mean))
    covariance = product - reference_mean * mean
    seen = (reference_variance > 0) & (variance > 0)
    gain = np.where(seen, covariance, 0) / np.where(seen, reference_variance, 1)
    noise = np.maximum(variance - gain * covariance, 0)
    # An inverted gain carries nothing over; the authors' code then takes the window's sum for its mean.
    noise[gain < 0] = variance[gain < 0] * window**2
    return np.pad(np.maximum(gain, 0), clear), np.pad(noise, clear)


def _beyond_rounding(variance: Plane32) -> Plane32:
    """Return a variance, or 0 where it is too small to distinguish from rounding."""
    return np.where(variance > NEGLIGIBLE, variance, np.float32(0))


def _mixture(band: Plane32) -> tuple[Plane32, Plane32]:
    """Return the Gaussian scale mixture of a band: the energy of each block, and their (up to) 9 shared variances."""
    height, width = band.shape
    sums, products = np.zeros(BLOCK**2), np.zeros((BLOCK**2, BLOCK**2))
    rows = max(1, STRIP_PIXELS // width)
    for top in range(0, height - BLOCK + 1, rows):
        strip = band[top : top + rows + BLOCK - 1]
        patches = np.stack([_shifted(strip, offset) for offset in range(BLOCK**2)])
        sums += patches.sum(axis=1, dtype=np.float64)
        products += patches @ patches.T
    count = (height - BLOCK + 1) * (width - BLOCK + 1)
    means = sums / count
    variances, axes = np.linalg.eigh(products / count - np.outer(means, means))
    used = variances > max(NEGLIGIBLE, 1e-6 * variances[-1])
    variances, axes = variances[used], axes[:, used]
    whitening = (axes / np.sqrt(variances * BLOCK**2)).T.astype(np.float32)
    energy = np.empty((height // BLOCK, width // BLOCK), np.float32)
    for top in range(0, len(energy), rows):
        strip = band[top * BLOCK : (top + rows) * BLOCK]
        blocks = np.stack([strip[o // BLOCK :: BLOCK, o % BLOCK :: BLOCK] for o in range(BLOCK**2)])
        along = whitening @ blocks.reshape(BLOCK**2, -1)
        energy[top : top + rows] = np.square(along, out=along).sum(axis=0).reshape(blocks.shape[1:])
    return energy, variances.astype(np.float32)


def _shifted(strip: Plane32, offset: int) -> NDArray[np.float32]:
    """Return one of the nine places of a block, for all blocks that lie inside the strip, overlapping: a vector."""
    row, column = divmod(offset, BLOCK)
    height, width = strip.shape
    return strip[row : height - BLOCK + row + 1, column : width - BLOCK + column + 1].reshape(-1)


def _information(signal: Plane32, variances: Plane32) -> Plane32:
    """Return the bits in each block: the sum of log2(1 + signal x variance) over the variances."""
    bits = np.zeros(signal.shape, np.float32)
    for variance in variances:
        bits += np.log2(1 + signal * variance)
    return bits


def _filtered(first: NDArray[Any], second: NDArray[Any], kernel: Plane, step: int = 1) -> Maps:
    """Return both planes correlated with a square kernel and subsampled, mirrored at the border's pixels."""
    weights = tuple(map(tuple, kernel.tolist()))
    margin = len(kernel) // 2
    return whole(
        partial(_correlate_both, weights=weights, step=step), first, second, margin=margin + margin % step, step=step
    )


def _correlate_both(
    first: NDArray[Any], second: NDArray[Any], weights: tuple[tuple[float, ...], ...], step: int
) -> Maps:
    margin = len(weights) // 2
    results = []
    for plane in (first, second):
        padded = np.pad(plane.astype(np.float32, copy=False), margin, mode="reflect")
        parts = [
            correlate(correlate(padded, column, axis=0, step=step), row, axis=1, step=step)
            for column, row in _separated(weights)
        ]
        results.append(sum(parts[1:], start=parts[0]))
    return tuple(results)


@cache
def _separated(weights: tuple[tuple[float, ...], ...]) -> list[tuple[tuple[float, ...], tuple[float, ...]]]:
    """Return a kernel as a sum of few products of a column and a row, by its singular values."""
    columns, sizes, rows = np.linalg.svd(np.array(weights))
    used = sizes > 1e-9 * sizes[0]
    return [
        (tuple((column * size).tolist()), tuple(row.tolist()))
        for column, size, row in zip(columns.T[used], sizes[used], rows[used], strict=True)
    ]


def _clear(window: int) -> int:
    """Return how many blocks at each border have a window that reaches beyond the plane."""
    return -(-(window // 2) // BLOCK)


def _whole_blocks(plane: Plane32) -> Plane32:
    height, width = plane.shape
    return plane[: height - height % BLOCK, : width - width % BLOCK]


TOOL = Tool(
    name="VIF",
    kind="FR",
    higher_is_better=True,
    raw_range=(0.0, 1.0),
    description="The share of the reference's visual information that is preserved.",
    source="Sheikh and Bovik 2006, IEEE TIP 15(2)",
    cost_ms=56,
    measure=vif,
    map=vif_map,
    map_end=1.4,
    smallest=SMALLEST_SIDE,
)
