"""DSPy's JSON adapter, with what is the same for every question of a signature made once.

DSPy describes the fields and builds the JSON schema anew for each call, some 5 ms of processor time: more than all the
rest of a call without an image. The text is DSPy's own; the schema is asked for in the form that the engine names.
"""

from functools import lru_cache
from typing import Any

import dspy
import pydantic
from dspy.utils.exceptions import AdapterParseError

from agenticiqa.programs.backends.cleaning import cut_short, the_answer
from agenticiqa.programs.backends.engine import Model

CORRECTION = "correction"  # the input that says what was wrong with the last answer
SIGNATURES = 64  # more than the program has, with some to spare for those that carry a correction


class SteadyAdapter(dspy.JSONAdapter):
    """As ``dspy.JSONAdapter``; an engine of ours is asked for JSON in its ``form``."""

    def __call__(
        self,
        lm: dspy.LM,
        lm_kwargs: dict[str, Any],
        signature: type[dspy.Signature],
        demos: list[dict[str, Any]],
        inputs: dict[str, Any],
    ) -> list[dict[str, Any]]:
        """As DSPy calls it."""
        return super().__call__(lm, lm_kwargs | response_format(lm, signature), signature, demos, inputs)

    async def acall(
        self,
        lm: dspy.LM,
        lm_kwargs: dict[str, Any],
        signature: type[dspy.Signature],
        demos: list[dict[str, Any]],
        inputs: dict[str, Any],
    ) -> list[dict[str, Any]]:
        """As DSPy calls it."""
        return await super().acall(lm, lm_kwargs | response_format(lm, signature), signature, demos, inputs)

    def format_system_message(self, signature: type[dspy.Signature]) -> str:
        """The fields, their form, and the instructions; a correction, which comes last, leaves them as they were.

        So a server that keeps prefixes has read all but the correction before, the images among it.
        """
        described: Any = signature.delete(CORRECTION) if CORRECTION in signature.input_fields else signature
        return _system_message(described)

    def parse(self, signature: type[dspy.Signature], completion: str) -> dict[str, Any]:
        """The fields of the answer, whatever stands around it. DSPy mends what is no JSON, but not what is cut off."""
        answer = the_answer(completion, signature.output_fields.keys())
        if answer is None and cut_short(completion):
            raise AdapterParseError(type(self).__name__, signature, completion, "the answer is cut short")
        fields: dict[str, Any] = super().parse(signature, answer or completion)
        return fields


def response_format(lm: dspy.LM, signature: Any) -> dict[str, Any]:
    """The request's ``response_format`` for an engine of ours, in OpenAI's spelling; nothing for any other engine."""
    form = lm.engine.form if isinstance(lm.engine, Model) else "off"
    if form == "json_schema":
        wanted = {"name": "answer", "schema": answer_schema(signature), "strict": True}
        return {"response_format": {"type": "json_schema", "json_schema": wanted}}
    return {"response_format": {"type": "json_object"}} if form == "json_object" else {}


@lru_cache(maxsize=SIGNATURES)
def answer_schema(signature: type[dspy.Signature]) -> dict[str, Any]:
    """The strict JSON schema of a signature's outputs: pydantic's, as every type of ours is closed and all required."""
    fields: dict[str, Any] = {name: (field.annotation, ...) for name, field in signature.output_fields.items()}
    model = pydantic.create_model("Answer", __config__=pydantic.ConfigDict(extra="forbid"), **fields)
    return model.model_json_schema()


@lru_cache(maxsize=SIGNATURES)
def _system_message(signature: type[dspy.Signature]) -> str:
    return dspy.JSONAdapter().format_system_message(signature)
