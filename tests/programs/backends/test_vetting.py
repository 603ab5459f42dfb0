"""Bodies that a server may send with status 200 instead of an answer, or in addition to one."""

import json
import math
from contextlib import suppress
from time import process_time
from typing import Any

import httpx
import pytest
from dspy import lm15
from hypothesis import given
from hypothesis import strategies as st

from agenticiqa.programs.backends import vetting
from agenticiqa.programs.backends.vetting import MOST_TOKENS, VETTED, vet_chat

MESSAGE = {"role": "assistant", "content": "{}"}
CHOICE = {"index": 0, "message": MESSAGE, "finish_reason": "stop"}
USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
BODY = {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [CHOICE], "usage": USAGE}


def vetted(body: Any, status: int = 200, route: str = "vllm") -> Any:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return vetting.vetted(httpx.Response(status, content=raw), VETTED.get(route, vet_chat))


def with_choice(**changes: Any) -> dict[str, Any]:
    return {**BODY, "choices": [{**CHOICE, **changes}]}


NO_ANSWER: dict[str, tuple[Any, str]] = {
    "no choices": ({"id": "1"}, "vllm"),
    "null": ({**BODY, "choices": None}, "openai-chat"),
    "none": ({**BODY, "choices": []}, "sglang"),
    "a text": ({**BODY, "choices": "none"}, "vllm"),
    "choices of null": ({**BODY, "choices": [None]}, "vllm"),
    "no message": (with_choice(message=None), "vllm"),
    "an empty message": (with_choice(message={"role": "assistant"}), "vllm"),
    "an error in its finish": (with_choice(finish_reason="error"), "vllm"),
    "broken off": (with_choice(finish_reason="abort"), "sglang"),
    "a ticket": ({"id": "1", "status": "queued"}, "vllm"),
    "a detail": ({"detail": "Not authenticated"}, "vllm"),
    "an error in words": ({"error": "model is loading"}, "vllm"),
    "a list": ([], "vllm"),
    "null for all": (None, "vllm"),
    "Anthropic without content": ({"type": "message", "content": None}, "anthropic"),
    "Gemini without candidates": ({"candidates": []}, "gemini"),
}


@pytest.mark.parametrize(("body", "route"), NO_ANSWER.values(), ids=NO_ANSWER)
def test_a_response_without_an_answer_is_a_fault_of_the_server(body: Any, route: str) -> None:
    with pytest.raises(lm15.ServerError, match="the response contains no answer: ") as raised:
        vetted(body, route=route)
    assert len(str(raised.value)) < 300
    assert isinstance(raised.value, lm15.RETRYABLE_ERRORS)


def test_status_202_is_never_an_answer() -> None:
    with pytest.raises(lm15.ServerError, match="contains no answer"):
        vetted(BODY, 202)


@pytest.mark.parametrize(
    "body",
    [
        BODY,
        with_choice(message={"role": "assistant", "content": ""}),
        with_choice(message={"role": "assistant", "content": None, "refusal": "no"}),
        with_choice(finish_reason=None),
        {"error": {"message": "overloaded"}},
    ],
)
def test_answers_and_error_objects_are_unchanged(body: Any) -> None:
    assert vetted(body).items() >= body.items()


@pytest.mark.parametrize("raw", [b"<html>", b"", b"[" * 100_000, b'{"a": ' + b"9" * 5000 + b"}", b"\xff\xfe{"])
def test_a_response_that_is_not_json_is_a_fault_of_the_server(raw: bytes) -> None:
    with pytest.raises(lm15.ServerError, match="is not JSON: "):
        vetted(raw)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("many", None),
        (17, None),
        ([1], None),
        ({"prompt_tokens": "1000", "completion_tokens": 5.0}, {"prompt_tokens": 1000, "completion_tokens": 5}),
        ({"prompt_tokens": 9.5, "completion_tokens": True}, {}),
        ({"prompt_tokens": -1, "completion_tokens": MOST_TOKENS * 10}, {}),
        ({"prompt_tokens": math.nan, "completion_tokens": math.inf}, {}),
        ({"prompt_tokens": 9, "prompt_tokens_details": "none"}, {"prompt_tokens": 9}),
        ({"prompt_tokens": 9, "queue_time": 0.5}, {"prompt_tokens": 9}),
    ],
)
def test_an_invalid_count_is_removed_and_the_answer_kept(given: Any, kept: Any) -> None:
    found = vetted({**BODY, "usage": given})
    assert found == {**BODY, "usage": kept}


def entry(logprob: Any = -0.5, top: Any = None, token: Any = "Good") -> dict[str, Any]:
    listed = [{"token": "Good", "logprob": -0.5}, {"token": "Fair", "logprob": -1.0}] if top is None else top
    return {"token": token, "logprob": logprob, "top_logprobs": listed}


@pytest.mark.parametrize("logprob", [None, math.nan, math.inf, "high", True, [-1.0], -(10**400)])
def test_an_invalid_log_probability_removes_all_and_the_answer_is_kept(logprob: Any) -> None:
    found = vetted(with_choice(logprobs={"content": [entry(), entry(logprob)]}))
    assert found == with_choice(logprobs=None)


@pytest.mark.parametrize("top", [{"token": "x"}, "none", [None], [{"token": "Fair", "logprob": None}]])
def test_invalid_alternatives_are_removed(top: Any) -> None:
    found = vetted(with_choice(logprobs={"content": [entry(top=top)]}))
    assert found == with_choice(logprobs={"content": [entry(top=[])]})


def test_only_the_first_of_several_choices_is_used() -> None:
    other = {**CHOICE, "index": 1, "message": {"role": "assistant", "content": "another"}}
    assert vetted({**BODY, "choices": [CHOICE, other]}) == BODY


KEYS = st.sampled_from(["choices", "message", "content", "usage", "logprobs", "error", "prompt_tokens"])
LEAVES = st.none() | st.booleans() | st.floats() | st.text()


@given(st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner)))
def test_any_body_is_accepted_or_refused_with_a_server_error(body: Any) -> None:
    with suppress(lm15.ServerError):
        assert vetted(body)


@pytest.mark.parametrize(
    "reasoning", ["```" + " " * 1_000_000 + "x", "```json" + "\n" * 60_000 + "{} ``", "[" * 60_000]
)
def test_reasoning_takes_no_time_that_grows_faster_than_its_length(reasoning: str) -> None:
    began = process_time()
    choices = vetted(with_choice(message={"role": "assistant", "content": "", "reasoning": reasoning}))["choices"]
    assert choices[0]["message"]["content"] is None
    assert process_time() - began < 1.0
