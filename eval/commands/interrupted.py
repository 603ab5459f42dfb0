"""What a command says when a run ends early."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dspy


@contextmanager
def told_to_continue(folder: Path) -> Iterator[None]:
    """Ctrl-C and an outage of a model are raised on, after a line on stderr that says how to continue."""
    try:
        yield
    except (KeyboardInterrupt, dspy.LMError):
        print(f"agenticiqa: the same command continues from what is kept in {folder}", file=sys.stderr)
        raise
