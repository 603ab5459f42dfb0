"""Capture libtiff's messages about a damaged file, which it would print to stderr by itself."""

import ctypes
import threading
from typing import Any

from PIL import Image

MOST_LINES, LONGEST = 3, 300
PILLOWS_NAME = b"tempfile.tif"  # for every file
HANDLER = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p)  # module, format, va_list
FORMATTER = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_void_p)

_reported = threading.local()  # libtiff reports in the thread that decodes
_install_lock = threading.Lock()
_installed: list[Any] = []  # libtiff calls it, so it lives as long as the process


def load(image: Image.Image) -> list[str]:
    """Decode the pixels of an image. Returns libtiff's messages about them: the first three distinct lines.

    Raises what ``Image.load`` does; an error has libtiff's messages as its text, if there are any.
    """
    if not any(tile.codec_name == "libtiff" for tile in getattr(image, "tile", [])):
        image.load()
        return []
    with _install_lock:
        if not _installed:
            _installed.append(_install())
    lines: list[str] = []
    _reported.lines = lines
    try:
        image.load()
    except OSError as error:
        if lines:
            raise OSError("; ".join(lines)) from error
        raise
    finally:
        del _reported.lines
    return lines


def _install() -> Any:
    """Make libtiff call Python; messages about images decoded by other code are printed as before.

    Nothing is changed where the library inside of Pillow shows no symbols, as on Windows.
    """
    try:
        set_handler = ctypes.CDLL(Image.core.__file__).TIFFSetErrorHandler  # from Pillow's libraries
        formatted = FORMATTER(("PyOS_vsnprintf", ctypes.pythonapi))
    except (AttributeError, OSError):
        return None

    def receive(module: bytes | None, text: bytes, values: int) -> None:
        lines = getattr(_reported, "lines", None)
        if lines is None:
            if before:
                before(module, text, values)
        elif len(lines) < MOST_LINES:
            buffer = ctypes.create_string_buffer(LONGEST)
            formatted(buffer, LONGEST, text, values)
            parts = (b"" if module == PILLOWS_NAME else module, buffer.value)
            line = b": ".join(part for part in parts if part).decode(errors="replace").strip(" .")
            if line not in lines:
                lines.append(line)

    handler = HANDLER(receive)
    set_handler.argtypes, set_handler.restype = [HANDLER], HANDLER
    before = set_handler(handler)
    return handler
