"""All single-distortion measures of an image at once, each plain number known by its name.

Up to two megapixels the whole image is read. A larger one is never scaled down, which would hide noise and blocking:
the spatial measures are averaged over nine tiles of 448 x 448 pixels spread evenly over it, at its own resolution, and
the tonal ones read at most 1,500 evenly spaced rows and columns.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from types import MappingProxyType
from weakref import WeakKeyDictionary

import numpy as np

from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.tools.pixels import RGB
from agenticiqa.programs.tools.spatial import (
    blockiness,
    blur_extent,
    edge_sharpness,
    isolated_pixels,
    noise_sigma,
    overshoot,
)
from agenticiqa.programs.tools.tonal import (
    clipped_bright,
    clipped_dark,
    color_cast,
    colorfulness,
    highlight_level,
    mean_luma,
    red_tint,
    rms_contrast,
    shadow_level,
    tonal_range,
    yellow_tint,
)

WHOLE_PIXELS = 2_000_000
TILE = 448
TILES_PER_SIDE = 3
TONE_SAMPLES_PER_SIDE = 1500

SPATIAL: dict[str, Callable[[RGB], float]] = {
    "blur_extent": blur_extent,
    "noise_sigma": noise_sigma,
    "isolated_pixels": isolated_pixels,
    "blockiness": blockiness,
    "edge_sharpness": edge_sharpness,
    "overshoot": overshoot,
}
TONAL: dict[str, Callable[[RGB], float]] = {
    "mean_luma": mean_luma,
    "shadow_level": shadow_level,
    "highlight_level": highlight_level,
    "clipped_dark": clipped_dark,
    "clipped_bright": clipped_bright,
    "rms_contrast": rms_contrast,
    "tonal_range": tonal_range,
    "colorfulness": colorfulness,
    "color_cast": color_cast,
    "red_tint": red_tint,
    "yellow_tint": yellow_tint,
}

_measured: WeakKeyDictionary[LoadedImage, Future[Mapping[str, float]]] = WeakKeyDictionary()
_lock = threading.Lock()


def measure(image: LoadedImage) -> Mapping[str, float]:
    """Every measure of SPATIAL and TONAL by name, read-only; taken once per loaded image, also under threads."""
    with _lock:
        future = _measured.get(image)
        mine = future is None
        if future is None:
            future = _measured[image] = Future()
    if mine:
        try:
            future.set_result(MappingProxyType(_measure_pixels(image.pixels)))
        except BaseException as error:  # also an interrupt: threads that wait for the result must not hang
            with _lock:
                del _measured[image]
            future.set_exception(error)
    return future.result()


def _measure_pixels(pixels: RGB) -> dict[str, float]:
    tiles = list(_tiles(pixels))
    spatial = {name: float(np.mean([take(tile) for tile in tiles])) for name, take in SPATIAL.items()}
    spaced = _spaced(pixels)
    return spatial | {name: take(spaced) for name, take in TONAL.items()}


def _tiles(pixels: RGB) -> Iterator[RGB]:
    height, width = pixels.shape[:2]
    if height * width <= WHOLE_PIXELS:
        yield pixels
        return
    for top in _tile_starts(height):
        for left in _tile_starts(width):
            yield pixels[top : top + TILE, left : left + TILE]


def _tile_starts(side: int) -> list[int]:
    count = min(TILES_PER_SIDE, -(-side // TILE))
    return [int(start) for start in np.linspace(0, max(side - TILE, 0), count)]


def _spaced(pixels: RGB) -> RGB:
    height, width = pixels.shape[:2]
    if height * width <= WHOLE_PIXELS:
        return pixels
    return pixels[:: -(-height // TONE_SAMPLES_PER_SIDE), :: -(-width // TONE_SAMPLES_PER_SIDE)]
