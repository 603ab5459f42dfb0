"""Status 200 (or 202) without an answer in it: a fault of the server that looks like one of the model."""

from typing import Any

from support.faulty.exchange import Act, Exchange, Profile, changed, dumped, fails, once, question, scoring

LOGIN = b"<!DOCTYPE html><html><body><form action='/login'>Please log in <input name='password'></form></body></html>"
PORTAL = b"<HTML><HEAD><TITLE>Success</TITLE></HEAD><BODY>Welcome to Free-WiFi. Accept the terms.</BODY></HTML>"
ERROR = {"error": {"message": "the engine is loading", "type": "server_error", "code": 503}}
TICKET = {"id": "job-17", "status": "queued", "poll": "/v1/jobs/job-17"}
MISSING = object()


def _choices(value: Any) -> Act:
    """The healthy answer with these choices."""

    def change(body: dict[str, Any]) -> None:
        if value is MISSING:
            del body["choices"]
        else:
            body["choices"] = value

    return changed(change)


def _choice(**values: Any) -> Act:
    """The healthy answer with these fields of its choice."""

    def change(body: dict[str, Any]) -> None:
        for name, value in values.items():
            if value is MISSING:
                del body["choices"][0][name]
            else:
                body["choices"][0][name] = value

    return changed(change)


def _finish(reason: Any, content: Any = "") -> Act:
    """A finish reason with this content (``None`` for the healthy one)."""

    def change(body: dict[str, Any]) -> None:
        choice = body["choices"][0]
        choice["finish_reason"] = reason
        if content is not None:
            choice["message"]["content"] = content
            choice["logprobs"] = None

    return changed(change)


def _message(**values: Any) -> Act:
    def change(body: dict[str, Any]) -> None:
        body["choices"][0]["message"].update(values)
        body["choices"][0]["logprobs"] = None

    return changed(change)


def _error_beside(body: dict[str, Any]) -> None:
    body.update(ERROR)


def _cut(ex: Exchange) -> None:
    """Half of the content, with the finish reason that tells so."""
    content = ex.answer()["choices"][0]["message"]["content"]
    _finish("length", content[: len(content) // 2])(ex)


def _stream(ex: Exchange) -> None:
    content = ex.answer()["choices"][0]["message"]["content"]
    event = {"choices": [{"index": 0, "delta": {"content": content}, "finish_reason": None}]}
    ex.reply(b"data: " + dumped(event) + b"\n\ndata: [DONE]\n\n", kind="text/event-stream")


TOOL = {"id": "c1", "type": "function", "function": {"name": "rate", "arguments": "{}"}}

CASES: list[tuple[str, str, Act]] = [
    ("choices-empty", "no choices in the list", _choices([])),
    ("choices-null", "choices: null", _choices(None)),
    ("choices-missing", "no choices", _choices(MISSING)),
    ("choices-string", "choices as a text", _choices("none")),
    ("choices-object", "choices as an object", _choices({"message": {"content": "yes"}})),
    ("choices-of-null", "a list of null", _choices([None])),
    ("choices-of-strings", "a list of texts", _choices(["yes"])),
    ("message-null", "message: null", _choice(message=None)),
    ("message-missing", "no message", _choice(message=MISSING)),
    ("message-list", "message as a list", _choice(message=[])),
    ("message-empty", "an empty message", _choice(message={})),
    ("error-in-200", "an error with status 200", fails("200 OK", ERROR)),
    ("error-in-200-text", "an error in words with status 200", fails("200 OK", {"error": "model is loading"})),
    ("error-beside-answer", "an error beside the healthy answer", changed(_error_beside)),
    ("error-in-choice", "an error in the choice (OpenRouter)", _choice(error=ERROR["error"], finish_reason="error")),
    ("ticket-202", "202 and a ticket", fails("202 Accepted", TICKET)),
    ("ticket-200", "200 and a ticket", fails("200 OK", TICKET)),
    ("login-page", "a login page", fails("200 OK", LOGIN, kind="text/html")),
    ("captive-portal", "a portal that wants its terms accepted", fails("200 OK", PORTAL, kind="text/html")),
    ("body-empty", "an empty body", fails("200 OK", b"")),
    ("body-null", "null", fails("200 OK", b"null")),
    ("body-list", "[]", fails("200 OK", b"[]")),
    ("body-object", "{}", fails("200 OK", b"{}")),
    ("body-number", "17", fails("200 OK", b"17")),
    ("body-string", "a text", fails("200 OK", b'"ok"')),
    ("body-plain", "OK in plain text", fails("200 OK", b"OK", kind="text/plain")),
    ("body-xml", "XML", fails("200 OK", b"<?xml version='1.0'?><ok/>", kind="application/xml")),
    ("body-detail", "a detail in place of an answer", fails("200 OK", {"detail": "Not authenticated"})),
    ("body-message", "a message in place of an answer", fails("200 OK", {"message": "Forbidden", "code": 403})),
    ("event-stream", "an event stream nobody asked for", _stream),
    ("finish-error", "finish_reason: error, no content", _finish("error")),
    ("finish-length-empty", "finish_reason: length, no content", _finish("length")),
    ("finish-length-cut", "finish_reason: length, half of it", _cut),
    ("finish-filter", "finish_reason: content_filter", _finish("content_filter")),
    ("finish-null-empty", "finish_reason: null, no content", _finish(None)),
    ("finish-abort", "finish_reason: abort, no content (SGLang)", _finish("abort")),
    ("refusal", "a refusal in its own field", _message(content=None, refusal="I can't assist with that.")),
    ("tool-calls", "a call of a tool that is not there", _message(content=None, tool_calls=[TOOL])),
    ("reasoning-only", "thoughts, and no content", _message(content=None, reasoning_content="Let me think.")),
    ("content-null", "content: null", _message(content=None)),
    ("content-empty", "an empty content", _message(content="")),
    ("content-blanks", "blanks as content", _message(content=" \n\t ")),
]

EVERYWHERE = ("choices-empty", "error-in-200", "ticket-202", "login-page", "finish-error", "content-empty")
PASSING = ("choices-empty", "choices-null", "error-in-200", "ticket-202", "login-page", "finish-error", "content-null")
BY_NAME = {name: act for name, _, act in CASES}

ROWS = [
    *(Profile(name, f"{what}, for scores", act, scoring) for name, what, act in CASES),
    *(Profile(f"{name}-all", "the same, for every question", BY_NAME[name], question) for name in EVERYWHERE),
    *(Profile(f"{name}-once", "the same, once", BY_NAME[name], once, expect="judged") for name in PASSING),
    Profile("finish-null", "finish_reason: null, the content whole", _choice(finish_reason=None), expect="judged"),
    Profile("finish-missing", "no finish_reason", _choice(finish_reason=MISSING), expect="judged"),
    Profile("finish-unknown", "a finish_reason nobody knows", _choice(finish_reason="eos_token"), expect="judged"),
    Profile("error-null", "error: null beside the answer", changed(lambda b: b.update(error=None)), expect="judged"),
    Profile("refusal-null", "refusal: null", _message(refusal=None), expect="judged"),
    Profile("login-page-60", "a login page for 60 images", BY_NAME["login-page"], scoring, photos=60, workers=4),
]
