"""Shared code of the commands in this folder."""

import sys
import time
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence

from agenticiqa.programs.errors import AgenticIQAError

STARTED = time.monotonic()  # seconds, when the command was imported


def parser_of(description: str | None, takes: str = "") -> ArgumentParser:
    """Return a parser that shows a module's docstring in its help, and how long the command ``takes``."""
    epilog = f"It takes {takes}." if takes else None
    return ArgumentParser(description=description, epilog=epilog, formatter_class=RawDescriptionHelpFormatter)


def run_command(parser: ArgumentParser, run: Callable[[Namespace], int | None], argv: Sequence[str] | None) -> int:
    """Run with the parsed arguments and return its exit status, 0 for none, 2 after an expected error (in one line).

    What the command does, and how long it takes, is printed on stderr first.
    """
    args = parser.parse_args(argv)
    begin_step(" ".join(filter(None, ((parser.description or "").partition("\n")[0], parser.epilog))))
    try:
        return run(args) or 0
    except AgenticIQAError as error:
        print(error, file=sys.stderr)
        return 2


def begin_step(step: str) -> None:
    """Print on stderr what is done next, after the seconds since the start."""
    print(f"{time.monotonic() - STARTED:6.0f} s  {step}", file=sys.stderr, flush=True)
