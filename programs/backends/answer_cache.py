"""DSPy's cache of answers for the commands: bounded in memory, and a record that cannot be read is a miss."""

import logging
from typing import Any

import dspy
from dspy.clients import DISK_CACHE_DIR, DISK_CACHE_LIMIT, Cache
from dspy.clients.call_result import CallResult

from agenticiqa.configs import Config

logger = logging.getLogger(__name__)

ENTRIES_IN_MEMORY = 1000  # DSPy's own bound is a million; the disk has them all


class AnswerCache(Cache):
    """DSPy's cache, whose records on disk may be damaged: by a crash, another version, or a full disk."""

    def get(self, request: dict[str, Any], ignored_args_for_cache_key: list[str] | None = None) -> Any:
        """The record of a request; ``None`` when there is none, or none that can be read."""
        try:
            record = super().get(request, ignored_args_for_cache_key)
            if isinstance(record, dict):
                CallResult.load(record)
        except Exception as error:  # of pickle, sqlite3 or DSPy, whatever the damage is
            damage = type(error).__name__
            logger.warning("a damaged record of the cache in %s is left out: %s", self.disk_cache_dir, damage)
            self.reset_memory_cache()  # which may hold it
            return None
        return record


def install(config: Config) -> None:
    """Put an AnswerCache in the place of DSPy's cache for this process, if a model may be asked.

    Called by commands, never by the library. A cache that someone else has put there stays.
    """
    if config.is_offline or "cache" in vars(dspy):
        return
    try:
        dspy.cache = AnswerCache(True, True, DISK_CACHE_DIR, DISK_CACHE_LIMIT, ENTRIES_IN_MEMORY)
    except Exception as error:
        logger.warning("answers are not kept on disk: %s cannot be used (%s)", DISK_CACHE_DIR, error)
        dspy.cache = AnswerCache(False, True, memory_max_entries=ENTRIES_IN_MEMORY, disk_cache_dir=None)
