"""Fit a tool's curve to 1..5, and refuse data without a monotone relation.

The curve is the five-parameter logistic of ``agenticiqa.programs.tools.tool_curves``. It is fitted as a function of u,
the raw value scaled to 0..1 with the better end at 1::

    f(u) = a / (1 + exp(-k (u - m))) + b u + c      with a, b >= 0 and k > 0,

which is monotone for any data. Few images have a MOS near the ends of the scale. Two kinds of anchor keep the curves of
different metrics comparable there: the raw value of an undistorted image is mapped to 5 (this determines c), and those
of the worst strength of synthetic distortions to at most 2 (by a penalty on the excess).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

import numpy as np
from scipy.optimize import least_squares
from scipy.special import expit

from agenticiqa.eval.datasets import LabeledImage
from agenticiqa.eval.intervals import COMPLETE, FEWEST_CONTENTS, Interval, interval
from agenticiqa.eval.metrics import Numbers, srcc
from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.images import load_pair
from agenticiqa.programs.tools.tool import Tool, raw_value
from agenticiqa.programs.tools.tool_curves import Betas, ToolCurve, logistic5

MIN_POINTS = 20
CEILING, FLOOR = 5.0, 2.0
FLOOR_WEIGHT = 2.0  # weight of the excess over FLOOR, relative to the root of the number of rated images
REVERSED = -0.2  # SRCC within one half of the raw values below which the relation counts as reversed there
STARTS = ((0.4, 1.5), (0.8, 4.0))  # middle as a quantile of u, steepness in standard deviations of u
STEEPEST = 5.0  # slope of the logistic part per standard deviation of u; a steeper curve is a step between two points


@dataclass(frozen=True)
class Points:
    """The data that a curve is fitted to.

    ``raw``, ``quality`` (1..5) and ``contents`` have an entry for each of N rated images; images of one scene are
    not independent. ``perfect`` is the raw value for quality 5, and ``worst`` holds the raw values
    for at most 2. ``origin`` describes the data in words, and ``fitted_to`` has the shipped sets that contain images
    of it (see ``ToolCurve``).
    """

    raw: Numbers
    quality: Numbers
    contents: tuple[str, ...]
    perfect: float | None = None
    worst: tuple[float, ...] = ()
    origin: str = "unnamed images"
    fitted_to: tuple[str, ...] = ()


@dataclass(frozen=True)
class CurveFit:
    """A curve with its figures.

    ``srcc`` has an interval over scenes and is positive if the tool follows its declared direction. ``residual`` is
    the RMSE on the fitted points, on 1..5.
    """

    curve: ToolCurve
    srcc: Interval
    residual: float


def raw_of(tool: Tool, item: LabeledImage) -> float:
    """Return a tool's raw value for a labeled image, compared with its reference if the tool is full-reference.

    Raises ToolError as ``tool.raw_value`` does, and ImageError for a broken file.
    """
    image, reference = load_pair(item.image, item.reference if tool.kind == "FR" else None)
    return raw_value(tool, image.pixels, reference.pixels if reference else None)


def fit_curve(points: Points, tool: Tool) -> CurveFit:
    """Return the curve of a tool, monotone over ``tool.raw_range`` and in the tool's direction.

    Raises ToolError, in one line, if the data do not support a curve: under 20 points, constant values or qualities, no
    correlation (the interval of SRCC contains 0), or a relation that reverses or runs against the tool's direction.
    """
    figure = _checked_srcc(points, tool)
    curve = ToolCurve(_betas(points, tool), tool.raw_range, "")
    residual = root_mean_square_error(curve, points)
    provenance = (
        f"{points.origin}, n={len(points.raw)}, {date.today().isoformat()}, residual {residual:.2f}, "
        f"SRCC {figure.value:.3f}"
    )
    curve = replace(curve, fitted_on=provenance, residual=round(residual, 2) or None, fitted_to=points.fitted_to)
    if not curve.is_monotone():
        raise ToolError(
            f"the fitted curve is not monotone over {tool.raw_range}: check the plot for outliers, or exclude the tool"
        )
    return CurveFit(curve, figure, residual)


def root_mean_square_error(curve: ToolCurve, points: Points) -> float:
    """Return the RMSE of a curve on the rated images, on 1..5."""
    return float(np.sqrt(np.mean(([*map(curve, points.raw)] - points.quality) ** 2)))


def _checked_srcc(points: Points, tool: Tool) -> Interval:
    """Return SRCC of raw values and qualities in the tool's direction; raise ToolError without a clear relation."""
    raw, quality = (points.raw if tool.higher_is_better else -points.raw), points.quality
    if len(raw) < MIN_POINTS:
        raise ToolError(f"a curve needs at least {MIN_POINTS} labeled images that the tool can measure, got {len(raw)}")
    if np.ptp(raw) == 0:
        raise ToolError(f"the tool returns {points.raw[0]:g} for every image, but a curve needs different values")
    if np.ptp(quality) == 0:
        raise ToolError("all MOS are equal, but a curve needs different ones: check the mos column")
    contents = np.asarray(points.contents)
    figure = _srcc_interval(raw, quality, contents)
    lower = raw <= np.median(raw)
    names = ("low", "high") if tool.higher_is_better else ("high", "low")
    for half, name in zip((lower, ~lower), names, strict=True):
        whole, within = (srcc(raw[rows], quality[rows]) or 0.0 for rows in (lower | ~lower, half))
        if within >= REVERSED or whole <= REVERSED or half.sum() < MIN_POINTS / 2:
            continue
        if (_srcc_interval(raw[half], quality[half], contents[half]).high or 0) < 0:
            raise ToolError(
                f"the relation to the MOS reverses (SRCC {within:.2f} for the {name} values, {whole:.2f} for all), so "
                "no monotone curve fits: exclude the tool"
            )
    if figure.value is not None and figure.value >= COMPLETE:
        return figure
    if figure.value is None or figure.low is None or figure.high is None:
        raise ToolError(f"the SRCC with the MOS is undefined ({figure.note}): use more images, or exclude the tool")
    text = f"SRCC with 95 % interval {figure:.2f}"
    if figure.high < 0:
        better = "higher" if tool.higher_is_better else "lower"
        raise ToolError(
            f"{better} values of this tool mean better quality, but the labels show the opposite ({text}; positive "
            "means agreement): check that a higher mos means better quality"
        )
    if figure.low <= 0:
        raise ToolError(f"the tool does not correlate with the MOS ({text}): use more images, or exclude the tool")
    return figure


def _srcc_interval(raw: Numbers, quality: Numbers, contents: np.ndarray) -> Interval:
    """Return SRCC with its interval over scenes, or over images if there are too few scenes."""
    enough = len(set(contents)) >= FEWEST_CONTENTS
    return interval(srcc, raw, quality, [*(contents if enough else map(str, range(len(raw))))])


def _betas(points: Points, tool: Tool) -> Betas:
    """Return the five parameters of the best curve from several starts."""
    low, high = tool.raw_range
    span = high - low

    def position(raw: float | Sequence[float] | Numbers) -> Numbers:
        share = (np.clip(np.asarray(raw, dtype=float), low, high) - low) / span
        return share if tool.higher_is_better else 1 - share

    u, worst = position(points.raw), position(points.worst)
    ceiling = position(points.perfect) if points.perfect is not None else None
    spread = max(float(u.std()), 1e-6)
    weight = FLOOR_WEIGHT * np.sqrt(len(u))

    def rising(free: Numbers, at: Numbers) -> Numbers:
        a, log_k, m, b, c = free
        return a * expit(np.exp(log_k) * (at - m)) + b * at + c

    def curve(free: Numbers, at: Numbers) -> Numbers:
        return rising(free, at) + (CEILING - rising(free, ceiling) if ceiling is not None else 0)

    def residuals(free: Numbers) -> Numbers:
        errors = np.clip(curve(free, u), 1, 5) - points.quality
        robust = np.sqrt(2 * (np.sqrt(1 + errors**2) - 1))  # errors, squared if small and absolute for outliers
        return np.concatenate([robust, weight * np.maximum(curve(free, worst) - FLOOR, 0)])

    # The height of an anchored curve is determined by its ceiling, so there c has no effect and keeps its start value.
    lowest, highest = [0, np.log(0.1), -1, 0, -30], [30, np.log(STEEPEST / spread), 2, 40, 5]
    starts = [
        np.clip([4, np.log(steepness / spread), np.quantile(u, quantile), 0.1, 1], lowest, highest)
        for quantile, steepness in STARTS
    ]
    fits = [least_squares(residuals, start, bounds=(lowest, highest), ftol=1e-6, xtol=1e-6) for start in starts]
    a, log_k, m, b, c = min(fits, key=lambda fit: float(fit.cost)).x
    sign = 1 if tool.higher_is_better else -1
    start = low if tool.higher_is_better else high
    shape = (a, sign * np.exp(log_k) / span, start + sign * span * m, sign * b / span)
    if points.perfect is not None:
        height = CEILING - float(logistic5(float(np.clip(points.perfect, low, high)), (*shape, 0.0)))
    else:
        height = float(c + a / 2 - shape[3] * start)
    first, second, third, fourth, fifth = (float(f"{beta:.8g}") for beta in (*shape, height))
    return first, second, third, fourth, fifth
