"""The ``agenticiqa`` command: what the program does, and what it is measured and tuned by."""

import sys
from collections.abc import Sequence

from agenticiqa.eval.commands import calibrate, evaluate, optimize
from agenticiqa.programs.cli import main as program
from agenticiqa.programs.cli.options import Command

COMMANDS: dict[str, Command] = {
    **program.COMMANDS,
    "evaluate": Command("measure the agreement with labelled images", evaluate.add_arguments, evaluate.run),
    "calibrate": Command("fit the tools' scores to your own opinion scores", calibrate.add_arguments, calibrate.run),
    "optimize": Command("tune the prompts on labelled images (GEPA)", optimize.add_arguments, optimize.run),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is that of ``agenticiqa.programs.cli.main``."""
    return program.main(argv, COMMANDS)


if __name__ == "__main__":
    sys.exit(main())
