"""Run a function in a fresh subprocess, exchanging pickles over stdin and stdout.

The subprocess inherits only the environment and the import path. Threads and libraries of the parent do not affect it,
and the parent's script, console or notebook is not run again. It computes with one thread, does not receive Ctrl-C (its
parent does), and exits when its parent has stopped, even if the parent was killed.

This module replaces the process pools of the standard library and loky, which fail entirely if one worker is killed.
"""

import contextlib
import logging
import os
import pickle
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from logging.handlers import QueueHandler
from queue import SimpleQueue
from typing import IO, Any

LOGGER = "agenticiqa"
# Libraries read these variables when they are loaded, so they are set before the process starts.
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)
READY = pickle.dumps(None)

Records = SimpleQueue[logging.LogRecord]


class NotStarted(Exception):
    """Raised when a process could not be started; the message is the reason."""


class WorkerStopped(Exception):
    """Raised when a process ended before it answered; the message says how it ended."""


class Worker:
    """A subprocess in which a function is called, for one thread at a time.

    ``function`` is a pickled callable with one argument. The process is started at the first call, and again at the
    first call after it ended. Its log records under ``agenticiqa`` are logged in the parent at the end of each call.
    """

    def __init__(self, function: bytes) -> None:
        self._function = function
        self._process: subprocess.Popen[bytes] | None = None

    def __call__(self, argument: Any) -> Any:
        """Call the function. Raises what the function raises, or NotStarted or WorkerStopped."""
        if self._process is None:
            self._process = _start()
            try:
                _exchange(self._process, pickle.dumps(logging.getLogger(LOGGER).getEffectiveLevel()) + self._function)
            except EOFError as error:
                raise NotStarted(f"it {self._end()}") from error
        try:
            succeeded, outcome, logged = _exchange(self._process, pickle.dumps(argument))
        except EOFError as error:
            raise WorkerStopped(self._end()) from error
        for record in logged:
            logging.getLogger(record.name).handle(record)
        if not succeeded:
            raise outcome
        return outcome

    def close(self) -> None:
        """Kill the process, even during a call."""
        if self._process:
            self._process.kill()
            self._end()

    def _end(self) -> str:
        """Wait for the process to end; return how it ended."""
        assert self._process
        process, self._process = self._process, None
        with contextlib.suppress(OSError), process:  # closing a pipe fails when data in it can no longer be read
            pass
        if process.returncode >= 0:
            return f"ended with status {process.returncode}"
        hint = ", as happens when memory runs out" if process.returncode == -9 else ""
        return f"was stopped by signal {-process.returncode}{hint}"


def _start() -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(
            [sys.executable, "-P", "-c", f"from {__name__} import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **ONE_THREAD, "PYTHONPATH": os.pathsep.join(entry or os.getcwd() for entry in sys.path)},
            # It has its own process group, because a terminal sends Ctrl-C to the whole foreground group.
            process_group=0 if os.name == "posix" else None,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
    except OSError as error:
        raise NotStarted(str(error)) from error


def _exchange(process: "subprocess.Popen[bytes]", message: bytes) -> Any:
    """Send a message and return the answer. Raises EOFError if the process ends before it answers."""
    assert process.stdin
    assert process.stdout
    try:
        process.stdin.write(message)
        process.stdin.flush()
        return pickle.load(process.stdout)
    except (OSError, pickle.UnpicklingError) as error:  # the pipe is broken, or the answer was cut short
        raise EOFError from error


def main() -> None:
    """Run the subprocess: read a log level and a function, then call the function with each message from stdin."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    calls, answers = _streams()
    records: Records = SimpleQueue()
    logger = logging.getLogger(LOGGER)
    logger.handlers, logger.propagate = [QueueHandler(records)], False
    logger.setLevel(pickle.load(calls))
    function = pickle.load(calls)
    answer = READY
    try:
        while True:
            answers.write(answer)
            answers.flush()
            answer = _answer(function, pickle.load(calls), records)
    except (EOFError, OSError):
        os._exit(0)  # the parent has stopped and cannot receive an error


def _streams() -> tuple[IO[bytes], IO[bytes]]:
    """Return the original stdin and stdout; redirect all other reading and printing to /dev/null."""
    calls, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    return calls, answers


def _answer(function: Callable[[Any], Any], argument: Any, records: Records) -> bytes:
    try:
        return pickle.dumps((True, function(argument), _drained(records)), pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # the error that the parent raises
        error.add_note(f"In a worker process:\n{traceback.format_exc()}")
        return pickle.dumps((False, _picklable(error), _drained(records)))


def _picklable(error: Exception) -> Exception:
    """Return the error, or a RuntimeError with its text if it cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError("".join(traceback.format_exception(error)))
    return error


def _drained(records: Records) -> list[logging.LogRecord]:
    return [records.get() for _ in range(records.qsize())]
