"""The subcommands of the program, by name; a command's module is imported when the command is chosen."""

from argparse import ArgumentParser, Namespace
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol, cast


class CommandModule(Protocol):
    """What the module of a command has."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the command's own arguments."""

    def run(self, args: Namespace) -> int:
        """Run the command and return its exit status."""


@dataclass(frozen=True)
class Command:
    """A subcommand: one line of help, and the name of its module."""

    help: str
    module: str

    def load(self) -> CommandModule:
        """The command's module."""
        return cast(CommandModule, import_module(self.module))


COMMANDS: dict[str, Command] = {
    "assess": Command("rate images, or answer a question about them", "agenticiqa.programs.cli.assess"),
    "compare": Command("rank images against each other, metric by metric", "agenticiqa.programs.cli.compare_images"),
    "backends": Command("list the models that are asked, and what each supports", "agenticiqa.programs.cli.backends"),
    "tools": Command("list the metrics: kind, direction, range, what each is best at", "agenticiqa.programs.cli.tools"),
}
