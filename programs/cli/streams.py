"""Give a process its three streams, whichever of them its caller has closed."""

import errno
import io
import os
import sys
from typing import Any

CLOSED = "stdout is closed; redirect it to a file"


class Messages(io.FileIO):
    """The bytes of stderr. What cannot be written is dropped, because a message must not end a run."""

    def write(self, data: Any) -> int:
        """Write the data, or drop it if the disk is full, the reader has stopped, or the pipe is full."""
        try:
            return super().write(data) or len(data)  # None for a full pipe that does not block
        except OSError:
            return len(data)


def open_streams() -> None:
    """Open closed streams, and let stderr drop what cannot be written.

    Otherwise Python has ``None`` in their place, prints messages to stdout, and a results file gets a free number.
    A closed stdin cannot be read and a closed stdout not written, which commands report like other errors of files.
    """
    for number, flags in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, flags)  # the lowest free number, which is this one
            os.set_inheritable(number, True)
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)))
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w", closefd=False)))
    if sys.stderr is sys.__stderr__:
        stderr = io.BufferedWriter(Messages(2, "w", closefd=False))
        encoding = getattr(sys.stderr, "encoding", None)
        sys.stderr = io.TextIOWrapper(stderr, encoding, "backslashreplace", line_buffering=True)


def reason_of(error: OSError) -> str:
    """Return why output could not be written, in words."""
    return CLOSED if error.errno == errno.EBADF else error.strerror or str(error)
