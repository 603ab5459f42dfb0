"""Load an image with its reference, check how they match, and align them on request."""

import math
from typing import NamedTuple

import numpy as np
from PIL import Image

from agenticiqa.configs.options import ImageSettings
from agenticiqa.programs.images.arrays import reduced
from agenticiqa.programs.images.decoding import refuse
from agenticiqa.programs.images.loaded import LoadedImage
from agenticiqa.programs.images.loading import load
from agenticiqa.programs.images.reference_check import (
    WHOLE,
    ReferenceCheck,
    Relation,
    checked_reference,
    place_in_words,
    refusal_of_size,
    relate,
)
from agenticiqa.programs.images.registration import SMALLEST_SIDE, Match, corners
from agenticiqa.programs.images.sources import ImageSource

RESIZED = (
    "The reference was resized from {} x {} to the image's {} x {} pixels, so the score ignores the difference in "
    "resolution."
)
# Pixels: larger ones are compared at a whole fraction of their size; each takes 1 us and 30 bytes.
LARGEST_PAIR = 36_000_000
REDUCED = "The pair of {} x {} pixels was compared at {} x {} (means of {} x {} pixels); finer damage is not measured."
DEFAULT_SETTINGS = ImageSettings()
GRID = 8  # pixels: JPEG's blocks, which start at the corner of the image


class Pair(NamedTuple):
    """An image, its reference, and the check of both; the last two are ``None`` without a reference."""

    image: LoadedImage
    reference: LoadedImage | None = None
    check: ReferenceCheck | None = None

    @property
    def compared(self) -> LoadedImage | None:
        """Return the reference, if the image may be compared with it; ``None`` where it shows another picture."""
        return self.reference if self.check and self.check.fits else None


def load_checked(
    image: ImageSource,
    reference: ImageSource | None,
    settings: ImageSettings = DEFAULT_SETTINGS,
    *,
    resize_reference: bool = False,
) -> Pair:
    """Load an image and, if there is one, its pristine reference, and check where the image lies in the reference.

    A reference of another size is refused, unless ``resize_reference`` scales it to the image's size (Lanczos), for the
    model as well; its ``sha256`` stays that of the file. With ``max_side`` in the settings, a model receives a
    smaller copy of images with a longer side above it; they are measured as they are. It receives the metadata of a
    file only with ``keep_metadata``.

    With ``align`` a shifted pair, a part, and a picture at another scale are reduced to their overlap, at the image's
    size: the image is cropped, the reference is cropped and, where whole pixels do not suffice, resampled (Lanczos).
    The image's notes report the result. Raises as ``load`` does, and ``ImageError`` for a refused reference.
    """
    first = load(image, max_pixels=settings.max_pixels)
    if reference is None:
        return Pair(first.to_send(settings))
    size = first.size
    first = _to_compare(first)  # a smaller copy, before the other image is decoded
    second = load(reference, max_pixels=settings.max_pixels)
    if size != second.size and first.size != size and not (settings.align or resize_reference):
        wanted, got = (f"{width}x{height}" for width, height in (size, second.size))
        refuse(second.source, f"expected a reference of the image's size {wanted}, got {got}; give one of that size")
    second = _to_compare(second)
    first, second, check = _compared(first, second, settings.align, resize_reference)
    if check.sentence:
        first = first.changed(notes=(*first.notes, check.sentence))
    return Pair(first.to_send(settings), second.to_send(settings), check)


def _compared(
    image: LoadedImage, reference: LoadedImage, align: bool, resize_reference: bool
) -> tuple[LoadedImage, LoadedImage, ReferenceCheck]:
    """Return both at one size, and their check. Raises ImageError where the size of the reference is refused."""
    is_of_one_size = image.size == reference.size
    if align or is_of_one_size or not resize_reference:
        relation = relate(image, reference)
        if align and relation.match and relation.kind in ("shifted", "part", "scaled"):
            return _aligned(image, reference, relation, relation.match)
        if is_of_one_size:
            return image, reference, checked_reference(relation, reference)
        if not resize_reference:
            refuse(reference.source, refusal_of_size(relation, image.size, reference.size))
    resized = Image.fromarray(reference.pixels).resize(image.size, Image.Resampling.LANCZOS)
    note = "Resized from {}x{} to the image's {}x{} (Lanczos), and sent to models in this size.".format(
        *reference.size, *image.size
    )
    image = image.changed(notes=(*image.notes, RESIZED.format(*reference.size, *image.size)))
    reference = reference.with_pixels(resized, note)
    return image, reference, checked_reference(relate(image, reference), reference)


def _to_compare(image: LoadedImage) -> LoadedImage:
    """Return one image of a pair, or a smaller copy if it would take minutes; a model receives the given image."""
    width, height = image.size
    factor = math.ceil(math.sqrt(width * height / LARGEST_PAIR))
    if factor <= 1:
        return image
    pixels = reduced(image.pixels, factor)
    pixels.setflags(write=False)
    note = REDUCED.format(width, height, *pixels.shape[1::-1], factor, factor)
    sent = image.pixels if image.shown is None else image.shown  # a model receives the given image
    return image.changed(pixels=pixels, shown=sent, notes=(*image.notes, note))


def _aligned(
    image: LoadedImage, reference: LoadedImage, relation: Relation, match: Match
) -> tuple[LoadedImage, LoadedImage, ReferenceCheck]:
    """Return the overlap of both at the image's size. Raises ImageError where it is too small."""
    start, end = match.overlap
    left, top = (GRID * math.ceil((at - WHOLE) / GRID) for at in start)
    right, bottom = (math.floor(at + WHOLE) for at in end)
    size = right - left, bottom - top
    if min(size) < SMALLEST_SIDE:
        refuse(reference.source, "expected the image's own reference, found too little overlap; give another one")
    box = [left, top, right, bottom]
    span, how = match.in_reference(np.reshape(box, (2, 2))), "resampled (Lanczos)"
    if match.one_scale and np.abs(span - span.round()).max() <= WHOLE:
        span, how = span.round(), "cropped"
    within = corners(np.clip(span, 0, reference.size))
    pristine = Image.fromarray(reference.pixels).resize(size, Image.Resampling.LANCZOS, box=within)
    how = f"the reference was {how}, and only the area that both show was compared (box {box} of the image)"
    check = checked_reference(relation, reference, how)
    if size != image.size:
        part = Image.fromarray(image.pixels[top:bottom, left:right])
        image = image.with_pixels(part, f"Cropped to {box}, the area that the reference also shows.")
    note = f"{place_in_words(relation.kind, match)}: {how}."
    return image, reference.with_pixels(pristine, note), check
