"""Compute the fused score of one image with its interval, and the sentences that explain it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from agenticiqa.programs.backends.choice import without_place
from agenticiqa.programs.fusion.formula import ScoreFusion, expected_level, level_name
from agenticiqa.programs.fusion.profile import FusionProfile, combined_error
from agenticiqa.signatures.types import FROM_REJECTED, ExecutorOutput, ProbabilitySource
from agenticiqa.signatures.vocabulary import ImageKind

Interval = dict[Literal["80", "95"], tuple[float, float]]

NORMAL_QUANTILES: dict[Literal["80", "95"], float] = {"80": 1.2816, "95": 1.9600}  # two-sided
OFFLINE = ("learned", "measurements")  # sources of probabilities that do not come from a model
FAR = 1.0  # difference between tools and model, in levels, from which it is reported
FAR_FOR_FITTED = 1.25  # the same for a fitted model, as a multiple of the usual difference
# Largest deviation of the MOS above the score that the learned scorer gives a photo, in levels. The deviation below is
# that of the scorer, because photos of unknown origin are overrated more often, and by more, than they are underrated.
# ``eval.research.interval_figures`` fits both and prints the coverage.
MOST_ABOVE = 0.46
UNKNOWN_ERROR = 0.8  # levels; the deviation of the MOS of photos
KINDS: dict[ImageKind, str] = {"photo": "photos", "generated": "AI-generated images"}
SOURCES = {  # each probability_source in words
    "logprobs": "the log-probabilities of the level's token",
    "quality_probs": "the log-probabilities that the model wrote",
    "probabilities": "the probabilities that the model wrote",
    "percentages": "the percentages that the model wrote",
    "weights": "the weights that the model wrote",
    "salvaged_probs": "the probabilities in a rejected answer",
    "salvaged_level": "the level in a rejected answer",
    "reasoning": "the level that the reasoning names",
    "uniform": "a uniform distribution, because the model gave no levels",
    "measurements": "the measured severities",
    "learned": "the learned model",
}


@dataclass(frozen=True)
class FusedScore:
    """A score in [1, 5], the model's expected level, and an explanation in sentences (``how``).

    ``arithmetic`` is the sentence of ``how`` that only repeats the computation; ``None`` if it also says why the
    profile does not suit the image. ``interval`` has the ranges that hold the MOS of 80 and 95 of 100 images.
    ``without_model`` is the score from the tools alone, ``None`` without a model or without tools. ``disagreement`` is
    the difference between model and tools in levels if it is so large that one of them must be wrong, else ``None``.
    """

    score: float
    expectation: float
    how: str
    arithmetic: str | None
    interval: Interval
    without_model: float | None
    disagreement: float | None = None


def fused_score(
    fusion: ScoreFusion,
    evidence: ExecutorOutput,
    probabilities: Mapping[int, float],
    source: ProbabilitySource,
    *,
    spread: float | None = None,
    least_spread: float = 0.0,
    least_above: float = 0.0,
    model: str | None = None,
) -> FusedScore:
    """Fuse the tool scores of the evidence with a model's probabilities over the levels.

    If the fusion's profile was fitted to other tools (such as those with a reference), or to another model than
    ``model``, which answered (such as a fallback), the fusion without a profile is used, and the explanation says so.
    A profile fitted to photos is also used for AI-generated images and vice versa, and the explanation says that too.
    ``spread`` is the standard deviation, in levels, that an offline MOS estimate reports. ``least_spread`` is the
    minimum spread of the tools, for images outside of their training, and ``least_above`` that of the MOS above the
    score. Raises ValueError as ``fuse_scores`` does.
    """
    fusion, note = _for_this_image(fusion, evidence, model)
    tool_spread = _tool_spread(evidence, spread if source == "learned" else None, least_spread)
    tool_error = tool_spread if fusion.profile else None
    expectation = expected_level(probabilities)
    score = fusion.fuse_scores(_scores(evidence), probabilities, tool_error=tool_error)
    if source == "learned" and evidence.local_damage:
        # Both come from the same model, which hardly reacts to local damage; only the estimate is corrected for it.
        score = min(score, expectation)
    how = _sentence(score, fusion.profile, evidence, expectation, source, note)
    arithmetic = None if note else how
    without = None if source in OFFLINE else _without_model(fusion, evidence, tool_error)
    place = None if without is None or source == "uniform" else fusion.place(expectation)
    apart = _disagreement(fusion.profile, evidence, place, tool_spread)
    if apart is not None and place is not None:
        how += (
            f" The model's estimate ({_on_scale(place):.1f}) differs strongly from the tool mean "
            f"({evidence.overall_mean:.1f}). Without the model, the score is {without:.1f}."
        )
    if fusion.profile:
        below = above = _error_with_profile(fusion.profile, evidence, place, tool_spread, has_model=without is not None)
    else:
        below = tool_spread or spread or UNKNOWN_ERROR
        above = max(error_above(below), least_above) if _rates_a_photo(evidence) else below
        below, above = _with_change(below, above, 0.0 if without is None else score - without)
    if source in FROM_REJECTED:
        below, above = max(below, UNKNOWN_ERROR), max(above, UNKNOWN_ERROR)
    return FusedScore(score, expectation, how, arithmetic, score_interval(score, below, above), without, apart)


def error_above(spread: float) -> float:
    """Return the deviation of the MOS above a score that the learned scorer gives a photo with this ``spread``."""
    return min(spread, MOST_ABOVE)


def _rates_a_photo(evidence: ExecutorOutput) -> bool:
    """Return whether all tool scores are of the learned scorer without an adapter, which recognized a photo."""
    calls = [call for call in evidence.tool_log if call.tool in evidence.overall_tools]
    return bool(calls) and all(call.image_kind == "photo" and not call.adapted for call in calls)


def _tool_spread(evidence: ExecutorOutput, learned: float | None, least_spread: float) -> float | None:
    """Return the error of the tools for this image, in levels, or ``None``; a learned estimate has one of its own."""
    stated = max(filter(None, (evidence.overall_spread, least_spread)), default=None)
    return stated if learned is None else max(stated or learned, learned)


def _scores(evidence: ExecutorOutput) -> list[float]:
    """Return what the fusion takes for the tool scores: their weighted mean, if there is one."""
    return [] if evidence.overall_mean is None else [evidence.overall_mean]


def _without_model(fusion: ScoreFusion, evidence: ExecutorOutput, tool_error: float | None) -> float | None:
    """Return the score of the tools alone: the model gives each level the same probability."""
    if not (scores := _scores(evidence)):
        return None
    equal = dict.fromkeys(fusion.quality_levels, 1 / len(fusion.quality_levels))
    return fusion.fuse_scores(scores, equal, tool_error=tool_error)


def _sentence(
    score: float,
    profile: FusionProfile | None,
    evidence: ExecutorOutput,
    expectation: float,
    source: ProbabilitySource,
    note: str,
) -> str:
    """Return the sentence that says what the score was computed from."""
    made_of = ", from the expected level alone, because no tool gave a score"
    if evidence.overall_mean is not None or profile is not None:
        made_of = f", fused from {_tools_part(evidence, profile)} and an expected level of {expectation:.2f}"
    return f"Score {score:.2f} ({level_name(score)}){made_of} (levels from {SOURCES[source]}){note}."


def _disagreement(
    profile: FusionProfile | None, evidence: ExecutorOutput, place: float | None, tool_spread: float | None
) -> float | None:
    """Return how many levels the tools and the model's ``place`` differ, if one of them must be wrong."""
    mean = evidence.overall_mean
    if mean is None or place is None:
        return None
    apart = abs(_on_scale(place) - mean)
    return apart if apart >= _far_limit(profile, tool_spread) else None


def _on_scale(place: float) -> float:
    return min(max(place, 1.0), 5.0)


def _with_change(below: float, above: float, change: float) -> tuple[float, float]:
    """Return the deviations of the MOS below and above a score that an unmeasured model changed by ``change`` levels.

    The change may be an error, so the MOS may lie where the tools alone place it. ``docs/methods.md`` has the coverage.
    """
    return math.hypot(below, max(change, 0.0)), math.hypot(above, max(-change, 0.0))


def _error_with_profile(
    profile: FusionProfile,
    evidence: ExecutorOutput,
    place: float | None,
    tool_spread: float | None,
    *,
    has_model: bool,
) -> float:
    """Return the deviation of the MOS from a score that was fused with a profile."""
    if not has_model:
        return combined_error(profile.quality_std, profile.model_error)
    return profile.score_error_of(tool_spread, tools=evidence.overall_mean, place=place)


def _tools_part(evidence: ExecutorOutput, profile: FusionProfile | None) -> str:
    """Return the part of a score beside the model: the tool mean, or without a tool score the profile's quality."""
    if evidence.overall_mean is None and profile is not None:
        return f"the profile's typical quality {profile.quality_mean:.2f}, because no tool gave a score,"
    return f"the tool mean {evidence.overall_mean:.2f} (n={len(evidence.overall_scores)})"


def _for_this_image(fusion: ScoreFusion, evidence: ExecutorOutput, model: str | None) -> tuple[ScoreFusion, str]:
    """Return the fusion, without its profile if that is for other tools or another model, with an explanation."""
    profile = fusion.profile
    if profile is None:
        return fusion, ""
    if evidence.overall_scores and profile.toolset and profile.toolset != evidence.overall_tools:
        note = f"; the fusion profile is not used: it was fitted with other tools ({', '.join(profile.toolset)})"
        return fusion.with_profile(None), note
    if profile.backend and model and profile.backend != backend_shown(model):
        note = f"; the fusion profile is not used: it was fitted for {profile.backend}, not {backend_shown(model)}"
        return fusion.with_profile(None), note
    if profile.image_kind and evidence.image_kind and profile.image_kind != evidence.image_kind:
        was, now = KINDS[profile.image_kind], KINDS[evidence.image_kind]
        return fusion, f"; the fusion profile was fitted to {was}, but this image is one of the {now}"
    return fusion, ""


def _far_limit(profile: FusionProfile | None, stated: float | None) -> float:
    """Return the reporting limit for tool-model differences, in levels; a fitted model has its own limit."""
    if profile is None:
        return FAR
    return max(FAR, FAR_FOR_FITTED * math.hypot(profile.tool_error_of(stated), profile.model_error))


def backend_shown(model: str) -> str:
    """Return the backend of a model as a configuration names it, without the address of its server.

    >>> backend_shown("vllm/Qwen/Qwen2.5-VL-7B-Instruct at 127.0.0.1:8000/v1")
    'vllm.Qwen/Qwen2.5-VL-7B-Instruct'
    """
    return without_place(model).replace("/", ".", 1)


def score_interval(score: float, below: float, above: float) -> Interval:
    """Return the central 80 % and 95 % around a score, clipped to [1, 5].

    ``below`` and ``above`` are the deviations, in levels, of a normal distribution on each side.
    """
    return {
        share: (max(score - quantile * below, 1.0), min(score + quantile * above, 5.0))
        for share, quantile in NORMAL_QUANTILES.items()
    }
