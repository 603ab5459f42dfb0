"""The command ``agenticiqa``, also as ``python -m agenticiqa``."""

import gc
from typing import NoReturn

from agenticiqa.programs.cli.interrupts import run_as_process


def main() -> NoReturn:
    """Run the command line on ``sys.argv`` and end the process with its exit status."""
    run_as_process(_command_line)


def _command_line() -> int:
    gc.disable()  # imports leave no garbage, and collections take long
    from agenticiqa.eval.cli import main as command_line  # an import after the handler of Ctrl-C is set

    return command_line()


if __name__ == "__main__":
    main()
