"""Usage and other fields beside the answer, in odd forms. The answer itself is whole, and has been paid for."""

import math
from typing import Any

from support.faulty.exchange import Act, Profile, changed, question

MISSING = object()


def _field(name: str, value: Any) -> Act:
    """The healthy answer with this value of a top-level field."""

    def change(body: dict[str, Any]) -> None:
        if value is MISSING:
            del body[name]
        else:
            body[name] = value

    return changed(change)


def _tokens(value: Any) -> Act:
    return _field("usage", dict.fromkeys(("prompt_tokens", "completion_tokens", "total_tokens"), value))


def _in_choice(**values: Any) -> Act:
    return changed(lambda body: body["choices"][0].update(values))


def _in_message(**values: Any) -> Act:
    return changed(lambda body: body["choices"][0]["message"].update(values))


def _second_choice(body: dict[str, Any]) -> None:
    body["choices"].append({**body["choices"][0], "index": 1})


DETAILS = {"prompt_tokens": 9, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": None}}

CASES: list[tuple[str, str, Act]] = [
    ("usage-missing", "no usage", _field("usage", MISSING)),
    ("usage-null", "usage: null", _field("usage", None)),
    ("usage-empty", "usage: {}", _field("usage", {})),
    ("usage-string", "usage as a text", _field("usage", "many")),
    ("usage-list", "usage as a list", _field("usage", [1, 2])),
    ("usage-number", "usage as a number", _field("usage", 17)),
    ("usage-0", "tokens 0", _tokens(0)),
    ("usage-tokens-null", "tokens null", _tokens(None)),
    ("usage-tokens-string", "tokens as texts", _tokens("1000")),
    ("usage-tokens-words", "tokens as words", _tokens("a lot")),
    ("usage-tokens-float", "tokens as floats", _tokens(1000.5)),
    ("usage-tokens-list", "tokens as lists", _tokens([1000])),
    ("usage-tokens-object", "tokens as objects", _tokens({"count": 1000})),
    ("usage-tokens-bool", "tokens true", _tokens(True)),
    ("usage-tokens-negative", "tokens below 0", _tokens(-1000)),
    ("usage-tokens-huge", "10^30 tokens", _tokens(10**30)),
    ("usage-tokens-nan", "tokens NaN", _tokens(math.nan)),
    ("usage-tokens-infinity", "tokens Infinity", _tokens(math.inf)),
    ("usage-details-null", "details with null", _field("usage", DETAILS)),
    ("usage-details-string", "details as a text", _field("usage", {**DETAILS, "prompt_tokens_details": "none"})),
    ("id-null", "id: null", _field("id", None)),
    ("id-missing", "no id", _field("id", MISSING)),
    ("id-number", "id as a number", _field("id", 17)),
    ("model-null", "model: null", _field("model", None)),
    ("model-missing", "no model", _field("model", MISSING)),
    ("model-number", "model as a number", _field("model", 4)),
    ("model-other", "another model's name", _field("model", "another-model")),
    ("model-escapes", "terminal escapes in the model's name", _field("model", "m\x1b[31m\x07\r")),
    ("created-string", "created as a text", _field("created", "today")),
    ("object-missing", "no object", _field("object", MISSING)),
    ("object-other", "another object", _field("object", "text_completion")),
    ("extra-fields", "fields nobody knows", _field("timings", {"a": [1, None, {"b": 2.5}]})),
    ("index-string", "index as a text", _in_choice(index="0")),
    ("index-missing", "index: null", _in_choice(index=None)),
    ("role-missing", "role: null", _in_message(role=None)),
    ("role-other", "another role", _in_message(role="model")),
    ("tool-calls-empty", "an empty list of tool calls", _in_message(tool_calls=[])),
    ("tool-calls-null", "tool_calls: null", _in_message(tool_calls=None)),
    ("reasoning-beside", "thoughts beside the answer", _in_message(reasoning_content="Let me think.")),
    ("annotations-null", "annotations: null", _in_message(annotations=None, audio=None)),
    ("choices-two", "two choices", changed(_second_choice)),
]

ROWS = [Profile(name, what, act, question, expect="judged") for name, what, act in CASES]
