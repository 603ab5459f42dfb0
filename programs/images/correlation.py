"""Correlate planes of gray levels: their structure, the best place of one in another, and a shift between two.

Sources: J. P. Lewis, "Fast normalized cross-correlation", 1995; D. Padfield, "Masked object registration in the Fourier
domain", IEEE TIP 21(5), 2012; C. D. Kuglin and D. C. Hines, "The phase correlation image alignment method", 1975.
"""

import math
from functools import lru_cache

import numpy as np
import scipy  # its parts load when they are first used: without a reference none of them is
from numpy.typing import NDArray

Plane = NDArray[np.floating]

LEAST_OVERLAP = 0.3  # of the smaller picture's area
CONTRAST_FLOOR = 2.0  # gray levels: weaker structure is damped, as it may be noise
FINE, BROAD = 0.7, 6.0  # pixels of a small copy: the structure that is compared, as standard deviations
LOW_PASS = 0.12  # cycles per pixel: standard deviation of the weights of the phase correlation


def structure(plane: Plane) -> Plane:
    """Detail between two sizes over its own local contrast: (H, W) gray levels in, values about 1 in size out."""
    detail = scipy.ndimage.gaussian_filter(plane, FINE) - scipy.ndimage.gaussian_filter(plane, BROAD)
    contrast = np.sqrt(scipy.ndimage.gaussian_filter(detail * detail, BROAD))
    if contrast.max() < CONTRAST_FLOOR / 4:
        return np.zeros_like(detail)
    return np.asarray(detail / (contrast + CONTRAST_FLOOR))


def correlation(first: Plane, second: Plane) -> float:
    """The correlation of two planes of structure of one shape, -1 to 1."""
    return float((first * second).sum() / math.sqrt(float((first**2).sum() * (second**2).sum()) + 1e-9))


def phase_shift(image: Plane, reference: Plane) -> tuple[float, float, float]:
    """By how many pixels ``image`` is shifted right and down against ``reference``, and how sure that is, 0 to 1.

    Both are planes of one shape. Fine detail, which distortions change most, has little weight.
    """
    window = _hann(image.shape[0], image.shape[1])
    spectra = [scipy.fft.rfft2((plane - plane.mean()) * window) for plane in (image, reference)]
    cross = spectra[0] * np.conj(spectra[1])
    size = np.abs(cross)
    weights = _low_pass(image.shape[0], image.shape[1])
    surface = scipy.fft.irfft2(cross / (size + 1e-3 * size.mean() + 1e-12) * weights, s=image.shape)
    # The transform of real planes has half of the spectrum; its last column has next to no weight.
    surface *= image.size / float(weights[:, 0].sum() + 2 * weights[:, 1:].sum())
    row, column = divmod(int(surface.argmax()), image.shape[1])
    across, down = surface[row], surface[:, column]
    return _peak(across, column), _peak(down, row), min(1.0, max(0.0, float(surface[row, column])))


def best_place(small: Plane, large: Plane) -> tuple[float, float, float]:
    """The normalized correlation of two planes of structure at their best place, and that place in the second."""
    shape = [scipy.fft.next_fast_len(a + b - 1, real=True) for a, b in zip(small.shape, large.shape, strict=True)]

    def spectrum(plane: Plane) -> NDArray[np.complexfloating]:
        return np.asarray(scipy.fft.rfft2(plane, s=shape))

    def correlated(first: NDArray[np.complexfloating], second: NDArray[np.complexfloating]) -> Plane:
        return np.asarray(scipy.fft.irfft2(second * np.conj(first), s=shape))

    ones = spectrum(np.ones_like(small)), spectrum(np.ones_like(large))
    count = correlated(*ones)
    energies = correlated(spectrum(small**2), ones[1]), correlated(ones[0], spectrum(large**2))
    product = correlated(spectrum(small), spectrum(large))
    floor = 1e-3 * np.maximum(count, 1)
    found = product / np.sqrt(np.maximum(energies[0], floor) * np.maximum(energies[1], floor))
    found[count < LEAST_OVERLAP * min(small.size, large.size)] = -1
    row, column = divmod(int(found.argmax()), found.shape[1])
    top = row if row < large.shape[0] else row - shape[0]
    left = column if column < large.shape[1] else column - shape[1]
    return float(found[row, column]), left, top


def _peak(line: Plane, index: int) -> float:
    """The place of the peak of a circular line at an index, between samples, as a signed offset."""
    before, here, after = (math.log(max(float(line[(index + step) % len(line)]), 1e-3)) for step in (-1, 0, 1))
    bend = before - 2 * here + after
    offset = (before - after) / (2 * bend) if bend < 0 else 0.0
    return (index - len(line) if index > len(line) // 2 else index) + min(max(offset, -0.5), 0.5)


@lru_cache(maxsize=16)
def _hann(height: int, width: int) -> Plane:
    return np.outer(np.hanning(height + 2)[1:-1], np.hanning(width + 2)[1:-1]).astype(np.float32)


@lru_cache(maxsize=16)
def _low_pass(height: int, width: int) -> Plane:
    squares = scipy.fft.fftfreq(height)[:, None] ** 2 + scipy.fft.rfftfreq(width)[None] ** 2
    weights = np.exp(-squares / (2 * LOW_PASS**2)).astype(np.float32)
    weights[0, 0] = 0
    return weights
