"""Every error that this package raises on purpose, and the hints that several of their messages share.

::

    AgenticIQAError
    ├── UserError (ValueError)      the caller can fix it: one line, exit status 2, no traceback
    │   ├── ImageError              the file is there but cannot be judged
    │   │   └── ImageNotFound       (also a FileNotFoundError)
    │   ├── ToolError               no such metric, not applicable, or not installed
    │   ├── BackendError            no such backend, or its key is missing
    │   ├── StateError              a saved program, or a predictor, that does not belong to this one
    │   └── WrongArgument           (also a TypeError) the program was called with other arguments than it takes
    ├── Unanswered                  the model answered, but never usably; what was wrong each time is in it
    ├── NoScore                     neither tools nor a model gave anything that a score could be made of
    └── Unforeseen                  while one of many images was judged, an exception that nobody expected

Two more come from elsewhere and pass through unchanged: ``agenticiqa.configs.ConfigError`` (a bad configuration
file, the caller can fix it) and ``dspy.LMError`` (the model could not be reached: an outage, never an answer).
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

LAST_ANSWER = "; the answer was: "

LONGEST_SHOWN = 2000  # characters of what a model wrote, in an error, a log or a result


def excerpt(text: str, most: int = LONGEST_SHOWN) -> str:
    """The first ``most`` characters of a text, and its length where it has more."""
    return text if len(text) <= most else f"{text[:most]} ... ({len(text):,} characters)"


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Return ``, did you mean X?`` with the name most similar to ``given``, or an empty text; case is ignored."""
    by_lower = {name.lower(): name for name in known}
    close = get_close_matches(given.lower(), by_lower, n=1)
    return f", did you mean {by_lower[close[0]]}?" if close else ""


class AgenticIQAError(Exception):
    """Whatever this package raises on purpose."""


class UserError(AgenticIQAError, ValueError):
    """A mistake in what was asked for; the message says what was expected, what came, and what to do."""


class ImageError(UserError):
    """The image cannot be read, or cannot be judged as asked."""


class ImageNotFound(ImageError, FileNotFoundError):
    """There is no file at the given path."""

    def __str__(self) -> str:
        return str(self.args[0])


class ToolError(UserError):
    """A metric is unknown, does not apply to what was given, or is not installed."""


class BackendError(UserError):
    """A backend's name is unknown, or what it needs (a key) is missing."""


class StateError(UserError):
    """A saved program, or a predictor that was put into a stage, has other signatures than the program's."""


class WrongArgument(UserError, TypeError):
    """A function was called with arguments that it does not take, or without one that it needs."""


class Unanswered(AgenticIQAError):
    """A model was asked as often as allowed and never gave a usable answer.

    ``reasons`` has one line per attempt, ``last_output`` the raw text of the last one, shortened, and ``last_answer``
    the last one that could be read as a typed output and that only a rule of the stage rejected. ``outputs`` has the
    raw text of each, empty for one that was too long to be read.
    """

    def __init__(
        self,
        stage: str,
        reasons: Sequence[str],
        last_output: str = "",
        last_answer: object = None,
        outputs: Sequence[str] | None = None,
    ) -> None:
        self.stage = stage
        self.reasons = list(reasons)
        self.last_output = last_output
        self.last_answer = last_answer
        self.outputs = [last_output] if outputs is None else list(outputs)
        tried = "; ".join(f"attempt {number}: {reason}" for number, reason in enumerate(reasons, 1))
        if len(reasons) > 1 and len(set(reasons)) == 1:
            tried = f"each time: {reasons[0]}"
        super().__init__(f"{stage}: no usable answer in {len(self.reasons)} attempts ({tried})")

    def __reduce__(self) -> tuple[type["Unanswered"], tuple[Any, ...]]:
        return type(self), (self.stage, self.reasons, self.last_output, self.last_answer, self.outputs)

    @property
    def rejected_answers(self) -> dict[str, list[str]]:
        """The reasons by the stage, as results have them, the last one with the raw output that it is about."""
        *earlier, last = self.reasons
        return {self.stage: [*earlier, f"{last}{LAST_ANSWER}{self.last_output}"]}


def ended_unanswered(reasons: Iterable[str]) -> bool:
    """Whether, of the reasons for which a stage rejected answers, any is the last one of an ``Unanswered``."""
    return any(LAST_ANSWER in reason for reason in reasons)


class NoScore(AgenticIQAError):
    """A score was asked for, and neither a tool nor a model gave anything to make it of."""


class Unforeseen(AgenticIQAError):
    """One of many images ended in an exception that is none of ours: a defect, which costs this image only.

    The traceback is logged at INFO (``-v``).
    """
