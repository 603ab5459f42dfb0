"""The commands by name: the options of each, and the module that runs it, which is imported when it is chosen."""

import gc
from dataclasses import dataclass
from importlib import import_module
from typing import cast

from agenticiqa.configs.options import Arguments, Option, options_of
from agenticiqa.programs.cli import arguments
from agenticiqa.programs.errors import UserError


@dataclass(frozen=True)
class Command:
    """A command: one line of help, the class of its options, examples, and the module with its ``run``.

    ``extra`` names the optional dependencies that the module imports, if it needs some.

    A command without a module is a group of commands, and their names begin with its own, such as ``calibrate fusion``
    for ``calibrate``.
    """

    help: str
    arguments: type[Arguments] = Arguments
    module: str = ""
    examples: str = ""
    extra: str = ""

    @property
    def options(self) -> tuple[Option, ...]:
        """The options of the command."""
        return options_of(self.arguments)

    def run(self, args: Arguments) -> int:
        """Run the command and return its exit status. Raises UserError if its extra is not installed."""
        try:
            run = import_module(self.module).run
        except ModuleNotFoundError as error:
            if not self.extra:
                raise
            raise UserError(
                f"this command needs an optional package ({error}): run pip install 'agenticiqa[{self.extra}]'"
            ) from error
        if not gc.isenabled():  # the state that agenticiqa.__main__ sets
            gc.freeze()
            gc.enable()
        return cast(int, run(args))


HERE = "agenticiqa.programs.cli"
COMMANDS: dict[str, Command] = {
    "assess": Command(
        "score images, or answer a question about them",
        arguments.AssessOptions,
        f"{HERE}.assess",
        arguments.ASSESS_EXAMPLES,
    ),
    "measure": Command(
        "print the values of metrics such as SSIM or NIQE",
        arguments.MeasureOptions,
        f"{HERE}.measure",
        arguments.MEASURE_EXAMPLES,
    ),
    "gate": Command(
        "accept or refuse photos by the conditions of a policy",
        arguments.GateOptions,
        f"{HERE}.gate",
        arguments.GATE_EXAMPLES,
    ),
    "rate": Command(
        "write a page on which you rate photos", arguments.RateOptions, f"{HERE}.rate", arguments.RATE_EXAMPLES
    ),
    "mcp": Command(
        "let an assistant assess images, as an MCP server",
        arguments.McpOptions,
        f"{HERE}.mcp_server",
        arguments.MCP_EXAMPLES,
        extra="mcp",
    ),
    "backends": Command(
        "list the configured models and the features of each", arguments.BackendsOptions, f"{HERE}.backends"
    ),
    "batches": Command(
        "list, collect or cancel the batches of a run that used --batch",
        arguments.BatchesOptions,
        f"{HERE}.batches",
        arguments.BATCHES_EXAMPLES,
    ),
    "tools": Command("list the metrics and what each measures best", arguments.ToolsOptions, f"{HERE}.tools"),
    "cite": Command("print BibTeX entries of the paper and this program", module=f"{HERE}.cite"),
}
