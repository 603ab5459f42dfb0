"""The command line: ``agenticiqa assess`` and ``agenticiqa tools``; the eval room adds its own commands."""

import argparse
import contextlib
import os
import sys
from collections.abc import Mapping, Sequence

import dspy

from agenticiqa.configs import ConfigError
from agenticiqa.programs.cli import assess, backends, logs, tools, tracing
from agenticiqa.programs.cli.interrupts import second_leaves
from agenticiqa.programs.cli.options import INTERRUPTED, OK, SOME_FAILED, USAGE, Command, one_line
from agenticiqa.programs.errors import AgenticIQAError, UserError


def main(argv: Sequence[str] | None = None, commands: Mapping[str, Command] | None = None) -> int:
    """Run one command and return its exit status; errors of ours become one line on stderr."""
    args = _parser(commands or COMMANDS).parse_args(argv)
    try:
        with second_leaves(), logs.told(args.verbose, args.log):
            if args.mlflow:
                tracing.begin(args.mlflow)
            return int(args.run(args))
    except (UserError, ConfigError) as error:
        return _complain(str(error), USAGE)
    except (AgenticIQAError, dspy.LMError) as error:
        return _complain(one_line(error), SOME_FAILED)
    except KeyboardInterrupt:
        return _complain("interrupted", INTERRUPTED)
    except BrokenPipeError:  # the reader of our output went away, as in "| head"
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK


COMMANDS: dict[str, Command] = {
    "assess": Command("judge images, or answer a question about them", assess.add_arguments, assess.run),
    "backends": Command("show which models are asked, and what each can do", backends.add_arguments, backends.run),
    "tools": Command(tools.HELP, tools.add_arguments, tools.run),
}


def _parser(commands: Mapping[str, Command]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="agenticiqa",
        description="Judge image quality: plan, measure, look, answer with the evidence. Offline by default.",
    )
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND", title="commands")
    for name, command in commands.items():
        sub = subparsers.add_parser(name, help=command.help, description=command.help.capitalize() + ".")
        command.add_arguments(sub)
        sub.add_argument(
            "-v", "--verbose", action="count", default=0, help="tell the steps on stderr; twice: and the prompts"
        )
        sub.add_argument("--log", metavar="FILE", help="append every step to FILE, as JSON lines")
        sub.set_defaults(run=command.run, mlflow=None)
    return parser


def _complain(message: str, status: int) -> int:
    print(f"agenticiqa: {message}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
