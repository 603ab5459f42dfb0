"""Whether an answer ended at the token limit, as its server said, also for an answer from DSPy's cache.

DSPy keeps the reason why an answer ended with the answer, but gives it to nobody. Without it the correction after a
cached answer would differ from the first run's, which would then not be replayed. So it is noted in the same cache.
"""

from typing import Any

import dspy


def note_cut_off(model: str, text: str) -> None:
    """Note that this answer of a model ended at the token limit."""
    dspy.cache.put(_key(model, text), True)


def was_cut_off(model: str, text: str) -> bool:
    """Whether it was noted of this answer, in this process or an earlier one with the same cache."""
    return dspy.cache.get(_key(model, text)) is True


def _key(model: str, text: str) -> dict[str, Any]:
    return {"_fn_identifier": "agenticiqa.cut_off", "model": model, "text": text}
