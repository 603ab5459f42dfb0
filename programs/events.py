"""Structured fields of log records: the step, the image, the planning round, and figures such as seconds.

::

    logger.info("planned in %.2f s", seconds, extra=event("planned", seconds=seconds))

The fields are plain JSON types and become attributes of the record, so any handler can use them.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

logger = logging.getLogger(__name__)


@dataclass
class AssessedImage:
    """The image that is being assessed, and the planning round: 0 at first, plus one for each replan."""

    image: str
    iteration: int = 0
    began: float = field(default_factory=time.perf_counter)

    @property
    def seconds(self) -> float:
        """Return the wall time in seconds since the assessment started."""
        return time.perf_counter() - self.began


_assessed: ContextVar[AssessedImage | None] = ContextVar("agenticiqa_assessed", default=None)


@contextmanager
def assessing(image: str) -> Iterator[AssessedImage]:
    """Attach this image to all log records made inside, also in threads that inherit the context."""
    assessed = AssessedImage(image)
    token = _assessed.set(assessed)
    try:
        yield assessed
    except Exception as error:
        logger.info("failed: %s", error, extra=event("failed", error=type(error).__name__, seconds=assessed.seconds))
        raise
    finally:
        _assessed.reset(token)


def next_round() -> None:
    """Start the next planning round; later log records belong to it."""
    if assessed := _assessed.get():
        assessed.iteration += 1


def event(name: str, /, **fields: Any) -> dict[str, Any]:
    """Return the ``extra`` of a log record: the event's name and fields, and the current image and round, if any."""
    return {"event": name, **about(), **fields}


def about() -> dict[str, Any]:
    """Return the current image and planning round; empty outside of :func:`assessing`."""
    assessed = _assessed.get()
    return {"image": assessed.image, "iteration": assessed.iteration} if assessed else {}
