"""Run one command; an error of the package becomes one line on stderr and an exit status."""

import contextlib
import ctypes
import logging
import os
import sys
from collections.abc import Mapping, Sequence

from agenticiqa.programs.cli.arguments import LightOptions, LoggedOptions, TableOptions
from agenticiqa.programs.cli.commands import COMMANDS, Command
from agenticiqa.programs.cli.parser import PROGRAM, parse
from agenticiqa.programs.cli.printable import VERBOSITY, escape_unencodable_characters, message_line
from agenticiqa.programs.cli.status import INTERRUPTED, OK, SOME_FAILED, USAGE, worst
from agenticiqa.programs.cli.streams import reason_of
from agenticiqa.programs.errors import AgenticIQAError, UserError

logger = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None, commands: Mapping[str, Command] | None = None) -> int:
    """Run one command and return its exit status; raises SystemExit for --help and for wrong usage."""
    commands = commands or COMMANDS
    escape_unencodable_characters()
    try:
        command, args = parse(sys.argv[1:] if argv is None else argv, commands)
        return_large_blocks()
        if isinstance(args, TableOptions):
            from agenticiqa.programs.page.csv_text import RAW_CSV

            RAW_CSV.set(args.raw_csv)
        if not isinstance(args, LoggedOptions):
            VERBOSITY.set(-1 if isinstance(args, LightOptions) and args.quiet else 0)
            status = command.run(args)
            sys.stdout.flush()
            return status
        # These load DSPy, which --help and --version do not need.
        from agenticiqa.programs.cli import logs
        from agenticiqa.programs.images.files import cache_folder

        VERBOSITY.set(-1 if args.quiet else args.verbose)
        with logs.logging_to(VERBOSITY.get(), args.log) as log:
            # matplotlib keeps its font list in this program's cache folder and reads no style of the user.
            with contextlib.suppress(OSError):  # no folder can be written, not even a temporary one
                os.environ.setdefault("MPLCONFIGDIR", str(cache_folder() / "matplotlib"))
            status = command.run(args)
        if log is not None and not log.is_whole:
            status = worst(status, SOME_FAILED)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED)
    except BrokenPipeError:  # the reader of the output has stopped, as in "| head"
        _close_stdout()
        return OK
    except OSError as error:
        if isinstance(error, UserError):  # a file that is not there
            return _fail(str(error), USAGE)
        logger.info("operating system error", exc_info=True)
        _close_stdout()
        from agenticiqa.programs.images.files import printable_path

        place = f"{printable_path(error.filename)}: " if error.filename else "output: "
        return _fail(f"{place}{reason_of(error)}", SOME_FAILED)
    except Exception as error:
        if (failed := _status_of(error)) is None:
            raise
        return _fail(str(error), failed)
    finally:
        VERBOSITY.set(0)


def _status_of(error: Exception) -> int | None:
    """Return the exit status for an error that is reported in one line; ``None`` for a defect of the program."""
    from agenticiqa.configs import ConfigError

    if isinstance(error, UserError | ConfigError):
        return USAGE
    dspy = sys.modules.get("dspy")  # a light command has not loaded it, so it raises none of its errors
    return SOME_FAILED if isinstance(error, (AgenticIQAError, *([dspy.LMError] if dspy else []))) else None


def _close_stdout() -> None:
    """Drop unwritten output, which Python would otherwise try to write again at exit."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, status: int) -> int:
    print(f"{PROGRAM}: {message_line(message)}", file=sys.stderr)
    return status


# Numbers of malloc.h; glibc only.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
LARGE = 8 << 20  # bytes: the pixels of a photo of 3 megapixels


def return_large_blocks() -> None:
    """Return freed blocks of at least 8 MiB to the system, on Linux with glibc; else do nothing.

    By default, glibc keeps freed blocks of up to 32 MiB in each thread.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, LARGE)
        mallopt(M_TRIM_THRESHOLD, 2 * LARGE)
