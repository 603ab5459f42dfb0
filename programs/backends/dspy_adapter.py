"""Format a question for a model and parse its answer, one JSON object. The form of the answer is sent once.

The form is in ``response_format`` if the server enforces it, else in the prompt: each key with its type, and an
example. Text shared by all questions of a signature is cached; DSPy would build it for each call.
"""

import copy
import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Self

import dspy
import pydantic

from agenticiqa.programs.backends.json_schema import without_bounds, without_names
from agenticiqa.programs.backends.providers import Form
from agenticiqa.signatures.answers.answer_fields import read_fields
from agenticiqa.signatures.answers.json_text import Unreadable, too_much

CORRECTION = "correction"  # the input with the reason why the last answer was rejected
SIGNATURES = 64  # cached signatures: more than the program has, also with those that have a correction
# How DSPy writes an image into a text and into a saved state: a JSON list of parts between two markers.
SAVED_START, SAVED_END = "<<CUSTOM-TYPE-START-IDENTIFIER>>", "<<CUSTOM-TYPE-END-IDENTIFIER>>"
_SAVED = re.compile(f"{SAVED_START}((?:[^<]++|<(?!<CUSTOM-TYPE-))*+){SAVED_END}")


class SteadyAdapter(dspy.JSONAdapter):
    """``dspy.JSONAdapter`` with a shorter prompt and an explicit ``form`` of JSON, which DSPy would infer."""

    def __init__(self, form: Form = "off") -> None:
        super().__init__()
        self.form = form
        self.schema_bounds = True

    def with_form(self, form: Form, schema_bounds: bool = True) -> Self:
        """Return a copy, also of a subclass, that requests this form; see ``Provider`` for ``schema_bounds``."""
        changed = copy.copy(self)
        changed.form, changed.schema_bounds = form, schema_bounds
        return changed

    def __call__(
        self,
        lm: dspy.LM,
        lm_kwargs: dict[str, Any],
        signature: type[dspy.Signature],
        demos: list[dict[str, Any]],
        inputs: dict[str, Any],
    ) -> list[dict[str, Any]]:
        """Called by DSPy; see ``dspy.JSONAdapter``."""
        requested = response_format(signature, self._form(signature))
        if not self.schema_bounds:
            requested = without_bounds(requested)
        # ``JSONAdapter`` would replace the form by what DSPy knows of the model's name.
        return super(dspy.JSONAdapter, self).__call__(lm, lm_kwargs | requested, signature, demos, inputs)

    def _form(self, signature: type[dspy.Signature]) -> Form:
        """Return the form for a signature; a strict schema cannot describe a mapping, such as the advice of Refine."""
        return "json_object" if self.form == "json_schema" and not _is_closed(signature) else self.form

    def format_system_message(self, signature: type[dspy.Signature]) -> str:
        """Return the instructions, the fields and, unless the server enforces it, the form of the answer.

        It is the same with and without a correction, which is the last input. A server that caches prefixes can
        therefore reuse everything before the correction, including images.
        """
        described: Any = signature.delete(CORRECTION) if CORRECTION in signature.input_fields else signature
        return _system_message(described, self._form(signature) == "json_schema")

    def format_user_message_content(
        self,
        signature: type[dspy.Signature],
        inputs: dict[str, Any],
        prefix: str = "",
        suffix: str = "",
        main_request: bool = False,
    ) -> str:
        """Called by DSPy; see ``dspy.ChatAdapter``. Inputs that are ``None`` are left out."""
        values = {name: value for name, value in inputs.items() if value is not None}
        written: str = super().format_user_message_content(signature, values, prefix, suffix, main_request)
        return written

    def user_message_output_requirements(self, signature: type[dspy.Signature]) -> str:
        """Return the output fields; after a rejected answer also its form, even if the server should enforce it."""
        fields = ", ".join(f"`{name}`" for name in signature.output_fields)
        order = f"Respond with a JSON object in the following order of fields: {fields}."
        if CORRECTION not in signature.input_fields or self._form(signature) != "json_schema":
            return order
        keyed: Any = signature
        return f"{order}\n{answer_form(keyed)}"

    def parse(self, signature: type[dspy.Signature], completion: str) -> dict[str, Any]:
        """Return the fields (see ``answers.answer_fields``). Raises AdapterParseError, with an Unreadable."""
        try:
            read = read_fields(completion, signature)
        except Unreadable as error:
            raise dspy.AdapterParseError(type(self).__name__, signature, completion, str(error)) from error
        fields: dict[str, Any] = super().parse(signature, completion) if read is None else read
        return fields


def showing_images(adapter: dspy.Adapter) -> dspy.Adapter:
    """Return a copy of an adapter that sends each image as an image.

    An adapter that formats the prompt itself, such as ``dspy.TwoStepAdapter``, leaves images as base64 in the text.
    The copy rejects an answer that is too large (see ``too_much``). It does not retry as JSON after an answer that
    cannot be parsed, because ``ask`` parses the answer first and returns it to the model with the reason.
    """

    def format(*args: Any, **kwargs: Any) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = adapter.format(*args, **kwargs)
        for message in messages:
            content = message["content"]
            if message["role"] == "user" and isinstance(content, str) and SAVED_START in content:
                message["content"] = _parts(content)
        return messages

    def parse(signature: type[dspy.Signature], completion: str) -> dict[str, Any]:
        if why := too_much(completion):
            raise dspy.AdapterParseError(type(adapter).__name__, signature, completion, why) from Unreadable(why)
        fields: dict[str, Any] = adapter.parse(signature, completion)
        return fields

    changed = copy.copy(adapter)
    changed.format, changed.parse = format, parse
    if isinstance(changed, dspy.ChatAdapter):
        changed.use_json_adapter_fallback = False
    return changed


def _parts(text: str) -> list[dict[str, Any]]:
    """Return a text as parts of a message, with each image that DSPy wrote into it as an image."""
    parts: list[dict[str, Any]] = []
    for number, piece in enumerate(_SAVED.split(text)):
        if number % 2:
            parts.extend(json.loads(piece))
        elif piece:
            parts.append({"type": "text", "text": piece})
    return parts


def response_format(signature: Any, form: Form) -> dict[str, Any]:
    """Return the ``response_format`` of a request in OpenAI's form; ``{}`` for "off"."""
    if form == "json_schema":
        wanted = {"name": "answer", "schema": answer_schema(signature), "strict": True}
        return {"response_format": {"type": "json_schema", "json_schema": wanted}}
    return {"response_format": {"type": "json_object"}} if form == "json_object" else {}


@lru_cache(maxsize=SIGNATURES)
def answer_schema(signature: type[dspy.Signature]) -> dict[str, Any]:
    """Return the strict JSON schema of a signature's outputs, without class names and docstrings.

    Pydantic's own schema is strict, because these types are closed and all of their fields are required.
    """
    fields: dict[str, Any] = {name: (field.annotation, ...) for name, field in signature.output_fields.items()}
    model = pydantic.create_model("Answer", __config__=pydantic.ConfigDict(extra="forbid"), **fields)
    return without_names(model.model_json_schema())


def _is_closed(signature: type[dspy.Signature]) -> bool:
    kinds = [field.annotation for field in signature.output_fields.values()]
    return all(isinstance(kind, type) and issubclass(kind, (pydantic.BaseModel, str)) for kind in kinds)


@lru_cache(maxsize=SIGNATURES)
def answer_form(signature: Any) -> str:
    """Describe the form of the answer: each key with its type, then an example of each answer model that has one."""
    lines = [_typed(answer_schema(signature))]
    outputs = {name: field.annotation for name, field in signature.output_fields.items()}
    examples = {name: kind.example for name, kind in outputs.items() if hasattr(kind, "example")}
    if examples:
        lines.append(f"For example: {json.dumps(examples, ensure_ascii=False)}")
    return "\n".join(lines)


@lru_cache(maxsize=SIGNATURES)
def _system_message(signature: Any, is_enforced: bool) -> str:
    inputs, outputs = _described(signature.input_fields), _described(signature.output_fields)
    form = "" if is_enforced else f"\n\nAnswer with this JSON object and nothing else:\n{answer_form(signature)}"
    return f"{signature.instructions}\n\nYou are given:\n{inputs}\n\nYou answer with:\n{outputs}{form}"


def _described(fields: Mapping[str, Any]) -> str:
    described = {name: (field.json_schema_extra or {}).get("desc", "") for name, field in fields.items()}
    # DSPy describes a field without a description as "${its name}".
    lines = [f"- {name}" if desc in ("", f"${{{name}}}") else f"- {name}: {desc}" for name, desc in described.items()]
    return "\n".join(lines)


def _typed(schema: Mapping[str, Any]) -> str:
    """Return a schema as JSON with a type for each value, such as ``{"level": "Good" | "Bad", "reason": string}``."""
    if "enum" in schema:
        return " | ".join(map(json.dumps, schema["enum"]))
    if "anyOf" in schema:
        return " | ".join(map(_typed, schema["anyOf"]))
    if schema.get("type") == "array":
        item, least = _typed(schema["items"]), int(schema.get("minItems", 0))
        return f"[{', '.join([item] * least)}]" if least == schema.get("maxItems") else f"[{item}, ...]"
    if "properties" in schema:
        return "{" + ", ".join(f'"{name}": {_typed(item)}' for name, item in schema["properties"].items()) + "}"
    return str(schema.get("type", "any"))
