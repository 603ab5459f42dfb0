"""Commands with one more option."""

from dataclasses import make_dataclass, replace
from pathlib import Path
from typing import Annotated

from agenticiqa.configs.options import Option
from agenticiqa.programs.cli.commands import Command


def with_option(command: Command, option: Option) -> Command:
    """Return a command with one more option, which names a file."""
    name = option.flags[-1].removeprefix("--")
    field = (name, Annotated[Path | None, option], None)
    arguments = make_dataclass("More", [field], bases=(command.arguments,), frozen=True, kw_only=True, eq=False)
    return replace(command, arguments=arguments)
