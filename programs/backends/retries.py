"""Decide which failed requests are retried and after what wait, and log the retries. The wait is in ``in_flight``.

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

from dspy import lm15

from agenticiqa.programs.backends.failures import causes

logger = logging.getLogger(__name__)

LONGEST_HINT = 60.0  # seconds; a server that asks for more counts as unreachable
LONGEST_WAIT = 30.0  # seconds
TIMEOUTS = 2  # attempts that may time out


def is_retryable(error: BaseException) -> bool:
    """Return whether the same request may succeed later."""
    if isinstance(error, lm15.TransportError):
        return not any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes(error))
    hint = getattr(error, "retry_after", None)
    return isinstance(error, lm15.RETRYABLE_ERRORS) and (hint is None or hint <= LONGEST_HINT)


def is_last(attempt: int, error: lm15.LM15Error, most_retries: int) -> bool:
    """Return whether attempt number ``attempt``, which failed, is not followed by another one."""
    most = min(most_retries, TIMEOUTS - 1) if isinstance(error, lm15.TimeoutError) else most_retries
    return attempt > most or not is_retryable(error)


def seconds_to_wait(attempt: int, error: lm15.LM15Error) -> float:
    """Return the seconds until the attempt that follows number ``attempt``."""
    doubled = min(2.0 ** (attempt - 1), LONGEST_WAIT)
    return (error.retry_after or doubled) * random.uniform(1, 1.25)


def log_retry(name: str, attempt: int, error: lm15.LM15Error, seconds: float) -> None:
    """Log the wait after attempt number ``attempt``: the model, the failure, and the seconds until the next attempt."""
    fields = {"event": "retry", "server": name, "wait_s": round(seconds, 2)}
    reason = next(iter(error.message.strip().splitlines()), "") or type(error).__name__
    if error.status:
        reason = f"status {error.status}: {reason}"
    logger.warning("%s: %s; attempt %d follows in %.1f s", name, reason, attempt + 1, seconds, extra=fields)
