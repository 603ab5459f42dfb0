"""The commands by name: the options of each, and the module that runs it, which is imported when it is chosen."""

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

    A ``light`` command asks no model: it has no options for logging and starts without DSPy. A command without a module
    is a group of commands, and their names begin with its own, such as ``calibrate fusion`` for ``calibrate``.
    """

    help: str
    options: Options = ()
    module: str = ""
    examples: str = ""
    light: bool = False

    def run(self, args: Namespace) -> int:
        """Run the command and return its exit status."""
        run = import_module(self.module).run
        if not gc.isenabled():  # the state that agenticiqa.__main__ sets
            gc.freeze()
            gc.enable()
        return cast(int, run(args))


HERE = "agenticiqa.programs.cli"
COMMANDS: dict[str, Command] = {
    "assess": Command(
        "score images, or answer a question about them", arguments.ASSESS, f"{HERE}.assess", arguments.ASSESS_EXAMPLES
    ),
    "measure": Command(
        "print the values of metrics such as SSIM or NIQE",
        arguments.MEASURE,
        f"{HERE}.measure",
        arguments.MEASURE_EXAMPLES,
        light=True,
    ),
    "gate": Command(
        "accept or refuse photos by the conditions of a policy",
        arguments.GATE,
        f"{HERE}.gate",
        arguments.GATE_EXAMPLES,
        light=True,
    ),
    "rate": Command(
        "write a page on which you rate photos", arguments.RATE, f"{HERE}.rate", arguments.RATE_EXAMPLES, light=True
    ),
    "backends": Command("list the configured models and the features of each", arguments.BACKENDS, f"{HERE}.backends"),
    "batches": Command(
        "list, collect or cancel the batches of a run that used --batch",
        arguments.BATCHES,
        f"{HERE}.batches",
        arguments.BATCHES_EXAMPLES,
    ),
    "tools": Command("list the metrics and what each measures best", arguments.TOOLS, f"{HERE}.tools"),
}
