"""Which failures of a server are worth another try, after what wait, and how that is told.

=========================  ===========================================================================================
failure                    what is done
=========================  ===========================================================================================
429, 5xx, 408, connection  again after the time that the server asks for (``retry-after``, at most a minute), else
                           after 1, 2, 4, ... seconds (at most 30); and up to a quarter more, so that calls which
                           failed together do not come back together
no answer in time          once more
a longer ``retry-after``   not at all: whoever waits is told for how long
everything else            not at all: the same request would fail the same (a key, a model, a schema, a certificate)
=========================  ===========================================================================================
"""

import logging
import random
import ssl
from collections.abc import Callable

import tenacity
from dspy import lm15

from agenticiqa.programs.backends.failures import causes

logger = logging.getLogger(__name__)

LONGEST_HINT = 60.0  # seconds; a server that asks for more is out of reach
LONGEST_WAIT = 30.0
TIMEOUTS = 2  # attempts that may run out of time: a server that hung twice hangs


def worth_another(error: BaseException) -> bool:
    """Whether the same request may succeed in a moment."""
    if isinstance(error, lm15.TransportError):
        return not any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes(error))
    hint = getattr(error, "retry_after", None)
    return isinstance(error, lm15.RETRYABLE_ERRORS) and (hint is None or hint <= LONGEST_HINT)


def wait(state: tenacity.RetryCallState) -> float:
    """Seconds until the next attempt."""
    doubled = min(2.0 ** (state.attempt_number - 1), LONGEST_WAIT)
    least = float(getattr(_failure(state), "retry_after", None) or doubled)
    return least * random.uniform(1, 1.25)


def stop_after(retries: int) -> Callable[[tenacity.RetryCallState], bool]:
    """Stop after so many further attempts, or the second that ran out of time."""

    def stop(state: tenacity.RetryCallState) -> bool:
        hung = isinstance(_failure(state), lm15.TimeoutError)
        return state.attempt_number > (min(retries, TIMEOUTS - 1) if hung else retries)

    return stop


def telling(name: str) -> Callable[[tenacity.RetryCallState], None]:
    """Logs each wait: which server, what failed, how long until the next attempt."""

    def tell(state: tenacity.RetryCallState) -> None:
        logger.warning(
            "%s: %s; attempt %d follows in %.1f s",
            name,
            brief(_failure(state)),
            state.attempt_number + 1,
            state.upcoming_sleep,
            extra={"event": "retry", "server": name, "wait_s": round(state.upcoming_sleep, 2)},
        )

    return tell


def brief(error: BaseException | None) -> str:
    """The first line of an error, with its status where the server gave one."""
    status = getattr(error, "status", None)
    text = next(iter(str(getattr(error, "message", "") or error).strip().splitlines()), "") or type(error).__name__
    return f"status {status}: {text}" if status else text


def _failure(state: tenacity.RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome else None
