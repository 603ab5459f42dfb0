"""How the C library gives memory back, for commands that judge large photos in many threads."""

import ctypes
import sys

# Numbers of malloc.h; glibc only.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
LARGE = 8 << 20  # bytes: the pixels of a photo of 3 megapixels


def return_large_blocks() -> None:
    """Let blocks of at least 8 MiB go back to the system when they are freed, on Linux with glibc; else do nothing.

    By default glibc keeps freed blocks of up to 32 MiB, for each thread by itself.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, LARGE)
        mallopt(M_TRIM_THRESHOLD, 2 * LARGE)
