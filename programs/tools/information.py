"""VIF: how much of the information that an eye could draw from the reference is left in the image."""

from collections.abc import Iterator

import numpy as np
import scipy

from agenticiqa.programs.tools.pixels import RGB, Plane, check_pair, grey

SMALLEST_SIDE = 65
LEVELS = 4
BLOCK = 3
EYE_NOISE = 0.4
NEGLIGIBLE = 1e-10

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


def vif(image: RGB, reference: RGB) -> float:
    """Visual information fidelity of the grey levels, in the wavelet domain.

    0 (nothing left) to 1 (equal); above 1 where the contrast was raised cleanly, which no other metric here rewards.
    Not symmetric. Sheikh and Bovik, "Image information and visual quality", IEEE TIP 15(2), 2006, in the
    authors' setting: the horizontal and vertical subbands of four pyramid levels, Gaussian scale mixtures over
    blocks of 3 x 3 coefficients, variance of the eye's noise 0.4. A reference without any detail has no information
    to lose; the value is then the formula's limit for faint detail that is passed on with gain 1: 1 for an image
    without detail too, towards 0 the stronger what was added to it.

    Raises ToolError for a pair that is not two uint8 RGB images of one size, and for sides under 65 pixels, which
    leave the coarsest level no block that is clear of the border.
    """
    check_pair(image, reference, smallest=SMALLEST_SIDE)
    kept = total = 0.0
    limits = []
    for index, (band, reference_band) in enumerate(zip(_bands(grey(image)), _bands(grey(reference)), strict=True)):
        window = 2 ** (LEVELS - index // 2) + 1
        clear = -(-(window // 2) // BLOCK)
        inside = slice(clear, -clear), slice(clear, -clear)
        gain, noise = (values[inside] for values in _channel(reference_band, band, window))
        energy, variances = _mixture(reference_band)
        energy = energy[inside]
        kept += _information(energy * gain**2 / (noise + EYE_NOISE), variances)
        total += _information(energy / EYE_NOISE, variances)
        limits.append(float(EYE_NOISE / (EYE_NOISE + band.var())))
    return kept / total if total > 0 else float(np.mean(limits))


def _bands(plane: Plane) -> Iterator[Plane]:
    """Two oriented subbands per level, finest level first; sides halve (rounded up) from level to level."""
    band_pass = np.pad(_BAND_PASS, ((0, 3), (0, 0)), mode="reflect")
    band_pass = np.pad(band_pass, ((0, 0), (0, 3)), mode="reflect", reflect_type="odd")
    plane = scipy.ndimage.correlate(plane, np.pad(_FIRST_LOW_PASS, (0, 2), mode="reflect"), mode="mirror")
    for level in range(LEVELS):
        yield scipy.ndimage.correlate(plane, band_pass, mode="mirror")
        yield scipy.ndimage.correlate(plane, band_pass.T, mode="mirror")
        if level < LEVELS - 1:
            plane = scipy.ndimage.correlate(plane, np.pad(_LOW_PASS, (0, 4), mode="reflect"), mode="mirror")[::2, ::2]


def _channel(reference: Plane, band: Plane, window: int) -> tuple[Plane, Plane]:
    """The distortion as gain and added noise variance about the centre of each block, by regression."""
    reference, band = _whole_blocks(reference), _whole_blocks(band)
    mean, reference_mean = _local_mean(band, window), _local_mean(reference, window)
    variance = np.maximum(_local_mean(band**2, window) - mean**2, 0)
    reference_variance = np.maximum(_local_mean(reference**2, window) - reference_mean**2, 0)
    covariance = _local_mean(reference * band, window) - reference_mean * mean
    seen = (reference_variance > NEGLIGIBLE) & (variance > NEGLIGIBLE)
    gain = np.where(seen, covariance, 0) / np.where(seen, reference_variance, 1)
    noise = np.maximum(variance - gain * covariance, 0)
    # An inverted gain carries nothing over; the authors' code then takes the window's sum for its mean.
    noise[gain < 0] = variance[gain < 0] * window**2
    return np.maximum(gain, 0), noise


def _mixture(band: Plane) -> tuple[Plane, Plane]:
    """Gaussian scale mixture of the band's blocks: energy of each block, and the (up to) 9 variances they share."""
    band = _whole_blocks(band)
    height, width = band.shape
    offsets = [(row, column) for row in range(BLOCK) for column in range(BLOCK)]
    patches = [band[r : height - BLOCK + r + 1, c : width - BLOCK + c + 1] for r, c in offsets]
    means = np.array([patch.mean() for patch in patches])
    products = [[np.einsum("ij,ij->", first, second) for second in patches] for first in patches]
    variances, axes = np.linalg.eigh(np.array(products) / patches[0].size - np.outer(means, means))
    used = variances > max(NEGLIGIBLE, 1e-12 * variances[-1])
    variances, axes = variances[used], axes[:, used]
    blocks = np.stack([band[r::BLOCK, c::BLOCK] for r, c in offsets])
    along = np.tensordot(axes / np.sqrt(variances), blocks, axes=(0, 0))
    return np.square(along, out=along).sum(axis=0) / BLOCK**2, variances


def _information(signal: Plane, variances: Plane) -> float:
    """Bits in all blocks: the sum of log2(1 + signal x variance) over blocks and variances."""
    return float(sum(np.log2(1 + signal * variance).sum() for variance in variances))


def _local_mean(plane: Plane, window: int) -> Plane:
    """Mean over a square window about the centre of each block."""
    return scipy.ndimage.uniform_filter(plane, window, mode="mirror")[BLOCK // 2 :: BLOCK, BLOCK // 2 :: BLOCK]


def _whole_blocks(plane: Plane) -> Plane:
    height, width = plane.shape
    return plane[: height - height % BLOCK, : width - width % BLOCK]
