"""Predict the mask of an image's subject with U2-Net small, and derive the boxes of subject and background.

X. Qin, Z. Zhang, C. Huang, M. Dehghan, O. R. Zaiane, M. Jagersand, "U2-Net: Going deeper with nested U-structure for
salient object detection", Pattern Recognition 106 (2020). The network is the authors' u2netp as an ONNX file of 4.6 MB.
"""

from pathlib import Path

import numpy as np
import scipy
from numpy.typing import NDArray
from PIL import Image

from agenticiqa.programs.images.regions import in_pixels
from agenticiqa.programs.tools.numerics.networks import run_network
from agenticiqa.programs.tools.shared import Measurable, shared
from agenticiqa.programs.tools.statistics.parts import working_copy
from agenticiqa.signatures.types import Box

NETWORK = Path(__file__).with_name("u2netp.onnx")
SHA256 = "309c8469258dda742793dce0ebea8e6dd393174f89934733ecc8b14c76f4ddd8"
FUSED = "1959"  # the network's output that fuses its six side outputs
SIDE = 320  # pixels: the input size of the training, for any shape of image
MEAN, SPREAD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # ImageNet's, of red, green, blue in 0..1

SUBJECT_FROM = 0.5
LEAST_SUBJECT = 0.005  # share of the image; a smaller part is a speck
COMPANION = 0.25  # share of the largest part; a smaller part does not belong to the subject
BACKGROUND_BELOW = 0.2
LEAST_BACKGROUND = 0.25  # share of the image
CELL = 8  # pixels of the mask, the grid for the search of free rectangles

Mask = NDArray[np.float32]


@shared
def saliency(image: Measurable) -> Mask:
    """Return how salient each part of an image is: float32 of shape (320, 320), 0..1, over the whole image.

    Raises ToolError when the network's file is damaged.
    """
    pixels = working_copy(image)
    small = Image.fromarray(pixels).resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    scaled = np.asarray(small, dtype=np.float32)
    scaled = scaled / max(float(scaled.max()), 1.0)
    mean, spread = np.array(MEAN, np.float32), np.array(SPREAD, np.float32)
    inputs: NDArray[np.float32] = ((scaled - mean) / spread).transpose(2, 0, 1)[None]
    mask: Mask = run_network(NETWORK, SHA256, FUSED, inputs)[0, 0]
    mask.flags.writeable = False
    return mask


def subject_box(seen: Mask, size: tuple[int, int]) -> Box | None:
    """Return the box around the subject in an image of ``size`` (width, height); ``None`` when nothing is salient.

    The largest connected part with a saliency of at least 0.5, together with parts of at least a quarter of its area:
    two people side by side are one subject.
    """
    parts, count = scipy.ndimage.label(seen >= SUBJECT_FROM)
    areas = np.bincount(parts.ravel(), minlength=count + 1)[1:]
    if not count or areas.max() < LEAST_SUBJECT * seen.size:
        return None
    chosen = np.isin(parts, 1 + np.flatnonzero(areas >= COMPANION * areas.max()))
    rows, columns = np.flatnonzero(chosen.any(axis=1)), np.flatnonzero(chosen.any(axis=0))
    return in_pixels((columns[0], rows[0], columns[-1] + 1, rows[-1] + 1), size, len(seen))


def background_box(seen: Mask, size: tuple[int, int]) -> Box | None:
    """Return the largest rectangle beside the subject in an image of ``size`` (width, height).

    ``None`` when it is less than a quarter of the image, or when there is no subject.
    """
    if subject_box(seen, size) is None:
        return None
    cells = len(seen) // CELL
    free = seen.reshape(cells, CELL, cells, CELL).max(axis=(1, 3)) < BACKGROUND_BELOW
    left, top, right, bottom = largest_rectangle(free)
    if (right - left) * (bottom - top) < LEAST_BACKGROUND * free.size:
        return None
    return in_pixels((left, top, right, bottom), size, cells)


def largest_rectangle(free: NDArray[np.bool_]) -> Box:
    """Return the largest rectangle of ``True`` in a small grid (H, W): left, top, right, bottom, all 0 without any.

    If several are as large, return the uppermost, then the flattest, then the leftmost.
    """
    best, area = (0, 0, 0, 0), 0
    for top in range(len(free)):
        columns = np.ones(free.shape[1], bool)
        for bottom in range(top + 1, len(free) + 1):
            columns &= free[bottom - 1]
            edges = np.flatnonzero(np.diff(columns, prepend=False, append=False))
            starts, stops = edges[::2], edges[1::2]
            if not len(starts):
                break
            longest = int(np.argmax(stops - starts))
            left, right = int(starts[longest]), int(stops[longest])
            if (right - left) * (bottom - top) > area:
                best, area = (left, top, right, bottom), (right - left) * (bottom - top)
    return best
