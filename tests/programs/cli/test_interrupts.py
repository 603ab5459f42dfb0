"""Ctrl-C from the start of a process to its end: the exit status, one line on stderr, no traceback."""

import os
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs signals")

START = """
import atexit, io, os, signal, sys, time
from agenticiqa.programs.cli.interrupts import run_as_process
press = lambda: os.kill(os.getpid(), signal.SIGINT)
"""
WAITING = """
def command():
    try:
        print("ready", flush=True)
        time.sleep(60)
    except KeyboardInterrupt:
        print("waiting", flush=True)
        time.sleep(60 if "twice" in sys.argv else 0)
        return 130
run_as_process(command)
"""
BETWEEN = """
def command():
    press()
    time.sleep(60)
run_as_process(command)
"""
# A signal that comes while something is being printed to stderr: its buffer is locked.
PRINTING = """
class Pressing(io.RawIOBase):
    writable = lambda self: True
    def write(self, data):
        press()
        return len(data)
sys.stderr = io.TextIOWrapper(io.BufferedWriter(Pressing()), line_buffering=True)
def command():
    try:
        press()
        time.sleep(60)
    except KeyboardInterrupt:
        print("agenticiqa: interrupted", file=sys.stderr)
    return 130
run_as_process(command)
"""
# A further Ctrl-C while Python exits: before and after it has let go of our handler.
EXITING = """
def late():
    press()
    time.sleep(0.05)
if "late" in sys.argv:
    atexit.register(late)
def command():
    if "late" not in sys.argv:
        atexit.register(late)
    return 1
run_as_process(command)
"""


def run(code: str, *arguments: str) -> tuple[int, str]:
    """The exit status and stderr of a script."""
    done = subprocess.run([sys.executable, "-c", START + code, *arguments], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stderr


@pytest.mark.parametrize(("presses", "message"), [(1, ""), (2, "agenticiqa: aborted; finished results are kept\n")])
def test_a_second_ctrl_c_ends_the_wait_of_the_first(presses: int, message: str) -> None:
    arguments = ["twice"] if presses == 2 else []
    command = [sys.executable, "-c", START + WAITING, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "waiting\n"
        if presses == 2:
            process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (130, message)


def test_ctrl_c_that_no_command_handles_is_one_line() -> None:
    assert run(BETWEEN) == (130, "agenticiqa: interrupted\n")


def test_a_second_ctrl_c_during_a_print_ends_the_process() -> None:
    assert run(PRINTING) == (130, "agenticiqa: aborted; finished results are kept\n")


@pytest.mark.parametrize("moment", ["early", "late"])
def test_ctrl_c_while_python_exits_does_not_change_the_status(moment: str) -> None:
    assert run(EXITING, moment) == (1, "")


def test_the_cursor_that_a_progress_bar_hides_is_shown_again() -> None:
    import pty

    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", START + WAITING, "twice"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, text=True) as process:
        assert process.stdout is not None
        for line in ("ready\n", "waiting\n"):
            assert process.stdout.readline() == line
            process.send_signal(signal.SIGINT)
        process.wait(timeout=20)
    shown = os.read(ours, 1000).decode()
    os.close(theirs)
    os.close(ours)
    assert shown.startswith("\x1b[?25h")
    assert shown.endswith("aborted; finished results are kept\r\n")
