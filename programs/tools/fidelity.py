"""Fidelity to a reference by error and by structure: PSNR, SSIM and MS-SSIM. Higher is better for all three."""

import numpy as np

from agenticiqa.programs.tools.maps import shrink
from agenticiqa.programs.tools.pixels import RGB, Plane, check_pair, filter_valid, gaussian, grey

PSNR_CAP = 100.0
WINDOW_SIDE = 11
STRIP_ROWS = 128
MS_SSIM_WEIGHTS = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)


def psnr(image: RGB, reference: RGB) -> float:
    """Peak signal-to-noise ratio in dB over all three channels, 10 log10(255^2 / MSE).

    From 0 (black against white) to the cap of 100 dB, which identical images get and which a few single grey levels
    in a very large image could otherwise pass. Symmetric. Any size.

    Raises ToolError for a pair that is not two uint8 RGB images of one size.
    """
    check_pair(image, reference)
    squares = [np.square(image[..., c].astype(np.int32) - reference[..., c]).mean() for c in range(3)]
    error = float(np.mean(squares))
    return min(PSNR_CAP, 10 * float(np.log10(255**2 / error))) if error > 0 else PSNR_CAP


def ssim(image: RGB, reference: RGB) -> float:
    """Structural similarity of the grey levels, at full resolution (no automatic downsampling).

    -1..1, 1 for equal grey levels; colour is not seen. Symmetric. Gaussian window of 11 x 11 with sigma 1.5, wholly
    inside the image; K1 = 0.01, K2 = 0.03 (Wang et al., "Image quality assessment: from error visibility to
    structural similarity", IEEE TIP 13(4), 2004, eq. 13).

    Raises ToolError as psnr does, and for sides under 11 pixels.
    """
    check_pair(image, reference, smallest=WINDOW_SIDE)
    return _structure(grey(image), grey(reference))[0]


def ms_ssim(image: RGB, reference: RGB) -> float:
    """Multi-scale SSIM of the grey levels: 0..1, 1 for equal grey levels. Symmetric.

    The product over five scales of what ms_ssim_terms gives, each raised to its weight (Wang, Simoncelli and Bovik,
    "Multiscale structural similarity for image quality assessment", Asilomar 2003, eq. 7). A scale whose structure
    is negatively correlated on the whole counts as zero, since its power would not be a real number.

    Raises ToolError as psnr does, and for sides under 176 pixels, which leave the window no room at the last scale.
    """
    terms = np.maximum(ms_ssim_terms(image, reference), 0)
    return float(np.prod(terms ** np.array(MS_SSIM_WEIGHTS)))


def ms_ssim_terms(image: RGB, reference: RGB) -> Plane:
    """What MS-SSIM combines, from the finest of five scales to the coarsest: shape (5,), each -1..1.

    Mean contrast and structure, at the last scale with luminance as well. From scale to scale the planes are halved
    by averaging 2 x 2 pixels. Raises ToolError as ms_ssim does.
    """
    scales = len(MS_SSIM_WEIGHTS)
    check_pair(image, reference, smallest=WINDOW_SIDE * 2 ** (scales - 1))
    first, second = grey(image), grey(reference)
    terms = []
    for _ in range(scales - 1):
        terms.append(_structure(first, second)[1])
        first, second = shrink(first, 2, border="edge"), shrink(second, 2, border="edge")
    terms.append(_structure(first, second)[0])
    return np.array(terms)


def _structure(first: Plane, second: Plane) -> tuple[float, float]:
    """Mean SSIM, and the mean of its contrast-and-structure factor alone; strip by strip to bound the memory."""
    rows = first.shape[0] - WINDOW_SIDE + 1
    totals = np.zeros(2)
    for top in range(0, rows, STRIP_ROWS):
        strip = slice(top, top + STRIP_ROWS + WINDOW_SIDE - 1)
        totals += _structure_sums(first[strip], second[strip])
    similarity, structure = totals / (rows * (first.shape[1] - WINDOW_SIDE + 1))
    return float(similarity), float(structure)


def _structure_sums(first: Plane, second: Plane) -> tuple[float, float]:
    c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    window = gaussian(WINDOW_SIDE, 1.5)
    mean1, mean2 = filter_valid(first, window), filter_valid(second, window)
    squares, product = mean1**2 + mean2**2, mean1 * mean2
    variances = filter_valid(first**2 + second**2, window) - squares
    covariance = filter_valid(first * second, window) - product
    structure = (2 * covariance + c2) / (variances + c2)
    luminance = (2 * product + c1) / (squares + c1)
    return (luminance * structure).sum(), structure.sum()
