"""Load an image with its reference, tell how they fit, and align them where that is asked for."""

import math
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
from PIL import Image
from pydantic import BaseModel, ConfigDict

from agenticiqa.programs.images.decoding import BAND, png, refuse, rgb
from agenticiqa.programs.images.files import one_line
from agenticiqa.programs.images.loaded import LoadedImage
from agenticiqa.programs.images.loading import MAX_PIXELS, load, load_pair
from agenticiqa.programs.images.recolored import recoloring
from agenticiqa.programs.images.registration import (
    SAME_ELSEWHERE,
    SAME_IN_PLACE,
    SMALLEST_SIDE,
    Match,
    find_match,
    find_turn,
    inside,
    is_same,
)
from agenticiqa.programs.images.sources import ImageSource
from agenticiqa.signatures.types import Box

Size = tuple[int, int]

TOLD_SHIFT = 0.5  # pixels: a smaller shift is none
WHOLE = 0.15  # pixels: nearer to a whole number a shift is told as that
ADVICE = "set align (--align) to compare what both show"


class ReferenceCheck(BaseModel):
    """How the image lies in its reference, by their structure.

    ``relation``: ``identical`` pixels; ``in place``; ``shifted`` by ``shift``, (right, down) in the image's pixels;
    ``part``, where the image shows only ``box`` of the reference (left, top, right, bottom), or more than all of it, at
    ``scale`` reference pixels per pixel of its own; ``scaled``, all of the reference at another size; ``another
    picture``, with which nothing is compared; ``unknown``, where a side is below 32 pixels or there is no structure.

    ``similarity`` is the correlation of structure where both overlap, up to 1, ``confidence`` the height of the peak of
    the phase correlation, 0 to 1. ``colors`` says how those of the image are the reference's mixed up (a negative,
    swapped channels), and is empty where they are not. ``aligned`` says that the overlap was measured, and ``swapped``
    that the reference looks worse than the image. ``sentence`` tells what a reader has to know, and is empty where all
    is well.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    relation: Literal["identical", "in place", "shifted", "part", "scaled", "another picture", "unknown"]
    shift: tuple[float, float] | None = None
    scale: float | None = None
    box: Box | None = None
    similarity: float | None = None
    confidence: float | None = None
    colors: str = ""
    aligned: bool = False
    swapped: bool = False
    sentence: str = ""

    @property
    def fits(self) -> bool:
        """Whether the reference may be compared with the image, as far as one can tell."""
        return self.relation != "another picture"


def check_reference(image: LoadedImage, reference: LoadedImage) -> tuple[ReferenceCheck, Match | None]:
    """How an image lies in its reference, of any size, and the match itself where one was found.

    The sentence is about a pair of one size that is measured as it is.
    """
    if image.same_pixels(reference):
        return ReferenceCheck(relation="identical", similarity=1.0, confidence=1.0), None
    found = find_match(image.pixels, reference.pixels)
    if found is None:
        same_size = image.size == reference.size
        return _with_colors(ReferenceCheck(relation="unknown"), recolored(image, reference) if same_size else ""), None
    turned = find_turn(image.pixels, reference.pixels) if abs(found.similarity) < SAME_ELSEWHERE else None
    if not turned and not is_same(found, image.size, reference.size):
        found = _recolored_match(image, reference) or found
    similarity, confidence = round(found.similarity, 4), round(found.confidence, 4)
    if turned or not is_same(found, image.size, reference.size):
        sentence = _another(reference, turned, similarity)
        return ReferenceCheck(relation="another picture", similarity=similarity, sentence=sentence), None
    check = _place(image, reference, found, ReferenceCheck(relation="in place", similarity=similarity))
    return _with_colors(check.model_copy(update={"confidence": confidence}), recolored(image, reference, found)), found


def _place(image: LoadedImage, reference: LoadedImage, found: Match, check: ReferenceCheck) -> ReferenceCheck:
    """The check with where in its reference the image lies."""
    whole = (0.0, 0.0, float(image.width), float(image.height))
    span = found.in_reference(whole)
    one_scale = found.across == found.down == 1
    if one_scale and image.size == reference.size:
        if max(map(abs, found.shift)) < TOLD_SHIFT:
            return check
        sentence = f"{shift_told(found)}: measured as it is, that counts as damage; {ADVICE}."
        return check.model_copy(update={"relation": "shifted", "shift": _rounded(found), "sentence": sentence})
    ends = zip(span, (0, 0, *reference.size), strict=True)
    is_whole = all(abs(at - end) <= max(1.0, found.across) for at, end in ends)
    box = _box(span, reference.size)
    how = {"scale": round((found.across + found.down) / 2, 4), "box": box}
    if is_whole and image.size != reference.size:
        return check.model_copy(update={"relation": "scaled", **how})
    sentence = f"{part_told(found, image.size, reference.size)}: measured as it is, that counts as damage; {ADVICE}."
    return check.model_copy(update={"relation": "part", **how, "sentence": sentence})


def recolored(image: LoadedImage, reference: LoadedImage, found: Match | None = None) -> str:
    """How the image has the reference's colors mixed up, in words, or "": see ``images.recolored``; computed once.

    ``found`` says where the image lies in the reference, by default in place.
    """

    def compute() -> str:
        told = _recoloring_at(image, reference, found)
        return told or ("brightness is inverted" if found and found.similarity <= -SAME_IN_PLACE else "")

    return reference.memo.once(("recolored", image.sha256, image.size), compute)


def _recoloring_at(image: LoadedImage, reference: LoadedImage, found: Match | None) -> str:
    """What ``images.recolored`` tells of both where they overlap, by default in place."""
    here = found.overlap(image.size, reference.size) if found else (0.0, 0.0, float(image.width), float(image.height))
    there = inside(found.in_reference(here), reference.size) if found else None
    if min(here[2] - here[0], here[3] - here[1]) < 1:
        return ""
    return recoloring(image.pixels, reference.pixels, here, there)


def _recolored_match(image: LoadedImage, reference: LoadedImage) -> Match | None:
    """Where the image lies in the reference if it is a negative, or one of its channels is as it was.

    The more is tried, the more often chance finds a place: only one counts where the colors themselves are the
    reference's mixed up.
    """
    for pixels in (255 - image.pixels, *np.moveaxis(image.pixels, -1, 0)):
        found = find_match(np.ascontiguousarray(pixels), reference.pixels)
        if not found or found.similarity <= 0 or not is_same(found, image.size, reference.size):
            continue
        if _recoloring_at(image, reference, found):
            return found
    return None


def _with_colors(check: ReferenceCheck, colors: str) -> ReferenceCheck:
    """The check with what was found of the colors, if anything."""
    if not colors:
        return check
    told = f"Against the reference, {colors}: the score counts that as damage."
    return check.model_copy(update={"colors": colors, "sentence": f"{told} {check.sentence}".strip()})


def refusal_of_size(image: LoadedImage, reference: LoadedImage, check: ReferenceCheck, found: Match | None) -> str:
    """Why a reference of another size is refused, what was found in it, and what to do."""
    wanted, got = (f"{width}x{height}" for width, height in (image.size, reference.size))
    refused = f"expected a reference of the image's size {wanted}, got {got}"
    if check.relation == "another picture":
        turned = find_turn(image.pixels, reference.pixels)
        shows = f"the image {turned}; turn one of them" if turned else "another picture; give the image's own reference"
        return f"{refused}, which shows {shows}"
    if found is None:
        return f"{refused}; give one of that size, or set resize_reference"
    if check.relation == "scaled":
        told = size_told(found)
        return f"{refused}: {told[0].lower()}{told[1:]}; set resize_reference (--resize-reference) or align (--align)"
    told = part_told(found, image.size, reference.size)
    return f"{refused}: {told[0].lower()}{told[1:]}; {ADVICE}; resize_reference would distort it"


def shift_told(found: Match) -> str:
    """The shift of an image against its reference, in words."""
    right, down = found.shift
    parts = [
        f"{_pixels(abs(offset))} {positive if offset > 0 else negative}"
        for offset, positive, negative in ((right, "right", "left"), (down, "down", "up"))
        if abs(offset) >= WHOLE
    ]
    sure = f"{found.confidence:.2f}"
    return f"The image is shifted by {', '.join(parts)} against its reference (confidence {sure})"


def part_told(found: Match, image: Size, reference: Size) -> str:
    """Which part of which picture the other one is, in words."""
    span = found.in_reference((0.0, 0.0, float(image[0]), float(image[1])))
    inside = span[0] >= -1 and span[1] >= -1 and span[2] <= reference[0] + 1 and span[3] <= reference[1] + 1
    scale = (found.across + found.down) / 2
    size = "" if abs(scale - 1) < 0.002 else f" at {1 / scale:.3g} times its size"
    if inside:
        return f"The image is the part {list(_box(span, reference))} of its reference{size}"
    left, top, right, bottom = found.overlap(image, reference)
    box = [round(left), round(top), round(right), round(bottom)]
    return f"The reference shows only the part {box} of the image" + (
        "" if not size else f", at {scale:.3g} times its size"
    )


def size_told(found: Match) -> str:
    """How much larger the reference is than an image of the same content."""
    if abs(found.across - found.down) < 0.01 * found.across:
        return f"The reference shows the same at {found.across:.3g} times the size"
    return f"The reference shows the same, {found.across:.3g} times as wide and {found.down:.3g} times as high"


def _another(reference: LoadedImage, turned: str | None, similarity: float) -> str:
    shows = f"shows the image {turned}" if turned else "shows another picture"
    return one_line(
        f"The reference {reference.source} {shows} (similarity of structure {max(similarity, 0.0):.2f}): the score is "
        "the image's own, without a reference, and only tools that the question names compare the two."
    )


def _pixels(offset: float) -> str:
    return f"{offset:.0f} px" if abs(offset - round(offset)) <= WHOLE else f"{offset:.1f} px"


def _rounded(found: Match) -> tuple[float, float]:
    right, down = found.shift
    return round(right, 2) + 0.0, round(down, 2) + 0.0


def _box(span: tuple[float, float, float, float], size: Size) -> Box:
    left, top, right, bottom = span
    return max(0, round(left)), max(0, round(top)), min(size[0], round(right)), min(size[1], round(bottom))


RESIZED = (
    "The reference was resized from {} x {} to the image's {} x {} pixels: the score does not count the difference in "
    "resolution."
)
LARGEST_PAIR = (
    36_000_000  # pixels: larger ones are compared at a whole fraction of their size; each takes 1 us and 30 bytes
)
REDUCED = "A pair of {} x {} pixels is compared at {} x {}, the means of {} x {} pixels: finer damage is not seen."
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
    max_pixels: int = MAX_PIXELS,
) -> Pair:
    """Load an image and its reference as ``load_pair`` does, and check how the image lies in the reference.

    With ``align`` a shifted pair, a part, and a picture at another scale are brought to what both show, at the image's
    size: the image is cropped, the reference is cropped and, where whole pixels do not suffice, resampled (Lanczos).
    What was found is told in the image's notes and logged. Raises as ``load_pair`` does.
    """
    first = load(image, max_pixels=max_pixels)
    if reference is None:
        return Pair(first.sent_within(max_side))
    given = first.size
    first = _to_compare(first)  # before the other one is decoded
    second = load(reference, max_pixels=max_pixels)
    if given != second.size and first.size != given and not (align or resize_reference):
        wanted, got = (f"{width}x{height}" for width, height in (given, second.size))
        refuse(second.source, f"expected a reference of the image's size {wanted}, got {got}; give one of that size")
    second = _to_compare(second)
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


def _to_compare(image: LoadedImage) -> LoadedImage:
    """One image of a pair, or a smaller copy of one that would take minutes; a model is sent what was given."""
    width, height = image.size
    factor = math.ceil(math.sqrt(width * height / LARGEST_PAIR))
    if factor <= 1:
        return image
    rows = factor * max(1, BAND // (factor * width))
    bands = [
        np.asarray(Image.fromarray(image.pixels[top : top + rows]).reduce(factor)) for top in range(0, height, rows)
    ]
    pixels = np.concatenate(bands)
    pixels.setflags(write=False)
    note = REDUCED.format(width, height, *pixels.shape[1::-1], factor, factor)
    return replace(image, pixels=pixels, notes=(*image.notes, note))


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
    return image, _with_pixels(reference, pristine, sentence), _with_colors(aligned, check.colors)


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
