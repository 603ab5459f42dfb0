"""From points of raw value and quality to a metric's curve to 1..5: the fit, its refusals, and how well it holds up.

The curve is the five-parameter logistic of ``agenticiqa.programs.tools.calibration``. Written over u, the raw value
brought to 0..1 with the better end at 1, it is::

    f(u) = a / (1 + exp(-k (u - m))) + b u + c      with a, b >= 0 and k > 0,

which only rises, whatever the data. Two kinds of anchor keep the curves of different metrics comparable at their ends,
where opinion scores are few: the raw value of a perfect image is mapped to 5 (this settles c), and those of the worst
level of synthetic distortions to at most 2 (a penalty for what lies above).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date

import numpy as np
from scipy.optimize import least_squares
from scipy.special import expit

from agenticiqa.eval.bootstrap import Estimate, estimate
from agenticiqa.eval.metrics import Numbers, srcc
from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.tools.calibration import Betas, Calibration, logistic5
from agenticiqa.programs.tools.tool import Tool

LEAST_POINTS = 20
CEILING, FLOOR = 5.0, 2.0
FLOOR_WEIGHT = 2.0  # of what lies above the floor, against the root of the number of rated images
FOLDS = 5
TURNED = -0.2  # SRCC of one half of the points against the whole, below which the relation counts as turning round
STARTS = ((0.4, 1.5), (0.8, 4.0))  # middle as a quantile of u, steepness in standard deviations of u
STEEPEST = 5.0  # of the logistic part, in standard deviations of u: steeper is a step between two points


@dataclass(frozen=True)
class Points:
    """What a curve is fitted to.

    ``raw``, ``quality`` (1..5) and ``contents`` have an entry for each rated image; images of one content are never
    divided between fit and check. ``perfect`` is the raw value that means 5, ``worst`` those that mean 2 at most;
    ``origin`` says in words where all of it comes from.
    """

    raw: Numbers
    quality: Numbers
    contents: tuple[str, ...]
    perfect: float | None = None
    worst: tuple[float, ...] = ()
    origin: str = "unnamed images"

    def part(self, rows: np.ndarray) -> "Points":
        """Only some of the rated images."""
        contents = tuple(np.asarray(self.contents, dtype=str)[rows])
        return replace(self, raw=self.raw[rows], quality=self.quality[rows], contents=contents)


@dataclass(frozen=True)
class Fit:
    """A curve with what can be said of it.

    ``agreement`` is the SRCC with its interval over contents, positive where the metric goes its way; ``residual`` the
    root mean square error on the very points of the fit, and ``held_out`` that on contents which the curve was not
    fitted on (``None`` with too few to hold any out). All are on 1..5.
    """

    curve: Calibration
    agreement: Estimate
    residual: float
    held_out: float | None


def fit_calibration(points: Points, card: Tool) -> Fit:
    """The curve of a metric, monotone over ``card.raw_range`` and in ``card``'s direction.

    Raises ToolError, in one line, where there is none: under 20 points, values or qualities that are all the same, a
    relation that turns round, none at all (the interval of SRCC holds 0), or one against the metric's direction.
    """
    agreement = _related(points, card)
    curve = Calibration(_betas(points, card), card.raw_range, "")
    residual = root_mean_square_error(curve, points)
    made = (
        f"{points.origin}, n={len(points.raw)}, {date.today().isoformat()}, residual {residual:.2f}, "
        f"SRCC {agreement.value:.3f}"
    )
    curve = replace(curve, fitted_on=made)
    if not curve.is_monotone():
        raise ToolError(f"its curve is not monotone over {card.raw_range}: look at the picture of the points")
    return Fit(curve, agreement, residual, _held_out(points, card))


def root_mean_square_error(curve: Calibration, points: Points) -> float:
    """How far a curve lies from the rated images."""
    return float(np.sqrt(np.mean((_mapped(curve, points.raw) - points.quality) ** 2)))


def _related(points: Points, card: Tool) -> Estimate:
    """How far raw values and qualities go together; raises ToolError where no curve should be made of it."""
    raw, quality = (points.raw if card.higher_is_better else -points.raw), points.quality
    if len(raw) < LEAST_POINTS:
        raise ToolError(f"a curve needs at least {LEAST_POINTS} rated images that it can measure, got {len(raw)}")
    if np.ptp(raw) == 0:
        raise ToolError(f"it measures {points.raw[0]:g} for every image, and a curve needs different values")
    if np.ptp(quality) == 0:
        raise ToolError("the qualities are all the same, and a curve needs different ones: check the mos column")
    everywhere = _agreement(raw, points)
    lower = raw <= np.median(raw)
    for half, where in ((lower, "low"), (~lower, "high")):
        _refuse_turned(raw, points, half, where if card.higher_is_better else {"low": "high", "high": "low"}[where])
    if everywhere.value is None or everywhere.low is None or everywhere.high is None:
        raise ToolError(f"no correlation can be told: {everywhere.note}")
    told = f"SRCC {everywhere.value:.2f}, 95 % interval {everywhere.low:.2f} to {everywhere.high:.2f}"
    if everywhere.high < 0:
        better = "higher" if card.higher_is_better else "lower"
        raise ToolError(
            f"{better} is better for it, and these scores say the opposite ({told}, where positive agrees): "
            "mos has to be higher = better"
        )
    if everywhere.low <= 0:
        raise ToolError(f"it does not follow these scores ({told}): give more images, or leave it out")
    return everywhere


def _refuse_turned(raw: Numbers, points: Points, half: np.ndarray, where: str) -> None:
    """Raises ToolError where one half of the values clearly goes against the whole: no monotone curve follows both."""
    whole, within = (srcc(raw[rows], points.quality[rows]) or 0.0 for rows in (np.full(len(raw), True), half))
    if within >= TURNED or whole <= TURNED or half.sum() < LEAST_POINTS / 2:
        return
    if (_agreement(raw[half], points.part(half)).high or 0) < 0:
        raise ToolError(
            f"its relation to these scores turns round (SRCC {within:.2f} among the {where} values, {whole:.2f} in "
            "all), which no monotone curve can follow: leave it out"
        )


def _agreement(raw: Numbers, points: Points) -> Estimate:
    """SRCC with its interval over contents; over images where all are of one content."""
    several = len(set(points.contents)) > 1
    contents = points.contents if several else tuple(map(str, range(len(raw))))
    return estimate(srcc, raw, points.quality, contents)


def _betas(points: Points, card: Tool) -> Betas:
    """The five parameters of the best curve from several starts."""
    low, high = card.raw_range
    span = high - low

    def position(raw: float | Sequence[float] | Numbers) -> Numbers:
        share = (np.clip(np.asarray(raw, dtype=float), low, high) - low) / span
        return share if card.higher_is_better else 1 - share

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
        gentle = np.sqrt(2 * (np.sqrt(1 + errors**2) - 1))  # squared for small errors, absolute for outliers
        return np.concatenate([gentle, weight * np.maximum(curve(free, worst) - FLOOR, 0)])

    # An anchored curve's height is settled by its ceiling, so c has no effect and stays where it is.
    lowest, highest = [0, np.log(0.1), -1, 0, -30], [30, np.log(STEEPEST / spread), 2, 40, 5]
    starts = [
        np.clip([4, np.log(steepness / spread), np.quantile(u, quantile), 0.1, 1], lowest, highest)
        for quantile, steepness in STARTS
    ]
    fits = [least_squares(residuals, start, bounds=(lowest, highest), ftol=1e-6, xtol=1e-6) for start in starts]
    a, log_k, m, b, c = min(fits, key=lambda fit: float(fit.cost)).x
    sign = 1 if card.higher_is_better else -1
    start = low if card.higher_is_better else high
    shape = (a, sign * np.exp(log_k) / span, start + sign * span * m, sign * b / span)
    if points.perfect is not None:
        height = CEILING - float(logistic5(float(np.clip(points.perfect, low, high)), (*shape, 0.0)))
    else:
        height = float(c + a / 2 - shape[3] * start)
    first, second, third, fourth, fifth = (float(f"{beta:.8g}") for beta in (*shape, height))
    return first, second, third, fourth, fifth


def _held_out(points: Points, card: Tool) -> float | None:
    """The error of curves on contents that each was not fitted on; ``None`` where too few points are left to fit."""
    errors: list[Numbers] = []
    for kept in _folds(points.contents):
        if kept.sum() < LEAST_POINTS or np.ptp(points.raw[kept]) == 0:
            return None
        curve = Calibration(_betas(points.part(kept), card), card.raw_range, "")
        errors.append(_mapped(curve, points.raw[~kept]) - points.quality[~kept])
    return float(np.sqrt(np.mean(np.concatenate(errors) ** 2))) if errors else None


def _folds(contents: Sequence[str]) -> Iterator[np.ndarray]:
    """For each of up to five parts of the contents: which images are not of it."""
    names, content_of = np.unique(np.asarray(contents, dtype=str), return_inverse=True)
    if len(names) < 2:
        return
    fold_of = np.random.default_rng(0).permutation(len(names)) % min(FOLDS, len(names))
    for fold in range(min(FOLDS, len(names))):
        yield fold_of[content_of] != fold


def _mapped(curve: Calibration, raw: Numbers) -> Numbers:
    return np.array([curve(value) for value in raw])
