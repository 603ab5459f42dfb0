"""Load images so that models, metrics and pages all get the pixels that a viewer shows.

The table shows the treatment of each kind, always noted in ``LoadedImage.notes``. ``pixels`` are the measured pixels; a
model receives them as PNG or lossless WebP, unless it receives the file, without its metadata (``images.metadata``).

==============================  ===============  ================================================================
kind (decided by content)       sent to a model  measured (8-bit sRGB)
==============================  ===============  ================================================================
8-bit JPEG, PNG, WebP in sRGB   the file         as decoded; gray and palette become RGB
the same, unusual structure     pixels           as decoded; metadata cannot be told from pixels for certain
BMP, TIFF, GIF, HEIC, AVIF ...  pixels           as decoded (HEIC and HEIF by the extra ``heic``)
several frames or pages         pixels           the first, or the full picture if that is a thumbnail
several pictures in a JPEG      the first        the first
EXIF orientation                pixels           rotated upright; XMP orientation is ignored
transparency                    pixels           composited over white
16-bit gray                     pixels           v / 257, rounded
16-bit color                    pixels           8 bits, as Pillow reads it
color profile, cICP, gAMA, HDR  pixels           converted to sRGB (see ``images.colors``)
CMYK                            pixels           by its profile, else without one
PIL image, numpy array          pixels           like a file of its mode
==============================  ===============  ================================================================

Refused, with a one-line ``ImageError``: damaged or truncated files, integer or float pixels of unknown range, 12-bit
gray, drawings (SVG, EPS, WMF, XBM), formats that Pillow misreads, other files, more pixels, bytes or scans than
allowed, and web addresses. Side chunks of a PNG that are damaged or very large are ignored, with a note.
``images.sources`` lists the supported sources.
"""

import hashlib
import os
from contextlib import suppress

import numpy as np
from PIL import Image

from agenticiqa.programs.images.decoding import (
    MAX_PIXELS,
    check_size,
    decode,
    open_bytes,
    open_header,
    refuse,
    upright_size,
)
from agenticiqa.programs.images.loaded import LoadedImage
from agenticiqa.programs.images.main_picture import MAY_BEGIN_SMALL
from agenticiqa.programs.images.metadata import is_clear
from agenticiqa.programs.images.sources import ImageSource, UndecodedImage, name_of, path_of, read_source


def load(source: ImageSource, *, max_pixels: int = MAX_PIXELS) -> LoadedImage:
    """Load an image; a loaded image is returned unchanged.

    Args:
        source: The image, in any form that ``images.sources`` lists.
        max_pixels: The most pixels, compared with the header before anything is decoded, in place of Pillow's own
            limit.

    Returns:
        The image with its measured pixels: uint8 RGB, shape (height, width, 3).

    Raises:
        ImageNotFound: There is no such file.
        ImageError: The image cannot be assessed.
    """
    if isinstance(source, LoadedImage):
        return source
    opened, image = _opened(source, max_pixels)
    content, tables = opened.content, getattr(image, "quantization", None)
    decoded = decode(opened.source, image, max_pixels, frames=isinstance(content, bytes))
    notes, digest, file = (*opened.notes, *decoded.notes), "", None
    if isinstance(content, bytes):
        digest = hashlib.sha256(content).hexdigest()
        file = content if decoded.mime and is_clear(content) else None
    mime, doubtful = decoded.mime if file else "image/png", decoded.has_doubtful_colors
    return LoadedImage(
        opened.source,
        decoded.pixels,
        notes,
        digest,
        file,
        mime,
        has_doubtful_colors=doubtful,
        jpeg_tables=tables and {**tables},
    )


def load_pixels(source: ImageSource, *, draft_side: int | None = None) -> np.ndarray:
    """Return only the pixels that ``load`` measures, uint8 of shape (height, width, 3).

    With ``draft_side`` a JPEG may be decoded at a fraction of its size, but no side below this: for small copies.
    Raises as ``load`` does.
    """
    opened, image = _opened(source, MAX_PIXELS)
    if draft_side is not None:
        image.draft("RGB", (draft_side, draft_side))
    return decode(opened.source, image, MAX_PIXELS).pixels


def size_of(source: ImageSource, *, max_pixels: int | None = None) -> tuple[int, int]:
    """Return the width and height of the pixels that ``load`` measures, from the header if possible.

    Raises as ``load`` does if the source is not an image, and with ``max_pixels``, if it has more.
    """
    if isinstance(source, LoadedImage):
        return source.size
    found: tuple[Image.Image, tuple[int, int]] | None = None
    if (path := path_of(source)) is not None and os.path.isfile(path):
        with suppress(Exception), open_header(path) as header:  # loading reports the problem
            if header.format not in MAY_BEGIN_SMALL:
                found = header, upright_size(header)
    if found is None:
        image = _opened(source, MAX_PIXELS if max_pixels is None else max_pixels)[1]
        found = image, upright_size(image)
    if max_pixels is not None:
        check_size(name_of(source), found[0], max_pixels)
    return found[1]


def _opened(source: ImageSource, max_pixels: int) -> tuple[UndecodedImage, Image.Image]:
    opened = read_source(source)
    content = opened.content
    return opened, open_bytes(opened.source, content, max_pixels) if isinstance(content, bytes) else content


def load_pair(image: ImageSource, reference: ImageSource | None) -> tuple[LoadedImage, LoadedImage | None]:
    """Load an image and, if there is one, its pristine reference.

    Args:
        image: The image, in any form that ``images.sources`` lists.
        reference: The reference, in the same forms, or ``None``.

    Returns:
        Both, of the same size; ``None`` for no reference.

    Raises:
        ImageNotFound: There is no such file.
        ImageError: An image cannot be assessed, or the sizes differ.
    """
    loaded, pristine = load(image), None if reference is None else load(reference)
    if pristine and pristine.size != loaded.size:
        wanted, got = (f"{width}x{height}" for width, height in (loaded.size, pristine.size))
        problem = f"expected a reference of the image's size {wanted}, got {got}; give one of that size"
        refuse(pristine.source, problem)
    return loaded, pristine


def prompt_inputs(image: LoadedImage, reference: LoadedImage | None) -> dict[str, LoadedImage | None]:
    """Return the two image fields that all signatures with images have.

    Args:
        image: The loaded image.
        reference: The loaded reference, or ``None``.

    Returns:
        The fields by name.
    """
    return {"reference": reference, "image": image}
