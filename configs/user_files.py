"""Open files that users name, up to a size, so that no file takes all memory or never ends.

These are regular files. A text that is read as a whole may also be a pipe, such as ``<(...)`` in a shell.
"""

import errno
import io
import os
import select
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TextIO

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

MOST_BYTES = 2**29  # bytes of an image or a table, 512 MiB
MOST_PLAIN_BYTES = 640 * 2**20  # bytes of an image without compression: 205 million pixels of 3 bytes
MOST_TEXT_BYTES = 2**26  # bytes of another file that is read as a whole, 64 MiB
STDIN = "-"  # as the name of a file
WRITER_WAIT = 0.2  # seconds until a pipe has a writer, which a shell starts with the command
MOST_YAML_BYTES = 2**20  # bytes, 1 MiB: the parser takes 40 s for them


class UnusableFile(OSError):
    """Raised for a file that is not regular or too large; ``strerror`` says which."""

    def __str__(self) -> str:
        return str(self.strerror)


def open_regular(path: str | os.PathLike[str], most: int | None = None) -> io.BufferedReader:
    """Open a regular file in binary mode, or a link to one.

    Args:
        path: The file.
        most: The largest size in bytes; ``None`` for a file that is read in parts.

    Returns:
        The open file.

    Raises:
        UnusableFile: It is a folder, a pipe or a device, or is larger.
        OSError: It cannot be opened.
    """
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise UnusableFile(errno.EINVAL, "it is a folder, a pipe or a device, not a regular file", os.fspath(path))
    if most is not None and status.st_size > most:
        raise UnusableFile(errno.EFBIG, f"it has {status.st_size} bytes; at most {most} are read", os.fspath(path))
    return open(path, "rb")


def open_text(path: str | os.PathLike[str], *, newline: str | None = None) -> TextIO:
    """Open a table of a user as text in UTF-8, with or without a byte order mark. Raises as ``open_regular``."""
    return io.TextIOWrapper(open_regular(path, MOST_BYTES), "utf-8-sig", newline=newline)


def read_regular(path: str | os.PathLike[str], most: int = MOST_TEXT_BYTES) -> bytes:
    """Return the bytes of a regular file or a pipe. Raises as ``open_regular``, and UnusableFile for an empty pipe."""
    if stat.S_ISFIFO(os.stat(path).st_mode):
        with _opened_pipe(path) as pipe:
            return read_stream(pipe, os.fspath(path), most)
    with open_regular(path, most) as file:
        return file.read()


def read_stream(stream: BinaryIO, name: str, most: int = MOST_TEXT_BYTES) -> bytes:
    """Return the bytes of a pipe or of stdin. Raises UnusableFile if it is empty or longer.

    An empty one has probably been read before.
    """
    data = stream.read(most + 1)
    if not data:
        raise UnusableFile(errno.EINVAL, "it is empty; a pipe can be read only once", name)
    if len(data) > most:
        raise UnusableFile(errno.EFBIG, f"it has more than {most} bytes; at most {most} are read", name)
    return data


def _opened_pipe(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a pipe for reading. Raises UnusableFile for one without a writer, which would never end."""
    pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    is_ready = select.select([pipe], [], [], WRITER_WAIT)[0]
    with suppress(BlockingIOError):  # raised if there is a writer, but nothing was written
        if not is_ready and not os.read(pipe, 1):
            os.close(pipe)
            raise UnusableFile(errno.EINVAL, "it is a pipe without a writer, not a regular file", os.fspath(path))
    os.set_blocking(pipe, True)
    return os.fdopen(pipe, "rb")


def text_of_yaml(path: Path, shipped: "Traversable") -> str | None:
    """Return the text of a user's YAML file, or of stdin (``-``), else of the shipped one; ``None`` if there is none.

    Raises as ``open_regular``, and UnicodeDecodeError.
    """
    if str(path) == STDIN:
        return read_stream(sys.stdin.buffer, "<stdin>", MOST_YAML_BYTES).decode("utf-8")
    if not os.path.isfile(path) and shipped.is_file():
        return shipped.read_text(encoding="utf-8")
    return read_text(path, MOST_YAML_BYTES) if os.path.exists(path) else None


def read_text(path: str | os.PathLike[str], most: int = MOST_TEXT_BYTES) -> str:
    """Return a text in UTF-8. Raises as ``open_regular``, and UnicodeDecodeError."""
    return read_regular(path, most).decode("utf-8")
