"""DSPy's cache of answers: remove rejected answers, add notes, and read records safely.

DSPy stores every answer before it is validated, under a key made from the whole request. Rejected answers are removed,
because later runs would get them again.
"""

import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import dspy
from dspy.clients import DISK_CACHE_DIR, DISK_CACHE_LIMIT, Cache
from dspy.clients.execution import IGNORED_CACHE_KEYS, prepare

from agenticiqa.programs.images.files import make_private

if TYPE_CHECKING:
    from agenticiqa.configs import Config

logger = logging.getLogger(__name__)

ENTRIES_IN_MEMORY = 1000  # DSPy's own limit is a million; all entries are on disk
CUT_OFF = "agenticiqa.cut_off"  # replaces the name of a function in the keys of notes


class CachedCall(NamedTuple):
    """A call of a DSPy model: the model and its inputs (``prompt``, ``messages``, ``kwargs``)."""

    lm: dspy.BaseLM
    inputs: Mapping[str, Any]


class AnswerCache(Cache):
    """DSPy's cache with safe reading, because records on disk may be damaged or written by an attacker.

    Reading a record runs no code from it. A record that is not an answer counts as a miss. The folders are private.
    Without a ``folder``, answers are kept in memory only.
    """

    def __init__(self, folder: str | None) -> None:
        super().__init__(False, True, folder, memory_max_entries=ENTRIES_IN_MEMORY)
        if folder is not None:
            from diskcache import FanoutCache

            from agenticiqa.programs.backends.record_disk import RecordDisk

            make_private(Path(folder))
            limit = DISK_CACHE_LIMIT
            self.disk_cache = FanoutCache(folder, shards=16, timeout=10, size_limit=limit, disk=RecordDisk)
            self.enable_disk_cache = True
            for shard in Path(folder).glob("[0-9][0-9][0-9]"):
                shard.chmod(0o700)

    def get(self, request: dict[str, Any], ignored_args_for_cache_key: list[str] | None = None) -> Any:
        """Return the record of a request; ``None`` if it is missing or cannot be read."""
        try:
            record = super().get(request, ignored_args_for_cache_key)
            if record is not None:
                _check(record, request)
        except Exception as error:  # an error of pickle, sqlite3 or DSPy, depending on the damage
            damage = type(error).__name__
            logger.warning("%s: a damaged record of the cache is ignored (%s)", self.disk_cache_dir, damage)
            self.reset_memory_cache()  # it may contain the record
            return None
        return record


def _check(record: Any, request: Mapping[str, Any]) -> None:
    """Raise any exception for a record that cannot be the answer to this request."""
    if request.get("_fn_identifier") == CUT_OFF:
        if record is not True:
            raise TypeError(f"expected True for an answer that was cut off, found {type(record).__name__}")
    elif isinstance(record, dict):  # DSPy's own
        if not record.get("outputs"):
            raise TypeError("expected an answer, found a mapping without outputs")
    elif not (getattr(record, "choices", None) or getattr(record, "output", None)):  # LiteLLM's answers
        raise TypeError(f"expected an answer, found {type(record).__name__}")


def install(config: "Config") -> None:
    """Replace DSPy's cache by an AnswerCache in this process, unless the configuration is offline.

    Called by commands, never by the library. A cache that the caller has set is kept.
    """
    if config.is_offline or "cache" in vars(dspy):
        return
    if not (os.path.isabs(DISK_CACHE_DIR) or os.environ.get("DSPY_CACHEDIR")):  # without a home, the working folder
        logger.warning("no home folder, so answers are kept in memory only; name a folder in DSPY_CACHEDIR")
        dspy.cache = AnswerCache(None)
        return
    try:
        dspy.cache = AnswerCache(DISK_CACHE_DIR)
    except Exception as error:
        logger.warning("%s: the cache cannot be opened, so answers are kept in memory only (%s)", DISK_CACHE_DIR, error)
        dspy.cache = AnswerCache(None)


def forget_answers(calls: Iterable[CachedCall]) -> None:
    """Remove the answers to these calls from DSPy's cache, so that they are sent again; skip uncached calls."""
    for call in calls:
        if is_cached(call):
            dspy.cache.put(_key_of(call), None, IGNORED_CACHE_KEYS)  # DSPy treats None as a miss


def is_cached(call: CachedCall) -> bool:
    """Return whether DSPy's cache has the answer to a call, so that no request is sent."""
    key = _key_of(call)
    return key is not None and dspy.cache.get(key, IGNORED_CACHE_KEYS) is not None


def _key_of(call: CachedCall) -> dict[str, Any] | None:
    lm, inputs = call
    prepared = prepare(lm, inputs.get("prompt"), inputs.get("messages"), inputs.get("kwargs") or {})
    key: dict[str, Any] | None = prepared.key(lm, False) if prepared.cache else None
    return key


# DSPy stores the reason why an answer ended, but does not return it. Without it, the correction after a cached answer
# would differ from that of the first run and miss the cache. Therefore it is recorded in the same cache.
def note_cut_off(model: str, text: str) -> None:
    """Record that this answer of a model ended at the token limit, as its server reported."""
    dspy.cache.put(_cut_off_key(model, text), True)


def was_cut_off(model: str, text: str) -> bool:
    """Return whether ``note_cut_off`` recorded this answer, in this process or an earlier one with the same cache."""
    return dspy.cache.get(_cut_off_key(model, text)) is True


def _cut_off_key(model: str, text: str) -> dict[str, Any]:
    return {"_fn_identifier": CUT_OFF, "model": model, "text": text}
