"""Read the size of a server's context, and recognize an answer that was cut off because the context was full.

Servers report a full context and a reached ``max_tokens`` with the same finish reason, "length". The number of tokens
distinguishes them.
"""

from typing import TYPE_CHECKING, Any

from dspy import lm15

if TYPE_CHECKING:
    from agenticiqa.programs.backends.wire import Server

FEWER = 0.9  # share of max_tokens; an answer that reached the limit may be counted with a few tokens less
LEFT = 16  # tokens that a full context may have left


def full_context(wire: "Server", request: lm15.Request, response: lm15.Response) -> str | None:
    """Return why an answer was cut off if the context of the server was full; otherwise ``None``.

    The size of the context is read from the server, if it reports one.
    """
    context, most = wire.provider.context, request.config.max_tokens
    read, written = response.usage.input_tokens or 0, response.usage.output_tokens or 0
    if response.finish_reason != "length" or not (context and most and read and 0 < written < FEWER * most):
        return None
    size = context_size(wire)
    if size is not None and read + written < size - LEFT:
        return None  # the server has another limit of its own
    size_shown = "" if size is None else f", of {size:,}"
    return (
        f"the answer was cut off after {written:,} of at most {most:,} tokens, because the context of the server is "
        f"full: {read:,} tokens of the prompt and {written:,} of the answer{size_shown}; {context.remedy}"
    )


def context_size(wire: "Server") -> int | None:
    """Return the most tokens of a prompt and its answer, as the server of a model reports it; ``None`` if it does not.

    A server that loads one model accepts any name for it, so a single entry counts for every model.
    """
    row = wire.provider.context
    listed = (wire.listed(row.path) if row else None) or {}
    models = listed.get("data") or listed.get("models")
    entries = [entry for entry in models if isinstance(entry, dict)] if isinstance(models, list) else []
    own = [entry for entry in entries if wire.model in (entry.get("id"), entry.get("name"), entry.get("model"))]
    found: Any = own[0] if own else entries[0] if len(entries) == 1 else None
    for name in row.field.split(".") if row else ():
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, int) and found > 0 else None
