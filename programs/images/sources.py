r"""Read images of any supported source: each becomes a name and either the bytes of a file or a PIL image.

================================  ====================================  =====================================
given                             read as                               named in results and messages
================================  ====================================  =====================================
path (str, PathLike)              the bytes of the file                 the path as given (what is not
                                                                        UTF-8 in it as ``\xff``)
``file://`` URI                   the bytes of the file                 its path
bytes, bytearray, memoryview      the bytes of a file                   ``<bytes>``
file object opened in binary      its bytes from the start, or, where   its path if it has one, else
                                  it cannot seek, the rest of it        ``<file object>``
upload of a web framework         the bytes of its file                 the name that the sender gave
data URI                          the bytes it encodes                  ``<data URI>``
``dspy.Image`` of a data URI      the bytes it encodes                  ``<dspy.Image>``
numpy array                       see below                             ``<array>``
PIL image                         its current frame                     ``<PIL image>``
================================  ====================================  =====================================

The media type that a data URI declares is ignored: the content decides. http(s) and other addresses are refused,
never fetched. A file object is neither closed nor set back.

An array has shape (height, width), (height, width, 3) or (height, width, 4): gray, RGB or RGBA, in this order. Only its
type, never its values, determines the range:

* uint8: 0 to 255;
* uint16: 0 to 65535. Gray stays at 16 bits; color is read at 8 bits (v // 256), as Pillow reads a PNG of such values;
* float of any size: 0 to 1, rounded to 8 bits; values up to 0.001 outside, from rounding errors, are clipped.

Everything else (other integers, floats outside 0 to 1, NaN, other shapes) is refused, because its range or layout is
unclear.
"""

import binascii
import io
import os
import re
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn, TypeAlias, TypeGuard, Union
from urllib.parse import unquote, unquote_to_bytes, urlsplit
from urllib.request import url2pathname

import numpy as np
from PIL import Image
from pybase64 import b64decode

from agenticiqa.configs.user_files import MOST_BYTES, MOST_PLAIN_BYTES, open_regular
from agenticiqa.programs.errors import ImageError, ImageNotFound
from agenticiqa.programs.images.arrays import unused_bits
from agenticiqa.programs.images.decoding import DEEP_COLOR, most_bytes, refuse, refuse_other_beginning
from agenticiqa.programs.images.files import printable_path
from agenticiqa.programs.images.loaded import LoadedImage
from agenticiqa.programs.images.names import PATTERN, paths_named

if TYPE_CHECKING:
    import dspy

ROUNDING_ERROR = 1e-3  # difference by which floats may lie outside 0..1
CHUNK = 2**20  # bytes that are read from a file object at a time
LONGEST_NAME = 500  # characters of a path in a message
LONGEST_PATH = 4096  # characters; a longer text is content in place of a path
MOST_QUOTED = 60  # characters of a longer one, or of an address
MOST_LISTED = 5  # files that an error lists

LEAST_WHITE = 0.25  # highest float below which a range other than 0..1 is probable
LOW_FLOATS = f"No value is above {LEAST_WHITE} of 1, so the image is dark. If their range is smaller, scale it to 0..1."
MASKED = "The mask of the array was ignored: masked values were assessed, too. Crop the image, or fill them."
SAVED_BY_DSPY = (
    "The image is a dspy.Image of a form in which DSPy saves bytes and PIL images again, with losses and without their "
    "orientation. If it was made from these, give them, or the path, instead."
)

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+://|data:", re.IGNORECASE)
_DATA_URI = re.compile(r"\s*data:", re.IGNORECASE)
_FILE_URI = re.compile(r"file:/", re.IGNORECASE)
_SCHEME = re.compile(r"file:(//(localhost)?)?(?=/)", re.IGNORECASE)
# Base64 of a JPEG, PNG, GIF, WebP, TIFF, BMP, AVIF or HEIC, by its first bytes; also as Python shows bytes.
_BASE64 = re.compile(
    r"(b?['\"])?(?=/9j/|iVBORw|R0lGOD|UklGR|SUkq|TU0A|Qk[0-3]|AAAA[\w+/]{2}Z0eX)[\w+/\s-]{40,}={0,2}\s*['\"]?", re.ASCII
)
# A JPEG of Pillow's default quality 75, a lossy WebP or an AVIF, without Exif data: as DSPy saves a picture.
_SAVED_BY_DSPY = re.compile(
    rb"\xff\xd8\xff[\xe0\xee](?!.{,99}Exif\0).{,999}?\xff\xdb\0[\x43\x84]\0\x08\x06\x06\x07\x06\x05\x08\x07"
    rb"|RIFF.{4}WEBP(VP8 |VP8X.{4}[\x00\x10\x20\x30])|.{4}ftypavi[fs](?!.{,999}Exif)",
    re.DOTALL,
)
_NAMES: dict[type | tuple[type, ...], str] = {
    (bytes, bytearray, memoryview): "<bytes>",
    np.ndarray: "<array>",
    Image.Image: "<PIL image>",
}


@dataclass(frozen=True)
class UndecodedImage:
    """An image that was read but not decoded.

    ``load`` takes it like any other source, so it can also give bytes a name. Unlike a file object it can be sent to
    another process.

    Attributes:
        source: Its name in results and messages.
        content: The bytes of an image file, or a PIL image.
        notes: A sentence for each loss in reading.
    """

    source: str
    content: bytes | Image.Image = field(repr=False)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class StoredImage:
    """An image in a data set or at an address, which is read each time that its content is needed.

    Attributes:
        source: Its name in results and messages.
    """

    source: str

    @property
    def place(self) -> tuple[str, int]:
        """The file that holds the image, and its place there; images are read fastest in this order."""
        return self.source, 0

    def read_content(self) -> bytes:
        """Return the bytes of the image's file. Raises ImageError, or another error of this image."""
        raise NotImplementedError


ImageSource: TypeAlias = Union[
    str,
    os.PathLike[str],
    bytes,
    bytearray,
    memoryview,
    IO[bytes],
    Image.Image,
    np.ndarray[Any, Any],
    "dspy.Image",
    UndecodedImage,
    StoredImage,
    LoadedImage,
]


def read_source(source: ImageSource) -> UndecodedImage:
    """Read an image of any kind in the table above; a ``LoadedImage`` is not one of them (see ``load``).

    Raises ImageNotFound for a missing file and ImageError for an unreadable file or unsupported source.
    """
    if isinstance(source, UndecodedImage):
        return source
    name = name_of(source)
    if isinstance(source, np.ndarray):
        return UndecodedImage(name, *from_array(name, source))
    content = _content(source)
    is_doubtful = _is_dspy_image(source) and isinstance(content, bytes) and _SAVED_BY_DSPY.match(content)
    return UndecodedImage(name, content, (SAVED_BY_DSPY,) if is_doubtful else ())


def name_of(source: object) -> str:
    """Return the name of an image in results, logs and messages, without reading it.

    Args:
        source: The image, in any form that ``images.sources`` lists.

    Returns:
        The path, printable, or ``<bytes>`` and the like.
    """
    if isinstance(source, str):
        if _DATA_URI.match(source):
            return "<data URI>"
        with suppress(ImageError):  # a file of another machine keeps its name
            return printable_path(_path_of_uri(source) if _FILE_URI.match(source) else source)
        return printable_path(source)
    if isinstance(source, os.PathLike):
        return printable_path(source)
    for kind, name in _NAMES.items():
        if isinstance(source, kind):
            return name
    if isinstance(source, UndecodedImage | StoredImage | LoadedImage):
        return source.source
    if _is_dspy_image(source):
        return "<dspy.Image>"
    if hasattr(source, "read"):
        # The name is a number for a file that was opened by its descriptor, and that of the form's field for an upload.
        path = getattr(source, "filename", None) or getattr(source, "name", None)
        return printable_path(path) if isinstance(path, str) and path else "<file object>"
    return f"<{type(source).__name__}>"


def is_in_memory(value: object) -> bool:
    """Return whether an image is not a path; its repr may then hold all its bytes, unlike ``name_of``."""
    if isinstance(value, str):
        return _DATA_URI.match(value) is not None
    kinds = (*_NAMES, UndecodedImage, StoredImage, LoadedImage)
    return isinstance(value, kinds) or _is_dspy_image(value) or hasattr(value, "read")


def is_encoded(text: str) -> bool:
    """Return whether a text is an image itself, as a data URI or base64, and no path."""
    return bool(_DATA_URI.match(text) or _BASE64.fullmatch(text))


def path_of(source: ImageSource) -> Path | None:
    """Return the path of an image that was given as a path or a ``file://`` URI.

    Args:
        source: The image, in any form that ``images.sources`` lists.

    Returns:
        The path, or ``None`` for an image in memory.
    """
    if isinstance(source, str) and _FILE_URI.match(source):
        with suppress(ImageError):  # a file of another machine has no path here
            return _path_of_uri(source)
    if isinstance(source, os.PathLike) or (isinstance(source, str) and not _DATA_URI.match(source)):
        return Path(source)
    return None


def picklable(source: ImageSource) -> ImageSource:
    """Return the same image, with the same name, in a picklable form.

    Args:
        source: The image, in any form that ``images.sources`` lists.

    Returns:
        The source itself, or the content of a file object or a stored image.

    Raises:
        ImageError: The file is unreadable, or the source is unsupported.
    """
    kept = str | os.PathLike | bytes | bytearray | np.ndarray | Image.Image | UndecodedImage | LoadedImage
    return source if isinstance(source, kept) or _is_dspy_image(source) else read_source(source)


def without_scheme(name: str) -> str:
    """Return the path in a ``file://`` URI, which may be a pattern; other names are unchanged."""
    if not _FILE_URI.match(name):
        return name
    path = path_of(name)
    return os.fspath(path) if path and os.path.exists(path) else unquote(_SCHEME.sub("", name))


def local_path(source: str | os.PathLike[str]) -> Path:
    """Return the path of an existing file or folder, given as a path or a ``file://`` URI.

    If nothing has this very name, names are compared as ``names.closest`` does. Raises ImageNotFound when nothing is
    there, and ImageError for several such names and for other addresses, which are never fetched.
    """
    name = os.fsdecode(source)
    if isinstance(source, str) and _FILE_URI.match(source):
        name = str(_path_of_uri(source))
    elif _ADDRESS.match(name):
        _refuse_address(name[:MOST_QUOTED])
    paths = paths_named(name)
    if len(paths) > 1:
        listed = ", ".join(map(printable_path, paths[:MOST_LISTED]))
        refuse(name, f"expected one file, found {len(paths)} names that differ in case: {listed}; write one of them")
    if not paths or not name:
        label = shown_name(name)
        if _BASE64.fullmatch(name):
            advice = "decode it to a file, or give base64.b64decode(text) in Python"
            refuse(f"{name[:MOST_QUOTED]}...", f"expected a path, found base64 text; {advice}")
        if len(name) > LONGEST_PATH:
            advice = "expected a path, found content; decode it to a file, or give its bytes in Python"
            refuse(label, f"there is no such file: {advice}", ImageNotFound)
        is_question = " " in name and name.rstrip().endswith("?")
        advice = "give a question as the query (--query)" if is_question else "check the path"
        if PATTERN.search(name) and not is_question:
            refuse(label, "no file matches this pattern; check the pattern", ImageNotFound)
        refuse(label or "(empty path)", f"expected an image, but there is no such file; {advice}", ImageNotFound)
    return Path(paths[0])


def shown_name(name: str) -> str:
    """Return the name of a file for a message; of a text that is too long for a name, its beginning and length."""
    return name if len(name) <= LONGEST_NAME else f"{name[:MOST_QUOTED]}... ({len(name)} characters)"


def _content(source: ImageSource) -> bytes | Image.Image:
    name = name_of(source)
    if isinstance(source, Image.Image):
        return source
    if isinstance(source, StoredImage):
        return source.read_content()
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source)
    if isinstance(source, str) and _DATA_URI.match(source):
        return _decoded_uri(name, source)
    if isinstance(source, str | os.PathLike):
        return _read_file(local_path(source))
    if _is_dspy_image(source):
        return _decoded_uri(name, source.url) if _DATA_URI.match(source.url) else _refuse_address(name)
    if hasattr(source, "read"):
        return _read_object(name, source)
    kinds = "a path, bytes, a file object, a PIL image, a numpy array or a dspy.Image"
    refuse("image", f"expected {kinds}, got {type(source).__name__}; convert it first")


def _is_dspy_image(source: object) -> "TypeGuard[dspy.Image]":
    dspy = sys.modules.get("dspy")  # a module that is not loaded has made no image
    return dspy is not None and isinstance(source, dspy.Image)


def _refuse_address(name: str) -> NoReturn:
    if _DATA_URI.match(name):
        refuse(name, "expected a path, found a data URI; decode it to a file")
    refuse(name, "expected a local image, got an address; download it, and give the file, its bytes or a PIL image")


def _path_of_uri(uri: str) -> Path:
    try:
        parts = urlsplit(uri)
    except ValueError as error:
        refuse(uri[:MOST_QUOTED], f"expected a file:// URI, but it cannot be read ({error}); give the path itself")
    if parts.netloc not in {"", "localhost"}:
        refuse(uri[:MOST_QUOTED], f"expected a file on this machine, got one on {parts.netloc}; copy it here first")
    return Path(url2pathname(parts.path))


def _decoded_uri(name: str, uri: str) -> bytes:
    """Return the bytes in a data URI (RFC 2397), base64 or percent-encoded."""
    header, comma, payload = uri.strip().partition(",")
    if not comma:
        refuse(name, "expected a data URI with a comma before its content, found none; write data:image/png;base64,...")
    content = unquote_to_bytes(payload)
    if not header.lower().endswith(";base64"):
        return content
    try:
        return b64decode(b"".join(content.split()), validate=True)
    except binascii.Error as error:
        refuse(name, f"expected base64 after the comma, but it cannot be decoded ({error}); encode the file again")


def _read_file(path: Path) -> bytes:
    name = str(path)
    if path.is_dir():
        refuse(name, "expected an image, found a folder; give the images in it")
    try:
        with open_regular(path, MOST_PLAIN_BYTES) as file:
            return read_image(name, file)
    except OSError as error:
        refuse(name, f"expected an image, but it cannot be read ({error.strerror}); check the file and its permissions")


def _read_object(name: str, file: Any) -> bytes:
    """Return all bytes of a file object, from its start if it can seek."""
    if iscoroutinefunction(file.read) and hasattr(getattr(file, "file", None), "read"):
        file = file.file  # an upload of FastAPI, or of another framework on Starlette
    if iscoroutinefunction(file.read):
        refuse(name, "expected a file object, but its read() has to be awaited; give the bytes: await file.read()")
    try:
        if getattr(file, "seekable", lambda: False)():
            file.seek(0)
        return read_image(name, file)
    except ImageError:
        raise
    except TypeError:  # a memory view of text
        problem = "read() returns no bytes"
        refuse(name, f"expected a file object opened in binary mode, but its {problem}; open it with mode 'rb'")
    except (OSError, ValueError) as error:
        refuse(name, f"expected an image, but the file object cannot be read ({error}); open it again")


def read_image(name: str, file: Any) -> bytes:
    """Return the remaining bytes of a file object, up to a few more than ``most_bytes``, which are too many.

    Of a large file that is no image, only the beginning is read. Raises ImageError, and what ``file.read`` raises.
    """
    content, most = io.BytesIO(), MOST_BYTES
    while content.tell() <= most and (chunk := file.read(CHUNK)):
        content.write(memoryview(chunk))
        if content.tell() == CHUNK:
            refuse_other_beginning(name, content.getvalue())
            most = most_bytes(bytes(chunk[:4]))
    return content.getvalue()


FLOATS = "Floats in 0..1 were rounded to 8 bits."
_CHANNELS = (3, 4)  # channels of RGB and RGBA


def from_array(name: str, array: np.ndarray[Any, Any]) -> tuple[Image.Image, tuple[str, ...]]:
    """Return a PIL image of mode L, I;16, RGB or RGBA with the array's values (copied), and a note on any loss.

    ``name`` is for messages. Raises ImageError for an array that the conventions above do not cover.
    """
    _check_shape(name, array.shape)
    masked = (MASKED,) if np.ma.is_masked(array) else ()
    array = np.asarray(array)
    colors = array[..., :3] if array.ndim == 3 else array
    if array.dtype == np.uint8:
        unused = unused_bits(int(colors.max(initial=0)), 8)
        return _image(array, np.uint8), (*masked, *([unused] if unused else []))
    if array.dtype.kind == "u" and array.dtype.itemsize == 2:
        if array.ndim == 2:  # decoding notes a part of the range
            return _image(array, np.uint16), masked
        unused = unused_bits(int(colors.max(initial=0)))
        return _image(array >> 8, np.uint8), tuple(filter(None, (*masked, DEEP_COLOR, unused)))
    if array.dtype.kind == "f":
        values = _checked_floats(name, array)
        low = (LOW_FLOATS,) if 0 < colors.max(initial=0) < LEAST_WHITE else ()
        return _image(np.rint(values * 255), np.uint8), (*masked, FLOATS, *low)
    refuse(name, f"expected an array of uint8, uint16 or floats in 0..1, got {array.dtype}; {_hint(array)}")


def _image(values: np.ndarray[Any, Any], dtype: type[np.uint8 | np.uint16]) -> Image.Image:
    return Image.fromarray(np.array(values, dtype=dtype, order="C"))


def _check_shape(name: str, shape: tuple[int, ...]) -> None:
    if len(shape) == 2 or (len(shape) == 3 and shape[-1] in _CHANNELS):
        return
    if len(shape) == 3 and shape[-1] == 1:
        advice = "give array[..., 0]"
    elif len(shape) == 3 and shape[0] in _CHANNELS:
        advice = "its channels are first: give array.transpose(1, 2, 0)"
    elif len(shape) == 4:
        advice = "give the images of a stack one at a time"
    else:
        advice = "convert it to one of these shapes"
    refuse(name, f"expected an array of shape (h, w), (h, w, 3) or (h, w, 4), got {shape}; {advice}")


def _checked_floats(name: str, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the array in 0..1, as at least float32 so that rounding to 8 bits is exact."""
    values = array.astype(np.float32) if array.dtype.itemsize < 4 else array
    if not values.size:
        return values
    low, high = float(values.min()), float(values.max())
    if not np.isfinite([low, high]).all():
        refuse(name, "expected floats in 0..1, found NaN or infinity; replace these values")
    excess = max(-low, high - 1)
    if excess > ROUNDING_ERROR:
        is_in_bytes = low >= -ROUNDING_ERROR and 2 < high <= 255 + ROUNDING_ERROR
        advice = "divide by 255 if its range is 0..255" if is_in_bytes else "scale them to 0..1"
        refuse(name, f"expected floats in 0..1, found {low:.6g} to {high:.6g}, outside by {excess:.3g}; {advice}")
    return np.clip(values, 0, 1) if excess > 0 else values


def _hint(array: np.ndarray[Any, Any]) -> str:
    if array.dtype.kind == "b":
        return "convert it with array.astype('uint8') * 255"
    if array.dtype.kind in "iu" and array.size and int(array.min()) >= 0 and int(array.max()) <= 255:
        return "if 255 is white, convert it with array.astype('uint8')"
    return "convert it first"
