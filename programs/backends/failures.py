"""Classify server errors by status and message, because servers use different statuses for the same failure.

Each message becomes one line without secrets. ``backends.in_flight`` sends a request again after some failures.
"""

import json
import math
import re
import ssl
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from html.entities import html5
from typing import Any

from dspy import lm15

from agenticiqa.configs.yaml_json import json_value
from agenticiqa.programs.backends.providers import ContextSize
from agenticiqa.programs.errors import LONGEST_SHOWN

# Status and message of real replies. An error that matches no entry keeps the class that lm15 derives from its status.
_MEANINGS: tuple[tuple[int, str, type[lm15.ProviderError]], ...] = (
    (400, r"context (length|size|window)|maximum context|n_ctx", lm15.ContextLengthError),
    (400, r"too many (input )?tokens|prompt is too long|token count .{0,20}exceeds", lm15.ContextLengthError),
    (400, r"api key not valid|invalid api key|api_key_invalid", lm15.AuthError),
    (400, r"credit balance|billing|insufficient.{0,20}(quota|funds)", lm15.BillingError),
    (404, "", lm15.UnsupportedModelError),
    (405, "", lm15.UnsupportedModelError),
    # Google writes "check your plan and billing" for limits per minute, too, which are temporary.
    (
        429,
        r"insufficient_quota|exceeded your current quota(?!.{0,999}(per_?minute|retry in)).{0,999}billing",
        lm15.BillingError,
    ),
    (500, r"image input is not supported|mmproj", lm15.InvalidRequestError),
)
# Late, a conflict with another request, the wrong connection, a request that came too early, too many of them
TEMPORARY = frozenset({408, 409, 421, 425, 429})
BUSY = frozenset({429, 503, 529})
LONGEST_HINT = 60.0  # seconds; a server that asks for more counts as unreachable
NOT_THERE = "; check that the server is running and that its address is correct"
NO_KEY_SENT = "; no key was sent: name its environment variable with --api-key-env (api_key_env in a configuration)"
NO_SUCH_ADDRESS = "; the server has no such path: check api_base (most servers need /v1 at its end)"
ALONE = "; for a slow model, set a longer --timeout (timeout in a configuration)"
AMONG_OTHERS = (
    " while the server had {} more of these requests: send fewer at a time with --workers 1, or set a longer --timeout"
)
LOADING = re.compile(r"\bloading\b", re.IGNORECASE)  # "Loading model", "the engine is loading"
_ASKED_TO_WAIT = re.compile(r"(?:retry|try again) (?:in|after) ((?:[\d.]+ ?(?:ms|h|m|s)[a-z]* ?)+)", re.IGNORECASE)
_WAIT_PART = re.compile(r"(?<![\d.])(\d++(?:\.\d*+)?+) ?(ms|h|m|s)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
# lm15's advice for programmers does not help users of a configuration file.
_ADVICE = re.compile(r"\n\n  (To fix|credential came from):.*", re.DOTALL)
LONGEST_MESSAGE = 2_000  # characters
_TEXT_KEYS = ("message", "msg", "detail", "error", "errors", "title", "reason")
_SHORTEST = 6  # characters: the beginning of a secret is removed, too, because a server may quote it truncated


class NoConnection(lm15.TransportError):
    """Raised when no connection to the server could be made, so the request was not sent."""


def classified(
    error: lm15.LM15Error,
    timeout: float,
    secrets: tuple[str, ...],
    *,
    others: int = 0,
    context: ContextSize | None = None,
) -> lm15.LM15Error:
    """Return the error with the class that fits it and a message of one line; ``timeout`` is in seconds.

    Without ``secrets``, no key was sent. Secrets are also removed from the given error, because it remains visible as
    the cause. ``others`` is the number of other requests that the server had at the same time, ``context`` how the size
    of its context is set.
    """
    if ran_out_of_time(error):
        return lm15.TimeoutError(f"no answer within {timeout:g} s{AMONG_OTHERS.format(others) if others else ALONE}")
    said = str(error.message or error)[:LONGEST_SHOWN]
    text = redacted(" ".join(_ADVICE.sub("", said).split()), secrets)
    wait = error.retry_after
    if isinstance(error, lm15.RateLimitError):
        wait = asked_to_wait(text) if wait is None else wait
        if wait:
            text += f" (the server asks to wait {round(wait, 1):g} s)"
    real, kind = error, _error_class(error, text, wait)
    if context and lm15.ContextLengthError in (type(error), kind) and error.status:
        text = f"{text.rstrip('.')}; {context.remedy}"
    if isinstance(error, NoConnection):
        text += NOT_THERE
    if error.status == 401 and not secrets:
        text = text.rstrip(".") + NO_KEY_SENT
    if error.status in (404, 405) and "model" not in text.lower():
        text += NO_SUCH_ADDRESS
    if kind is not None:
        known = ("provider", "provider_code", "status", "request_id")
        real = kind(**{name: getattr(error, name) for name in known})
    for failure in (error, real):  # lm15's constructors add their advice, so the text is set here
        failure.message, failure.retry_after, failure.args = text, wait, (text,)
    return real


def is_loading(error: lm15.LM15Error) -> bool:
    """Return whether the server reports that it is still loading its model."""
    return error.status == 503 and bool(LOADING.search(error.message or ""))


def is_refused_connection(error: lm15.LM15Error) -> bool:
    """Return whether nothing listens at the address, as while a server restarts."""
    return isinstance(error, lm15.TransportError) and any(isinstance(e, ConnectionRefusedError) for e in causes(error))


def is_temporary(status: int) -> bool:
    """Return whether a request that got this HTTP status may succeed later."""
    return status in TEMPORARY or status >= 500


def is_retryable(error: BaseException) -> bool:
    """Return whether the same request may succeed later."""
    if isinstance(error, lm15.TransportError):
        return not any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes(error))
    hint = getattr(error, "retry_after", None)
    return isinstance(error, lm15.RETRYABLE_ERRORS) and (hint is None or hint <= LONGEST_HINT)


def is_refused_for_now(error: lm15.LM15Error) -> bool:
    """Return whether the server may take the same request later: it is busy, asks to wait, or is unreachable."""
    is_busy = isinstance(error, lm15.RateLimitError | lm15.TransportError) or error.status in BUSY
    return (is_busy or error.retry_after is not None) and is_retryable(error)


def reason_of(error: lm15.LM15Error) -> str:
    """Return the first line of an error's message, with its status."""
    reason = next(iter(error.message.strip().splitlines()), "") or type(error).__name__
    return f"status {error.status}: {reason}" if error.status else reason


def costs_nothing(error: lm15.LM15Error) -> bool:
    """Return whether a request that failed with this error is free: it was not sent, or refused before any work."""
    return isinstance(error, NoConnection) or (error.status is not None and 400 <= error.status < 500)


def redacted(text: str, secrets: tuple[str, ...]) -> str:
    """Return the text with ``***`` for each secret and for each beginning of a secret of at least 6 characters."""
    text = masked(text, secrets)
    for secret in filter(None, secrets):
        for length in range(len(secret), min(_SHORTEST, len(secret)) - 1, -1):
            text = text.replace(secret[:length], "***")
    return text


def masked(text: str, secrets: tuple[str, ...]) -> str:
    """Return a text that a server sent with ``***`` for each whole secret of at least 6 characters.

    A secret is found in any case, wrapped over lines, and escaped as in JSON, HTML or an address, also several times.
    Unlike ``redacted``, this keeps beginnings of a secret, because an answer may contain them by chance.
    """
    for secret in secrets:
        if len(secret) >= _SHORTEST:
            parts = _LONG_RUN.split(text)  # the runs are at the odd places
            parts[::2] = [_in_any_form(secret).sub("***", part) for part in parts[::2]]
            text = "".join(parts)
    return text


# What may stand between two characters of a secret: blanks, line ends, also as escapes, and characters without a width.
_BETWEEN = r"(?:[\s\u00ad\u200b-\u200d\u2060\ufeff]|\\[nrt]|<wbr ?/?>){0,4}"
_AMPERSAND = r"(?:&|\\{1,8}u0026)(?:amp;|#0{0,5}38;|#x0{0,4}26;){0,4}"  # HTML may be escaped again
_PERCENT = r"(?:%|\\{1,8}u0025)(?:25){0,4}"

# Backslashes before those that an escape may have; a search that stops at each of a megabyte takes seconds.
_LONG_RUN = re.compile(r"(\\{32,}(?=\\{9}))")


@lru_cache(maxsize=64)
def _in_any_form(secret: str) -> re.Pattern[str]:
    """Return a pattern of a secret with each character as it is or escaped."""
    escapes = ["|".join(_escapes_of(character)) for character in secret]
    # Backslashes before the first count only from the first of them, so that a long run is not tried at each place.
    # The class of characters at the beginning of all forms saves most of the time.
    first = rf"(?=[\\&%{re.escape(secret[0])}])(?:(?<!\\)\\{{0,8}})?(?:{re.escape(secret[0])}|{escapes[0]})"
    others = (rf"\\{{0,8}}(?:{re.escape(c)}|{escape})" for c, escape in zip(secret[1:], escapes[1:], strict=True))
    return re.compile(_BETWEEN.join([first, *others]), re.IGNORECASE)


def _escapes_of(character: str) -> list[str]:
    """Return patterns of the escapes of a character, in either case, in JSON or Python, HTML, and addresses."""
    patterns = []
    for one in dict.fromkeys(case for case in (character, character.lower(), character.upper()) if len(case) == 1):
        code = ord(one)
        names = "|".join(sorted({name.rstrip(";") for name, text in html5.items() if text == one}))
        numbers = rf"#0{{0,5}}{code}|#x0{{0,4}}{code:x}"
        octets = {one.encode(), one.encode("latin-1", "ignore")} - {b""}
        patterns += [
            rf"\\(?:u{{?0{{0,6}}{code:02x}}}?|x{code:02x}|{code:03o})",
            rf"{_AMPERSAND}(?:{f'{numbers}|{names}' if names else numbers})(?:;|(?![0-9a-z]))",
            *("".join(f"{_PERCENT}{octet:02x}" for octet in each) for each in sorted(octets)),
        ]
    return [*patterns, r"\+"] if character == " " else patterns


def asked_to_wait(text: str) -> float | None:
    """Return the wait in seconds in a message, such as "retry in 7.5s" or "try again in 1m2s"; ``None`` without one."""
    wait = _ASKED_TO_WAIT.search(text)
    if wait is None:
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in _WAIT_PART.findall(wait[1].lower()))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the wait in seconds from the headers of a response, as a number or a date; ``None`` without one."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "")
        with suppress(ValueError):
            wait = float(value) * unit
            return wait if 0 <= wait < math.inf else None
        with suppress(ValueError, TypeError):
            return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    return None


def ran_out_of_time(error: BaseException) -> bool:
    """Return whether a request was sent but not answered before its deadline."""
    import httpx  # a library that a program without a model never loads

    chain = causes(error)
    if not isinstance(error, lm15.TransportError) or any(isinstance(e, httpx.ConnectTimeout) for e in chain):
        return False
    return any(isinstance(e, TimeoutError) for e in chain)


def causes(error: BaseException) -> list[BaseException]:
    """Return the error and its causes, outermost first."""
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    return chain


def _error_class(error: lm15.LM15Error, text: str, wait: float | None) -> type[lm15.ProviderError] | None:
    if isinstance(error, lm15.RateLimitError) and wait:
        return None  # a server that sends a time to retry does not report a billing error, whatever its message
    message = f"{error.provider_code or ''} {text}".lower()
    for status, words, kind in _MEANINGS:
        if error.status == status and not isinstance(error, kind) and re.search(words, message):
            return kind
    if error.status in TEMPORARY and not isinstance(error, (*lm15.RETRYABLE_ERRORS, lm15.BillingError)):
        return lm15.ServerError
    return None


def readable_error(body: bytes) -> bytes:
    """Return the body of an error, with OpenAI's ``error.message`` added to JSON that lacks it.

    FastAPI's list under ``detail`` becomes ``body.messages.1: MESSAGE; ...``. Pages, texts, and JSON without a message
    are returned unchanged.
    """
    try:
        said = json_value(body)
    except (ValueError, RecursionError):
        return body
    error = said.get("error") if isinstance(said, dict) else None
    if isinstance(error, dict) and isinstance(error.get("message"), str) and len(error["message"]) <= LONGEST_MESSAGE:
        return body
    text = _message_in(said)[:LONGEST_MESSAGE]
    if not text:
        return body
    beside = error if isinstance(error, dict) else {}
    kept = {key: beside[key] for key in ("code", "type", "status") if isinstance(beside.get(key), str | int)}
    return json.dumps({"error": {**kept, "message": text}}).encode()


def _message_in(said: Any, depth: int = 4) -> str:
    if isinstance(said, str):
        return said.strip()
    if depth and isinstance(said, list):
        return "; ".join(filter(None, (_message_in(part, depth - 1) for part in said[:10])))
    if depth and isinstance(said, dict):
        words = next(filter(None, (_message_in(said.get(key), depth - 1) for key in _TEXT_KEYS)), "")
        place = said.get("loc")
        return f"{'.'.join(map(str, place))}: {words}" if words and isinstance(place, list) else words
    return ""
