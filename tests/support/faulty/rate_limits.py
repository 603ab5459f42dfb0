"""429, with its wait in every form."""

from collections.abc import Callable
from typing import Any

from support.faulty.exchange import Exchange, Profile, each, fails, once

STATUS = "429 Too Many Requests"
QUOTA = {"error": {"message": "You exceeded your current quota, check your billing", "code": "insufficient_quota"}}
IN_BODY = {"error": {"message": "Rate limit reached. Please try again in 300ms.", "code": "rate_limit_exceeded"}}
IN_DETAILS = {
    "error": {"code": 429, "message": "slow down", "details": [{"@type": "RetryInfo", "retryDelay": "1s"}]},
    "retry_after": 1,
}


def _after(value: str, body: Any = None, name: str = "Retry-After") -> Callable[[Exchange], None]:
    return fails(STATUS, body, f"{name}: {value}\r\n")


def _limited(name: str, what: str, act: Callable[[Exchange], None], **more: Any) -> Profile:
    return Profile(name, what, act, **{"when": once, "shows": b"^HTTP/1.1 429 ", "expect": "judged", **more})


ROWS = [
    _limited("limit-always", "429 without a wait, always", fails(STATUS), when=lambda ex: ex.number > 0, expect="any"),
    _limited("limit-once", "429 without a wait, once for each question", fails(STATUS)),
    _limited("limit-every-third", "429 for every third request", fails(STATUS), when=each(3), expect="any"),
    _limited("limit-seconds", "a second", _after("1")),
    _limited("limit-fraction", "half a second", _after("0.5")),
    _limited("limit-zero", "no time at all", _after("0")),
    _limited("limit-date", "a date in the past", _after("Wed, 21 Oct 2015 07:28:00 GMT")),
    _limited("limit-date-future", "a date in 2099", _after("Fri, 31 Dec 2099 23:59:59 GMT"), expect="any"),
    _limited("limit-hour", "an hour", _after("3600"), expect="any"),
    _limited("limit-huge", "10^30 seconds", _after("1" + "0" * 30), expect="any"),
    _limited("limit-exponent", "1e308", _after("1e308"), expect="any"),
    _limited("limit-infinity", "inf", _after("inf"), expect="any"),
    _limited("limit-nan", "nan", _after("nan")),
    _limited("limit-negative", "minus five", _after("-5")),
    _limited("limit-words", "words", _after("soon, I hope")),
    _limited("limit-5000-digits", "5,000 digits", _after("9" * 5000), expect="any"),
    _limited("limit-empty", "an empty header", _after("")),
    _limited(
        "limit-twice",
        "two headers that differ",
        fails(STATUS, None, "Retry-After: 1\r\nRetry-After: 9\r\n"),
        expect="any",
    ),
    _limited("limit-milliseconds", "retry-after-ms", _after("300", name="retry-after-ms")),
    _limited("limit-in-words", "the wait in the message", fails(STATUS, IN_BODY)),
    _limited("limit-in-body", "the wait in the body", fails(STATUS, IN_DETAILS)),
    _limited("limit-quota", "the quota is used up", fails(STATUS, QUOTA), when=lambda ex: ex.number > 0, expect="any"),
    _limited("limit-html", "a proxy's page", fails(STATUS, b"<html>slow down</html>", kind="text/html")),
    Profile(
        "busy-503",
        "503 with a second of wait, once",
        fails("503 Busy", None, "Retry-After: 1\r\n"),
        once,
        expect="judged",
    ),
]
