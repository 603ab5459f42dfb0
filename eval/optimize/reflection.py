"""Ask a model for a better instruction, and refuse one that is none.

The prompt and the parsing are DSPy's (``dspy.teleprompt.gepa.InstructionProposer``).
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import dspy
from dspy.teleprompt.gepa import InstructionProposer
from dspy.utils.exceptions import AdapterParseError
from pydantic import ValidationError

from agenticiqa.eval.optimize.contract import broken

logger = logging.getLogger(__name__)

Examples = Sequence[Mapping[str, Any]]

ATTEMPTS = 2
KEEP = """Keep what the current instruction says about the form of the answer: its fields, its words to choose from,
its scales. Write rules that hold for any image; never mention the content, the file or the opinion score of an example.
Say what to look for, how much it should weigh, and where the earlier answers were too kind or too harsh. What counts
most is the order of the images: a better image has to be expected a higher level than a worse one."""


class Stopped(BaseException):
    """Ends the whole run: the reflection model cannot be reached; ``__cause__`` is what happened.

    GEPA counts any Exception of a reflection as no proposal, logs it and goes on, so that an outage would pass for a
    search that found nothing. This is no Exception, so it reaches the caller of GEPA.
    """


class Reflection:
    """Proposes an instruction for one predictor, in at most ``ATTEMPTS`` calls; a refusal is in the next prompt.

    Refused are an answer without an instruction, the current one again, and one that breaks the form of the answer
    (``contract.broken``). ``originals`` are the signatures of the program before tuning, by predictor.
    """

    def __init__(self, model: dspy.LM, originals: Mapping[str, type[dspy.Signature]]) -> None:
        self.model, self.originals = model, originals

    def __call__(self, name: str, current: str, examples: Examples) -> tuple[str | None, list[str]]:
        """A new instruction or ``None``, and why proposals were refused. Raises Stopped for an outage."""
        refused: list[str] = []
        for _ in range(ATTEMPTS):
            proposed, fault = self._ask(name, current, examples, refused)
            if fault is None:
                return proposed, refused
            logger.warning("the new instruction for %s was refused: %s", name, fault)
            refused.append(fault)
        return None, refused

    def _ask(
        self, name: str, current: str, examples: Examples, refused: list[str]
    ) -> tuple[str, None] | tuple[None, str]:
        further = f" Your last proposal was refused: {refused[-1]}. Fix exactly this." if refused else ""
        proposer = InstructionProposer(additional_instructions=" ".join(KEEP.split()) + further)
        try:
            with dspy.context(lm=self.model, trace=None, disable_history=True):
                proposed = proposer({name: current}, {name: examples}, [name])[name]
        except dspy.LMError as error:
            raise Stopped from error
        except AdapterParseError:
            return None, "the answer held no instruction that could be read"
        except (ValueError, ValidationError, AttributeError):  # blank, or not text
            return None, "the instruction was empty"
        if proposed.split() == current.split():
            return None, "the instruction was the same as the current one"
        original = self.originals[name]
        fault = broken(proposed, original.instructions, original)
        return (None, fault) if fault else (proposed, None)
