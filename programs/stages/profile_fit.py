"""Fit a fusion profile to images, with or without their opinion scores.

Without labels, a model's reliability (its correlation with the true opinion) is estimated from its agreement with
others whose errors are nearly independent of its own:

- from a tool of known reliability: ``r_V = corr(T, V) / r_T``
- from three predictors: ``r_V = sqrt(corr(T, V) corr(V, O) / corr(T, O))`` (triple collocation, Stoffelen 1998,
  JGR Oceans 103), with each further tool in turn as ``O``

Their mean is shrunk toward the prior's by the number of images. Correlations are of normal scores (ranks mapped to
normal quantiles). The result does not depend on the order of the rows, to the last digit.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from statistics import NormalDist, fmean

from agenticiqa.programs.stages.fusion_profile import LARGEST_ERROR, FusionProfile

FEWEST_IMAGES = 10  # under which the prior is returned
LEAST, MOST = 0.05, 0.97  # of a reliability
SMALLEST_STD = 0.05  # levels


@dataclass(frozen=True)
class FusionRow:
    """What is known of one image.

    ``tool_score`` is the mean of the tool scores, in [1, 5], and ``tool_error`` the standard deviation in levels that
    the tool states for this image, ``None`` for a tool that states none. ``probabilities`` are the model's over the
    levels. ``others`` are scores of further tools by name, each on any scale, higher is better. ``label`` is the mean
    opinion score on 1..5, ``None`` where it is not known.
    """

    tool_score: float
    probabilities: Mapping[int, float]
    tool_error: float | None = None
    others: Mapping[str, float] = field(default_factory=dict)
    label: float | None = None

    @property
    def expectation(self) -> float:
        """The expected level of the model's probabilities, in [1, 5]."""
        return math.fsum(level * share for level, share in self.probabilities.items())


def fit_profile(
    rows: Sequence[FusionRow],
    prior: FusionProfile,
    *,
    tool_reliability: float | None = None,
    backend: str = "",
    prompts: str = "",
    toolset: Sequence[str] = (),
    version: str = "",
    fitted_on: date | None = None,
) -> FusionProfile:
    """The profile of these images, shrunk toward ``prior``; with fewer than 10 of them it has the prior's numbers.

    ``tool_reliability`` is the known correlation of the tool mean with opinions, in (0, 1); the prior's without one.
    Labels are used where at least 10 images have one. Raises ValueError for a tool score that is not finite.
    """
    identity = {
        "backend": backend,
        "prompts": prompts,
        "toolset": tuple(sorted(toolset)),
        "version": version,
        "fitted_on": fitted_on,
        "images": len(rows),
    }
    if not all(math.isfinite(row.tool_score) for row in rows):
        raise ValueError("tool scores are finite numbers")
    if len(rows) < FEWEST_IMAGES:
        return prior.model_copy(update=identity)
    share = len(rows) / (len(rows) + prior.prior_weight)
    r_tool = tool_reliability if tool_reliability is not None else prior.reliability["tool"]
    tools = [row.tool_score for row in rows]
    expectations = [row.expectation for row in rows]
    estimates = estimate_reliability(rows, r_tool)
    found = fmean(estimates.values()) if estimates else prior.reliability["model"]
    r_model = clipped(share * found + (1 - share) * prior.reliability["model"])
    quality_mean, tool_std = fmean(tools), max(_std(tools), SMALLEST_STD)
    quality_std = tool_std / r_tool
    slope = quality_std / (r_model * max(_std(expectations), SMALLEST_STD))
    return prior.model_copy(
        update={
            **identity,
            "tool_error": quality_std * math.sqrt(1 - r_tool**2),
            "model_error": min(quality_std * math.sqrt(1 - r_model**2) / r_model, LARGEST_ERROR),
            "model_location": fmean(expectations),
            "model_center": quality_mean,
            "model_slope": slope,
            "quality_mean": quality_mean,
            "quality_std": quality_std,
            "reliability": {"tool": r_tool, "model": r_model, **estimates},
        }
    )


def estimate_reliability(rows: Sequence[FusionRow], tool_reliability: float) -> dict[str, float]:
    """Estimates of the model's reliability by name: ``agreement``, and ``three_way`` where further tools allow it."""
    tool, model = normal_scores([r.tool_score for r in rows]), normal_scores([r.expectation for r in rows])
    together = correlation(tool, model)
    estimates = {"agreement": clipped(together / tool_reliability)}
    triples = []
    for name in sorted({name for row in rows for name in row.others}):
        having = [row for row in rows if name in row.others]
        if len(having) < FEWEST_IMAGES:
            continue
        t, v, o = (
            normal_scores(values)
            for values in (
                [row.tool_score for row in having],
                [row.expectation for row in having],
                [row.others[name] for row in having],
            )
        )
        tv, vo, to = correlation(t, v), correlation(v, o), correlation(t, o)
        if to > 0:
            triples.append(clipped(math.sqrt(max(tv, 0) * max(vo, 0) / to)))
    if triples:
        estimates["three_way"] = fmean(triples)
    return estimates


def clipped(reliability: float) -> float:
    """A reliability in [0.05, 0.97]: neither without influence nor without error."""
    return min(max(reliability, LEAST), MOST)


def normal_scores(values: Sequence[float]) -> list[float]:
    """Each value's rank as a quantile of the standard normal distribution; equal values have their mean rank."""
    order = sorted(values)
    first = {value: place for place, value in reversed(list(enumerate(order)))}
    last = {value: place for place, value in enumerate(order)}
    normal = NormalDist()
    return [normal.inv_cdf((first[value] + last[value] + 1) / 2 / len(order)) for value in values]


def correlation(a: Sequence[float], b: Sequence[float]) -> float:
    """Pearson's correlation; 0 where one of them is constant. The order of the pairs does not matter."""
    mean_a, mean_b = fmean(a), fmean(b)
    both = math.fsum((x - mean_a) * (y - mean_b) for x, y in zip(a, b, strict=True))
    own = math.fsum((x - mean_a) ** 2 for x in a) * math.fsum((y - mean_b) ** 2 for y in b)
    return both / math.sqrt(own) if own > 0 else 0.0


def _std(values: Sequence[float]) -> float:
    mean = fmean(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))
