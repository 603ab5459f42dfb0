"""The command ``agenticiqa``, also as ``python -m agenticiqa``."""

from typing import NoReturn

from agenticiqa.programs.cli.interrupts import run_as_process


def main() -> NoReturn:
    """Run the command line on ``sys.argv`` and end the process with its exit status."""
    run_as_process(_command_line)


def _command_line() -> int:
    from agenticiqa.eval.cli import main as command_line  # imports with Ctrl-C already handled

    return command_line()


if __name__ == "__main__":
    main()
