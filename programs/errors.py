"""Define the exceptions of this package, and helpers for their messages.

::

    AgenticIQAError
    ├── UserError (ValueError)      the caller can fix it: one line, exit status 2, no traceback
    │   ├── ImageError              the file exists but cannot be assessed
    │   │   └── ImageNotFound       (also a FileNotFoundError)
    │   ├── ToolError               no such metric, not applicable, or not installed
    │   │   └── UnknownToolNamed    (also an ImageError) the plan of one image has a tool that does not exist
    │   ├── BackendError            no such backend, or its key is missing
    │   ├── StateError              a saved program, or a predictor, does not fit this program
    │   └── WrongArgument           (also a TypeError) the program was called with unknown or missing arguments
    ├── Unanswered                  no answer of the model was usable; the error has the reason for each attempt
    ├── NoScore                     neither tools nor a model provided a score
    └── Unforeseen                  an unexpected exception while one of several images was assessed

Two more come from elsewhere and pass through unchanged: ``agenticiqa.configs.ConfigError`` (a bad configuration
file, the caller can fix it) and ``dspy.LMError`` (the model could not be reached: an outage, never an answer).
"""

from collections.abc import Iterable, Sequence
from typing import Any

LAST_ANSWER = "; the answer was: "

# A class of a pattern: characters that change the order of a text or, as U+2028, its lines.
REORDERING = "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
LONGEST_SHOWN = 2000  # characters of a model's text in an error, a log or a result


def excerpt(text: str, most: int = LONGEST_SHOWN) -> str:
    """Return the first ``most`` characters of a text, followed by its length if it is longer."""
    return text if len(text) <= most else f"{text[:most]} ... ({len(text):,} characters)"


class AgenticIQAError(Exception):
    """The base class of this package's exceptions; catch it to handle all of them."""


class UserError(AgenticIQAError, ValueError):
    """A mistake in the call or its input; the message says what was expected, what was given, and what to do."""


class OfImage(AgenticIQAError):
    """An error that concerns one image; the message begins with the image's name.

    Attributes:
        problem: What is wrong, and what to do; the message without the name.
        image: The name of the image; empty for an image without a name.
    """

    problem: str
    image: str

    def __init__(self, problem: str, image: str = "") -> None:
        super().__init__(f"{image}: {problem}" if image else problem)
        self.problem, self.image = problem, image


class ImageError(OfImage, UserError):
    """The image cannot be read, or cannot be assessed as requested; the message names it and what to do."""


class ImageNotFound(ImageError, FileNotFoundError):
    """There is no file at the given path; check its spelling and the folder."""

    def __str__(self) -> str:
        return str(self.args[0])


class ToolError(UserError):
    """A metric is unknown, does not apply to the given images, or is not installed; choose another or install it."""


class UnknownToolNamed(ImageError, ToolError):
    """The plan of an image lists a tool that its question names and that does not exist; choose another one."""


class BackendError(UserError):
    """A backend is unknown, or its key is missing; correct its name or set the environment variable that is named."""


class StateError(UserError):
    """The signatures of a saved program, or of a stage's replaced predictor, differ from the program's; tune again."""


class WrongArgument(UserError, TypeError):
    """A function was called with unknown or missing arguments; the message names those that it takes."""


class Unanswered(AgenticIQAError):
    """A model gave no usable answer in any of the allowed attempts; try again, or use another model.

    Attributes:
        stage: The stage that asked.
        reasons: One line per attempt.
        last_output: The raw text of the last attempt, shortened.
        last_answer: The last answer that parsed as the typed output and was rejected only by a rule of the stage.
        outputs: The raw text of each attempt; empty for an answer that was too long to parse.
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
        """The reasons by stage, as in results; the last reason includes the raw output."""
        *earlier, last = self.reasons
        return {self.stage: [*earlier, f"{last}{LAST_ANSWER}{self.last_output}"]}


def ended_unanswered(reasons: Iterable[str]) -> bool:
    """Return whether any of a stage's rejection reasons is the final one of an ``Unanswered``."""
    return any(LAST_ANSWER in reason for reason in reasons)


class NoScore(AgenticIQAError):
    """A score was requested, but neither a tool nor a model provided one; the log says why the tools failed."""


class Unforeseen(OfImage):
    """An unexpected exception, a defect, while one of several images was assessed; the others are not affected.

    The traceback is logged at INFO (``-v``). Please report it.
    """
