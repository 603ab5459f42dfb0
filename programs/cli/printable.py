"""Make text of models, servers and questions safe to print on a terminal.

Unsafe text could move the cursor, change the title of the window, or appear in the wrong order.
"""

import io
import json
import os
import re
import sys
from contextvars import ContextVar
from typing import Any

from agenticiqa.programs.errors import REORDERING

_CONTROLS = re.compile(rf"[\x00-\x09\x0b-\x1f\x7f-\x9f{REORDERING}]")
LONGEST_MESSAGE = 560  # characters; the note about omitted ones takes up to 40 more
_NOT_ESCAPED_BY_JSON = re.compile(rf"[\x7f-\x9f{REORDERING}]")


def printable(text: str) -> str:
    """Return the text with a blank for each control character except the line break."""
    return _CONTROLS.sub(" ", text)


def shortened(text: str, longest: int) -> str:
    """Return the text; keep only the beginning and the end if it is longer than ``longest``."""
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]} ... ({len(text) - 2 * half} characters left out) ... {text[-half:]}"


def message_line(text: str) -> str:
    """Return a message as one printable line of at most 600 characters, whatever it quotes from a file."""
    lines = filter(None, map(str.strip, text.splitlines()))
    return shortened(printable(" ".join(lines)), LONGEST_MESSAGE)


def all_printable(value: Any) -> Any:
    """Return plain JSON types with ``printable`` applied to all texts."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {key: all_printable(item) for key, item in value.items()}
    return [all_printable(item) for item in value] if isinstance(value, list) else value


def json_text(value: Any, indent: int | None = None) -> str:
    """Return JSON with escaped control characters and the same content; other characters stay as they are.

    They are escaped as well where stdout cannot write all of them, as an escape other than JSON's would be invalid.
    """
    encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower()
    text = json.dumps(value, ensure_ascii=not encoding.startswith("utf"), default=str, indent=indent)
    return _NOT_ESCAPED_BY_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def escape_unencodable_characters() -> None:
    """Make stdout and stderr escape characters that their encoding lacks, instead of raising an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def is_stdout(path: str | os.PathLike[str] | None) -> bool:
    """Return whether an output that a command names is stdout."""
    return path is not None and os.fspath(path) == "-"


VERBOSITY: ContextVar[int] = ContextVar("verbosity", default=0)  # -1 with --quiet, 1 with -v, 2 with -vv


def print_note(message: str) -> None:
    """Print a note to stderr, unless ``--quiet`` is set."""
    if VERBOSITY.get() >= 0:
        print(printable(message), file=sys.stderr)


def print_text(text: str) -> None:
    """Print lines to stdout without control characters, which names of models, raters and files may have."""
    print(printable(text))


def print_error(*messages: str) -> None:
    """Print each error as a line on stderr."""
    for message in messages:
        print(f"agenticiqa: {message_line(message)}", file=sys.stderr)


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: "1 image", "2 images"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
