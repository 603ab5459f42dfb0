"""What a server says of an error reaches the user, in whatever shape."""

import json
from typing import Any

import pytest

from agenticiqa.programs.backends.error_text import LONGEST, readable_error

FASTAPI = {
    "detail": [
        {"type": "missing", "loc": ["body", "messages", 1, "content"], "msg": "Field required", "input": {"a": 1}},
        {"type": "int_type", "loc": ["body", "seed"], "msg": "Input should be a valid integer"},
    ]
}


def message(body: Any) -> Any:
    return json.loads(readable_error(json.dumps(body).encode()))["error"]["message"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (FASTAPI, "body.messages.1.content: Field required; body.seed: Input should be a valid integer"),
        ({"detail": "no such engine"}, "no such engine"),
        ({"message": "too small", "object": "error"}, "too small"),
        ({"error": "model not loaded"}, "model not loaded"),
        ({"error": {"message": ["a", "b"]}}, "a; b"),
        ({"error": {"message": None, "detail": "worn out"}}, "worn out"),
        ([{"error": {"message": "one"}}], "one"),
        ({"error": {"message": "too much " * 1_000_000}}, ("too much " * 1000)[:LONGEST]),
        ({"errors": [[[[["deep"]]]], "shallow"]}, "shallow"),
    ],
)
def test_the_words_of_an_error_are_found(body: Any, words: str) -> None:
    assert message(body) == words


def test_the_code_beside_the_words_is_kept() -> None:
    body = {"error": {"message": ["slow", "down"], "code": "rate_limit_exceeded", "type": 5, "status": {"no": 1}}}
    found = json.loads(readable_error(json.dumps(body).encode()))["error"]
    assert found == {"code": "rate_limit_exceeded", "type": 5, "message": "slow; down"}


@pytest.mark.parametrize(
    "body",
    [
        b'{"error": {"message": "as OpenAI has it", "code": 400, "param": null}}',
        b"<html>502 Bad Gateway</html>",
        b"",
        b'{"error": {"mess',
        b"17",
        b'{"error": null}',
        b"\xff\xfe\x00",
        b"[" * 100_000,
    ],
)
def test_other_bodies_stay_as_they_are(body: bytes) -> None:
    assert readable_error(body) == body
