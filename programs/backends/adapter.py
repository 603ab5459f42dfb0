"""DSPy's JSON adapter with its work per signature cached.

DSPy describes the fields and builds the JSON schema anew for each call: about 5 ms of processor time, more than the
rest of a call without an image. The text is DSPy's own.
"""

import copy
from functools import lru_cache
from typing import Any

import dspy
import pydantic
from dspy.adapters.types.base_type import split_message_content_for_custom_types
from dspy.utils.exceptions import AdapterParseError

from agenticiqa.programs.backends.providers import Form
from agenticiqa.programs.backends.reading import Unreadable, read_fields, require_readable

CORRECTION = "correction"  # the input that says why the last answer was rejected
SIGNATURES = 64  # cached; more than the program has, with room for those that carry a correction


class SteadyAdapter(dspy.JSONAdapter):
    """``dspy.JSONAdapter`` that requests JSON in ``form``; DSPy would infer the form from the model's name."""

    form: Form = "off"

    def __call__(
        self,
        lm: dspy.LM,
        lm_kwargs: dict[str, Any],
        signature: type[dspy.Signature],
        demos: list[dict[str, Any]],
        inputs: dict[str, Any],
    ) -> list[dict[str, Any]]:
        """Called by DSPy; see ``dspy.JSONAdapter``."""
        return super().__call__(lm, lm_kwargs | response_format(signature, self.form), signature, demos, inputs)

    def format_system_message(self, signature: type[dspy.Signature]) -> str:
        """The fields, their format and the instructions, the same with and without a correction.

        The correction is the last input, so a server that caches prefixes reuses everything before it, images too.
        """
        described: Any = signature.delete(CORRECTION) if CORRECTION in signature.input_fields else signature
        return _system_message(described)

    def parse(self, signature: type[dspy.Signature], completion: str) -> dict[str, Any]:
        """The fields of the answer; see ``reading``. Raises AdapterParseError, from the Unreadable that says why."""
        try:
            read = read_fields(completion, signature)
        except Unreadable as error:
            raise AdapterParseError(type(self).__name__, signature, completion, str(error)) from error
        fields: dict[str, Any] = super().parse(signature, completion) if read is None else read
        return fields


def showing_images(adapter: dspy.Adapter) -> dspy.Adapter:
    """A copy of an adapter whose prompts have each image as an image.

    An adapter that formats the prompt by itself, such as ``dspy.TwoStepAdapter``, leaves images as base64 in the text.
    The copy parses no answer that is too much to be read (see ``bounds``). It asks no second time, as JSON, where an
    answer could not be parsed: it is read first (see ``reading``), and what cannot be read goes back with the reason.
    """

    def format(*args: Any, **kwargs: Any) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = adapter.format(*args, **kwargs)
        as_text = [message for message in messages if isinstance(message["content"], str)]
        split_message_content_for_custom_types(as_text)  # in place
        return messages

    def parse(signature: type[dspy.Signature], completion: str) -> dict[str, Any]:
        try:
            require_readable(completion)
        except Unreadable as error:
            raise AdapterParseError(type(adapter).__name__, signature, completion, str(error)) from error
        fields: dict[str, Any] = adapter.parse(signature, completion)
        return fields

    shown = copy.copy(adapter)
    shown.format, shown.parse = format, parse
    if isinstance(shown, dspy.ChatAdapter):
        shown.use_json_adapter_fallback = False
    return shown


def response_format(signature: Any, form: Form) -> dict[str, Any]:
    """The ``response_format`` of a request, as OpenAI spells it; ``{}`` for "off"."""
    if form == "json_schema":
        wanted = {"name": "answer", "schema": answer_schema(signature), "strict": True}
        return {"response_format": {"type": "json_schema", "json_schema": wanted}}
    return {"response_format": {"type": "json_object"}} if form == "json_object" else {}


@lru_cache(maxsize=SIGNATURES)
def answer_schema(signature: type[dspy.Signature]) -> dict[str, Any]:
    """The strict JSON schema of a signature's outputs. Pydantic's own is strict: our types are closed, all required."""
    fields: dict[str, Any] = {name: (field.annotation, ...) for name, field in signature.output_fields.items()}
    model = pydantic.create_model("Answer", __config__=pydantic.ConfigDict(extra="forbid"), **fields)
    return model.model_json_schema()


@lru_cache(maxsize=SIGNATURES)
def _system_message(signature: type[dspy.Signature]) -> str:
    return dspy.JSONAdapter().format_system_message(signature)
