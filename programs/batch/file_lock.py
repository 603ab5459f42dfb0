"""One process at a time writes a results file: an advisory lock on the file itself, which ends with the process."""

import errno
import os
from io import FileIO
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, which has no such locks
    fcntl = None  # type: ignore[assignment]

TAKEN = (errno.EACCES, errno.EAGAIN)


def locked_by(file: FileIO) -> str | None:
    """Lock an open file until it is closed; ``None`` when that worked, else who has it.

    File systems without locks count as unlocked.
    """
    if fcntl is None:
        return None
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return _holder(os.fstat(file.fileno()).st_ino) if error.errno in TAKEN else None
    return None


def _holder(inode: int) -> str:
    """The process that holds a lock on a file, as far as the system tells (Linux: ``/proc/locks``)."""
    try:
        # A line: "1: FLOCK  ADVISORY  WRITE 4711 00:2d:1234 0 EOF"
        held = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
        pid = next(fields[4] for fields in held if len(fields) > 5 and fields[5].endswith(f":{inode}"))
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except (OSError, StopIteration):
        return "another process"
    return f"process {pid} ({command})" if command else f"process {pid}"
