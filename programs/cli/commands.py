"""The commands of the program, by name: their options, and the module that runs each, imported when it is chosen."""

import gc
from argparse import Namespace
from dataclasses import dataclass
from importlib import import_module
from typing import cast

from agenticiqa.configs.options import Options
from agenticiqa.programs.cli import arguments


@dataclass(frozen=True)
class Command:
    """A command: one line of help, its options, examples, and the module with its ``run``.

    One that is ``light`` asks no model: it has no options for logging, and starts without DSPy.
    """

    help: str
    options: Options
    module: str
    examples: str = ""
    light: bool = False

    def run(self, args: Namespace) -> int:
        """Run the command and return its exit status."""
        run = import_module(self.module).run
        if not gc.isenabled():  # as a process: see agenticiqa.__main__
            gc.freeze()
            gc.enable()
        return cast(int, run(args))


HERE = "agenticiqa.programs.cli"
COMMANDS: dict[str, Command] = {
    "assess": Command(
        "rate images, or answer a question about them", arguments.ASSESS, f"{HERE}.assess", arguments.ASSESS_EXAMPLES
    ),
    "measure": Command(
        "print values of metrics, as SSIM or NIQE gives them",
        arguments.MEASURE,
        f"{HERE}.measure",
        arguments.MEASURE_EXAMPLES,
        light=True,
    ),
    "gate": Command(
        "accept or refuse photos by a policy", arguments.GATE, f"{HERE}.gate", arguments.GATE_EXAMPLES, light=True
    ),
    "backends": Command(
        "list the models that are asked, and what each supports", arguments.BACKENDS, f"{HERE}.backends"
    ),
    "batches": Command(
        "list, collect or cancel the batches of a run with --batch",
        arguments.BATCHES,
        f"{HERE}.batches",
        arguments.BATCHES_EXAMPLES,
    ),
    "tools": Command(
        "list the metrics: kind, direction, range, what each is best at", arguments.TOOLS, f"{HERE}.tools"
    ),
}
