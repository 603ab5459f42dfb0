"""The ``agenticiqa`` command: what the program does, and what it is measured and tuned by."""

import sys
from collections.abc import Sequence

from agenticiqa.eval import benchmark, calibrate_command, optimize
from agenticiqa.programs import cli
from agenticiqa.programs.command import Command

COMMANDS: dict[str, Command] = {
    **cli.COMMANDS,
    "evaluate": Command("measure the agreement with labelled images", benchmark.add_arguments, benchmark.run),
    "calibrate": Command(
        "fit the tools' scores to your own opinion scores", calibrate_command.add_arguments, calibrate_command.run
    ),
    "optimize": Command("tune the prompts on labelled images (GEPA)", optimize.add_arguments, optimize.run),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is that of ``agenticiqa.programs.cli.main``."""
    return cli.main(argv, COMMANDS)


if __name__ == "__main__":
    sys.exit(main())
