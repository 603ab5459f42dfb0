"""Pixels as the program has them, loaded images, and PNG files that Pillow cannot write."""

import struct
import zlib
from pathlib import Path

import numpy as np
import skimage.data
from PIL import Image

from agenticiqa.programs.images import LoadedImage, load


def loaded(pixels: np.ndarray) -> LoadedImage:
    """Return an image of these pixels, uint8 RGB (H, W, 3) or gray (H, W)."""
    return load(Image.fromarray(pixels))


def as_gray(plane: np.ndarray) -> np.ndarray:
    """Return a plane of gray levels (H, W), rounded and clipped, as RGB pixels."""
    return np.repeat(np.clip(np.rint(plane), 0, 255).astype(np.uint8)[..., None], 3, axis=2)


def coffee() -> np.ndarray:
    """Return a part of a sharp photo, (240, 320, 3)."""
    return np.ascontiguousarray(skimage.data.coffee()[:240, 120:440])


def album_of_squares(folder: Path, images: int) -> Path:
    """Write this many small images of random squares, each different, into a new folder."""
    folder.mkdir()
    random = np.random.default_rng(7)
    for number in range(images):
        pixels = random.integers(0, 256, (8, 8, 3), dtype=np.uint8)
        Image.fromarray(pixels).resize((64, 64)).save(folder / f"{number:02}.png")
    return folder


def raw_png(width: int, height: int, depth: int, color: int, rows: bytes, extra: tuple[bytes, bytes] | None) -> bytes:
    """Return a PNG that Pillow cannot write: ``rows`` are unfiltered samples."""
    stride = len(rows) // height
    lines = b"".join(b"\0" + rows[i : i + stride] for i in range(0, len(rows), stride)) if stride else b""
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0)),
        (b"IDAT", zlib.compress(lines)),
    ]
    chunks[1:1] = [extra] if extra else []
    parts = [b"\x89PNG\r\n\x1a\n"]
    for name, body in [*chunks, (b"IEND", b"")]:
        parts.append(struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)))
    return b"".join(parts)
