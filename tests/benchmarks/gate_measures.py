"""Measure the accuracy of the two measures of ``agenticiqa gate`` on modified copies of photos.

    python tests/benchmarks/gate_measures.py PHOTOS... [--most 60]

PHOTOS are images or folders of images that were never enlarged or strongly compressed. The output has these shares with
95 % Wilson intervals: photos that count as enlarged (below 0.75 of their pixels), enlarged copies that do, and
compressed copies with an estimated JPEG quality within 8 of the true one. For the last share, photos are halved first,
which removes traces of earlier compression.
"""

import argparse
import io
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from PIL import Image

from agenticiqa.eval.intervals import wilson
from agenticiqa.programs.images import search_images
from agenticiqa.programs.tools.statistics.effective_size import effective_share
from agenticiqa.programs.tools.statistics.jpeg_history import past_quality
from agenticiqa.programs.tools.statistics.parts import Luma, luma_parts

ENLARGED = 0.75
KERNELS = {
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "Lanczos": Image.Resampling.LANCZOS,
}
QUALITIES = (15, 25, 35, 45, 55, 65, 75, 82, 88, 93)


def parts(image: Image.Image) -> list[Luma]:
    """Return the luma to measure."""
    return luma_parts(np.asarray(image.convert("RGB")))


def jpeg(image: Image.Image, quality: int) -> Image.Image:
    """Return a copy that was compressed once."""
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality)
    return Image.open(buffer).convert("RGB")


def enlarged(image: Image.Image, factor: float, kernel: Image.Resampling) -> Image.Image:
    """Return a copy of the same size with the detail of a smaller one."""
    small = image.resize([round(side / factor) for side in image.size], Image.Resampling.LANCZOS)
    return small.resize(image.size, kernel)


def shown(what: str, photos: Sequence[Image.Image], holds: Callable[[Image.Image], bool]) -> None:
    """Print for how many photos a condition holds."""
    hits = sum(map(holds, photos))
    low, high = wilson(hits, len(photos))
    print(f"{what}: {hits} of {len(photos)}, {hits / len(photos):.3f} [{low:.3f}, {high:.3f}]", flush=True)


def is_enlarged(image: Image.Image) -> bool:
    """Return whether an image counts as enlarged."""
    share = effective_share(parts(image))
    return share is not None and share < ENLARGED


def near(image: Image.Image, quality: int) -> bool:
    """Return whether the estimated quality is within 8 of the true one."""
    found = past_quality(parts(jpeg(image, quality)))
    return found is not None and abs(found - quality) <= 8


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", nargs="+")
    parser.add_argument("--most", type=int, default=60)
    args = parser.parse_args()
    found = search_images(args.photos).images
    photos = [Image.open(path).convert("RGB") for path in found[:: max(1, len(found) // args.most)][: args.most]]
    shown("photos that count as enlarged", photos, is_enlarged)
    for factor in (1.5, 2, 3):
        for name, kernel in KERNELS.items():
            copies = [enlarged(photo, factor, kernel) for photo in photos]
            shown(f"enlarged {factor} times, {name}", copies, is_enlarged)
            shown("  and then JPEG 85", [jpeg(copy, 85) for copy in copies], is_enlarged)
    halved = [photo.resize((photo.width // 2, photo.height // 2), Image.Resampling.LANCZOS) for photo in photos]
    shown("never compressed, but a quality is estimated", halved, lambda image: past_quality(parts(image)) is not None)
    for quality in QUALITIES:
        shown(f"JPEG {quality}, estimated within 8", halved, partial(near, quality=quality))
    cropped = [jpeg(image, 60).crop((3, 5, image.width, image.height)) for image in halved]
    shown(
        "JPEG 60, cropped, estimated within 8", cropped, lambda image: abs((past_quality(parts(image)) or 0) - 60) <= 8
    )


if __name__ == "__main__":
    main()
