"""The paper's score with its symbols: *AgenticIQA* (arXiv 2509.26006), Sec. 3.3, equations 1 to 4.

``c`` is a quality level, 1 to 5. ``q`` are the tool scores on the same scale, and ``q_bar`` their mean. ``alpha`` has
the perceptual weight ``alpha_c`` of each level, and ``p`` the model's probability ``p_c``. Both sum to one.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

C = TypeVar("C", bound=Hashable)  # usually a level
L = TypeVar("L", bound=float)


def mean_tool_score(q: Sequence[float]) -> float:
    """Return ``q_bar``, the mean of the tool scores (equation 1)."""
    return math.fsum(q) / len(q)


def perceptual_weights(q_bar: float, eta: float, levels: Sequence[L]) -> dict[L, float]:
    """Return ``alpha``: proportional to ``exp(-eta (q_bar - c)^2)`` (equation 2)."""
    return softmax({c: -eta * (q_bar - c) ** 2 for c in levels})


def softmax(log_p: Mapping[C, float]) -> dict[C, float]:
    """Return ``p`` for log-probabilities of any offset (equation 3). Raises ValueError for NaN or infinity."""
    if not all(math.isfinite(log) for log in log_p.values()):
        raise ValueError(f"log-probabilities must be finite, got {dict(log_p)}")
    peak = max(log_p.values())  # subtracted, or the exponentials of small logarithms would all be 0
    exponentials = {c: math.exp(log - peak) for c, log in log_p.items()}
    total = math.fsum(exponentials.values())
    return {c: each / total for c, each in exponentials.items()}


def score_of(alpha: Mapping[L, float], p: Mapping[L, float]) -> float:
    """Return ``sum(alpha_c p_c c) / sum(alpha_c p_c)`` over the levels of ``p`` (equation 4).

    The paper omits the denominator, but its example (two tools at 2.9871, result 2.9542) is right only with it.
    """
    return math.fsum(alpha[c] * p[c] * c for c in p) / math.fsum(alpha[c] * p[c] for c in p)
