"""A small OpenAI-compatible server on loopback with scripted answers and faults.

::

    with fake_server(by_stage({"plan": PLAN, "assessment": [bad_json(), ASSESSMENT]})) as server:
        config = Config().with_backend("vllm.test", server.url)
        ...
        assert server.requests[0]["temperature"] == 0
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from support.chat_request import field_of as field_of
from support.chat_request import has_field as has_field
from support.chat_request import images_of as images_of
from support.chat_request import output_field_of as output_field_of
from support.chat_request import stage_of as stage_of
from support.chat_request import text_of as text_of
from support.loopback import Arrived, Body, Reply, chat_completion, error_reply, loopback

Script = Callable[[Body], Reply | str]
Answer = str | Reply | Mapping[str, Any] | Callable[[Body], "str | Reply | Mapping[str, Any]"]


@dataclass
class Server:
    """A running server: its address, and the received requests, in order of arrival."""

    url: str
    requests: list[Body] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    def stages(self) -> list[str]:
        """Return the stage of each request."""
        return [stage_of(request) for request in self.requests]

    def of(self, stage: str) -> list[Body]:
        """Return the requests of one stage."""
        return [request for request in self.requests if stage_of(request) == stage]


@contextmanager
def fake_server(reply: Script | str | Reply) -> Iterator[Server]:
    """Run a server on a free port of 127.0.0.1 until the context ends."""
    lock = threading.Lock()

    def respond(arrived: Arrived) -> Reply:
        body = json.loads(arrived.raw)
        with lock:
            server.requests.append(body)
            server.headers.append(dict(arrived.headers))
            server.paths.append(arrived.path)
        return _written(reply(body) if callable(reply) else reply, body)

    with loopback(respond) as address:
        server = Server(f"{address}/v1")
        yield server


def in_turn(*answers: Answer) -> Callable[[Body], Reply | str]:
    """Return each answer once, in order; the last one is repeated."""
    lock, given = threading.Lock(), 0

    def script(request: Body) -> Reply | str:
        nonlocal given
        with lock:
            answer = answers[min(given, len(answers) - 1)]
            given += 1
        return _spoken(answer, request)

    return script


def by_stage(answers: Mapping[str, Answer | list[Any]]) -> Callable[[Body], Reply | str]:
    """Return a script with an answer for each stage, named by its output field: plan (for planner_output), location,
    detection, analysis, selection, assessment, answer, decision. A mapping is sent as JSON of the field, a function
    receives the request, and the items of a list are used in turn.
    """
    scripts = {
        stage: in_turn(*answer) if isinstance(answer, list) else in_turn(answer) for stage, answer in answers.items()
    }

    def script(request: Body) -> Reply | str:
        stage = stage_of(request)
        if stage not in scripts:
            raise AssertionError(f"the script has no answer for {stage!r}, only for {', '.join(scripts)}")
        return scripts[stage](request)

    return script


def bad_json() -> Reply:
    """Return prose instead of a JSON object."""
    return Reply("I am sorry, but the quality of this picture is hard to put in JSON")


def wrong_types(stage: str) -> Reply:
    """Return a JSON object with the right field and values of wrong types."""
    return Reply(json.dumps({stage: {"nothing": ["of", "the", "sort"]}}))


def empty() -> Reply:
    """Return an answer without any text."""
    return Reply("")


def rate_limited(retry_after: float | None = None) -> Reply:
    """Answer with status 429, with the time to wait, if given, in seconds."""
    headers = {} if retry_after is None else {"retry-after": f"{retry_after:g}"}
    return _error(429, "slow down", headers)


def server_error() -> Reply:
    """Answer with status 500."""
    return _error(500, "something broke")


def bad_key() -> Reply:
    """Answer with status 401."""
    return _error(401, "no such key")


def hang(seconds: float = 30.0) -> Reply:
    """Send nothing for a long time."""
    return Reply("too late", delay=seconds)


def cut_connection() -> Reply:
    """Send half a body, then close the connection."""
    return Reply("never read to its end", cut=True)


def _error(status: int, message: str, headers: Mapping[str, str] | None = None) -> Reply:
    return error_reply(status, {"error": {"message": message, "type": "error", "code": None}}, headers)


def _spoken(answer: Answer, request: Body) -> Reply | str:
    if callable(answer):
        answer = answer(request)
    return json.dumps({output_field_of(request): answer}) if isinstance(answer, Mapping) else answer


def _written(answer: Reply | str, body: Body) -> Reply:
    reply = Reply(answer) if isinstance(answer, str) else answer
    if reply.raw_body is not None:
        return reply
    if not body.get("logprobs"):
        reply = replace(reply, logprobs=None)
    return replace(reply, raw_body=chat_completion(reply, body.get("model", "test")))
