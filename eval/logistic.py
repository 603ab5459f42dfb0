"""Fit the curves that map predictions to the MOS scale before PLCC and RMSE are measured.

Papers use one of two (Sheikh, Sabir and Bovik 2006; VQEG Phase II, 2003):

- four parameters, monotone: ``(b1 - b2) / (1 + exp(-(x - b3) / b4)) + b2``
- five, a logistic and a line, which may turn: ``b1 (1/2 - 1 / (1 + exp(b2 (x - b3)))) + b4 x + b5``

For a given center and width both are linear in their other parameters, so only center and width are searched, and
least squares gives the others (variable projection; Golub and Pereyra 1973). A search over all parameters at once
is slow for data nearly on a line, as a line is the limit of ever wider curves.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import least_squares
from scipy.special import expit

from agenticiqa.eval.metrics import checked, why_undefined

Numbers = NDArray[np.float64]
Basis = Callable[[Numbers, float, float], Numbers]

# Standard deviations of the predictions around their mean. Farther out, all centers give nearly the same exponential,
# and rounding errors would decide where a search ends.
CENTERS = (-15.0, 15.0)
WIDTHS = (1e-3, 25.0)  # range of widths in the same unit; a wider curve is nearly a line
GRID = [(center, width) for center in (-3.0, -1.0, 0.0, 1.0, 3.0) for width in (0.05, 0.25, 1.0, 5.0)]
GRID += [(-10.0, 3.0), (10.0, 3.0)]  # curves that are nearly exponential
STARTS = 2  # best grid points that start a search
MOST_STEPS = 100


@dataclass(frozen=True)
class Curve:
    """A fitted curve from predictions to MOS. ``falls`` is true if higher predictions mean lower MOS.

    ``at`` has its center and the logarithm of its width, in standard deviations of the predictions.
    """

    call: Callable[[Numbers], Numbers]
    falls: bool
    at: tuple[float, float]

    def __call__(self, predictions: ArrayLike) -> Numbers:
        """Return the MOS for predictions, both (N,)."""
        return self.call(np.asarray(predictions, dtype=np.float64))

    def directed(self, predictions: ArrayLike) -> Numbers:
        """Return the same, with a minus where the curve falls, so that a correlation keeps its sign."""
        return -self(predictions) if self.falls else self(predictions)


def fit_logistic(predictions: ArrayLike, mos: ArrayLike, near: Curve | None = None) -> Curve | None:
    """Fit the 4-parameter curve; return ``None`` for fewer than 5 images or an undefined correlation.

    The search starts from the curve ``near`` the result, if one is given.
    """
    return _fit(_monotone, 5, predictions, mos, near)


def fit_logistic_and_line(predictions: ArrayLike, mos: ArrayLike, near: Curve | None = None) -> Curve | None:
    """Fit the 5-parameter curve; return ``None`` for fewer than 6 images or an undefined correlation."""
    return _fit(_with_line, 6, predictions, mos, near)


def _monotone(z: Numbers, center: float, width: float) -> Numbers:
    return np.column_stack([np.ones_like(z), expit((z - center) / width)])


def _with_line(z: Numbers, center: float, width: float) -> Numbers:
    return np.column_stack([_monotone(z, center, width), z])


def _fit(basis: Basis, fewest: int, predictions: ArrayLike, mos: ArrayLike, near: Curve | None) -> Curve | None:
    x, y = checked(predictions, mos)
    if len(x) < fewest or why_undefined(x, y):
        return None
    mean, spread = float(x.mean()), float(x.std())
    if spread == 0:
        return None
    z = (x - mean) / spread

    def residual(at: Numbers) -> Numbers:
        columns = basis(z, float(at[0]), float(np.exp(at[1])))
        return columns @ _weights(columns, y) - y

    low, high = zip(CENTERS, np.log(WIDTHS), strict=True)
    grid = [np.array([center, np.log(width)]) for center, width in GRID]
    starts = [np.array(near.at)] if near else sorted(grid, key=lambda at: float(np.square(residual(at)).sum()))[:STARTS]
    fits = [least_squares(residual, start, bounds=(low, high), max_nfev=MOST_STEPS) for start in starts]
    # Each fit is usable, even if it did not converge.
    center, width = map(float, min(fits, key=lambda fit: float(fit.cost)).x)
    weights = _weights(basis(z, center, np.exp(width)), y)
    call = partial(_curve, basis, mean, spread, center, float(np.exp(width)), weights)
    fitted = call(x)
    if np.ptp(fitted) <= 1e-12 * np.ptp(y):
        return None
    return Curve(call, falls=bool(np.dot(fitted - fitted.mean(), z) < 0), at=(center, width))


def _curve(
    basis: Basis, mean: float, spread: float, center: float, width: float, weights: Numbers, predictions: Numbers
) -> Numbers:
    return basis((predictions - mean) / spread, center, width) @ weights


def _weights(columns: Numbers, y: Numbers) -> Numbers:
    return np.asarray(np.linalg.lstsq(columns, y, rcond=None)[0], dtype=np.float64)
