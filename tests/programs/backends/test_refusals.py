"""The servers of the other tests refuse what their providers refuse, so that a request of this program would fail."""

import json

import pytest

from support.loopback import Arrived, Body
from support.providers import ANTHROPIC, GEMINI, LMSTUDIO, OPENAI, VLLM, Dialect, Refused

MESSAGES = [{"role": "user", "content": "What is this?"}]
PLAIN: dict[str, Body] = {
    "chat": {"model": "m", "messages": MESSAGES, "max_tokens": 9},
    "anthropic": {"model": "m", "messages": MESSAGES, "max_tokens": 9},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "What is this?"}]}]},
}
PATHS = {"chat": "/chat/completions", "anthropic": "/messages", "gemini": "/models/m:generateContent"}
OPEN = {"type": "object", "properties": {"a": {"type": "number", "minimum": 0}}, "required": ["a"]}
STRICT = {"name": "s", "strict": True, "schema": OPEN}
WRONG: list[tuple[Dialect, Body, str]] = [
    (OPENAI, {"colour": "red"}, "Unrecognized request argument supplied: colour"),
    (OPENAI, {"top_logprobs": 5}, "'logprobs' is a required property"),
    (OPENAI, {"response_format": {"type": "json_schema", "json_schema": STRICT}}, "'additionalProperties' is required"),
    (VLLM, {"seed": "seven"}, "seed: 'seven' is not of type 'integer'"),
    (LMSTUDIO, {"response_format": {"type": "json_object"}}, "'json_schema' or 'text'"),
    (ANTHROPIC, {"seed": 7}, "'seed' was unexpected"),
    (ANTHROPIC, {"temperature": 0.5, "top_p": 0.5}, "should not be valid"),
    (
        ANTHROPIC,
        {"output_config": {"format": {"type": "json_schema", "schema": OPEN}}},
        "'additionalProperties' must be",
    ),
    (GEMINI, {"model_name": "x"}, "'model_name' was unexpected"),
    (GEMINI, {"generationConfig": {"logprobs": 5}}, "'responseLogprobs' is a required property"),
]


def read(dialect: Dialect, changes: Body) -> None:
    headers = {dialect.key: "key", "content-type": "application/json", "anthropic-version": "2023-06-01"}
    raw = json.dumps(PLAIN[dialect.api] | changes).encode()
    dialect.read(Arrived(dialect.base + PATHS[dialect.api], headers, raw), "key")


def test_a_plain_request_is_accepted(dialect: Dialect) -> None:
    read(dialect, {})


@pytest.mark.parametrize(("number", "of"), [*enumerate(dialect.name for dialect, *_ in WRONG)])
def test_a_request_that_the_provider_refuses_is_refused(number: int, of: str) -> None:
    wrong, changes, words = WRONG[number]
    with pytest.raises(Refused) as refused:
        read(wrong, changes)
    assert words in str(refused.value)
