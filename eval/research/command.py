"""Shared code of the commands in this folder."""

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence

from agenticiqa.programs.errors import AgenticIQAError


def parser_of(description: str | None) -> ArgumentParser:
    """Return a parser that shows a module's docstring in its help."""
    return ArgumentParser(description=description, formatter_class=RawDescriptionHelpFormatter)


def run_command(parser: ArgumentParser, run: Callable[[Namespace], int | None], argv: Sequence[str] | None) -> int:
    """Run with the parsed arguments and return its exit status, 0 for none, 2 after an expected error (in one line)."""
    args = parser.parse_args(argv)
    try:
        return run(args) or 0
    except AgenticIQAError as error:
        print(error, file=sys.stderr)
        return 2
