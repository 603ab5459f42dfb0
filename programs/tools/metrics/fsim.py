"""FSIM with color (FSIMc): similarity to a reference of visually salient features. Higher is better."""

import math
from functools import lru_cache, partial

import numpy as np
import scipy
from numpy.typing import NDArray

from agenticiqa.programs.tools.numerics.filters import Maps, Plane32
from agenticiqa.programs.tools.numerics.pixels import RGB, YIQ_WEIGHTS, Plane, check_pair
from agenticiqa.programs.tools.numerics.similarity import (
    SCHARR,
    color_planes,
    dissimilarity,
    framed,
    gradient_magnitude,
    pool,
    shrink,
    spread,
    working_factor,
)
from agenticiqa.programs.tools.tool import Tool

SMALLEST_SIDE = 8
T1, T2, T3 = 0.85, 160, 200  # constants of phase congruency, of gradients, of chroma
CHROMA_EXPONENT = 0.03
# Of phase congruency:
SCALES = 4
ORIENTATIONS = 4
SHORTEST_WAVELENGTH = 6
SIGMA_ON_FREQUENCY = 0.55
SIGMA_ON_ANGLE = math.pi / (1.2 * ORIENTATIONS)
NOISE_DEVIATIONS = 2
NOISE_OVERESTIMATE = 1.7


def fsim(image: RGB, reference: RGB) -> float:
    """Return the feature similarity with color (FSIMc).

    Similarity of phase congruency, of Scharr gradients of luma, and (with exponent 0.03) of the chroma planes I and
    Q, weighted by phase congruency, so that it counts where the eye looks for structure; the plain mean where
    neither image has any. The images are first reduced to a shorter side of about 256 pixels by block means.
    Source: Zhang, Zhang, Mou and Zhang, "FSIM: a feature similarity index for image quality assessment", IEEE TIP
    20(8), 2011; T1 0.85, T2 160, T3 = T4 = 200.

    Args:
        image: uint8 RGB, shape (H, W, 3), sides of at least 8 pixels.
        reference: The pristine image, of the same kind and size.

    Returns:
        In practice 0..1, higher is better: 1 for identical images. Symmetric.

    Raises:
        ToolError: An array is of another kind, the sizes differ, or a side is under 8 pixels.
    """
    check_pair(image, reference, smallest=SMALLEST_SIDE)
    return 1 - pool(*_losses(image, reference, working_factor(image.shape)))


def fsim_map(image: RGB, reference: RGB) -> Plane:
    """1 - similarity of the features, weighted as FSIM weights it, at its resolution: the mean is about 1 - FSIM.

    Raises ToolError as ``fsim``.
    """
    check_pair(image, reference, smallest=SMALLEST_SIDE)
    factor = working_factor(image.shape)
    return spread(*framed(partial(_losses, factor=factor), image, reference, factor))


def _losses(image: RGB, reference: RGB, factor: int) -> Maps:
    """Return 1 - similarity, and the weights."""
    (y1, i1, q1), (y2, i2, q2) = (color_planes(shrink(rgb, factor), YIQ_WEIGHTS) for rgb in (image, reference))
    congruency1, congruency2 = phase_congruency([y1, y2])
    kept = 1 - dissimilarity(congruency1, congruency2, T1)
    kept *= 1 - dissimilarity(gradient_magnitude(y1, SCHARR), gradient_magnitude(y2, SCHARR), T2)
    chroma = (1 - dissimilarity(i1, i2, T3)) * (1 - dissimilarity(q1, q2, T3))
    # Opposite hues make the product negative; the authors keep the real part of its complex power.
    turn = np.where(chroma < 0, np.float32(np.cos(CHROMA_EXPONENT * np.pi)), np.float32(1))
    kept *= np.abs(chroma) ** np.float32(CHROMA_EXPONENT) * turn
    return 1 - kept, np.maximum(congruency1, congruency2)


def phase_congruency(planes: list[Plane32]) -> list[Plane32]:
    """Return the phase congruency of planes of one shape (H, W), sides at least 2: maps of that shape in 0..1.

    Unlike a gradient it does not depend on contrast. Measured with log-Gabor filters, less the estimated response to
    noise, in the setting of the FSIM paper: four scales in octaves from a wavelength of 6 pixels, four orientations. A
    flat plane has none anywhere.
    Source: Kovesi, "Image features from phase congruency", Videre 1(3), 1999.
    """
    radial, angular, noise_gains = _log_gabor(planes[0].shape)
    result = []
    for plane in planes:
        spectrum = scipy.fft.fft2(plane - plane.mean(dtype=np.float64).astype(np.float32))
        amplitude = np.full(plane.shape, 1e-12, np.float32)
        energy = np.zeros(plane.shape, np.float32)
        for direction, noise_gain in zip(angular, noise_gains, strict=True):
            turned = spectrum * direction
            responses = [scipy.fft.ifft2(turned * band, overwrite_x=True) for band in radial]
            sizes = [np.sqrt(np.square(response.real) + np.square(response.imag)) for response in responses]
            for size in sizes:
                amplitude += size
            threshold = _noise_threshold(sizes[0], noise_gain)
            energy += np.maximum(_local_energy(responses) - threshold, 0)
        result.append(np.divide(energy, amplitude, out=energy))
    return result


def _local_energy(responses: list[NDArray[np.complex64]]) -> Plane32:
    """Return the sum over scales of amplitude x (cosine - |sine|) of the deviation from the mean phase."""
    mean = np.sum(responses, axis=0)
    size = np.sqrt(np.square(mean.real) + np.square(mean.imag))
    mean /= size + np.float32(1e-4)
    # The cosines add up to the projection of the responses' sum on its own direction.
    energy: Plane32 = size * np.sqrt(np.square(mean.real) + np.square(mean.imag))
    for response in responses:
        energy -= np.abs(response.imag * mean.real - response.real * mean.imag)
    return energy


def _noise_threshold(finest: Plane32, noise_gain: float) -> np.float32:
    """Return an energy that noise rarely exceeds. The finest scale has mostly noise, with a Rayleigh amplitude."""
    power = float(np.median(finest)) ** 2 / math.log(2)
    tau = math.sqrt(power * noise_gain)
    spread = math.sqrt(math.pi / 2) + NOISE_DEVIATIONS * math.sqrt(2 - math.pi / 2)
    return np.float32(tau * spread / NOISE_OVERESTIMATE)


@lru_cache(maxsize=2)
def _log_gabor(shape: tuple[int, ...]) -> tuple[list[Plane32], list[Plane32], list[float]]:
    """Return transfer functions, zero frequency first, as a factor for each scale times one for each orientation.

    Also, for each orientation, the power of the sum of its scales' responses to noise over that of the finest.
    """
    down, across = (_frequencies(side) for side in shape)
    radius = np.hypot(down[:, None], across[None, :])
    angle = np.arctan2(-down[:, None], across[None, :])
    low_pass = 1 / (1 + (radius / 0.45) ** 30)
    radius[0, 0] = 1
    logarithm = np.log(radius)
    width = 2 * math.log(SIGMA_ON_FREQUENCY) ** 2
    wavelengths = [SHORTEST_WAVELENGTH * 2**scale for scale in range(SCALES)]
    radial = [np.exp(-((logarithm + math.log(length)) ** 2) / width) * low_pass for length in wavelengths]
    for band in radial:
        band[0, 0] = 0
    angular, gains = [], []
    for orientation in range(ORIENTATIONS):
        turned = angle - orientation * math.pi / ORIENTATIONS
        distance = np.abs((turned + math.pi) % (2 * math.pi) - math.pi)
        direction = np.exp(-(distance**2) / (2 * SIGMA_ON_ANGLE**2))
        # The filters' responses to noise are correlated between scales; Parseval gives the power of their sum.
        pooled = sum(radial) * direction
        even = (pooled + np.roll(pooled[::-1, ::-1], 1, axis=(0, 1))) / 2
        gains.append(float(np.square(even).sum() / np.square(radial[0] * direction).sum()))
        angular.append(direction.astype(np.float32))
    return [band.astype(np.float32) for band in radial], angular, gains


def _frequencies(side: int) -> Plane:
    """Return cycles per pixel from 0, in FFT order; an odd side reaches 0.5 as well, as in Kovesi's code."""
    frequencies: Plane = scipy.fft.ifftshift((np.arange(side) - side // 2) / (side - side % 2))
    return frequencies


TOOL = Tool(
    name="FSIM",
    kind="FR",
    higher_is_better=True,
    raw_range=(0.5, 1.0),
    description="Similarity of phase congruency and gradient magnitude.",
    source="Zhang et al. 2011, IEEE TIP 20(8)",
    cost_ms=34,
    measure=fsim,
    map=fsim_map,
    map_end=0.45,
    smallest=SMALLEST_SIDE,
)
