"""Make the images in this folder from photos of scikit-image: ``python examples/make.py``."""

import io
from pathlib import Path

import numpy as np
import skimage.data
from PIL import Image, ImageFilter


def pictures() -> dict[str, bytes]:
    """Return every image of this folder by name: three photos of scikit-image and their degraded copies."""
    coffee, astronaut, chelsea = (
        Image.fromarray(photo) for photo in (skimage.data.coffee(), skimage.data.astronaut(), skimage.data.chelsea())
    )
    return {
        "coffee.webp": webp(coffee),
        "coffee_jpeg.jpg": jpeg(coffee, quality=8),
        "astronaut.webp": webp(astronaut),
        "astronaut_blur.png": png(astronaut.filter(ImageFilter.GaussianBlur(3.0))),
        "chelsea.webp": webp(chelsea),
        "chelsea_noise.png": png(noisy(chelsea, sigma=25.0, seed=0)),
    }


def noisy(image: Image.Image, sigma: float, seed: int) -> Image.Image:
    """Add independent Gaussian noise to every channel (``sigma`` on a scale of 0 to 255), then round and clip."""
    pixels = np.asarray(image, dtype=np.float64)
    pixels = pixels + np.random.default_rng(seed).normal(0.0, sigma, pixels.shape)
    return Image.fromarray(np.clip(np.rint(pixels), 0, 255).astype(np.uint8))


def jpeg(image: Image.Image, quality: int) -> bytes:
    """Compress with the defaults of Pillow, which halve the chroma in both directions (4:2:0)."""
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality)
    return buffer.getvalue()


def png(image: Image.Image) -> bytes:
    """Encode without loss."""
    buffer = io.BytesIO()
    image.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def webp(image: Image.Image) -> bytes:
    """Encode without loss, in about three quarters of a PNG's bytes."""
    buffer = io.BytesIO()
    image.save(buffer, "WEBP", lossless=True)
    return buffer.getvalue()


if __name__ == "__main__":
    for name, data in pictures().items():
        (Path(__file__).parent / name).write_bytes(data)
