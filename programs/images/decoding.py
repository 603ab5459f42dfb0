"""Decode the bytes of an image file, or a PIL image, to the pixels that are measured.

The table in ``images.loading`` says what happens to each kind of file.
"""

import io
import math
import re
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from PIL import Image, TiffImagePlugin, UnidentifiedImageError
from PIL.ExifTags import Base as ExifTag

from agenticiqa.configs.options import ImageSettings
from agenticiqa.configs.user_files import MOST_BYTES, MOST_PLAIN_BYTES
from agenticiqa.programs.errors import ImageError
from agenticiqa.programs.images.arrays import BAND, rgb, unused_bits
from agenticiqa.programs.images.colors import Conversion, bytes_of, conversion_of
from agenticiqa.programs.images.extra_formats import format_by_content
from agenticiqa.programs.images.files import one_line
from agenticiqa.programs.images.jpeg2000 import refuse_misread
from agenticiqa.programs.images.main_picture import CONVERTER, NotDecoded, main_picture
from agenticiqa.programs.images.png_chunks import MENDED_KEY, SIGNATURE, open_png

# Tags of TIFF.
BITS, COMPRESSION, PHOTOMETRIC, CHANNELS, PLANES = 258, 259, 262, 277, 284
AS_STORED = {"I;16", "I;16B", "I;16N"}  # Pillow's names of layouts

MAX_PIXELS = ImageSettings.max_pixels
PILLOW_WARNS = 89_478_485  # pixels: the default of PIL.Image.MAX_IMAGE_PIXELS; Pillow refuses twice this
MOST_SIDE = 1_000_000  # pixels: Pillow needs memory for each row, however narrow it is
MOST_SCANS = 500  # scans of a progressive JPEG, which usually has 10; each one takes time for all pixels
# The share of these pixels that a format may have: libwebp inside of Pillow needs 16 bytes for each.
SHARE_OF_MOST = {"WEBP": 0.6}
USUAL_FORMATS = "give a JPEG, PNG or WebP file"
IN_CONFIG = "in a configuration file, --config"
DEEP_COLOR = "Channels with more than 8 bits were read at 8 bits."

_MIME = {"JPEG": "image/jpeg", "MPO": "image/jpeg", "PNG": "image/png", "WEBP": "image/webp"}
# Not ImageOps.exif_transpose: it writes the EXIF tags anew, which fails on unusual ones, and a good photo with them.
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_RAW = {
    rb"II\*\0|MM\0\*|II\+\0|MM\0\+": "a TIFF or raw photo that Pillow cannot read",
    rb"FUJIFILMCCD|IIR[OS]|MMOR|IIU\0|FOVb|.{4}ftypcrx": "a raw photo",
}
_OTHER = {
    rb"\xff\xd8\xff": "a JPEG with a damaged header",
    rb"\x89PNG": "a PNG with a damaged header",
    rb"RIFF.{4}WEBP": "a WebP with a damaged header",
    rb"%PDF": "a PDF document",
    rb".{4}ftyp": "a video",
    rb"[^\0]*<svg": "an SVG drawing",
}
_PLAIN = (b"II*\0", b"MM\0*", b"BM", b"P5", b"P6")  # beginnings of TIFF, BMP and PNM
_TEXT = rb"[\t\n\r\x20-\x7e\x80-\xff]+"  # no control characters
_open_lock = threading.RLock()  # warnings.catch_warnings is not safe in threads
NOTES_KEY = "notes from opening the file"  # notes, in the info of an image
INNER_KEY = "not the first picture of the file"  # a bool, in the info of an image
_JPEG_MARKER = re.compile(rb"\xff([^\x00\xff\xd0-\xd7])")  # FF 00 and FF D0 to FF D7 are part of the pixels
_XMP_ORIENTATION = re.compile(r"tiff:Orientation(?:=[\"']|>)\s*([1-8])")
XMP = ("xmp", "XML:com.adobe.xmp")  # keys in the info of an image


@dataclass(frozen=True)
class Decoded:
    """A decoded file; the fields are those of the same names in ``images.LoadedImage``.

    ``mime`` is the media type of the file, if every viewer shows ``pixels`` for its bytes, else empty.
    """

    pixels: np.ndarray
    notes: tuple[str, ...]
    mime: str
    has_doubtful_colors: bool


class MissingExtra(Exception):
    """Raised for a kind of file that needs an optional package that is not installed."""


def refuse(name: str, problem: str, error: type[ImageError] = ImageError) -> NoReturn:
    """Raise ``error`` with a message of one printable line: the name of the image, then the problem."""
    raise error(one_line(problem), one_line(name))


def open_bytes(name: str, data: bytes, max_pixels: int = MAX_PIXELS) -> Image.Image:
    """Read the header only; the content decides the format. ``name`` is for messages. Raises ``ImageError``.

    If the file begins with a thumbnail, return its full-resolution picture (see ``main_picture``).
    """
    if len(data) > (most := most_bytes(data[:4])):
        refuse(name, f"expected an image of at most {most} bytes, found more; give a smaller one")
    try:
        with _open_lock, warnings.catch_warnings(action="ignore"):  # warnings about tags, which become notes in _open
            image, note = main_picture(_open(data, max_pixels), data, lambda changed: _open(changed, max_pixels))
        image.info[NOTES_KEY] = [*image.info.get(NOTES_KEY, ()), *filter(None, [note])]
        image.info[INNER_KEY] = bool(note)
        return image
    except NotDecoded as error:
        refuse(name, f"expected an image in full resolution, found {error}; {CONVERTER}")
    except UnidentifiedImageError:
        _refuse_other(name, data)
    except MissingExtra as missing:
        refuse(name, f"expected an image, found a {missing}")
    except NotImplementedError as error:
        refuse(name, f"expected an image that Pillow reads correctly, found {error}; save it as PNG")
    except Image.DecompressionBombError as error:
        advice = f"scale the image down, or raise max_pixels ({IN_CONFIG})"
        refuse(name, f"expected fewer pixels (Pillow: {error}); {advice}")
    except Exception as error:  # decoders raise almost anything on damaged bytes
        refuse(name, f"expected an intact image, found a damaged one ({_words(error)}); get the file again")


def most_bytes(head: bytes) -> int:
    """Return the largest size of an image in bytes by its first bytes: pixels without compression may take more."""
    return MOST_PLAIN_BYTES if head.startswith(_PLAIN) else MOST_BYTES


def refuse_other_beginning(name: str, head: bytes) -> None:
    """Raise ImageError for the beginning of a large file if no image begins so: the rest need not be read."""
    Image.init()
    accepting = (accept for _, accept in Image.OPEN.values() if accept is not None)
    if not (any(accept(head[:16]) for accept in accepting) or format_by_content(head)):
        try:
            Image.open(io.BytesIO(head))  # formats that are recognized only by their header
        except UnidentifiedImageError:
            _refuse_other(name, head)
        except Exception:  # the whole file is opened, and its problem reported, later
            return


def _refuse_other(name: str, data: bytes) -> NoReturn:
    content, advice = _described(data)
    refuse(name, f"expected an image, found {content}; {advice}")


@contextmanager
def _allowing(pixels: int) -> Iterator[None]:
    """Let Pillow open and decode so many pixels. Its own limit is one of the process, hence the lock."""
    if pixels <= PILLOW_WARNS:
        yield
        return
    with _open_lock:
        limit, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, pixels
        try:
            yield
        finally:
            Image.MAX_IMAGE_PIXELS = limit


def _open(data: bytes, max_pixels: int) -> Image.Image:
    with _allowing(max_pixels), _open_lock, warnings.catch_warnings(record=True, action="always") as warned:
        try:
            image = open_png(data) if data.startswith(SIGNATURE) else Image.open(io.BytesIO(data))
            if image.format == "JPEG2000":
                refuse_misread(data)
            about_size = Image.DecompressionBombWarning  # the bound on pixels is this module's
            texts = [str(note.message).strip(" .") for note in warned if not issubclass(note.category, about_size)]
            image.info[NOTES_KEY] = [one_line(f"Pillow warns: {text}.") for text in dict.fromkeys(texts)]
            image.info[NOTES_KEY] += map(one_line, image.info.get(MENDED_KEY, ()))
            return image
        except UnidentifiedImageError:
            extra = format_by_content(data)
            if extra is None:
                raise
            if not extra.register():
                raise MissingExtra(f"{extra.name}, which needs an optional package: {extra.install}") from None
            return Image.open(io.BytesIO(data))


def open_header(path: Path) -> Image.Image:
    """Open a file and read only its header, without a bound on pixels. Raises what Pillow raises."""
    with warnings.catch_warnings(action="ignore", category=Image.DecompressionBombWarning):
        return Image.open(path)


def upright_size(image: Image.Image) -> tuple[int, int]:
    """Return the width and height of an opened image as it is shown."""
    return image.size[::-1] if _orientation(image) in (5, 6, 7, 8) else image.size


def decode(name: str, image: Image.Image, max_pixels: int, *, frames: bool = True) -> Decoded:
    """Decode the image that ``open_bytes`` opened, or the current frame of a given PIL image.

    The header is checked before anything is decoded. Raises ``ImageError``.
    """
    _check_header(name, image, max_pixels)
    notes = [*image.info.get(NOTES_KEY, ())]
    is_inner = image.info.get(INNER_KEY, False)
    try:
        conversion = conversion_of(image)
        count = getattr(image, "n_frames", 1) if frames else 1
        if count > 1 and not is_inner:
            notes.append(f"The file has {count} frames; only the first one was assessed.")
        if is_deep := _is_deep_color(image):
            notes.append(DEEP_COLOR)
        as_it_is = not (is_deep or _is_16_bit_gray(image) or image.mode == "CMYK" or conversion.changes)
        upright, turn = _upright(image, notes)
        lossless = _lossless(upright, conversion, notes)
        as_it_is = as_it_is and turn == 1 and image.info.get(MENDED_KEY) is None and not _is_transparent(lossless)
        if not conversion.by_code:
            notes += filter(None, [_unused_range(image, lossless, is_deep=is_deep)])
        pixels = _measured(lossless, conversion, notes)
    except Exception as error:  # decoders raise almost anything on damaged bytes
        advice = CONVERTER if is_inner else "get the file again"
        refuse(name, f"expected an intact image, but it is damaged or cut short ({_words(error)}); {advice}")
    mime = _MIME.get(str(image.format), "") if as_it_is and (count == 1 or image.format == "MPO") else ""
    return Decoded(pixels, tuple(notes), mime, conversion.is_doubtful)


def _described(data: bytes) -> tuple[str, str]:
    """Return what a file holds that Pillow cannot open, and what its owner can do."""
    if not data:
        return "an empty file", USUAL_FORMATS
    if extra := format_by_content(data):
        return f"a damaged {extra.name}", USUAL_FORMATS
    head = data[:1000]
    for kinds, advice in ((_RAW, CONVERTER), (_OTHER, USUAL_FORMATS)):
        for pattern, kind in kinds.items():
            if re.match(pattern, head, re.DOTALL):
                return kind, advice
    if re.fullmatch(_TEXT, head):
        beginning = " ".join(head.decode(errors="replace").split())[:40]
        return f"text that begins with {beginning!r}", USUAL_FORMATS
    return "data of an unknown kind", USUAL_FORMATS


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__


def check_size(name: str, image: Image.Image, max_pixels: int) -> None:
    """Raise ImageError for an opened image with too many pixels, or none."""
    width, height = image.size
    if max(width, height) > MOST_SIDE:
        refuse(name, f"expected sides of at most {MOST_SIDE} pixels, found {width}x{height}; crop the image")
    share = SHARE_OF_MOST.get(str(image.format), 1.0)
    if not 0 < width * height <= max_pixels * share:
        size, most = f"{width}x{height} = {width * height}", int(max_pixels * share)
        kind = f" in a {image.format}" if share < 1 else ""
        needed = f"set max_pixels to {math.ceil(width * height / share)} ({IN_CONFIG})"
        refuse(name, f"expected 1 to {most} pixels{kind}, found {size}; scale the image, or {needed}")


def _check_header(name: str, image: Image.Image, max_pixels: int) -> None:
    check_size(name, image, max_pixels)
    if (scans := _scans(image)) > MOST_SCANS:
        refuse(name, f"expected at most {MOST_SCANS} scans in a JPEG, found {scans} or more; save it as PNG")
    if image.format in {"EPS", "WMF", "XBM"}:
        refuse(name, f"expected an image, found a drawing ({image.format}); convert it to PNG")
    if (image.mode in {"I", "F"} and not _is_16_bit_gray(image)) or "I;12" in str(_layout(image)):
        layout = f"mode {image.mode} of unknown range"
        refuse(name, f"expected 8 or 16 bits per channel, found {layout}; save it with 8 bits")
    if image.format == "TIFF" and _has_odd_planes(image):
        refuse(name, "expected interleaved channels, found a TIFF with planes that Pillow misreads; save it as PNG")


def _scans(image: Image.Image) -> int:
    """Return the number of scans of the first picture of a JPEG, counted up to a few more than ``MOST_SCANS``."""
    if image.format in {"BLP", "IPTC"}:  # they hold a JPEG; libtiff itself refuses more than 100 scans
        return bytes_of(image).count(b"\xff\xda")
    data, at, scans = bytes_of(image) if image.format in {"JPEG", "MPO"} else b"", 0, 0
    while scans <= MOST_SCANS and (marker := _JPEG_MARKER.search(data, at)):
        code, at = marker[1][0], marker.end()
        if code == 0xD9:  # the end of the picture
            break
        if code not in (0x01, 0xD8):  # markers without a length
            at += int.from_bytes(data[at : at + 2])
        scans += code == 0xDA
    return scans


def _has_odd_planes(image: Image.Image) -> bool:
    """Return whether Pillow misreads the planes of a TIFF; it reads 8-bit color planes and compressed ones right."""
    tags = getattr(image, "tag_v2", {})
    deep = max(tags.get(BITS, (8,))) > 8 and tags.get(COMPRESSION, 1) == 1
    return tags.get(PLANES, 1) == 2 and (deep or tags.get(CHANNELS, 3) == 2)


def _layout(image: Image.Image) -> list[object]:
    """Return the decoder's name of the pixel layout in the file; empty once the pixels are decoded."""
    return [tile.args for tile in getattr(image, "tile", [])]


def _raw_mode(image: Image.Image) -> str:
    """Return the name of the samples in the file, such as ``RGB;16B``; empty once the pixels are decoded."""
    args = next(iter(_layout(image)), "")
    return str(args[0] if isinstance(args, tuple) else args)


def _is_16_bit_gray(image: Image.Image) -> bool:
    # Pillow scales the maximum that a PGM file declares to 65535, but keeps it in mode I
    return image.mode.startswith("I;16") or (image.mode == "I" and image.format == "PPM")


def _is_deep_color(image: Image.Image) -> bool:
    if image.format == "PPM":  # its layout is a mode alone, or a mode and the greatest value
        deep = any(isinstance(args, tuple) and args[-1] > 255 for args in _layout(image))
    else:
        deep = ";16" in str(_layout(image))
    return (deep or image.info.get("bit_depth", 8) > 8) and not _is_16_bit_gray(image)  # bit_depth: of a HEIC


def _orientation(image: Image.Image) -> int:
    """Return the EXIF orientation. Without one, Pillow's ``getexif`` would return that of XMP, which viewers ignore."""
    try:
        if isinstance(image, TiffImagePlugin.TiffImageFile):
            return int(image.tag_v2.get(ExifTag.Orientation, 1))
        if image.format is None and not {"exif", *XMP} & {*image.info}:  # made in memory
            return int(image.getexif().get(ExifTag.Orientation, 1))
        exif, raw = Image.Exif(), image.info.get("exif")
        if raw is None:  # the profile that ImageMagick writes to a PNG
            raw = bytes.fromhex("".join(image.info.get("Raw profile type exif", "").split("\n")[3:]))
        exif.load(raw)
        return int(exif.get(ExifTag.Orientation, 1))
    except (SyntaxError, TypeError, ValueError):  # invalid EXIF is ignored
        return 1


def _upright(image: Image.Image, notes: list[str]) -> tuple[Image.Image, int]:
    """Decode and rotate by the EXIF orientation; return the image and the orientation."""
    declared = _orientation(image)
    # Pillow inverts a TIFF where white is 0, except with 16 bits; if it ever does, the layout has another name.
    is_inverted = getattr(image, "tag_v2", {}).get(PHOTOMETRIC) == 0 and _raw_mode(image) in AS_STORED
    key = image.info["transparency"] = _key_as_decoded(image)
    if key is None:
        del image.info["transparency"]
    xmp = {name: image.info.pop(name) for name in XMP if name in image.info}  # Pillow would turn a TIFF by it
    try:
        with _allowing(image.width * image.height):  # a TIFF is checked again
            image.load()
    finally:
        image.info.update(xmp)
    left = _orientation(image)  # Pillow turns a TIFF while decoding; a PNG may declare it after its pixels
    turn = declared if declared in _UPRIGHT else left if left in _UPRIGHT else 1
    if turn != 1:
        notes.append(f"EXIF orientation {turn} was applied.")
    by_xmp = [int(match[1]) for text in xmp.values() if (match := _XMP_ORIENTATION.search(_as_text(text)))]
    if by_xmp and by_xmp[0] != turn and image.format in {*_MIME, "TIFF"}:
        notes.append(f"The orientation {by_xmp[0]} in the XMP data was ignored; viewers use only EXIF.")
    if is_inverted:
        image = Image.fromarray(65535 - np.asarray(image).astype(np.uint16))
    return image.transpose(_UPRIGHT[left]) if left in _UPRIGHT else image, turn


def _as_text(text: str | bytes) -> str:
    return text if isinstance(text, str) else text.decode("latin-1")


def _key_as_decoded(image: Image.Image) -> Any:
    """Return the transparent color of a PNG (tRNS): it has the depth of the file, and decoded samples have 8 bits.

    With fewer than 16 bits, only the lowest bits count (PNG, third edition, 11.3.2.1). Of 16 bits of a color, Pillow
    returns the upper 8.
    """
    key, raw = image.info.get("transparency"), _raw_mode(image)
    if raw == "RGB;16B" and isinstance(key, tuple):
        return tuple(value >> 8 for value in key)
    depth = {"L;2": 2, "L;4": 4, "L": 8, "RGB": 8}.get(raw) if image.format == "PNG" else None
    if depth is None or isinstance(key, bytes | None):
        return key
    top = 2**depth - 1
    return tuple(value & top for value in key) if isinstance(key, tuple) else (key & top) * 255 // top


def _lossless(image: Image.Image, conversion: Conversion, notes: list[str]) -> Image.Image:
    """Return the picture in mode I;16, RGBA, L or RGB, without loss if its mode allows that."""
    if image.mode.startswith("I"):
        deep = Image.fromarray(np.asarray(image).astype(np.uint16))
        deep.info.update({key: value for key, value in image.info.items() if key == "transparency"})
        return deep
    if image.mode in {"La", "RGBa"}:  # multiplied by their alpha
        image = image.convert(image.mode.upper())
    if image.mode == "CMYK":
        image = conversion.apply(image)
        if image.mode == "CMYK":
            notes.append("CMYK was converted to RGB without a color profile.")
    mode = "RGBA" if image.has_transparency_data else "L" if image.mode in {"1", "L"} else "RGB"
    return image if image.mode == mode else image.convert(mode)


def _unused_range(image: Image.Image, lossless: Image.Image, *, is_deep: bool) -> str | None:
    """Return a note about 16-bit values that use a small part of their range, such as 12 bits of a camera.

    They are not scaled, because no metadata says that the range is smaller. By sBIT, a PNG names the precision of
    values that have the full range (third edition, 11.3.2.5). MaxSampleValue of TIFF must not change how a picture
    looks (TIFF 6.0).
    """
    if lossless.mode == "I;16":
        return unused_bits(int(np.asarray(lossless).max()))
    if not is_deep or image.format not in {"PNG", "TIFF"}:  # values of other formats have the range of the file
        return None
    high = int(np.asarray(lossless.convert("RGB")).max())  # of the upper 8 bits
    return unused_bits(high * 256)


def _measured(image: Image.Image, conversion: Conversion, notes: list[str]) -> np.ndarray:
    """Return the result of ``_lossless`` as read-only 8-bit sRGB, converted in bands of rows to save memory."""
    if conversion.note:
        notes.append(one_line(conversion.note))
    if image.mode == "I;16":
        notes.append("16-bit gray was scaled to 8 bits for measuring (v / 257, rounded).")
    if _is_transparent(image):
        notes.append("Transparency was composited over white.")
    width, height = image.size
    pixels = np.empty((height, width, 3), np.uint8)
    rows = max(1, BAND // width)
    for top in range(0, height, rows):
        band = image if rows >= height else image.crop((0, top, width, min(top + rows, height)))
        pixels[top : top + rows] = rgb(_in_8_bits(band, conversion))
    pixels.setflags(write=False)
    return pixels


def _is_transparent(image: Image.Image) -> bool:
    if image.mode == "I;16":
        return image.info.get("transparency") is not None
    return image.mode == "RGBA" and image.getchannel("A").getextrema() != (255, 255)


def _in_8_bits(image: Image.Image, conversion: Conversion) -> Image.Image:
    if image.mode == "I;16":
        values = np.asarray(image)
        clear = values == image.info.get("transparency", -1)
        if conversion.by_code:
            gray = Image.fromarray(conversion.by_code(np.repeat(values[..., None], 3, axis=2)))
        else:
            gray = _in_srgb(Image.fromarray(((values.astype(np.uint32) + 128) // 257).astype(np.uint8)), conversion)
        return Image.composite(Image.new("RGB", image.size, "white"), gray.convert("RGB"), Image.fromarray(clear))
    image = _in_srgb(image, conversion)
    if _is_transparent(image):
        return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    return image


def _in_srgb(image: Image.Image, conversion: Conversion) -> Image.Image:
    """Return a picture of mode L, RGB or RGBA in sRGB; CMYK was converted before."""
    if not conversion.changes or conversion.mode == "CMYK":
        return image
    if image.mode != "RGBA":
        return conversion.apply(image)
    colors = image.getchannel("R") if conversion.mode == "L" else image.convert("RGB")
    converted = conversion.apply(colors)
    converted.putalpha(image.getchannel("A"))
    return converted
