"""Notice a search of an optimizer in which every example failed: DSPy logs errors and scores such an example with 0."""

import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import dspy

from agenticiqa.programs.backends.failures import causes
from agenticiqa.programs.batch.stop_rule import StopRule
from agenticiqa.programs.errors import NoScore, Unanswered, UserError, excerpt
from agenticiqa.programs.result import Assessment

LONGEST_ERROR = 300  # characters of the last error in a message


class EveryExampleFailed(BaseException):
    """Raised to end an optimizer whose model cannot be asked; the message has the error of the last example.

    DSPy counts any Exception as a bad answer, logs it and goes on. This class is not an Exception, so it reaches the
    caller of the optimizer.
    """


@dataclass
class Trial:
    """The outcomes of a program that an optimizer tunes, shared by all of its copies. Thread-safe.

    ``assessed`` and ``failed`` are numbers of examples. An unusable answer is a failed example, but the optimizer goes
    on, because other prompts may mend it. ``ended_with`` is the complaint at the first example after which further ones
    would fail in the same way, so that examples in other threads do not change it; empty before.
    """

    assessed: int = 0
    failed: int = 0
    ended_with: str = ""
    last_error: Exception | None = None
    rule: StopRule = field(default_factory=lambda: StopRule(dspy.settings.num_threads))
    lock: Lock = field(default_factory=Lock, repr=False)

    def note(self, outcome: object) -> None:
        """Record a result or an error. Raises EveryExampleFailed if further examples would fail in the same way."""
        with self.lock:
            if isinstance(outcome, tuple):  # a result with its trace, as DSPy's bootstrap_trace_data makes it
                outcome = outcome[0]
            if isinstance(outcome, Assessment) and outcome.summarizer_result.error:
                outcome = NoScore(outcome.summarizer_result.error)  # no answer of the model was usable
            if not isinstance(outcome, Exception):
                # An image with the same pixels as its reference is scored without the model.
                self.assessed += not isinstance(outcome, Assessment) or bool(outcome.answered_by)
                return
            self.failed, self.last_error = self.failed + 1, outcome
            repeats = not self.assessed and not isinstance(outcome, Unanswered)
            if repeats and (self.rule.should_stop(outcome) or _is_unreachable(outcome)):
                self.ended_with = self.ended_with or self.complaint()
        if self.ended_with and not self.assessed:
            raise EveryExampleFailed(self.ended_with) from None  # the causes of a request would fill the screen

    def refuse_to_save(self) -> None:
        """Raise UserError if examples were assessed and all of them failed."""
        if self.failed and not self.assessed:
            raise UserError(f"{self.complaint()}. No prompts were tuned, so nothing is saved")

    def complaint(self) -> str:
        """Return how many examples failed, and the last error."""
        last = excerpt(" ".join(str(self.last_error).split()), LONGEST_ERROR)
        return f"every example failed ({self.failed} of {self.failed}), the last one with: {last}"

    def __deepcopy__(self, memo: dict[int, Any]) -> "Trial":
        return self  # DSPy copies the program for every candidate

    def __reduce__(self) -> tuple[Callable[[], "Trial"], tuple[()]]:
        return Trial, ()  # a saved program is not part of the search


def _is_unreachable(error: Exception) -> bool:
    """Return whether there was no server at the address."""
    refused = (ConnectionRefusedError, socket.gaierror)
    return isinstance(error, dspy.LMError) and any(isinstance(cause, refused) for cause in causes(error))
