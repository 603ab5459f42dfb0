"""Errors are classified, and their messages can be shown."""

import html
import json
import time
import traceback
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from dspy import lm15

from agenticiqa.programs.backends.failures import (
    LONGEST_MESSAGE,
    asked_to_wait,
    causes,
    classified,
    is_retryable,
    is_temporary,
    masked,
    readable_error,
    redacted,
    retry_after,
)
from agenticiqa.programs.errors import LONGEST_SHOWN

SECRET = "sk-0123456789"


@pytest.mark.parametrize(
    ("given", "status", "said", "meant"),
    [
        (lm15.InvalidRequestError, 400, "temperature is out of range", lm15.InvalidRequestError),
        (lm15.InvalidRequestError, 409, "Conflict", lm15.ServerError),
        (lm15.ProviderError, 421, "Misdirected Request", lm15.ServerError),
        (lm15.ProviderError, 425, "Too Early", lm15.ServerError),
        (lm15.ProviderError, 405, "Method Not Allowed", lm15.UnsupportedModelError),
        (lm15.RateLimitError, 429, "You exceeded your current quota, please check billing", lm15.BillingError),
        (lm15.RateLimitError, 429, "You exceeded your current quota (billing). Retry in 7s.", lm15.RateLimitError),
        (lm15.ServerError, 500, "out of memory", lm15.ServerError),
    ],
)
def test_the_message_decides_where_the_status_is_misleading(
    given: type[lm15.ProviderError], status: int, said: str, meant: type[lm15.ProviderError]
) -> None:
    """``test_faults.py`` has the replies of real servers."""
    error = classified(given(said, status=status, provider="p", request_id="r"), 5, ())
    assert type(error) is meant
    assert (error.status, error.provider, error.request_id) == (status, "p", "r")
    assert error.message.startswith(said)


@pytest.mark.parametrize("status", [*range(400, 432), *range(500, 512), 529])
def test_a_status_means_the_same_for_a_request_and_for_one_in_a_batch(status: int) -> None:
    refused = lm15.OpenAIChatLM(api_key="k").normalize_error(status, '{"error": {"message": "no"}}')
    assert is_retryable(classified(refused, 5, ())) == is_temporary(status)


@pytest.mark.parametrize("kind", [lm15.InvalidRequestError, lm15.AuthError, lm15.RateLimitError])
@pytest.mark.parametrize("said", [f"bad token {SECRET}", f"api key not valid: {SECRET}", f"Body starts: '{SECRET[:8]}"])
def test_no_part_of_an_error_contains_a_secret(kind: type[lm15.ProviderError], said: str) -> None:
    def failing() -> None:
        try:
            raise kind(said, status=400)
        except lm15.ProviderError as error:
            raise classified(error, 5, (SECRET,)) from error

    with pytest.raises(lm15.ProviderError) as caught:
        failing()
    whole = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
    assert SECRET[:8] not in whole
    assert "***" in whole


def test_a_long_beginning_of_a_secret_is_hidden_too() -> None:
    assert redacted(f"{SECRET} {SECRET[:7]} sk-1 {SECRET[:5]}", (SECRET, "", "pw")) == "*** *** sk-1 sk-01"
    assert redacted("user pw", ("pw",)) == "user ***"


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("Please retry in 7s.", 7),
        ("Please retry in 7.5s", 7.5),
        ("please try again in 20ms.", 0.02),
        ("Please try again in 6m0s. Visit", 360),
        ("Please try again in 1h12m3s", 4323),
        ("try again after 2 seconds", 2),
        ("Please try again later", None),
        ("7s", None),
    ],
)
def test_a_wait_in_a_message_is_parsed(words: str, seconds: float | None) -> None:
    assert asked_to_wait(words) == (None if seconds is None else pytest.approx(seconds))
    error = classified(lm15.RateLimitError(words, status=429), 5, ())
    assert error.retry_after == (None if seconds is None else pytest.approx(seconds))


def test_circular_causes_end() -> None:
    first, second = ValueError("1"), ValueError("2")
    first.__cause__, second.__cause__ = second, first
    assert causes(first) == [first, second]


def test_long_messages_are_truncated_without_parts_of_a_secret() -> None:
    said = "the key sk-secret-4711 is wrong; " + "x" * 5_000_000
    error = classified(lm15.ServerError(said, status=500), 5.0, ("sk-secret-4711",))
    assert len(str(error)) <= LONGEST_SHOWN
    assert "sk-secret" not in str(error)


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
        ({"error": {"message": "too much " * 1_000_000}}, ("too much " * 1000)[:LONGEST_MESSAGE]),
        ({"errors": [[[[["deep"]]]], "shallow"]}, "shallow"),
    ],
)
def test_the_message_of_an_error_is_found(body: Any, words: str) -> None:
    assert message(body) == words


def test_the_code_of_an_error_is_kept() -> None:
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
def test_other_bodies_are_unchanged(body: bytes) -> None:
    assert readable_error(body) == body


def test_a_wait_is_read_from_the_headers_as_a_number_or_a_date() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=40), usegmt=True)
    assert retry_after({"retry-after": "7.5"}) == 7.5
    assert retry_after({"retry-after-ms": "1500", "retry-after": "9"}) == 1.5
    assert 35 < (retry_after({"retry-after": later}) or 0) <= 40
    for nothing in ("", "soon", "-1", "inf", "nan"):
        assert retry_after({"retry-after": nothing}) is None


@pytest.mark.parametrize("hide", [masked, redacted])
def test_a_key_is_masked_in_any_case_and_escaped_in_json(hide: Callable[..., str]) -> None:
    for secret in (SECRET, 'p"ss\\wörd'):
        for written in (secret, secret.upper(), secret.swapcase(), json.dumps(secret)[1:-1]):
            assert hide(f"your key {written} is wrong", (secret,)) == "your key *** is wrong"
        for form in (r"\u{:04x}", r"\\\u{:04X}", r"\x{:02x}", r"\U{:08x}", r"\{:03o}"):
            written = "".join(form.format(ord(character)) for character in secret)
            assert hide(f"your key {written} is wrong", (secret,)) == "your key *** is wrong"
    assert hide(r"a login of a\/b+c\/", ("a/b+c/",)) == "a login of ***"
    assert hide("no key here, nothing to hide", (SECRET,)) == "no key here, nothing to hide"


def percent(text: str) -> str:
    return "".join(f"%{octet:02X}" for octet in text.encode())


ESCAPES: dict[str, Callable[[str], str]] = {
    "HTML": html.escape,
    "HTML of HTML": lambda text: html.escape(html.escape(text)),
    "decimal numbers": lambda text: "".join(f"&#{ord(c)};" for c in text),
    "hexadecimal numbers": lambda text: "".join(f"&#x{ord(c):04X};" for c in text),
    "numbers of HTML of HTML": lambda text: "".join(f"&amp;#x{ord(c):x};" for c in text),
    "HTML in JSON": lambda text: html.escape(text).replace("&", r"\u0026"),
    "an address": quote,
    "a form": quote_plus,
    "an address in an address": lambda text: quote(quote(text)),
    "every octet": percent,
    "every octet, small": lambda text: percent(text).lower(),
    "every octet of an address in an address": lambda text: percent(text).replace("%", "%25"),
    "Latin-1": lambda text: quote(text, encoding="latin-1"),
    "lines": lambda text: "\n".join(text),
    "lines in JSON": lambda text: r"\r\n".join(text),
    "no width": lambda text: "\u200b".join(text),
    "breaks": lambda text: "<wbr>".join(text),
}


@pytest.mark.parametrize("form", ESCAPES)
@pytest.mark.parametrize("secret", [SECRET, "p&ss<w>'r\"d;", "pä ss%w+rd=", "a/b+c/=="])
def test_a_key_is_masked_in_html_addresses_and_over_lines(form: str, secret: str) -> None:
    for case in (secret, secret.swapcase()):
        assert masked(f"your key {ESCAPES[form](case)} is wrong", (secret,)) == "your key *** is wrong"


def test_a_long_run_of_backslashes_costs_nothing_and_hides_no_key() -> None:
    key = "sk-0123456789"
    escaped = "".join(f"\\x{ord(character):02x}" for character in key)
    for count in (9, 40, 41, 42, 1000):
        for form in (key, escaped):
            assert masked("\\" * count + form, (key,)).strip("\\") == "***"
    begun = time.process_time()
    masked("\\" * 2_000_000, (key,))
    assert time.process_time() - begun < 0.5
