"""Take answers out of DSPy's cache, so that the same requests are sent again.

DSPy keeps every answer before anybody has validated it, under a key made of the whole request. An exchange that ended
without an accepted answer would be replayed by every later run.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import dspy
from dspy.clients.execution import IGNORED_CACHE_KEYS, prepare


class CachedCall(NamedTuple):
    """A call of a DSPy model: the model, and what it was given (``prompt``, ``messages``, ``kwargs``)."""

    lm: dspy.BaseLM
    inputs: Mapping[str, Any]


def forget_answers(calls: Iterable[CachedCall]) -> None:
    """Remove from DSPy's cache the answers to these calls; those not in it are left out."""
    for lm, inputs in calls:
        call = prepare(lm, inputs.get("prompt"), inputs.get("messages"), inputs.get("kwargs") or {}, asynchronous=False)
        key = call.key(lm, False) if call.cache else None
        if key is not None and dspy.cache.get(key, IGNORED_CACHE_KEYS) is not None:
            dspy.cache.put(key, None, IGNORED_CACHE_KEYS)  # which DSPy takes for a miss
