"""What a server's refusal means: servers say the same thing with different statuses, lm15 goes by the status.

Also: an error as a person should read it, of one line and without a secret.
"""

import re

from dspy import lm15

# Status and words of real replies. What none of them fits stays as lm15 read it.
_MEANINGS: tuple[tuple[int, str, type[lm15.ProviderError]], ...] = (
    (
        400,
        r"context (length|size|window)|maximum context|too many (input )?tokens|prompt is too long|n_ctx",
        lm15.ContextLengthError,
    ),
    (400, r"api key not valid|invalid api key|api_key_invalid", lm15.AuthError),
    (400, r"credit balance|billing|insufficient.{0,20}(quota|funds)", lm15.BillingError),
    (404, r"model", lm15.UnsupportedModelError),
    (429, r"insufficient_quota|exceeded your current quota.*billing", lm15.BillingError),
    (500, r"image input is not supported|mmproj", lm15.InvalidRequestError),
)
_ASKED_TO_WAIT = re.compile(r"(?:retry|try again) in ([\d.]+) ?s", re.IGNORECASE)


def understood(error: lm15.LM15Error, timeout: float, secrets: tuple[str, ...]) -> lm15.LM15Error:
    """The error with its real meaning, told in one line; ``timeout`` in seconds is what was waited at most."""
    if ran_out_of_time(error):
        return lm15.TimeoutError(f"no answer within {timeout:g} s")
    text = " ".join(str(error.message or error).split())
    wait = error.retry_after
    if wait is None and isinstance(error, lm15.RateLimitError) and (asked := _ASKED_TO_WAIT.search(text)):
        wait = float(asked[1])
    for secret in secrets:
        text = text.replace(secret, "***")
    kind = _meaning(error, text)
    if kind is None:
        error.message, error.retry_after, error.args = text, wait, (text,)
        return error
    return kind(
        text,
        provider=error.provider,
        provider_code=error.provider_code,
        status=error.status,
        request_id=error.request_id,
        retry_after=wait,
    )


def ran_out_of_time(error: BaseException) -> bool:
    """Whether a request ended because nothing came in time."""
    return isinstance(error, lm15.TransportError) and any(isinstance(e, TimeoutError) for e in causes(error))


def causes(error: BaseException) -> list[BaseException]:
    """The error and what it came from, outermost first."""
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    return chain


def _meaning(error: lm15.LM15Error, text: str) -> type[lm15.ProviderError] | None:
    said = f"{error.provider_code or ''} {text}".lower()
    for status, words, kind in _MEANINGS:
        if error.status == status and not isinstance(error, kind) and re.search(words, said):
            return kind
    return None
