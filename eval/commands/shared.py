"""What commands that run the program share: the program itself, and what is said when a run ends early."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import dspy

from agenticiqa.configs import Config
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.answer_cache import install
from agenticiqa.programs.cli import render
from agenticiqa.programs.cli.printable import print_error

T = TypeVar("T")


def configured_program(config: Config) -> AgenticIQA:
    """The program of a configuration; its answers are cached as it says."""
    install(config)
    return AgenticIQA.from_config(config)


def shown(rows: Iterator[T], finished: int, total: int) -> Iterator[T]:
    """Yield rows, or pairs that end in one, with a progress bar; errors in rows go to stderr.

    ``finished`` of ``total`` rows were there before.
    """
    if finished:
        print(f"{finished} of {total} were judged before", file=sys.stderr)
    for each in render.progress(rows, total - finished):
        row: Any = each[-1] if isinstance(each, tuple) else each
        if "error" in row:
            print_error(row["error"])
        yield each


@contextmanager
def continuing(kept: Path) -> Iterator[None]:
    """Ctrl-C and an outage of a model are raised on, after a line on stderr that says how to continue."""
    try:
        yield
    except (KeyboardInterrupt, dspy.LMError):
        print_error(f"the same command continues from what is kept in {kept}")
        raise
