"""Decide which failed requests are retried and after what wait, and log the retries.

==================================  ==================================================================================
failure                             action
==================================  ==================================================================================
429, 5xx, 408, 409, 421, 425,       retry after the time that the server asks for (``retry-after``, at most a minute),
connection                          else after 1, 2, 4, ... seconds (at most 30), plus up to a quarter at random, so
                                    that calls that failed together are not retried together
no answer in time                   retry once
a longer ``retry-after``            fail: the error says how long the server asks to wait
everything else                     fail: the same request would fail again (key, model, schema, certificate)
==================================  ==================================================================================
"""

import logging
import random
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING

from dspy import lm15

from agenticiqa.programs.backends.failures import causes
from agenticiqa.programs.backends.limits import Limits
from agenticiqa.programs.backends.run_context import current

if TYPE_CHECKING:
    import tenacity

logger = logging.getLogger(__name__)

LONGEST_HINT = 60.0  # seconds; a server that asks for more counts as unreachable
LONGEST_WAIT = 30.0
TIMEOUTS = 2  # attempts that may time out


def attempts(name: str, most_retries: int, limits: Limits) -> "tenacity.Retrying":
    """Return the attempts at one request to the model ``name``; an interrupted run ends their waits."""
    import tenacity  # loads tornado, which a program without a model does not need

    return tenacity.Retrying(
        retry=tenacity.retry_if_exception(is_retryable),
        wait=wait,
        stop=stop_after(most_retries),
        before_sleep=log_retry(name),
        sleep=limits.wait,
        reraise=True,
    )


def is_retryable(error: BaseException) -> bool:
    """Return whether the same request may succeed later."""
    if isinstance(error, lm15.TransportError):
        return not any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes(error))
    hint = getattr(error, "retry_after", None)
    return isinstance(error, lm15.RETRYABLE_ERRORS) and (hint is None or hint <= LONGEST_HINT)


def wait(state: "tenacity.RetryCallState") -> float:
    """Return the seconds until the next attempt."""
    doubled = min(2.0 ** (state.attempt_number - 1), LONGEST_WAIT)
    least = float(getattr(_failure(state), "retry_after", None) or doubled)
    return least * random.uniform(1, 1.25)


def stop_after(retries: int) -> "Callable[[tenacity.RetryCallState], bool]":
    """Return a condition that stops after this number of retries, or after the second attempt that timed out."""

    def stop(state: "tenacity.RetryCallState") -> bool:
        most = min(retries, TIMEOUTS - 1) if isinstance(_failure(state), lm15.TimeoutError) else retries
        return state.attempt_number > most

    return stop


def log_retry(name: str) -> "Callable[[tenacity.RetryCallState], None]":
    """Return a callback that logs each wait: the model, the failure, and the seconds until the next attempt."""

    def log(state: "tenacity.RetryCallState") -> None:
        if current().limits.halted.is_set():
            return
        seconds, why, number = state.upcoming_sleep, brief(_failure(state)), state.attempt_number + 1
        fields = {"event": "retry", "server": name, "wait_s": round(seconds, 2)}
        logger.warning("%s: %s; attempt %d follows in %.1f s", name, why, number, seconds, extra=fields)

    return log


def brief(error: BaseException | None) -> str:
    """Return the first line of an error, with its HTTP status if there is one."""
    status = getattr(error, "status", None)
    text = next(iter(str(getattr(error, "message", "") or error).strip().splitlines()), "") or type(error).__name__
    return f"status {status}: {text}" if status else text


def _failure(state: "tenacity.RetryCallState") -> BaseException | None:
    return state.outcome.exception() if state.outcome else None
