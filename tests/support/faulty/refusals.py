"""Faults with refusals of every kind, redirects, waits, and status 200 without an answer."""

from http import HTTPStatus
from typing import Any

from support.faulty.exchange import (
    Act,
    Profile,
    Question,
    after,
    changed,
    fails,
    first,
    once,
    question,
    scoring,
)
from support.loopback import dumped

REASONS = {status.value: status.phrase for status in HTTPStatus} | {529: "Site is overloaded", 999: "Request Denied"}
PASSING = (409, 421, 425, 500, 502, 503, 529)  # the same request may succeed later
DETAIL = {"detail": [{"loc": ["body", "messages", 1], "msg": "image_url: the picture is too small", "type": "value"}]}
PAGE = b"<!DOCTYPE html><html><body><form action='/login'>Please log in <input name='password'></form></body></html>"
QUOTA = {"error": {"message": "You exceeded your current quota, check your billing", "code": "insufficient_quota"}}
IN_WORDS = {"error": {"message": "Rate limit reached. Please try again in 300ms.", "code": "rate_limit_exceeded"}}
ERROR = {"error": {"message": "the engine is loading", "type": "server_error", "code": 503}}
LOADING = {"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}
TOO_LONG = {
    "error": {
        "message": "request (531 tokens) exceeds the available context size (512 tokens), try increasing it",
        "type": "exceed_context_size_error",
        "code": 400,
    }
}
TICKET = {"id": "job-17", "status": "queued", "poll": "/v1/jobs/job-17"}
ESCAPES = "\x1b]0;owned\x07\x1b[2J\x1b[31mred \u009b31m \u202e reversed \r over"


def _line(code: int) -> str:
    return f"{code} {REASONS[code]}"


def _away(code: int, where: str | None) -> Act:
    location = "" if where is None else f"Location: {where}\r\n"
    return fails(f"{code} Found", b"<html>Moved</html>", location, kind="text/html")


def _repeats_the_key(status: str, template: str, kind: str = "application/json") -> Act:
    """Return an error that repeats the key of the request, and every header."""

    def act(ex: Question) -> None:
        text = template.format(key=ex.key, half=ex.key[: len(ex.key) // 2])
        body = text.encode() if kind == "text/html" else {"error": {"message": text, "code": ex.key}}
        ex.reply(body, status, kind=kind)

    return act


def _limited(wait: str, name: str = "Retry-After", body: Any = None) -> Act:
    return fails(_line(429), body, f"{name}: {wait}\r\n" if wait else "")


def _choice(**values: Any) -> Act:
    """Return the healthy answer with these fields of its choice."""

    def change(body: dict[str, Any]) -> None:
        for name, value in values.items():
            body["choices"][0][name] = value

    return changed(change)


def _finish(reason: Any, content: Any = "") -> Act:
    """Return a finish reason with this content (``None`` for the healthy one)."""

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


def _cut(written: int | None = None) -> Act:
    """Cut the content in half, with the matching finish reason, after this many tokens (``None`` for max_tokens)."""

    def act(ex: Question) -> None:
        body = ex.answer()
        choice, given = body["choices"][0], written or ex.body["max_tokens"]
        content = choice["message"]["content"]
        choice["message"]["content"], choice["logprobs"], choice["finish_reason"] = (
            content[: len(content) // 2],
            None,
            "length",
        )
        asked = body["usage"]["prompt_tokens"]
        body["usage"] = {"prompt_tokens": asked, "completion_tokens": given, "total_tokens": asked + given}
        ex.reply(body)

    return act


def _stream(ex: Question) -> None:
    content = ex.answer()["choices"][0]["message"]["content"]
    event = {"choices": [{"index": 0, "delta": {"content": content}, "finish_reason": None}]}
    ex.reply(b"data: " + dumped(event) + b"\n\ndata: [DONE]\n\n", kind="text/event-stream")


STATUS = [
    *(
        Profile(f"status-{code}", _line(code), fails(_line(code)))
        for code in (400, 401, 402, 403, 404, 405, 413, 418, 500, 999)
    ),
    *(
        Profile(f"status-{code}-once", f"{_line(code)}, once", fails(_line(code)), once, expect="assessed")
        for code in PASSING
    ),
    Profile("redirect-307", "to another port", _away(307, "http://127.0.0.1:9/v1/chat/completions")),
    Profile("redirect-nowhere", "302 without a place", _away(302, None)),
    Profile("redirect-escapes", "302 to a place with escapes", _away(302, "http://x/\x1b[31m\x07")),
    Profile("error-422-detail", "422 with FastAPI's detail", fails(_line(422), DETAIL)),
    Profile("error-html", "502 with a proxy's page", fails(_line(502), PAGE, kind="text/html")),
    Profile("error-message-null", "400 with message: null", fails(_line(400), {"error": {"message": None}})),
    Profile("error-binary", "500 with bytes without sense", fails(_line(500), bytes(range(256)) * 4)),
    Profile("error-escapes", "400 with terminal escapes", fails(_line(400), {"error": {"message": ESCAPES}})),
    Profile("error-4-mb", "400 with 4 MB of words", fails(_line(400), {"error": {"message": "too much " * 500_000}})),
    Profile("error-key-401", "401 that repeats the key", _repeats_the_key(_line(401), "Incorrect API key: {key}.")),
    Profile("error-key-half", "401 with half of the key", _repeats_the_key(_line(401), "Incorrect API key: {half}***")),
    Profile("error-key-500-html", "in a page", _repeats_the_key(_line(500), "<pre>{key}</pre>", "text/html")),
    *(
        Profile(name, f"{code} from the 16th question on", fails(_line(code)), after(15))
        for name, code in (
            ("key-refused-after-15", 401),
            ("unpaid-after-15", 402),
            ("gone-after-15", 404),
            ("broken-after-15", 500),
        )
    ),
    Profile("loading", "503 while the model loads", fails(_line(503), LOADING), first(3), expect="assessed"),
    Profile("context-too-small", "400 for a prompt that exceeds the context", fails(_line(400), TOO_LONG), question),
    Profile("broken-first-3", "503 for the first 3 questions", fails(_line(503)), first(3), expect="assessed"),
]
LIMIT = [
    Profile("limit-always", "429 without a wait, always", _limited("")),
    # All requests wait for each of them, so these are few.
    Profile("limit-seconds", "429 once: a second", _limited("1"), once, "assessed", photos=4),
    *(
        Profile(f"limit-{name}", f"429 once: {what}", act, once, "assessed")
        for name, what, act in (
            ("once", "without a wait", _limited("")),
            ("date", "a date in the past", _limited("Wed, 21 Oct 2015 07:28:00 GMT")),
            ("nan", "nan", _limited("nan")),
            ("negative", "minus five", _limited("-5")),
            ("milliseconds", "retry-after-ms", _limited("300", "retry-after-ms")),
            ("in-words", "the wait in the message", _limited("", body=IN_WORDS)),
            ("html", "a proxy's page", fails(_line(429), PAGE, kind="text/html")),
        )
    ),
    *(
        Profile(f"limit-{name}", f"429 once: {what}", act, once)
        for name, what, act in (
            ("hour", "an hour", _limited("3600")),
            ("huge", "10^30 seconds", _limited("1" + "0" * 30)),
            ("infinity", "inf", _limited("inf")),
        )
    ),
    Profile("limit-quota", "the quota is used up", _limited("", body=QUOTA)),
]
CASES: dict[str, tuple[str, Act]] = {
    "choices-empty": ("no choices in the list", changed(lambda body: body.update(choices=[]))),
    "choices-null": ("choices: null", changed(lambda body: body.update(choices=None))),
    "choices-of-null": ("a list of null", changed(lambda body: body.update(choices=[None]))),
    "message-null": ("message: null", _choice(message=None)),
    "message-empty": ("an empty message", _choice(message={})),
    "error-in-200": ("an error with status 200", fails("200 OK", ERROR)),
    "error-in-200-text": ("an error in words with status 200", fails("200 OK", {"error": "model is loading"})),
    "error-beside-answer": ("an error beside the healthy answer", changed(lambda body: body.update(ERROR))),
    "ticket-202": ("202 and a ticket", fails("202 Accepted", TICKET)),
    "login-page": ("a login page", fails("200 OK", PAGE, kind="text/html")),
    "body-empty": ("an empty body", fails("200 OK", b"")),
    "body-list": ("[]", fails("200 OK", b"[]")),
    "event-stream": ("an event stream nobody asked for", _stream),
    "finish-error": ("finish_reason: error, no content", _finish("error")),
    "finish-length-cut": ("finish_reason: length, half of it", _cut()),
    "finish-length-context": ("finish_reason: length after 12 tokens", _cut(12)),
    "finish-filter": ("finish_reason: content_filter", _finish("content_filter")),
    "refusal": ("a refusal in its own field", _message(content=None, refusal="I can't assist with that.")),
    "reasoning-only": ("thoughts, and no content", _message(content=None, reasoning_content="Let me think.")),
    "content-null": ("content: null", _message(content=None)),
    "content-empty": ("an empty content", _message(content="")),
}
NO_ANSWER = [
    *(Profile(name, f"{what}, for scores", act, scoring) for name, (what, act) in CASES.items()),
    *(
        Profile(f"{name}-once", "the same, once", CASES[name][1], once, expect="assessed")
        for name in ("choices-empty", "error-in-200", "ticket-202", "login-page", "finish-error")
    ),
    # A model without an answer gets a corrected request, so each of its attempts is the first of its body.
    Profile("content-null-once", "the same, once", CASES["content-null"][1], once),
    *(
        Profile(f"{name}-all", "the same, for every question", CASES[name][1], question)
        for name in ("choices-empty", "login-page", "content-empty")
    ),
    Profile("login-page-60", "a login page for 60 images", CASES["login-page"][1], scoring, photos=60, workers=4),
    Profile("finish-null", "finish_reason: null, the content whole", _choice(finish_reason=None), expect="assessed"),
    Profile("error-null", "error: null beside the answer", changed(lambda b: b.update(error=None)), expect="assessed"),
]
