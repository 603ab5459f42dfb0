"""The subcommands of the program, by name; a command's module is imported when the command is chosen."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import cast

from agenticiqa.programs.cli.arguments import (
    add_assess_arguments,
    add_backends_arguments,
    add_batches_arguments,
    add_compare_arguments,
    add_tools_arguments,
)
from agenticiqa.programs.cli.light_arguments import add_gate_arguments, add_measure_arguments


@dataclass(frozen=True)
class Command:
    """A subcommand: one line of help, what adds its arguments to a parser, and the name of the module with its run.

    One that is ``light`` asks no model: it has no options for logging, and starts without DSPy.
    """

    help: str
    add_arguments: Callable[[ArgumentParser], None]
    module: str
    light: bool = False

    def run(self, args: Namespace) -> int:
        """Run the command and return its exit status."""
        return cast(int, import_module(self.module).run(args))


COMMANDS: dict[str, Command] = {
    "assess": Command(
        "rate images, or answer a question about them", add_assess_arguments, "agenticiqa.programs.cli.assess"
    ),
    "compare": Command(
        "rank images against each other, metric by metric",
        add_compare_arguments,
        "agenticiqa.programs.cli.compare_images",
    ),
    "measure": Command(
        "print values of metrics, as SSIM or NIQE gives them",
        add_measure_arguments,
        "agenticiqa.programs.cli.measure",
        light=True,
    ),
    "gate": Command(
        "accept or refuse photos by a policy", add_gate_arguments, "agenticiqa.programs.cli.gate", light=True
    ),
    "backends": Command(
        "list the models that are asked, and what each supports",
        add_backends_arguments,
        "agenticiqa.programs.cli.backends",
    ),
    "batches": Command(
        "list, collect or cancel the batches of a run with --batch",
        add_batches_arguments,
        "agenticiqa.programs.cli.batches",
    ),
    "tools": Command(
        "list the metrics: kind, direction, range, what each is best at",
        add_tools_arguments,
        "agenticiqa.programs.cli.tools",
    ),
}
