"""Make the images in this folder from photos of scikit-image: ``python examples/make.py``."""

import csv
import io
from pathlib import Path

import numpy as np
import skimage.data
from PIL import Image, ImageFilter

SMALL_SIDE = 256  # pixels of the longer side of the copies in labels.csv
STRENGTHS = {  # by distortion: the strength of levels 1 to 4
    "blur": (0.9, 1.7, 2.8, 5.0),  # sigma in pixels
    "jpeg": (35, 17, 9, 4),  # quality
    "noise": (9, 20, 38, 70),  # sigma in gray levels
}
COPIES = {  # by photo: the distortion and level of each of its copies
    "astronaut": ("blur 1", "blur 3", "jpeg 2", "jpeg 4", "noise 2"),
    "chelsea": ("blur 2", "jpeg 1", "jpeg 3", "noise 2", "noise 4"),
    "coffee": ("blur 2", "blur 4", "jpeg 3", "noise 1", "noise 3"),
    "rocket": ("blur 1", "blur 4", "jpeg 2", "jpeg 4", "noise 3"),
}


def pictures() -> dict[str, bytes]:
    """Return every image of this folder by name: photos of scikit-image and their degraded copies."""
    photos = {
        "coffee": Image.fromarray(skimage.data.coffee()),
        "astronaut": Image.fromarray(skimage.data.astronaut()),
        "chelsea": Image.fromarray(skimage.data.chelsea()),
        "rocket": Image.fromarray(skimage.data.rocket()),
    }
    made = {
        "coffee.webp": webp(photos["coffee"]),
        "coffee_jpeg.jpg": jpeg(photos["coffee"], quality=8),
        "astronaut.webp": webp(photos["astronaut"]),
        "astronaut_blur.png": png(photos["astronaut"].filter(ImageFilter.GaussianBlur(3.0))),
        "chelsea.webp": webp(photos["chelsea"]),
        "chelsea_noise.png": png(noisy(photos["chelsea"], sigma=25.0, seed=0)),
    }
    for photo, copies in COPIES.items():
        small = photos[photo].copy()
        small.thumbnail((SMALL_SIDE, SMALL_SIDE), Image.Resampling.LANCZOS)
        made[f"copies/{photo}.webp"] = webp(small)
        for copy in copies:
            distortion, level = copy.split()
            name, data = distorted(small, photo, distortion, int(level))
            made[f"copies/{name}"] = data
    return made


def distorted(photo: Image.Image, name: str, distortion: str, level: int) -> tuple[str, bytes]:
    """Return the file name and the bytes of a copy of a photo with one distortion of one level."""
    strength = STRENGTHS[distortion][level - 1]
    if distortion == "jpeg":
        return f"{name}_jpeg_{level}.jpg", jpeg(photo, quality=int(strength))
    if distortion == "blur":
        return f"{name}_blur_{level}.jpg", jpeg(photo.filter(ImageFilter.GaussianBlur(strength)), quality=95)
    return f"{name}_noise_{level}.jpg", jpeg(noisy(photo, sigma=strength, seed=level), quality=95)


def labels() -> list[dict[str, str | int]]:
    """Return the rows of labels.csv: ``mos`` is 5 minus the level, so it is an order and no rating by people."""
    rows: list[dict[str, str | int]] = []
    for photo, copies in COPIES.items():
        reference = f"copies/{photo}.webp"
        for copy in copies:
            distortion, level = copy.split()
            image = f"copies/{photo}_{distortion}_{level}.jpg"
            row = {"image": image, "reference": reference, "mos": 5 - int(level), "distortion": distortion}
            rows.append(row | {"level": int(level), "content": photo})
    return rows


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


def main() -> None:
    """Write the images and labels.csv."""
    folder = Path(__file__).parent
    (folder / "copies").mkdir(exist_ok=True)
    for name, data in pictures().items():
        (folder / name).write_bytes(data)
    rows = labels()
    with (folder / "labels.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
