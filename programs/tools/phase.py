"""Phase congruency: where an image's Fourier components agree in phase, as they do at edges, lines and corners."""

import math
from collections.abc import Iterator

import numpy as np
import scipy
from numpy.typing import NDArray

from agenticiqa.programs.tools.pixels import Plane

SCALES = 4
ORIENTATIONS = 4
SHORTEST_WAVELENGTH = 6
SIGMA_ON_FREQUENCY = 0.55
SIGMA_ON_ANGLE = math.pi / (1.2 * ORIENTATIONS)
NOISE_DEVIATIONS = 2
NOISE_OVERESTIMATE = 1.7


def phase_congruency(planes: list[Plane]) -> list[Plane]:
    """Phase congruency of each plane, all of one shape (H, W) with sides of at least 2: maps of that shape in 0..1.

    Unlike a gradient it does not depend on contrast. Measured with log-Gabor filters, less what noise would give
    (Kovesi, "Image features from phase congruency", Videre 1(3), 1999), in the setting of the FSIM paper: four
    scales from a wavelength of 6 pixels in octaves, four orientations. A flat plane has none anywhere.
    """
    spectra = [scipy.fft.fft2(plane) for plane in planes]
    energies = [np.zeros(plane.shape) for plane in planes]
    amplitudes = [np.zeros(plane.shape) for plane in planes]
    for filters in _log_gabor(planes[0].shape):
        pooled = filters.sum(axis=0)
        # The filters' responses to noise are correlated between scales; Parseval gives the power of their sum.
        even = (pooled + np.roll(pooled[::-1, ::-1], 1, axis=(0, 1))) / 2
        noise_gain = np.square(even).sum() / np.square(filters[0]).sum()
        for spectrum, energy, amplitude in zip(spectra, energies, amplitudes, strict=True):
            responses = scipy.fft.ifft2(spectrum * filters)
            amplitude += np.abs(responses).sum(axis=0)
            energy += np.maximum(_local_energy(responses) - _noise_threshold(responses[0], noise_gain), 0)
    return [energy / (amplitude + 1e-12) for energy, amplitude in zip(energies, amplitudes, strict=True)]


def _local_energy(responses: NDArray[np.complex128]) -> Plane:
    """Sum over scales of amplitude x (cosine - |sine|) of the deviation from the mean phase."""
    mean = responses.sum(axis=0)
    mean /= np.abs(mean) + 1e-4
    aligned = responses * mean.conj()
    return (aligned.real - np.abs(aligned.imag)).sum(axis=0)


def _noise_threshold(finest: NDArray[np.complex128], noise_gain: float) -> float:
    """Energy that noise alone would rarely pass: the finest scale sees mostly noise, whose amplitude is Rayleigh's."""
    power = float(np.median(np.abs(finest) ** 2)) / math.log(2)
    tau = math.sqrt(power * noise_gain)
    return tau * (math.sqrt(math.pi / 2) + NOISE_DEVIATIONS * math.sqrt(2 - math.pi / 2)) / NOISE_OVERESTIMATE


def _log_gabor(shape: tuple[int, ...]) -> Iterator[Plane]:
    """For each orientation the transfer functions of its scales, (SCALES, H, W), zero frequency first."""
    down, across = (_frequencies(side) for side in shape)
    radius = np.hypot(down[:, None], across[None, :])
    angle = np.arctan2(-down[:, None], across[None, :])
    low_pass = 1 / (1 + (radius / 0.45) ** 30)
    radius[0, 0] = 1
    width = 2 * math.log(SIGMA_ON_FREQUENCY) ** 2
    wavelengths = [SHORTEST_WAVELENGTH * 2**scale for scale in range(SCALES)]
    radial = np.stack([np.exp(-(np.log(radius * length) ** 2) / width) * low_pass for length in wavelengths])
    radial[:, 0, 0] = 0
    for orientation in range(ORIENTATIONS):
        turned = angle - orientation * math.pi / ORIENTATIONS
        distance = np.abs((turned + math.pi) % (2 * math.pi) - math.pi)
        yield radial * np.exp(-(distance**2) / (2 * SIGMA_ON_ANGLE**2))


def _frequencies(side: int) -> Plane:
    """Cycles per pixel from 0, in the order of the FFT; an odd side reaches 0.5 as well, as in Kovesi's code."""
    return scipy.fft.ifftshift((np.arange(side) - side // 2) / (side - side % 2))
