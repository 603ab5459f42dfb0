"""Fit a fusion profile to images, with or without their subjective scores.

Without labels, the model's reliability ``r_V`` (its correlation with the true MOS) is estimated from its agreement with
a tool of known reliability: ``corr(T, V) = r_T r_V`` if their errors are independent. The value is slightly higher,
because the errors of models and tools are correlated (``SHARED_ERROR``, measured on 15 models). The most reliable tool
is used. If no reliability is known, three scorers are used: ``r_V = sqrt(corr(T, V) corr(V, O) / corr(T, O))``
(triple collocation, Stoffelen 1998, JGR Oceans 103), with each further tool in turn as ``O``. With few images the
estimate is shrunk toward that of a typical model, or toward 0 if it looks like a model at chance. With labels, both
reliabilities are correlations with the labels.

The reliabilities and their correlation determine the weights of linear regression. The errors in the profile give the
fusion formula the same weights. All correlations use normal scores (ranks mapped to normal quantiles). The result does
not depend on the order of the rows, to the last digit.
"""

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist, fmean

from agenticiqa.configs.bounds import LARGEST_ERROR
from agenticiqa.programs.fusion.formula import expected_level
from agenticiqa.programs.fusion.profile import FusionProfile, position
from agenticiqa.programs.tools.srcc_table import errors_by_source, mos_srcc
from agenticiqa.programs.tools.tool import MOS_STD
from agenticiqa.signatures.vocabulary import ImageKind

FEWEST_IMAGES = 10
# What is assumed of tools and models before a fit: their reliability, and its deviation between models.
TYPICAL_TOOL, TYPICAL_MODEL, TYPICAL_STD = 0.8, 0.75, 0.25
LEAST, MOST = 0.05, 0.97  # limits of a reliability
SMALLEST_STD = 0.05  # minimum deviation of scores, in levels, and of positions
LEAST_WEIGHT = 0.02  # minimum weight of the tools, relative to their reliability
# Of the 15 models of the fusion study (docs/fusion.md) three are at chance, with correlations of -0.03 to 0.07.
AT_CHANCE, CHANCE_STD = 0.2, 0.1  # prior share of models at chance, deviation of their reliability
# The correlation of the errors of tools and model, and its deviation between models: chosen on half of the models and
# half of the images of that study. For AI-generated images it was measured on half of AGIQA-3K's even prompts, where
# both tools and models depend on the look of the generator.
SHARED_ERROR, SHARED_ERROR_STD = 0.08, 0.12
SHARED_ERROR_OF_GENERATED = 0.23
LARGEST_SHARED_ERROR = 0.5
# Ordinary images do not show how often a model obeys text in an image; if it did in the fit, its reliability is lower.
UNRELATED_ANSWERS = 0.05
ERROR_MARGIN, MOST_EXPLAINED = 1.1, 0.8  # factor on the score's error, maximum explained variance of the MOS


@dataclass(frozen=True)
class FusionRow:
    """The data of one image for the fit.

    Attributes:
        tool_score: The mean of the tool scores, in [1, 5].
        probabilities: The model's probabilities over the levels.
        tool_error: The standard deviation, in levels, that the tools report for this image, or ``None``.
        others: The scores of further tools by name, on any scale on which higher is better.
        label: The MOS on 1..5, ``None`` if unknown.
        image_kind: Whether the tools recognized a photo or an AI-generated image.
    """

    tool_score: float
    probabilities: Mapping[int, float]
    tool_error: float | None = None
    others: Mapping[str, float] = field(default_factory=dict)
    label: float | None = None
    image_kind: ImageKind | None = None

    @property
    def expectation(self) -> float:
        """The expected level of the model's probabilities, in [1, 5]."""
        return expected_level(self.probabilities)


def fit_profile(
    rows: Sequence[FusionRow], *, tool_reliability: float | None = None, toolset: Sequence[str] = ()
) -> FusionProfile:
    """Fit a profile to images; with few of them, it is near that of a typical model.

    A profile is fitted to photos or to AI-generated images, and rows of the less frequent kind are ignored. If at least
    10 images have labels, only rows with labels are used.

    Args:
        rows: The images.
        tool_reliability: The known correlation of the tool mean with MOS, in (0, 1). The default is that of the best of
            ``toolset`` in the tool table, or .8 if the table has none of them. The other tools of the rows get
            theirs from the table.
        toolset: The names of the tools in the mean, which are recorded in the profile.

    Returns:
        The profile; the caller adds the model and the day of the fit.

    Raises:
        ValueError: A tool score is not finite, or there are fewer than 10 images of one kind.
    """
    if not all(math.isfinite(row.tool_score) for row in rows):
        raise ValueError("tool scores must be finite numbers")
    image_kind = usual_kind(rows)
    rows = [row for row in rows if row.image_kind == image_kind]
    images = len(rows)
    if images < FEWEST_IMAGES:
        raise ValueError(f"a fusion profile needs at least {FEWEST_IMAGES} images of one kind, got {images}")
    known = tool_reliability or max(
        filter(None, (known_reliability(tool, image_kind) for tool in toolset)), default=None
    )
    labeled = [row for row in rows if row.label is not None]
    if len(labeled) >= FEWEST_IMAGES:
        rows, reliabilities = labeled, measured_reliability(labeled)
    else:
        labeled, reliabilities = [], estimated_reliability(rows, known)
    about = {"toolset": tuple(sorted(toolset)), "images": images, "labels": len(labeled), "image_kind": image_kind}
    return FusionProfile.model_validate({**about, **_fitted_values(rows, reliabilities)})


def measured_reliability(rows: Sequence[FusionRow]) -> dict[str, float]:
    """Return the correlations of tools and model with the labels, each shrunk toward the typical one."""
    labels = [row.label for row in rows if row.label is not None]
    tool = agreement([row.tool_score for row in rows], labels)
    model = agreement([position(row.expectation) for row in rows], labels)
    weight = _weight(TYPICAL_STD, len(rows))
    return {
        "tool": clipped(weight * tool + (1 - weight) * TYPICAL_TOOL),
        "model": clipped(shrunk(model, len(rows))),
        "labels": clipped(model),
    }


def estimated_reliability(rows: Sequence[FusionRow], tool_reliability: float | None) -> dict[str, float]:
    """Return the reliabilities of ``tool`` and ``model`` without labels, and each estimate for the model by name.

    ``agreement`` is the estimate from the tool with the highest known reliability, ``three_way`` the mean estimate over
    the further tools, which is used only if no reliability is known.
    """
    names = sorted({name for row in rows for name in row.others})
    having = {name: [row for row in rows if name in row.others] for name in names}
    having = {name: of for name, of in having.items() if len(of) >= FEWEST_IMAGES}
    known = {"": tool_reliability} if tool_reliability else {}  # "" is the tool score
    known |= {name: srcc for name in having if (srcc := known_reliability(name, rows[0].image_kind))}
    estimates: dict[str, float] = {}
    if triples := [triple for name, of in having.items() if (triple := three_way(name, of))]:
        estimates["three_way"] = fmean(triples)
    elif not known:
        known[""] = TYPICAL_TOOL
    best = clipped(max(known.values(), default=TYPICAL_TOOL))
    if known:
        anchor = max(known, key=lambda name: known[name])
        seen = having[anchor] if anchor else rows
        together = agreement(
            [row.others[anchor] if anchor else row.tool_score for row in seen], [row.expectation for row in seen]
        )
        estimates["agreement"] = reliability_from(together, best, shared_error(rows))
    estimate = estimates.get("agreement", estimates.get("three_way", 0.0))
    return {
        "tool": clipped(tool_reliability or TYPICAL_TOOL),
        "model": clipped(shrunk(estimate, len(rows) * best**2)),
        **estimates,
    }


def three_way(name: str, rows: Sequence[FusionRow]) -> float | None:
    """Return the model's reliability from three correlations with ``name`` as third scorer, or ``None``."""
    tools, model = [row.tool_score for row in rows], [row.expectation for row in rows]
    others = [row.others[name] for row in rows]
    shared = agreement(tools, others)
    if shared <= 0:
        return None
    return clipped(math.sqrt(max(agreement(tools, model), 0) * max(agreement(model, others), 0) / shared))


def usual_kind(rows: Sequence[FusionRow]) -> ImageKind | None:
    """Return the kind of image that most rows have; photos if both kinds are equally frequent."""
    counts = Counter(row.image_kind for row in rows)
    return max(counts, key=lambda kind: (counts[kind], kind or ""), default=None)


def known_reliability(tool: str, image_kind: ImageKind | None) -> float | None:
    """Return ``mos_srcc`` of the tool table; for AI-generated images, derive it from the tool's error on them."""
    errors = errors_by_source().get("generated")
    if image_kind != "generated" or errors is None or tool not in errors.error:
        return mos_srcc(tool)
    return math.sqrt(max(1 - (errors.error[tool] / MOS_STD) ** 2, 0)) or None


def shared_error(rows: Sequence[FusionRow]) -> float:
    """Return the usual correlation of the errors of tools and model, for rows of one kind."""
    return SHARED_ERROR_OF_GENERATED if rows[0].image_kind == "generated" else SHARED_ERROR


def reliability_from(together: float, known: float, usual: float) -> float:
    """Return the ``r`` in [0, 1) for which ``together = r known + usual sqrt((1 - r^2) (1 - known^2))``.

    With ``r = cos(a)`` this is ``R cos(a - b)``, so it is solved exactly; 0 if the agreement is below that of chance.
    """
    shared = usual * math.sqrt(1 - known**2)
    length, turn = math.hypot(known, shared), math.atan2(shared, known)
    return max(math.cos(math.acos(min(max(together / length, -1), 1)) + turn), 0.0)


def shrunk(estimate: float, images: float) -> float:
    """Return the expected reliability of a model, given an estimate from this number of images.

    Its prior is a mixture of two normal distributions: one of models at chance, one of typical models. Few images give
    a result near the prior; an estimate near 0 from many images is that of a model at chance.
    """
    kinds = ((AT_CHANCE, 0.0, CHANCE_STD), (1 - AT_CHANCE, TYPICAL_MODEL, TYPICAL_STD))
    total = expected = 0.0
    for share, mean, std in kinds:
        likelihood = share * NormalDist(mean, math.sqrt(std**2 + 1 / images)).pdf(estimate)
        weight = _weight(std, images)
        total += likelihood
        expected += likelihood * (weight * estimate + (1 - weight) * mean)
    return expected / total


def _weight(prior_std: float, images: float) -> float:
    """Return the weight of an estimate from this number of images beside a prior of this deviation."""
    return prior_std**2 / (prior_std**2 + 1 / images)


def _fitted_values(rows: Sequence[FusionRow], reliability: dict[str, float]) -> dict[str, object]:
    """Return the errors and the mapping that give tools and model the weights of linear regression."""
    tool, model = reliability["tool"], reliability["model"]
    tools, places = [row.tool_score for row in rows], [position(row.expectation) for row in rows]
    labels = [row.label for row in rows if row.label is not None]
    quality_mean = fmean(labels or tools)
    tool_std = max(_std(tools), SMALLEST_STD)
    # Predictions vary less than their reliability times the MOS, so without labels the usual deviation is the minimum.
    quality_std = max(_std(labels), SMALLEST_STD) if labels else max(tool_std / tool, MOS_STD)
    tool_error = quality_std * math.sqrt(1 - tool**2)
    together = _plausible(agreement(tools, places), tool, model, len(rows), shared_error(rows))
    tool_weight = max(tool - together * model, LEAST_WEIGHT * tool)
    model_weight = max(model - together * tool, 0.0)
    ratio = tool_weight * quality_std / (model * tool_std)
    explained = (tool**2 + model**2 - 2 * together * tool * model) / (1 - together**2)
    spreads = [row.tool_error for row in rows if row.tool_error is not None]
    return {
        "tool_error": tool_error,
        "model_error": LARGEST_ERROR
        if model_weight * LARGEST_ERROR**2 < ratio * tool_error**2
        else tool_error * math.sqrt(ratio / model_weight),
        "score_error": ERROR_MARGIN * quality_std * math.sqrt(1 - min(max(explained, tool**2), MOST_EXPLAINED)),
        "tool_spread": math.sqrt(fmean(s * s for s in spreads)) if len(spreads) == len(rows) else None,
        "unrelated_answers": UNRELATED_ANSWERS,
        "model_axis": "logit",
        "model_location": fmean(places),
        "model_center": quality_mean,
        "model_slope": quality_std / (model * max(_std(places), SMALLEST_STD)),
        "quality_mean": quality_mean,
        "quality_std": quality_std,
        "reliability": reliability,
        "prior_std": TYPICAL_STD,
    }


def _plausible(together: float, tool: float, model: float, images: int, usual: float) -> float:
    """Return the correlation of tools and model, with their error correlation shrunk toward the ``usual`` one."""
    scale = math.sqrt((1 - tool**2) * (1 - model**2))
    weight = _weight(SHARED_ERROR_STD, images * scale**2)
    shared = usual + weight * ((together - tool * model) / scale - usual)
    return tool * model + scale * min(max(shared, -0.2), LARGEST_SHARED_ERROR)


def clipped(reliability: float) -> float:
    """Clip a reliability to [0.05, 0.97], so that it has some influence and some error."""
    return min(max(reliability, LEAST), MOST)


def normal_scores(values: Sequence[float]) -> list[float]:
    """Return each value's rank as a standard normal quantile; equal values have their mean rank."""
    order = sorted(values)
    first = {value: place for place, value in reversed(list(enumerate(order)))}
    last = {value: place for place, value in enumerate(order)}
    normal = NormalDist()
    return [normal.inv_cdf((first[value] + last[value] + 1) / 2 / len(order)) for value in values]


def agreement(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the correlation of the normal scores of both."""
    return correlation(normal_scores(a), normal_scores(b))


def correlation(a: Sequence[float], b: Sequence[float]) -> float:
    """Return Pearson's correlation, or 0 if one is constant. The order of the pairs does not matter."""
    try:
        return statistics.correlation(a, b)
    except statistics.StatisticsError:
        return 0.0


def _std(values: Sequence[float]) -> float:
    mean = fmean(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))
