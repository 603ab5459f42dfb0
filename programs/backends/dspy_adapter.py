"""Format a question for a model and parse its answer, one JSON object. The form of the answer is sent once.

The form is in ``response_format`` if the server enforces it, else at the end of the prompt: each key with its type. It
has no example, because small models return an example as their answer. Text shared by all questions of a signature is
cached; DSPy would build it for each call.
"""

import copy
import json
import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any, Self

import dspy
import pydantic

from agenticiqa.programs.backends.json_schema import LENGTHS, without_keywords, without_names
from agenticiqa.programs.backends.providers import Form
from agenticiqa.signatures.answers.answer_fields import read_fields
from agenticiqa.signatures.answers.json_text import Unreadable, too_much
from agenticiqa.signatures.answers.requested import Requested, most_tokens

CORRECTION = "correction"  # the input with the reason why the last answer was rejected
SIGNATURES = 64  # cached signatures: more than the program has, also with those that have a correction
# How DSPy writes an image into a text and into a saved state: a JSON list of parts between two markers.
SAVED_START, SAVED_END = "<<CUSTOM-TYPE-START-IDENTIFIER>>", "<<CUSTOM-TYPE-END-IDENTIFIER>>"
_SAVED = re.compile(f"{SAVED_START}((?:[^<]++|<(?!<CUSTOM-TYPE-))*+){SAVED_END}")


class SteadyAdapter(dspy.JSONAdapter):
    """``dspy.JSONAdapter`` with a shorter prompt and an explicit ``form`` of JSON, which DSPy would infer.

    ``requested`` is what the answer to this request must contain. ``response_format`` says it if ``per_request``, for
    servers that build a grammar for each schema in milliseconds. The prompt says it if the server does not enforce a
    schema, also one that was sent (``in_prompt``).
    """

    def __init__(self, form: Form = "off") -> None:
        super().__init__()
        self.form, self.requested = form, Requested()
        self.per_request = self.in_prompt = False
        self.refused: Collection[str] = ()

    def for_request(
        self, form: Form, requested: Requested, *, per_request: bool, in_prompt: bool, refused: Collection[str] = ()
    ) -> Self:
        """Return a copy, also of a subclass, for one request in this form; ``refused`` are keywords to leave out."""
        changed = copy.copy(self)
        changed.form, changed.requested = form, requested
        changed.per_request, changed.in_prompt, changed.refused = per_request, in_prompt, refused
        return changed

    def schema(self, signature: Any) -> dict[str, Any]:
        """Return the JSON schema that ``response_format`` has in the form "json_schema"."""
        schema = answer_schema(signature) if self.per_request else stage_schema(signature)
        return self.requested.bounded(schema) if self.per_request else without_keywords(schema, self.refused)

    def most_tokens(self, signature: type[dspy.Signature]) -> int | None:
        """Return an upper bound of the tokens of an answer within the schema of its own request; otherwise ``None``."""
        is_bounded = self.per_request and not self.in_prompt and self._form(signature) == "json_schema"
        return most_tokens(self.schema(signature)) if is_bounded else None

    def __call__(
        self,
        lm: dspy.LM,
        lm_kwargs: dict[str, Any],
        signature: type[dspy.Signature],
        demos: list[dict[str, Any]],
        inputs: dict[str, Any],
    ) -> list[dict[str, Any]]:
        """Called by DSPy; see ``dspy.JSONAdapter``."""
        wanted = response_format(self._form(signature), self.schema(signature))
        # ``JSONAdapter`` would replace the form by what DSPy knows of the model's name.
        return super(dspy.JSONAdapter, self).__call__(lm, lm_kwargs | wanted, signature, demos, inputs)

    def _form(self, signature: type[dspy.Signature]) -> Form:
        """Return the form for a signature; a strict schema cannot describe a mapping, such as the advice of Refine."""
        return "json_object" if self.form == "json_schema" and not _is_closed(signature) else self.form

    def format_system_message(self, signature: type[dspy.Signature]) -> str:
        """Return the instructions and the fields, which are the same for all requests of a signature.

        They are also the same with and without a correction, which is the last input. A server that caches prefixes can
        therefore reuse everything before the correction, including images.
        """
        described: Any = signature.delete(CORRECTION) if CORRECTION in signature.input_fields else signature
        return _system_message(described)

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

    def user_message_output_requirements(self, signature: Any) -> str:
        """Return the output fields and, unless the server enforces it, the form of the answer."""
        fields = ", ".join(f"`{name}`" for name in signature.output_fields)
        order = f"Respond with a JSON object in the following order of fields: {fields}."
        if self._form(signature) == "json_schema" and not self.in_prompt:
            return order
        return f"{order} It has this form, with nothing before or after it:\n{self.described(signature)}"

    def described(self, signature: Any) -> str:
        """Return the form of the answer to this request, for a prompt."""
        return described_schema(self.requested.bounded(answer_schema(signature)))

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


def response_format(form: Form, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ``response_format`` of a request in OpenAI's form; ``{}`` for "off"."""
    if form == "json_schema":
        wanted = {"name": "answer", "schema": schema, "strict": True}
        return {"response_format": {"type": "json_schema", "json_schema": wanted}}
    return {"response_format": {"type": "json_object"}} if form == "json_object" else {}


@lru_cache(maxsize=SIGNATURES)
def answer_schema(signature: Any) -> dict[str, Any]:
    """Return the strict JSON schema of a signature's outputs, without class names and docstrings.

    Pydantic's own schema is strict, because these types are closed and all of their fields are required.
    """
    fields: dict[str, Any] = {name: (field.annotation, ...) for name, field in signature.output_fields.items()}
    model = pydantic.create_model("Answer", __config__=pydantic.ConfigDict(extra="forbid"), **fields)
    return without_names(model.model_json_schema())


@lru_cache(maxsize=SIGNATURES)
def stage_schema(signature: Any) -> dict[str, Any]:
    """Return the schema that all requests of a signature share: without lengths, which strict modes refuse."""
    return without_keywords(answer_schema(signature), LENGTHS)


def _is_closed(signature: type[dspy.Signature]) -> bool:
    kinds = [field.annotation for field in signature.output_fields.values()]
    return all(isinstance(kind, type) and issubclass(kind, (pydantic.BaseModel, str)) for kind in kinds)


@lru_cache(maxsize=SIGNATURES)
def _system_message(signature: Any) -> str:
    inputs, outputs = _described(signature.input_fields), _described(signature.output_fields)
    return f"{signature.instructions}\n\nYou are given:\n{inputs}\n\nYou answer with:\n{outputs}"


def _described(fields: Mapping[str, Any]) -> str:
    described = {name: (field.json_schema_extra or {}).get("desc", "") for name, field in fields.items()}
    # DSPy describes a field without a description as "${its name}".
    lines = [f"- {name}" if desc in ("", f"${{{name}}}") else f"- {name}: {desc}" for name, desc in described.items()]
    return "\n".join(lines)


def described_schema(schema: Mapping[str, Any]) -> str:
    """Return a schema as JSON with a type for each value, such as ``{"level": "Good" | "Bad", "reason": text}``."""
    if "enum" in schema:
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(map(described_schema, schema["anyOf"]))
    if "prefixItems" in schema:
        return f"[{', '.join(map(described_schema, schema['prefixItems']))}]"
    if schema.get("type") == "array":
        item, least = described_schema(schema["items"]), int(schema.get("minItems", 0))
        return _described_list(item, least, schema.get("maxItems"))
    if "properties" in schema:
        items = schema["properties"].items()
        return "{" + ", ".join(f'"{name}": {described_schema(item)}' for name, item in items) + "}"
    if "maxLength" in schema:
        return f"text of at most {schema['maxLength']} characters"
    return str(schema.get("type", "any"))


def _described_list(item: str, least: int, most: int | None) -> str:
    if most == 0:
        return "[]"
    if least == most:
        return f"[{', '.join([item] * least)}]"
    return f"[{item}, ...]" if most is None else f"[{item}, ... (at most {most})]"
