"""Handle Ctrl-C during the whole run of a command.

The first Ctrl-C raises KeyboardInterrupt, and the command may wait for requests that were already sent. The second one
ends the process at once; finished rows are on disk. Ctrl-C after the command has returned does not change its status.
"""

import atexit
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import NoReturn

from agenticiqa.programs.cli.status import INTERRUPTED
from agenticiqa.programs.cli.streams import open_streams

ABORTED = b"agenticiqa: aborted; finished results are kept\n"
SHOW_CURSOR = b"\x1b[?25h\r\x1b[K"  # the progress bar hides it


def run_as_process(command: Callable[[], int]) -> NoReturn:
    """Run a command, in the main thread, and end the process with its exit status."""
    open_streams()
    pressed = 0
    status: int | None = None

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        pressed += 1
        if status is not None:
            os._exit(status)  # a thread that does not end would keep the process alive
        if pressed == 1:
            raise KeyboardInterrupt
        # Not print, which fails inside of another print to stderr.
        with suppress(OSError):
            os.write(2, SHOW_CURSOR + ABORTED if os.isatty(2) else ABORTED)
        os._exit(INTERRUPTED)

    signal.signal(signal.SIGINT, handle)
    # Python resets handlers while it exits; this runs before that, after all threads have ended.
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
    try:
        status = command()
    except KeyboardInterrupt:  # Ctrl-C during imports, or during the report of another error
        status = INTERRUPTED
        print("agenticiqa: interrupted", file=sys.stderr)
    sys.exit(status)
