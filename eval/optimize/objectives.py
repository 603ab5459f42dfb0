"""Define what a search maximizes for each stage, on any set of answered questions, and the feedback for reflection.

For ratings it is the model's contribution to the fused score. The model's expectation ``e`` is treated as a measurement
of the MOS ``y`` beside the tools' mean ``t``: ``e = a + b y + c t + noise``. Given the tools, the MOS of an image has
the variance ``v``, so the error of the fused score is ``(1 / v + b^2 / var(noise))^-1/2``. An instruction that repeats
the tools raises only ``c`` and gains nothing; nor does one that only stretches the scale. ``b`` and ``c`` are shrunk
toward those of a usual model, as a dozen images determine the noise, but hardly these slopes.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agenticiqa.eval.names import Stage
from agenticiqa.eval.optimize.items import Assessed, TuningQuestion
from agenticiqa.signatures.harmless import harmless

USUAL = np.array([0.7, 0.15])  # b and c of an unmeasured model, and their standard deviations
USUAL_STD, USUAL_NOISE, NOISE_WEIGHT = 0.45, 0.8, 4.0  # deviation and noise in levels, the weight in images
MOS_STD, TOOL_STD = 0.85, 0.6  # deviation of MOS, and of MOS given the tools, in levels
MISSING_ERROR = 2.0  # error of an image without an answer, in levels
SMALLEST_SPREAD = 1e-9  # sum of squares of equal ratings
WIDEST = 4.0  # levels between the ends of the scale


def value(stage: Stage, assessed: Sequence[Assessed], questions: Sequence[TuningQuestion]) -> float:
    """Return the value of the answers, higher is better: for ratings the negative error of the fused score, in levels.

    For other questions, it is the mean of ``marks``, in [0, 1].
    """
    if stage in ("scoring", "all"):
        return -fused_error(assessed, [question.target or 0.0 for question in questions])
    return float(np.mean(marks(stage, assessed, questions)))


def fused_error(assessed: Sequence[Assessed], mos_values: Sequence[float]) -> float:
    """Return the expected error, in levels, of the best combination of tools and model on these images."""
    rated = [i for i, one in enumerate(assessed) if _rating(one) is not None]
    lost = 1 - len(rated) / len(assessed) if assessed else 1.0
    if len(rated) < 3:
        return MISSING_ERROR
    e = np.array([_rating(assessed[i]) for i in rated], dtype=float)
    y = np.array([mos_values[i] for i in rated])
    tools = [assessed[i].tool for i in rated]
    x, variance = y[:, None], MOS_STD**2
    if None not in tools:
        x, variance = np.column_stack([y, np.array(tools, dtype=float)]), TOOL_STD**2
    slopes, noise = _regressed(x, e)
    return (1 - lost) / math.sqrt(1 / variance + max(slopes[0], 0.0) ** 2 / noise) + lost * MISSING_ERROR


def _regressed(x: NDArray[np.float64], e: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Return the slopes of ``e`` on the columns of ``x``, shrunk toward ``USUAL``, and the variance around them."""
    x, e, usual = x - x.mean(axis=0), e - e.mean(), USUAL[: x.shape[1]]
    precision = np.eye(len(usual)) / USUAL_STD**2
    slopes, noise = usual, USUAL_NOISE**2
    for _ in range(4):  # slopes and noise are estimated in turn
        slopes = np.linalg.solve(x.T @ x / noise + precision, x.T @ e / noise + precision @ usual)
        noise = (float(np.sum((e - x @ slopes) ** 2)) + NOISE_WEIGHT * USUAL_NOISE**2) / (len(e) - 1 + NOISE_WEIGHT)
    return slopes, noise


def _rating(assessed: Assessed) -> float | None:
    """Return the model's own expectation, or the program's score if no model rates."""
    return assessed.expectation if assessed.expectation is not None or assessed.model else assessed.fused


def losses(stage: Stage, assessed: Sequence[Assessed], questions: Sequence[TuningQuestion]) -> NDArray[np.float64]:
    """Return the loss of each answer (N,), by which prompts are compared in pairs: what a mark lacks of 1.

    For ratings it is the error of the model's own expectation, in levels, after the line of least squares that maps it
    to the MOS, and ``MISSING_ERROR`` without an expectation. A scale that falls with the MOS is worth nothing.
    """
    if stage not in ("scoring", "all"):
        return 1 - np.array(marks(stage, assessed, questions))
    e = np.array([_rating(one) for one in assessed], dtype=float)  # NaN without a rating
    y = np.array([question.target or 0.0 for question in questions])
    errors, known = np.full(len(y), MISSING_ERROR), np.isfinite(e)
    if known.any():
        off, wanted = e[known] - e[known].mean(), y[known] - y[known].mean()
        slope = max(float(off @ wanted), 0.0) / max(float(off @ off), SMALLEST_SPREAD)
        errors[known] = np.abs(wanted - slope * off)
    return errors


def marks(stage: Stage, assessed: Sequence[Assessed], questions: Sequence[TuningQuestion]) -> list[float]:
    """Return the mark of each answer, as ``mark_of``."""
    return [mark_of(stage, one, question) for one, question in zip(assessed, questions, strict=True)]


def mark_of(stage: Stage, assessed: Assessed, question: TuningQuestion) -> float:
    """Return the mark of one answer, in [0, 1]: right option, F1 of the distortion, or closeness of score and MOS."""
    if stage in ("scoring", "all"):
        return 0.0 if assessed.fused is None else 1 - abs(assessed.fused - (question.target or 0.0)) / WIDEST
    if stage == "answering":
        return float(assessed.final_answer == question.answer)
    distortions = assessed.found or ()
    return 2.0 / (1 + len(distortions)) if question.distortion in distortions else 0.0


def worst_first(stage: Stage, assessed: Sequence[Assessed], questions: Sequence[TuningQuestion]) -> list[int]:
    """Return the indices of the answers, the largest error first; ratings are sorted by ``gaps_of``."""
    if stage not in ("scoring", "all"):
        return sorted(range(len(assessed)), key=marks(stage, assessed, questions).__getitem__)
    gaps = gaps_of(assessed, questions)
    return sorted(range(len(assessed)), key=lambda i: -abs(gaps[i]))


def gaps_of(assessed: Sequence[Assessed], questions: Sequence[TuningQuestion]) -> list[float]:
    """Return by how many levels each rating is too high, after mapping the mean and spread of ratings to the MOS.

    A single rating is compared with its MOS as it is.
    """
    ratings = [_rating(one) for one in assessed]
    known = np.array([rating for rating in ratings if rating is not None], dtype=float)
    mos_values = np.array([question.target or 0.0 for question in questions])
    if not len(known):
        return [MISSING_ERROR] * len(assessed)
    stretch = float(np.std(mos_values) / max(np.std(known), 0.2))
    center, middle = float(np.mean(known)), float(np.mean(mos_values))
    if len(known) == 1:
        stretch, center, middle = 1.0, 0.0, 0.0
    return [
        MISSING_ERROR if rating is None else middle + stretch * (rating - center) - mos
        for rating, mos in zip(ratings, mos_values, strict=True)
    ]


def feedback(stage: Stage, assessed: Sequence[Assessed], questions: Sequence[TuningQuestion]) -> list[str]:
    """Return the feedback on each answer for the model that writes instructions."""
    gaps = gaps_of(assessed, questions) if stage in ("scoring", "all") else [0.0] * len(assessed)
    notes = []
    for one, question, gap in zip(assessed, questions, gaps, strict=True):
        notes.append(harmless(" ".join(filter(None, [_verdict(stage, one, question, gap), one.evidence]))))
    return notes


CLOSE = 0.25  # error in levels; a smaller one is not criticized


def _verdict(stage: Stage, assessed: Assessed, question: TuningQuestion, gap: float) -> str:
    if assessed.failure:
        return f"There was no usable answer: {assessed.failure}"
    if stage == "answering":
        if assessed.final_answer == question.answer:
            return f"The answer {question.answer} was right."
        said = f"The answer was {assessed.final_answer}, but {question.answer} is right."
        return f"{said} Its reason was: {assessed.reasoning}"
    if stage == "detection":
        distortions = ", ".join(assessed.found or ()) or "nothing"
        return f"The image has {question.distortion} and nothing else; found was {distortions}."
    rating = _rating(assessed)
    if rating is None:
        return "There was no usable answer: no level had a probability"
    size = "close" if abs(gap) < CLOSE else f"{abs(gap):.1f} levels too {'kind' if gap > 0 else 'harsh'}"
    notes = f"Observers rate it {question.target or 0.0:.1f} of 5, the answer expects {rating:.1f}: {size}."
    if assessed.tool is None:
        return notes
    off = assessed.tool - (question.target or 0.0)
    side = (
        "agree with the observers" if abs(off) < CLOSE else f"are {abs(off):.1f} too {'kind' if off > 0 else 'harsh'}"
    )
    return f"{notes} The tools (mean {assessed.tool:.1f}) {side}."
