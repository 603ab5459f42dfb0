"""Accuracy with an interval over contents, beside chance."""

from collections.abc import Sequence

import numpy as np
from scipy.stats import t as student

from agenticiqa.eval.intervals import CONFIDENCE, FEWEST_CONTENTS, Interval, Z, wilson


def accuracy(hits: Sequence[bool], contents: Sequence[str]) -> Interval:
    """The share of hits, 0..1, with its 95 % interval: Wilson's, at the number of questions that contents are worth.

    Questions about one content are not independent. As for proportions of cluster samples (Korn and Graubard 1998, with
    Wilson's interval as in Franco et al. 2019), the number of questions is divided by the design effect, the variance
    between contents over that of independent questions and at least 1, and by (t / z) squared for the few contents from
    which it is estimated. Where all or none are right there is no variance, and the contents count. Without questions
    it is undefined; under ``FEWEST_CONTENTS`` contents it has no interval.
    """
    n = len(hits)
    if n == 0:
        return Interval(None, None, None, 0, "no questions")
    found = np.asarray(hits, float)
    share = float(found.mean())
    _, content_of = np.unique(np.asarray(contents, dtype=str), return_inverse=True)
    count = int(content_of.max()) + 1
    if count < FEWEST_CONTENTS:
        return Interval(share, None, None, n, f"too few contents for an interval ({count}, at least {FEWEST_CONTENTS})")
    worth = float(n)
    if 0 < share < 1:
        residuals = np.bincount(content_of, found - share)
        between = count / (count - 1) * float(np.square(residuals).sum()) / n**2
        worth /= max(1.0, between / (share * (1 - share) / n))
        worth *= min(1.0, (Z / float(student.ppf((1 + CONFIDENCE) / 2, count - 1))) ** 2)
    else:
        worth = float(count)
    low, high = wilson(share * worth, worth)
    return Interval(share, low, high, n)


def chance_of_as_many(right: int, chances: Sequence[float]) -> float:
    """The probability that guessing gets at least so many right, where question i is guessed with ``chances[i]``.

    Exact: the distribution of a sum of independent Bernoulli trials with different chances (Poisson binomial), by
    convolution.
    """
    distribution = np.ones(1)
    for chance in chances:
        distribution = np.convolve(distribution, (1 - chance, chance))
    return float(min(1.0, distribution[right:].sum()))
