"""Whether a proposed instruction keeps the form of the answer that the program reads.

The form itself (fields, JSON schema) is sent with every request, whatever the instruction says. An instruction that
contradicts it, or no longer explains its names, costs answers, so it is refused before any judgment is spent on it.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import dspy

from agenticiqa.programs.stages.ask import MARKER

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
