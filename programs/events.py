"""What log records carry beside their sentence: which step it was, of which image, and its figures.

::

    logger.info("planned in %.2f s", seconds, extra=event("planned", seconds=seconds))

The fields are plain JSON types, and become attributes of the record. Every handler sees them, whoever set it up.
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
class JudgedImage:
    """The image that is being judged, and the round of planning: 0, and one more after each replan."""

    image: str
    iteration: int = 0
    began: float = field(default_factory=time.perf_counter)

    @property
    def seconds(self) -> float:
        """How long it has been judged, wall time."""
        return time.perf_counter() - self.began


_judged: ContextVar[JudgedImage | None] = ContextVar("agenticiqa_judged", default=None)


@contextmanager
def judging(image: str) -> Iterator[JudgedImage]:
    """Whatever is logged inside, and in threads that inherit the context, is about this image."""
    judged = JudgedImage(image)
    token = _judged.set(judged)
    try:
        yield judged
    except Exception as error:
        logger.info("failed: %s", error, extra=event("failed", error=type(error).__name__, seconds=judged.seconds))
        raise
    finally:
        _judged.reset(token)


def next_round() -> None:
    """What is logged from here on belongs to the next round of planning."""
    if judged := _judged.get():
        judged.iteration += 1


def event(name: str, /, **fields: Any) -> dict[str, Any]:
    """The ``extra`` of a log record: the event's name and fields, with the image and the round where one is judged."""
    return {"event": name, **about(), **fields}


def about() -> dict[str, Any]:
    """The image that is being judged in this context, and the round; nothing outside of :func:`judging`."""
    judged = _judged.get()
    return {"image": judged.image, "iteration": judged.iteration} if judged else {}
