"""The mean of tool scores: its tools and their weights.

The mean of tools that the question names or a model selects is plain, as in the paper, without those that estimate a
single property. Only ``fusion: paper`` counts these, too (equation 1). Tools that the program chooses are weighted by
inverse error variance. Correlated errors are counted once. With V the covariance of the errors, the weights that sum to
one and minimize the error variance of the mean, ``w' V w``, are proportional to ``V^-1 1`` (Bates and Granger 1969,
Operational Research Quarterly 20). They are the inverse squared errors if the errors are independent, and one half each
for a tool that is named twice. A tool that repeats a better one with more error gets a negative weight. It is excluded,
because with a negative weight a better score would lower the mean.

V comes from ``configs/tool_table.yaml``: errors of the calibrated scores by source of the images. With a reference the
source is "reference". Without one it is unknown whether an image is a photo, AI-generated or a distorted copy, so V is
the mean over these sources. A tool without measurements there has the error of its curve and the usual correlation
with the other tools. An adapted tool has the error on its held-out labels.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import numpy as np

from agenticiqa.programs.tools.srcc_table import Errors, errors_by_source
from agenticiqa.programs.tools.tool import Tool

PlainMean: TypeAlias = Literal["never", "chosen", "always"]  # the tools that count equally

WITH_REFERENCE, WITHOUT = ("reference",), ("photo", "generated", "ladder")
USUAL_CORRELATION = 0.6  # correlation of the errors of two tools
LEAST_GAIN = 0.01  # share; the reduction of the mean's error that justifies the time of a tool
DIGITS = 4  # digits of a weight; the last ones of a solution may depend on the linear algebra library


def mean_weights(
    tools: Sequence[Tool], *, has_reference: bool, known: Mapping[str, Errors] | None = None
) -> dict[str, float]:
    """Return the weight of each tool in the mean of their scores, in [0, 1]; they sum to one, up to rounding.

    A tool that estimates a single property, not quality, has no weight. ``known`` has the errors by source of the
    images; the default is the table.
    """
    rating = [tool for tool in tools if tool.rates_overall]
    shares = least_error_weights(error_covariance(rating, has_reference, known)) if rating else np.zeros(0)
    weights = {tool.name: round(float(share), DIGITS) for tool, share in zip(rating, shares, strict=True)}
    return {tool.name: weights.get(tool.name, 0.0) for tool in tools}


def equal_weights(tools: Sequence[Tool], *, single_properties: bool) -> dict[str, float]:
    """Return the weight 1 for each tool that estimates quality; ``single_properties``: also for any other, else 0."""
    return {tool.name: float(single_properties or tool.rates_overall) for tool in tools}


def rating_tools(
    tools: Sequence[Tool], *, has_reference: bool, known: Mapping[str, Errors] | None = None
) -> list[Tool]:
    """Return the tools for a rating: the one with the smallest error, and each that improves the mean enough.

    Tools are added, the best first, as long as each reduces the error of the mean by at least a hundredth.
    """
    rest = [tool for tool in tools if tool.rates_overall]
    chosen: list[Tool] = []
    error = math.inf
    while rest:
        errors = [mean_error(error_covariance([*chosen, tool], has_reference, known)) for tool in rest]
        best = errors.index(min(errors))
        if errors[best] > error * (1 - LEAST_GAIN):
            break
        error = errors[best]
        chosen.append(rest.pop(best))
    return chosen


def mean_error(covariance: np.ndarray) -> float:
    """Return the error, in levels, of the best mean of tools with this error covariance (n, n)."""
    weights = least_error_weights(covariance)
    return float(weights @ covariance @ weights) ** 0.5


def error_covariance(
    tools: Sequence[Tool], has_reference: bool, known: Mapping[str, Errors] | None = None
) -> np.ndarray:
    """Return the covariance (n, n) of the errors of n tools, in squared levels."""
    known = errors_by_source() if known is None else known
    sources = [known[name] for name in (WITH_REFERENCE if has_reference else WITHOUT) if name in known]

    def measured(a: Tool, b: Tool) -> float | None:
        covariances = [value for errors in sources if (value := errors.covariance(a.name, b.name)) is not None]
        return sum(covariances) / len(covariances) if covariances else None

    def variance(tool: Tool) -> float:
        own = tool.adapter.about["error"] if tool.adapter else None
        return own**2 if own else measured(tool, tool) or tool.usual_spread**2

    def shared(a: Tool, b: Tool) -> float:
        if a is b:
            return variance(a)
        covariance = None if a.adapter or b.adapter else measured(a, b)
        return USUAL_CORRELATION * math.sqrt(variance(a) * variance(b)) if covariance is None else covariance

    return np.array([[shared(a, b) for b in tools] for a in tools])


def least_error_weights(covariance: np.ndarray) -> np.ndarray:
    """Return the non-negative weights (n,), with sum 1, that minimize the mean's error for a covariance (n, n)."""
    kept = list(range(len(covariance)))
    while True:
        solution = np.linalg.lstsq(covariance[np.ix_(kept, kept)], np.ones(len(kept)), rcond=1e-9)[0]
        if len(kept) == 1 or (solution > 0).all():
            break
        kept.pop(int(solution.argmin()))
    weights = np.zeros(len(covariance))
    weights[kept] = solution / solution.sum()
    return weights
