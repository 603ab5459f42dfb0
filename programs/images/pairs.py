"""Load an image with its reference, check that they belong together, and align them where that is asked for."""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from PIL import Image

from agenticiqa.programs.images.decoding import png, refuse, rgb
from agenticiqa.programs.images.loaded import LoadedImage
from agenticiqa.programs.images.loading import load, load_pair
from agenticiqa.programs.images.reference_check import (
    WHOLE,
    ReferenceCheck,
    check_reference,
    part_told,
    refusal_of_size,
    shift_told,
    size_told,
)
from agenticiqa.programs.images.registration import SMALLEST_SIDE, Match
from agenticiqa.programs.images.sources import ImageSource

RESIZED = (
    "The reference was resized from {} x {} to the image's {} x {} pixels: the score does not count the difference in "
    "resolution."
)
GRID = 8  # pixels: JPEG's blocks, which are looked for where the image's own corner puts them


class Pair(NamedTuple):
    """An image, its reference, and how they fit; both of the latter are ``None`` without a reference."""

    image: LoadedImage
    reference: LoadedImage | None = None
    check: ReferenceCheck | None = None

    @property
    def compared(self) -> LoadedImage | None:
        """The reference, if the image may be compared with it: ``None`` where it shows another picture."""
        return self.reference if self.check and self.check.fits else None


def load_checked(
    image: ImageSource,
    reference: ImageSource | None,
    *,
    resize_reference: bool = False,
    align: bool = False,
    max_side: int | None = None,
) -> Pair:
    """Load an image and its reference as ``load_pair`` does, and check how the image lies in the reference.

    With ``align`` a shifted pair, a part, and a picture at another scale are brought to what both show, at the image's
    size: the image is cropped, the reference is cropped and, where whole pixels do not suffice, resampled (Lanczos).
    What was found is told in the image's notes and logged. Raises as ``load_pair`` does.
    """
    first = load(image)
    if reference is None:
        return Pair(first.sent_within(max_side))
    second = load(reference)
    check, found = check_reference(first, second)
    if align and found and check.relation in ("shifted", "part", "scaled"):
        first, second, check = _aligned(first, second, check, found)
    elif first.size != second.size:
        if not resize_reference:
            refuse(second.source, refusal_of_size(first, second, check, found))
        before = second.size
        first, resized = load_pair(first, second, resize_reference=True)
        second = resized or second
        first = replace(first, notes=(*first.notes, RESIZED.format(*before, *first.size)))
        check, _ = check_reference(first, second)
    if check.sentence:
        first = replace(first, notes=(*first.notes, check.sentence))
    return Pair(first.sent_within(max_side), second.sent_within(max_side), check)


def _aligned(
    image: LoadedImage, reference: LoadedImage, check: ReferenceCheck, found: Match
) -> tuple[LoadedImage, LoadedImage, ReferenceCheck]:
    """Both, of what both show, at the image's size. Raises ImageError where that is next to nothing."""
    left, top, right, bottom = found.overlap(image.size, reference.size)
    box = (
        GRID * math.ceil((left - WHOLE) / GRID),
        GRID * math.ceil((top - WHOLE) / GRID),
        math.floor(right + WHOLE),
        math.floor(bottom + WHOLE),
    )
    size = width, height = box[2] - box[0], box[3] - box[1]
    if min(size) < SMALLEST_SIDE:
        refuse(reference.source, "expected a reference that shows what the image shows, found too little overlap")
    span = found.in_reference((float(box[0]), float(box[1]), float(box[2]), float(box[3])))
    if found.across == found.down == 1 and all(abs(at - round(at)) <= WHOLE for at in span):
        x, y = round(span[0]), round(span[1])
        pristine, how = reference.pixels[y : y + height, x : x + width], "cropped"
    else:
        within = max(0.0, span[0]), max(0.0, span[1]), min(span[2], reference.width), min(span[3], reference.height)
        resampled = Image.fromarray(reference.pixels).resize(size, Image.Resampling.LANCZOS, box=within)
        pristine, how = np.asarray(resampled), "resampled (Lanczos)"
    sentence = (
        f"{_told(image, reference, check, found)}: the reference was {how}, and what both show was compared, "
        f"{list(box)} of the image."
    )
    if box != (0, 0, *image.size):
        cropped = image.pixels[box[1] : box[3], box[0] : box[2]]
        image = _with_pixels(image, cropped, f"Cropped to {list(box)}, which the reference shows, too.")
    aligned = check.model_copy(update={"aligned": True, "sentence": sentence})
    return image, _with_pixels(reference, pristine, sentence), aligned


def _told(image: LoadedImage, reference: LoadedImage, check: ReferenceCheck, found: Match) -> str:
    if check.relation == "shifted":
        return shift_told(found)
    return size_told(found) if check.relation == "scaled" else part_told(found, image.size, reference.size)


def _with_pixels(image: LoadedImage, pixels: np.ndarray, note: str) -> LoadedImage:
    """The image with other pixels, which a model is sent as a PNG; ``sha256`` stays that of the file."""
    picture = Image.fromarray(np.ascontiguousarray(pixels))
    return replace(
        image, data=png(picture), mime="image/png", pixels=rgb(picture), notes=(*image.notes, note), sent_sha256=""
    )
