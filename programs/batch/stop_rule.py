"""When a failed image means that the next ones would fail the same, so that the run had better end."""

from dataclasses import dataclass

import dspy

from agenticiqa.programs.backends.limits import Halted, LimitReached
from agenticiqa.programs.errors import ImageError, UserError

IN_A_ROW = 5  # so many model failures, beyond those of the images under way, and the model counts as gone
AT_ONCE = (
    LimitReached,
    Halted,
    dspy.LMAuthError,
    dspy.LMBillingError,
    dspy.LMConfigurationError,
    dspy.LMUnsupportedModelError,
)


@dataclass
class StopRule:
    """Looks at the outcomes of a run in turn, ``workers`` images at a time; ``ended_by`` is what ended it."""

    workers: int
    in_a_row: int = 0
    ended_by: Exception | None = None

    def end_the_run(self, outcome: object) -> bool:
        """Whether to stop after this outcome.

        At once: a mistake of the user's that is not about this image, a key or model that the server refuses, a limit
        that is reached. After several in a row: a server that stays out of reach, or refuses what it is sent (a single
        image may be too large for it, or one that it will not look at).
        """
        self.in_a_row = self.in_a_row + 1 if isinstance(outcome, dspy.LMError) else 0
        if (
            isinstance(outcome, AT_ONCE)
            or (isinstance(outcome, UserError) and not isinstance(outcome, ImageError))
            or (isinstance(outcome, dspy.LMError) and self.in_a_row >= IN_A_ROW + 2 * self.workers)
        ):
            self.ended_by = outcome
        return self.ended_by is not None
