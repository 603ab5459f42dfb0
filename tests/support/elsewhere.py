"""Functions that tests run in another process, where this module must be importable."""

import logging
import os
import sys
from pathlib import Path
from typing import Any

import dspy

from agenticiqa.programs.errors import Unanswered

logger = logging.getLogger("agenticiqa.elsewhere")


class Odd(Exception):
    """An error that cannot be unpickled: it takes two arguments and stores one."""

    def __init__(self, one: str, other: str) -> None:
        super().__init__(f"{one} and {other}")


def perform(order: str) -> Any:
    """Do something that a separate process must handle. Raises AssertionError in the process of the tests."""
    assert "pytest" not in sys.modules, f"{order!r} must be done in another process"
    match order:
        case "report":
            return {"pid": os.getpid(), "environment": dict(os.environ), "path": sys.path}
        case "print":
            print("from Python")
            return os.write(1, b"from C")
        case "read":
            return input()
        case "log":
            logger.debug("too fine")
            logger.warning("%d lines\nof it", 2)
        case "divide":
            return 1 / 0
        case "give up":
            raise Unanswered("planner", ["it was no JSON"], "the moon")
        case "fail in an odd way":
            raise Odd("a", "b")
        case "return a function":
            return lambda: None
        case "exit":
            os._exit(3)
        case "be interrupted":
            os.kill(os.getpid(), 2)
        case "be killed":
            os.kill(os.getpid(), 9)
    return order


def row_of(result: dspy.Prediction) -> tuple[int, dict[str, Any]]:
    """Return the id of the process that made a result, and its JSON."""
    return os.getpid(), row(result)


def row(result: dspy.Prediction) -> dict[str, Any]:
    """Return the JSON of a result; a certain image name kills the process, unless it is that of the tests."""
    if Path(result.image.source).stem == "fatal":
        assert "pytest" not in sys.modules, "the image must be assessed in another process"
        assert "pytest" not in sys.modules, "this runs in the test's own process"
        os.kill(os.getpid(), 9)
    return result.to_dict()
