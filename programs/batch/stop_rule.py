"""Decide when a run ends because further images would fail in the same way."""

from dataclasses import dataclass

import dspy

from agenticiqa.programs.backends.failures import NoConnection
from agenticiqa.programs.backends.limits import Halted, LimitReached
from agenticiqa.programs.errors import ImageError, Unanswered, Unforeseen, UserError
from agenticiqa.programs.result import is_unscored

FAILURES_IN_A_ROW = 5  # images without a usable answer, beyond those under way, after which a run ends
GIVEN_UP = "the last {} images had no usable answer; check the errors above, the model and its address"
FATAL = (
    LimitReached,
    Halted,
    dspy.LMAuthError,
    dspy.LMBillingError,
    dspy.LMConfigurationError,
    dspy.LMUnsupportedModelError,
)


@dataclass
class StopRule:
    """The rule that ends a run of ``workers`` images at a time; ``ended_by`` is the error that ended it.

    ``accepted`` is whether an image had a usable answer, in this run or before a resumed one. ``given_up_after`` is the
    number of images in a row without one after which the run ended, if that ended it; it does not if ``keep_going``.
    """

    workers: int
    accepted: bool = False
    keep_going: bool = False
    in_a_row: int = 0
    given_up_after: int = 0
    answered: bool = False  # whether an image was assessed, or failed for a reason other than an unreachable server
    ended_by: Exception | None = None

    def should_stop(self, outcome: object) -> bool:
        """Return whether to end the run after this outcome, a result or an error; later calls then return True, too.

        A run ends at once after a user error that does not concern this image, a key or model that the server refuses,
        a reached limit, or if the server was never reachable in this run. A run also ends after several images in a row
        without any usable answer: the server is unreachable, refuses every request, or none of its answers was usable
        so far. (It may refuse a single image for its size, its format, or with status 403 for what it shows.)
        """
        if self.ended_by is not None:
            return True
        unusable = isinstance(outcome, Unanswered) or _is_unanswered(outcome)
        self.accepted |= not (unusable or isinstance(outcome, Exception))
        failed = isinstance(outcome, dspy.LMError | Unforeseen) or (unusable and not self.accepted)
        self.in_a_row = self.in_a_row + 1 if failed else 0
        never_there = not self.answered and _is_unreachable(outcome)
        self.answered |= not never_there
        if (
            (isinstance(outcome, FATAL) and not _is_forbidden(outcome))
            or never_there
            or (isinstance(outcome, UserError) and not isinstance(outcome, ImageError))
        ):
            assert isinstance(outcome, Exception)
            self.ended_by = outcome
        elif self.in_a_row >= FAILURES_IN_A_ROW + 2 * self.workers and not self.keep_going:
            self.given_up_after = self.in_a_row
            self.ended_by = UserError(GIVEN_UP.format(self.in_a_row))
            if isinstance(outcome, Exception) and not unusable:
                self.ended_by = outcome
        return self.ended_by is not None

    @property
    def gave_up(self) -> str:
        """What a command with ``--keep-going`` prints if several images in a row ended its run; else empty."""
        return f"{GIVEN_UP.format(self.given_up_after)}, or add --keep-going" if self.given_up_after else ""


def _is_unanswered(outcome: object) -> bool:
    """Return whether a row has no score or answer because the model gave no usable one."""
    return isinstance(outcome, dict) and bool(outcome.get("rejected_answers")) and is_unscored(outcome)


def _is_forbidden(outcome: object) -> bool:
    return isinstance(outcome, dspy.LMAuthError) and getattr(outcome.__cause__, "status", None) == 403


def _is_unreachable(outcome: object) -> bool:
    # DSPy raises its own error, with that of the request as its cause.
    return isinstance(outcome, dspy.LMError) and isinstance(outcome.__cause__, NoConnection)
