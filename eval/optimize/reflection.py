"""Ask a model for a better instruction, and refuse one that is none.

The prompt and the parsing are DSPy's (``dspy.teleprompt.gepa.InstructionProposer``). An instruction also has to keep
the form of the answer: that (fields, JSON schema) is sent with every request, whatever the instruction says, so one
that contradicts it, or no longer explains its names, costs answers, and is refused before a judgment is spent on it.
"""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import dspy
from dspy.teleprompt.gepa import InstructionProposer
from dspy.utils.exceptions import AdapterParseError
from pydantic import ValidationError

from agenticiqa.programs.stages.harmless import MARKER

SECTION = "[[ ##"  # how DSPy marks the fields of a request
JSON_KEY = re.compile(r'"(\w+)"\s*:')


def broken(proposed: str, original: str, signature: type[dspy.Signature]) -> str | None:
    """What is wrong with a proposed instruction, in words for the model that wrote it; ``None`` if nothing is.

    ``original`` is the instruction that the program came with. Of the names of the answer (keys of several words, and
    words to choose from) every one that it explains has to be in the proposal, and JSON in it has no other keys.
    """
    if MARKER in proposed or SECTION in proposed:
        return f"it contains {MARKER if MARKER in proposed else SECTION!r}, which marks parts of a request"
    keys, words = names_of_answer(signature)
    # In the original also by its case: "noise" in a sentence is no word to choose from, "Noise" is.
    named = [name for name in sorted({key for key in keys if "_" in key} | words) if _names(name, original)]
    if lost := [name for name in named if not _names(name.lower(), proposed.lower())]:
        return f"it no longer names {', '.join(lost)}, which the answer is made of"
    allowed = keys | words | set(signature.fields)
    if foreign := sorted({key for key in JSON_KEY.findall(proposed) if key not in allowed} - _keys_in(original)):
        return f"it asks for JSON with {', '.join(foreign)}, which the answer does not have"
    return None


def names_of_answer(signature: type[dspy.Signature]) -> tuple[set[str], set[str]]:
    """The keys of a signature's typed output, at any depth, and the words to choose from."""
    keys, words = set(signature.output_fields), set[str]()
    for field in signature.output_fields.values():
        if hasattr(field.annotation, "model_json_schema"):
            for part in _parts(field.annotation.model_json_schema()):
                keys.update(part.get("properties", {}))
                words.update(word for word in part.get("enum", ()) if isinstance(word, str) and not word.isdigit())
                words.update(word for word in [part.get("const")] if isinstance(word, str) and not word.isdigit())
    return keys, words


def _parts(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Every mapping within a JSON schema, but for its examples."""
    if isinstance(schema, Mapping):
        yield schema
        for key, value in schema.items():
            if key not in ("examples", "default"):
                yield from _parts(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from _parts(item)


def _names(name: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def _keys_in(text: str) -> set[str]:
    return set(JSON_KEY.findall(text))


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
            # Without one DSPy's default would write the prompt: this one until 3.5, an XML one from then on.
            adapter = dspy.settings.adapter or dspy.ChatAdapter()
            with dspy.context(lm=self.model, adapter=adapter, trace=None, disable_history=True):
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
