"""Load images: a model is sent the bytes of the file unchanged, the metrics measure the pixels that a viewer shows.

What happens to each kind, always noted in ``LoadedImage.notes``:

==============================  =====================================  ============================================
kind (decided by content)       sent to a model                        measured (8-bit RGB)
==============================  =====================================  ============================================
JPEG, PNG, WebP                 the bytes of the file                  as decoded; gray and palette become RGB
BMP, TIFF, GIF, PPM, AVIF, ...  lossless PNG (16-bit gray stays so)    as decoded
HEIC, HEIF (extra ``heic``)     lossless PNG                           as decoded, 8 bits
several frames or pages         the first, as PNG (JPEG: the bytes)    the first
EXIF orientation                bytes keep their tag; a PNG is turned  turned upright
transparency                    kept                                   composited over white
16-bit gray                     kept                                   v / 257, rounded
16-bit color                    bytes keep it; a PNG has 8 bits        8 bits, as Pillow reads it
color profile                   kept                                   converted to sRGB (see ``color_profile``)
CMYK                            bytes of a JPEG; else PNG in RGB       by its profile, else without one
PIL image, numpy array          lossless PNG                           like a file of its mode
==============================  =====================================  ============================================

Refused, with a one-line ``ImageError``: damaged or truncated files, integer or float pixels of unknown range, 12-bit
gray, drawings (SVG, EPS, WMF, XBM), what Pillow misreads, whatever is no image, more pixels than allowed, and web
addresses. What an image may be given as is the table in ``images.sources``.
"""

import hashlib
from dataclasses import replace

import numpy as np
from PIL import Image

from agenticiqa.programs.images.decoding import MAX_PIXELS, decode, decode_pixels, open_bytes, png, refuse, rgb
from agenticiqa.programs.images.loaded import LoadedImage
from agenticiqa.programs.images.sources import ImageSource, read_source


def load(source: ImageSource, *, max_pixels: int = MAX_PIXELS) -> LoadedImage:
    """Load an image given in any way that ``images.sources`` lists; a loaded image is returned as it is.

    ``max_pixels`` is compared with the header, before anything is decoded, in place of Pillow's own limit.
    Raises ``ImageNotFound`` for a missing file and ``ImageError`` for whatever cannot be judged.
    """
    if isinstance(source, LoadedImage):
        return source
    given = read_source(source)
    name, content = given.source, given.content
    if isinstance(content, bytes):
        data, decoded = content, decode(name, open_bytes(name, content, max_pixels), content, max_pixels)
    else:
        decoded = decode(name, content, None, max_pixels)
        data = decoded.data
    digest = hashlib.sha256(data).hexdigest()
    sent = digest if decoded.data is data else ""
    notes = (*given.notes, *decoded.notes)
    return LoadedImage(name, digest, decoded.data, decoded.mime, decoded.pixels, notes, sent)


def load_pixels(source: ImageSource, *, draft_side: int | None = None) -> np.ndarray:
    """Return only the pixels that ``load`` measures, uint8 of shape (height, width, 3), without what a model is sent.

    With ``draft_side`` a JPEG may be decoded at a fraction of its size, but no side below this: for small copies.
    Raises as ``load`` does.
    """
    given = read_source(source)
    image = given.content if isinstance(given.content, Image.Image) else open_bytes(given.source, given.content)
    if draft_side is not None:
        image.draft("RGB", (draft_side, draft_side))
    return decode_pixels(given.source, image, MAX_PIXELS)


def load_pair(
    image: ImageSource,
    reference: ImageSource | None,
    *,
    resize_reference: bool = False,
    max_side: int | None = None,
    max_pixels: int = MAX_PIXELS,
) -> tuple[LoadedImage, LoadedImage | None]:
    """Load an image and, if there is one, its pristine reference, which must have the same size.

    ``resize_reference`` brings a reference of another size to the image's size (Lanczos), for the model as well;
    its ``sha256`` stays that of the file. With ``max_side`` a model is sent a smaller copy of images whose longer side
    has more pixels; they are measured as they are. Raises as ``load`` does, and ``ImageError`` when the sizes differ.
    """
    image, reference = _pair(image, reference, resize_reference, max_pixels)
    return image.sent_within(max_side), reference.sent_within(max_side) if reference else None


def _pair(
    image: ImageSource, reference: ImageSource | None, resize_reference: bool, max_pixels: int
) -> tuple[LoadedImage, LoadedImage | None]:
    loaded = load(image, max_pixels=max_pixels)
    if reference is None:
        return loaded, None
    pristine = load(reference, max_pixels=max_pixels)
    if pristine.size == loaded.size:
        return loaded, pristine
    wanted, found = (f"{width}x{height}" for width, height in (loaded.size, pristine.size))
    if not resize_reference:
        refuse(
            pristine.source,
            f"expected a reference of the image's size {wanted}, got {found}; "
            "give one of that size, or set resize_reference",
        )
    resized = Image.fromarray(pristine.pixels).resize(loaded.size, Image.Resampling.LANCZOS)
    notes = (*pristine.notes, f"Resized from {found} to the image's {wanted} (Lanczos), and sent as a PNG of that.")
    return loaded, replace(
        pristine, data=png(resized), mime="image/png", pixels=rgb(resized), notes=notes, sent_sha256=""
    )


def prompt_inputs(image: LoadedImage, reference: LoadedImage | None) -> dict[str, LoadedImage | None]:
    """The two image fields that every signature that sees images has."""
    return {"reference": reference, "image": image}
