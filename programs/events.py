"""The events of the log: each kind with what it means for those who show it, and the structured fields of a record.

::

    logger.info("planned in %.2f s", seconds, extra=event("planned", seconds=seconds))

The fields are plain JSON types and become attributes of the record, so any handler can use them. They have the name of
the event, the image and the planning round, and figures such as seconds.
"""

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Event:
    """A kind of event, and what it means for those who show it.

    ``is_fault`` is whether a server or an answer failed; a weak model makes many faults, so a terminal shows only the
    first. ``is_repeated`` is whether another event, or the error of the command, shows the same. ``begins`` and
    ``ends`` are whether it is the first or the last one of an image.
    """

    name: str
    is_fault: bool = False
    is_repeated: bool = False
    begins: bool = False
    ends: bool = False


KINDS = (
    # Steps of an assessment
    Event("begun", begins=True),
    Event("reference_checked"),
    Event("planned"),
    Event("plan_unchanged"),
    Event("located"),
    Event("detected"),
    Event("analyzed"),
    Event("selected"),
    Event("measured"),
    Event("tool_failed"),
    Event("summarizing", is_repeated=True),
    Event("scored"),
    Event("concluded"),
    Event("replan"),
    Event("done", ends=True),
    Event("failed", is_repeated=True, ends=True),
    # Requests to models
    Event("asked", is_repeated=True),
    Event("prompt"),
    Event("reply"),
    Event("answered"),
    Event("rejected", is_fault=True),
    Event("unanswered", is_fault=True),
    Event("fallback", is_fault=True),
    Event("retry", is_fault=True),
    Event("loading"),
    Event("fewer"),
    Event("feature_refused"),
    Event("tokens_missing"),
    Event("schema_ignored"),
)
EVENTS: Mapping[str, Event] = {kind.name: kind for kind in KINDS}


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
    """Return the ``extra`` of a log record: the event's name and fields, and the current image and round, if any.

    Raises KeyError for a name that ``EVENTS`` does not have.
    """
    return {"event": EVENTS[name].name, **about(), **fields}


def kind_of(record: logging.LogRecord) -> Event:
    """Return the kind of event of a log record; one without a name for a record of no event."""
    return EVENTS.get(vars(record).get("event", ""), Event(""))


def about() -> dict[str, Any]:
    """Return the current image and planning round; empty outside of :func:`assessing`."""
    assessed = _assessed.get()
    return {"image": assessed.image, "iteration": assessed.iteration} if assessed else {}
