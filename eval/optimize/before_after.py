"""Compare held-out questions before and after tuning, each with its own fitted fusion, and decide what to keep."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from importlib.metadata import version
from typing import Any

import numpy as np

from agenticiqa.eval.improvement import probability_of_improvement, verdict
from agenticiqa.eval.intervals import Interval, Measure, difference_interval, error_interval, interval
from agenticiqa.eval.metrics import mean_absolute_error, srcc
from agenticiqa.eval.names import Stage
from agenticiqa.eval.optimize.items import Assessed, TuningQuestion
from agenticiqa.eval.optimize.objectives import losses, marks
from agenticiqa.eval.optimize.search import Searched
from agenticiqa.programs.fusion.fit import FEWEST_IMAGES, FusionRow, fit_profile
from agenticiqa.programs.fusion.formula import ScoreFusion
from agenticiqa.programs.fusion.profile import FusionProfile
from agenticiqa.programs.saving import SavedProgram

FUSED, MODEL, MARK = "fused", "model", "mark"
# By name: the measure, its interval, its title, and the sign of an improvement.
MEASURES: dict[str, tuple[Measure, Callable[..., Interval], str, int]] = {
    "srcc": (srcc, interval, "SRCC", 1),
    "mean_absolute_error": (mean_absolute_error, error_interval, "mean absolute error", -1),
}
Rated = tuple[Sequence[TuningQuestion], Sequence[Assessed]]


@dataclass
class Tuned:
    """The outcome of tuning.

    Attributes:
        program: The program with the kept prompts.
        stage: The tuned stage.
        kept: Whether the tuned prompts are kept.
        why: Why they are kept or not.
        figures: The held-out figures before and after, as ``compare`` returns them.
        found: What the search found.
        originals: The instructions before, by predictor.
        profile: The fusion fitted with these prompts, or ``None`` if it could not be fitted.
        skipped: The predictors that gave no accepted answer in the first pass, and why.
        counts: The number of questions by use.
        spent: Seconds, assessments, calls and USD.
        images: The SHA-256 of all images.
    """

    program: SavedProgram
    stage: Stage
    kept: bool
    why: str
    figures: dict[str, Any]
    found: Searched
    originals: dict[str, str]
    profile: FusionProfile | None = None
    skipped: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    spent: dict[str, Any] = field(default_factory=dict)
    images: list[str] = field(default_factory=list)


def fitted(questions: Sequence[TuningQuestion], assessed: Sequence[Assessed]) -> FusionProfile | None:
    """Fit the fusion of the model and tools of most of these ratings to their MOS; return ``None`` below 10 ratings."""
    subjects = Counter((one.model, one.tools) for one in assessed if one.model and one.tools and one.probabilities)
    if not subjects:
        return None
    (model, tools), count = max(subjects.items(), key=lambda subject: (subject[1], subject[0]))
    if count < FEWEST_IMAGES:
        return None
    rows = [
        FusionRow(
            tool_score=one.tool or 0.0, probabilities=levels_of(one), tool_error=one.tool_error, label=question.target
        )
        for question, one in zip(questions, assessed, strict=True)
        if (one.model, one.tools) == (model, tools) and one.probabilities
    ]
    about = {"backend": model, "version": version("agenticiqa"), "fitted_on": date.today()}
    return fit_profile(rows, toolset=tools).model_copy(update=about)


def levels_of(assessed: Assessed) -> dict[int, float]:
    """Return the probabilities by level."""
    return {int(level): share for level, share in assessed.probabilities.items()}


def fused(assessed: Assessed, fusion: ScoreFusion | None) -> float | None:
    """Return the score of a fitted fusion; the program's own where its profile is of another model or other tools."""
    profile = fusion.profile if fusion else None
    if not fusion or not profile or assessed.tool is None:
        return assessed.fused
    if (assessed.model, assessed.tools) != (profile.backend, profile.toolset):
        return assessed.fused
    return fusion.fuse_scores([assessed.tool], levels_of(assessed), tool_error=assessed.tool_error)


def gain_of_profile(
    questions: Sequence[TuningQuestion], assessed: Sequence[Assessed], fusion: ScoreFusion
) -> dict[str, Any]:
    """Return SRCC ``before`` (the program's own fusion) and ``after`` (the fitted one) on ``n`` held-out images.

    ``probability`` is that of a smaller error. The profile is saved in any case, as the prompts are compared with it.
    """
    values = [
        (one.fused, fused(one, fusion), question.target, question.content)
        for one, question in zip(assessed, questions, strict=True)
    ]
    rated = [row for row in values if None not in row]
    own, fitted_to, targets, contents = zip(*rated, strict=True) if rated else ((), (), (), ())
    error, fitted_error = (np.abs(np.subtract(scores, targets)) for scores in (own, fitted_to))
    return {
        "n": len(rated),
        "before": srcc(own, targets),
        "after": srcc(fitted_to, targets),
        "probability": probability_of_improvement(error, fitted_error, contents),
    }


def compare(
    stage: Stage,
    questions: Sequence[TuningQuestion],
    before: Sequence[Assessed],
    after: Sequence[Assessed],
    fusions: tuple[ScoreFusion | None, ScoreFusion | None] = (None, None),
) -> dict[str, Any]:
    """Return the figures before and after on held-out questions, as plain JSON types, with ``kept`` and ``why``.

    For ratings these are ``fused``, the score by each fusion, and ``model``, the model's own expectation; for other
    questions ``mark``, in [0, 1]. Each is measured on questions with both values: SRCC and mean absolute error (on 1 to
    5; for marks the missing share), and the change, after minus before, with 95 % intervals over scenes, paired for
    the change. ``squared_error`` is the mean squared error as a share of the scale. ``malformed`` is the share of
    questions with a rejected answer, before and after. ``unscored`` counts the questions without a value.

    ``probability`` is that of an improvement of what the prompts change: the ``losses`` of all answers, in pairs. They
    are kept by ``eval.improvement.verdict``, if the score that users get (``fused``, or ``mark``) is not worse.
    """
    figures: dict[str, Any] = {
        "images": len(questions),
        "contents": len({question.content for question in questions}),
        "malformed": {name: _share(assessed) for name, assessed in (("before", before), ("after", after))},
    }
    if stage in ("scoring", "all"):
        values: dict[str, tuple[Sequence[float | None], Sequence[float | None]]] = {
            FUSED: ([fused(one, fusions[0]) for one in before], [fused(one, fusions[1]) for one in after]),
            MODEL: ([one.expectation for one in before], [one.expectation for one in after]),
        }
        targets = [question.target or 0.0 for question in questions]
    else:
        values = {MARK: (marks(stage, before, questions), marks(stage, after, questions))}
        targets = [1.0] * len(questions)
    figures |= {name: _compared(questions, *both, targets) for name, both in values.items() if set(both[0]) != {None}}
    score = figures.get(next(iter(values)))  # the one that users get
    if score is None:
        return {**figures, "kept": False, "why": "no held-out question could be scored"}
    contents = [question.content for question in questions]
    probability = probability_of_improvement(
        losses(stage, before, questions), losses(stage, after, questions), contents
    )
    kept, why = verdict(probability, figures["contents"], _worse(score))
    return {**figures, "probability": probability, "kept": kept, "why": why}


def _share(assessed: Sequence[Assessed]) -> float:
    return sum(one.rejected > 0 for one in assessed) / len(assessed) if assessed else 0.0


def _compared(
    questions: Sequence[TuningQuestion],
    before: Sequence[float | None],
    after: Sequence[float | None],
    targets: Sequence[float],
) -> dict[str, Any]:
    rows = [
        (x, y, t, q.content)
        for x, y, t, q in zip(before, after, targets, questions, strict=True)
        if x is not None and y is not None
    ]
    old, new = [row[0] for row in rows], [row[1] for row in rows]
    target, contents = [row[2] for row in rows], [row[3] for row in rows]
    scale = 1 if set(target) == {1.0} else 4
    return {
        "n": len(rows),
        "unscored": {"before": sum(x is None for x in before), "after": sum(y is None for y in after)},
        "squared_error": {
            name: sum(((x - t) / scale) ** 2 for x, t in zip(values, target, strict=True)) / max(len(rows), 1)
            for name, values in (("before", old), ("after", new))
        },
        **{
            name: {
                "before": asdict(of(measure, old, target, contents)),
                "after": asdict(of(measure, new, target, contents)),
                "change": asdict(difference_interval(measure, new, old, target, contents)),
            }
            for name, (measure, of, *_) in MEASURES.items()
        },
    }


def _worse(score: Mapping[str, Any]) -> list[str]:
    """Return in words what got worse of a score that ``compare`` measured."""
    before, after = score["unscored"]["before"], score["unscored"]["after"]
    worse = [f"{after} images could not be scored after tuning, {before} before"] if after > before else []
    for name, (_, _, title, sign) in MEASURES.items():
        change = score[name]["change"]["value"]
        if change is not None and sign * change < 0:
            worse.append(f"the {title} of the score got worse by {abs(change):.3f}")
    return worse
