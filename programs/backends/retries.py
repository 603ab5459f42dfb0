"""Decide which failed requests are retried and after what wait, and log the retries. The wait is in ``in_flight``.

==================================  ==================================================================================
failure                             action
==================================  ==================================================================================
503 "Loading model", and a refused  retry after 1, 2, 4 and then every 5 seconds, 20 times: about 90 seconds, in which
connection at a server that         most models are loaded. One line says what is waited for. If it was in vain, further
answered before                     requests get the retries of the next row, until the server answers
429, 5xx, 408, 409, 421, 425,       retry after the time that the server asks for (``retry-after``, at most a minute),
connection                          else after 1, 2, 4, ... seconds (at most 30), plus up to a quarter at random, so
                                    that calls that failed together are not retried together
no answer in time                   retry once; as the row above if the server had other requests of this process at
                                    the same time, of which it then gets half as many (``in_flight``)
a longer ``retry-after``            fail: the error says how long the server asks to wait
everything else                     fail: the same request would fail again (key, model, schema, certificate, context)
==================================  ==================================================================================

With ``max_retries: 0`` nothing is retried.
"""

import logging
import random
import ssl
from dataclasses import dataclass

from dspy import lm15

from agenticiqa.programs.backends.failures import causes, is_loading, is_refused_connection

logger = logging.getLogger(__name__)

LONGEST_HINT = 60.0  # seconds; a server that asks for more counts as unreachable
LONGEST_WAIT = 30.0  # seconds
TIMEOUTS = 2  # attempts that may time out
LOADING_RETRIES = 20
LONGEST_LOADING_WAIT = 5.0  # seconds
LOADING_SECONDS = 90  # seconds: about the sum of these waits


@dataclass
class Attempts:
    """The attempts at one request so far: ``number``, and how many of them failed because the server was loading."""

    most_retries: int
    number: int = 1
    loading: int = 0

    def failed(self, error: lm15.LM15Error, *, loading: bool, others: int = 0) -> float | None:
        """Return the seconds until the next attempt; ``None`` if there is none.

        ``loading`` is whether the server is expected to answer when its model is loaded, ``others`` the number of other
        requests that it had at the same time.
        """
        if loading and self.most_retries:
            self.loading += 1
            seconds = min(seconds_to_wait(self.loading, error), LONGEST_LOADING_WAIT)
            is_over = self.loading > LOADING_RETRIES
        else:
            attempt = self.number - self.loading
            seconds, is_over = seconds_to_wait(attempt, error), is_last(attempt, error, self.most_retries, others)
        self.number += 1
        return None if is_over else seconds


def may_be_loading(error: lm15.LM15Error, *, answered_before: bool) -> bool:
    """Return whether the server may be loading its model: it says so, or answered before and refuses connections."""
    return is_loading(error) or (answered_before and is_refused_connection(error))


def is_retryable(error: BaseException) -> bool:
    """Return whether the same request may succeed later."""
    if isinstance(error, lm15.TransportError):
        return not any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes(error))
    hint = getattr(error, "retry_after", None)
    return isinstance(error, lm15.RETRYABLE_ERRORS) and (hint is None or hint <= LONGEST_HINT)


def is_last(attempt: int, error: lm15.LM15Error, most_retries: int, others: int = 0) -> bool:
    """Return whether attempt number ``attempt``, which failed, is not followed by another one.

    A request that timed out beside ``others`` was possibly only queued behind them.
    """
    is_slow = isinstance(error, lm15.TimeoutError) and not others
    return attempt > (min(most_retries, TIMEOUTS - 1) if is_slow else most_retries) or not is_retryable(error)


def seconds_to_wait(attempt: int, error: lm15.LM15Error) -> float:
    """Return the seconds until the attempt that follows number ``attempt``."""
    doubled = min(2.0 ** (attempt - 1), LONGEST_WAIT)
    return (error.retry_after or doubled) * random.uniform(1, 1.25)


def log_retry(name: str, attempt: int, error: lm15.LM15Error, seconds: float) -> None:
    """Log the wait after attempt number ``attempt``: the model, the failure, and the seconds until the next attempt."""
    fields = {"event": "retry", "server": name, "wait_s": round(seconds, 2)}
    logger.warning("%s: %s; attempt %d follows in %.1f s", name, _why(error), attempt + 1, seconds, extra=fields)


def log_loading(name: str, error: lm15.LM15Error) -> None:
    """Log once for all requests that they wait for a server to load its model."""
    what = "the server is loading its model" if is_loading(error) else "the server no longer answers"
    fields = {"event": "loading", "server": name}
    logger.warning("%s: %s (%s); waiting up to %d s for it", name, what, _why(error), LOADING_SECONDS, extra=fields)


def _why(error: lm15.LM15Error) -> str:
    reason = next(iter(error.message.strip().splitlines()), "") or type(error).__name__
    return f"status {error.status}: {reason}" if error.status else reason
