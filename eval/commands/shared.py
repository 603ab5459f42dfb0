"""What commands that run the program share: the program itself, and what is said when a run ends early."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dspy

from agenticiqa.configs import Config
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.answer_cache import install


def configured_program(config: Config) -> AgenticIQA:
    """The program of a configuration; its answers are cached as it says."""
    install(config)
    return AgenticIQA.from_config(config)


@contextmanager
def continuing(folder: Path) -> Iterator[None]:
    """Ctrl-C and an outage of a model are raised on, after a line on stderr that says how to continue."""
    try:
        yield
    except (KeyboardInterrupt, dspy.LMError):
        print(f"agenticiqa: the same command continues from what is kept in {folder}", file=sys.stderr)
        raise
