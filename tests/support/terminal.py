"""Run a command on a pseudo-terminal and follow what its screen shows."""

import codecs
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
from collections.abc import Sequence
from dataclasses import dataclass, field

TOKEN = re.compile(r"\x1b\[(?P<values>[?\d;]*)(?P<control>[A-Za-z])|(?P<text>[^\x1b])", re.DOTALL)
UNSET = ("COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")


@dataclass
class Screen:
    """The text of a terminal with so many columns and no last row; colors are ignored.

    ``seen`` has the texts that the lowest row showed, in order.
    """

    columns: int
    rows: list[str] = field(default_factory=lambda: [""])
    row: int = 0
    column: int = 0
    cursor: bool = True  # visible
    seen: list[str] = field(default_factory=list)

    def feed(self, text: str) -> None:
        """Apply output: text, line breaks, and the controls that a live display of rich uses."""
        for token in TOKEN.finditer(text):
            if token["text"]:
                self._write(token["text"])
                continue
            values, control = token["values"], token["control"]
            if control == "A":
                self.row = max(self.row - int(values or 1), 0)
            elif control == "K":
                self.rows[self.row] = "" if values == "2" else self.rows[self.row][: self.column]
            elif values == "?25":
                self.cursor = control == "h"
            else:
                assert control == "m", f"a control that this screen does not know: {token[0]!r}"
        self.seen += [row for row in self.shown()[-1:] if row not in self.seen[-1:]]

    def _write(self, letter: str) -> None:
        if letter == "\r":
            self.column = 0
        elif letter == "\n":
            self._next_row()
        else:
            if self.column == self.columns:
                self.column = 0
                self._next_row()
            row = self.rows[self.row].ljust(self.column)
            self.rows[self.row] = row[: self.column] + letter + row[self.column + 1 :]
            self.column += 1

    def _next_row(self) -> None:
        self.row += 1
        if self.row == len(self.rows):
            self.rows.append("")

    def shown(self) -> list[str]:
        """Return the rows that are not empty."""
        return [row.rstrip() for row in self.rows if row.strip()]


def run_on_terminal(
    command: Sequence[str],
    columns: int = 100,
    interrupt_at: str = "",
    *,
    piped_stderr: bool = False,
    **environment: str,
) -> tuple[int, Screen, str]:
    """Run a command with stdout and stderr on a terminal; return its status, the screen, and stderr if it was piped.

    Ctrl-C is sent once when the screen shows ``interrupt_at``, if that is given.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    known = {name: value for name, value in os.environ.items() if name not in UNSET}
    screen, decode = Screen(columns), codecs.getincrementaldecoder("utf-8")().decode
    with subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.PIPE if piped_stderr else theirs,
        text=True,
        env={**known, "TERM": "xterm-256color", **environment},
        start_new_session=True,
    ) as process:
        os.close(theirs)
        pressed = False
        while True:
            try:
                data = os.read(ours, 65536)
            except OSError:  # the end of a terminal on Linux
                data = b""
            if not data:
                break
            screen.feed(decode(data))
            if interrupt_at and not pressed and any(interrupt_at in row for row in screen.shown()):
                pressed = True
                process.send_signal(signal.SIGINT)
        error = process.stderr.read() if process.stderr else ""
        status = process.wait(timeout=60)
    os.close(ours)
    return status, screen, error
