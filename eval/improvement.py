"""Decide whether a change that was made with labels is kept: by paired losses on labels that had no part in making it.

Each scene has one difference, its loss before minus its loss after. If the change has no effect, each difference is as
likely positive as negative. The probability of an improvement is therefore the share of random signs that give a
smaller sum. This is one minus the p value of Fisher's one-sided sign-flip test, which is exact.
"""

import math
from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from agenticiqa.eval.intervals import blocks_of

REQUIRED = 0.975  # probability; of 100 useless changes at most 5 then pass, with a probability of .96 (binomial)
FEWEST_SCENES = 6  # smallest number of signs that can reach this probability: 1 - 2**-6
MOST_EXACT = 12  # scenes up to which all signs are tried
FLIPS = 10_000  # random signs of more scenes, with those of the data
ROUNDING = 1e-9  # levels; sums that differ by less are equal


def probability_of_improvement(before: ArrayLike, after: ArrayLike, contents: Sequence[str]) -> float:
    """Return the probability that the losses ``after`` (N,) are smaller than ``before``; images of a scene count once.

    It is 0 if nothing changed.
    """
    if not len(contents):
        return 0.0
    gains = np.bincount(blocks_of(contents), np.asarray(before, dtype=float) - np.asarray(after, dtype=float))
    if len(gains) <= MOST_EXACT:
        signs = np.array(list(product((1.0, -1.0), repeat=len(gains))))
    else:
        signs = np.random.default_rng(0).choice((1.0, -1.0), (FLIPS, len(gains)))
        signs[0] = 1.0
    return float(np.mean(signs @ gains < gains.sum() - ROUNDING))


def verdict(probability: float, scenes: int, worse: Sequence[str] = ()) -> tuple[bool, str]:
    """Return whether a change is kept, with the reason; ``worse`` names in words what got worse, which refuses it."""
    if scenes < FEWEST_SCENES:
        needed = f"{FEWEST_SCENES} are needed: use labels of more scenes, or raise the limits"
        return False, f"only {scenes} held-out scenes could be compared, and {needed}"
    if worse:
        return False, " and ".join(worse)
    return probability >= REQUIRED, f"{improvement_text(probability)} ({100 * REQUIRED:g} % is required)"


def improvement_text(probability: float) -> str:
    """Describe the probability in words, rounded down, so that none looks sufficient that is not."""
    return f"the probability of an improvement is {math.floor(1000 * probability) / 10} %"
