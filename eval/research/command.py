"""Shared code of the commands in this folder."""

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence

from agenticiqa.programs.errors import AgenticIQAError


def parser_of(description: str | None) -> ArgumentParser:
    """Return a parser that shows a module's docstring in its help."""
    return ArgumentParser(description=description, formatter_class=RawDescriptionHelpFormatter)


def run_command(parser: ArgumentParser, run: Callable[[Namespace], None], argv: Sequence[str] | None) -> int:
    """Run with the parsed arguments and return the exit status, 2 after an expected error (printed in one line)."""
    args = parser.parse_args(argv)
    try:
        run(args)
    except AgenticIQAError as error:
        print(error, file=sys.stderr)
        return 2
    return 0
