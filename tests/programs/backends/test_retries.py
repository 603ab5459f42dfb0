"""Which errors are retried, after what wait, and how retries are logged."""

import logging
import ssl

import pytest
from dspy import lm15

from agenticiqa.programs.backends import in_flight
from agenticiqa.programs.backends.failures import is_refused_for_now


def failed_to_connect(cause: BaseException) -> lm15.TransportError:
    try:
        raise lm15.TransportError("no connection") from cause
    except lm15.TransportError as error:
        return error


# The most attempts with three retries, and whether other requests to the server wait, too.
ONCE, TWICE, ALONE, ALL_WAIT = (1, False), (2, False), (4, False), (4, True)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (lm15.RateLimitError("slow down", status=429), ALL_WAIT),
        (lm15.RateLimitError("slow down", retry_after=60), ALL_WAIT),
        (lm15.RateLimitError("come back tomorrow", status=429, retry_after=61), ONCE),
        (lm15.ServerError("busy", status=503), ALL_WAIT),
        (lm15.ServerError("overloaded", status=529), ALL_WAIT),
        (lm15.ServerError("broken", status=500), ALONE),
        (lm15.ServerError("broken", status=500, retry_after=1.0), ALL_WAIT),
        (lm15.TimeoutError("late"), TWICE),
        (failed_to_connect(ConnectionResetError()), ALL_WAIT),
        (failed_to_connect(ConnectionRefusedError()), ALL_WAIT),
        (failed_to_connect(OSError(24, "too many open files")), ALL_WAIT),
        (failed_to_connect(ssl.SSLCertVerificationError("self-signed")), ONCE),
        (lm15.AuthError("wrong key", status=401), ONCE),
        (lm15.BillingError("no money", status=429), ONCE),
        (lm15.InvalidRequestError("too large"), ONCE),
        (lm15.ContextLengthError("too long"), ONCE),
        (lm15.UnsupportedModelError("no such model"), ONCE),
    ],
)
def test_errors_that_are_retried_and_errors_that_make_other_requests_wait(
    error: lm15.LM15Error, expected: tuple[int, bool]
) -> None:
    slots = (in_flight.Slot(attempt=attempt) for attempt in range(1, 9))
    attempts = next(slot.attempt for slot in slots if in_flight.next_wait(slot, error, 3) is None)
    assert (attempts, is_refused_for_now(error)) == expected


@pytest.mark.parametrize(
    ("asked", "attempt", "least"),
    [(None, 1, 1), (None, 2, 2), (None, 3, 4), (None, 5, 16), (None, 6, 30), (None, 40, 30), (0, 1, 1), (4, 3, 4)],
)
def test_waits_double_up_to_half_a_minute_unless_the_server_asks_for_one(
    asked: float | None, attempt: int, least: float
) -> None:
    """They differ at random, so that calls that failed together are not repeated together."""
    error = lm15.RateLimitError("slow down", status=429, retry_after=asked)
    waits = [in_flight.seconds_to_wait(attempt, error) for _ in range(50)]
    assert all(least <= wait <= 1.25 * least for wait in waits)
    assert len(set(waits)) > 1


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (lm15.ServerError("first\nsecond", status=500), "status 500: first"),
        (lm15.TransportError("cut"), "cut"),
        (lm15.TransportError(""), "TransportError"),
    ],
)
def test_each_wait_is_logged_with_model_reason_and_seconds(
    error: lm15.LM15Error, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        in_flight.log_retry("vllm/model at host", 2, error, 2.345)
    (record,) = caplog.records
    assert record.getMessage() == f"vllm/model at host: {reason}; attempt 3 follows in 2.3 s"
    assert (record.__dict__["event"], record.__dict__["wait_s"]) == ("retry", 2.35)
