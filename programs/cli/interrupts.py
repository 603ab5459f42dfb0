"""Ctrl-C on the command line: the first waits for what was already sent, the second leaves at once."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from agenticiqa.programs.cli.options import INTERRUPTED


@contextmanager
def second_leaves() -> Iterator[None]:
    """For its duration the first Ctrl-C raises KeyboardInterrupt as ever, and a second one ends the process.

    Requests to a model cannot be taken back, so the first one may take as long as they do. Finished rows are on disk.
    """
    if threading.current_thread() is not threading.main_thread():  # where signals cannot be handled
        yield
        return
    pressed = 0

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        pressed += 1
        if pressed > 1:
            print("agenticiqa: left at once; what was finished is kept", file=sys.stderr, flush=True)
            os._exit(INTERRUPTED)  # threads that wait for a model would keep the process
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
