"""The figures of one predictor, each with its interval over contents."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agenticiqa.eval.datasets import MosScale
from agenticiqa.eval.intervals import Interval, blocks_of, error_interval, interval, plcc_after, rmse_after
from agenticiqa.eval.logistic import fit_logistic, fit_logistic_and_line
from agenticiqa.eval.metrics import Numbers, plcc, rmse, srcc
from agenticiqa.eval.report.columns import Columns
from agenticiqa.eval.report.pairs import pair_intervals
from agenticiqa.eval.report.predictors import Predictor
from agenticiqa.programs.tools import Tool, training_images

FIGURES = {
    "srcc": "SRCC",
    "krcc": "KRCC",
    "plcc": "PLCC raw",
    "plcc_fitted": "PLCC fitted",
    "plcc_fitted5": "PLCC fitted (5)",
    "rmse": "RMSE raw",
    "rmse_fitted": "RMSE fitted",
    "rmse_fitted5": "RMSE fitted (5)",
    "pairs": "pairs in order",
}


def system(predictor: Predictor, columns: Columns, tools: Mapping[str, Tool], scale: MosScale | None) -> dict[str, Any]:
    """A predictor and its figures, as plain JSON types.

    ``n`` is the number of images that it has a value for, ``unscored`` that of the others; ``fitted_on`` counts the
    images that a model or a calibration curve of the tools in it was fitted on (of ``tools``, by the rows'
    ``training_parts``). The figures are ``Interval`` fields under the keys of ``FIGURES``.
    """
    here = np.flatnonzero(np.isfinite(predictor.values))
    return {
        "name": predictor.name,
        "kind": predictor.kind,
        "n": len(here),
        "unscored": len(columns) - len(here),
        "partial": bool(predictor.partial),
        "about": predictor.about,
        "sources": dict(predictor.sources),
        "fitted_on": _fitted_on(predictor, here, columns, tools),
        **{key: asdict(figure) for key, figure in _figures(predictor.values, here, columns, scale).items()},
    }


def _figures(values: Numbers, here: NDArray[np.intp], columns: Columns, scale: MosScale | None) -> dict[str, Interval]:
    x, mos, std = values[here], columns.numbers("mos")[here], columns.numbers("mos_std")[here]
    contents = [columns.contents[row] for row in here]
    tau, order = pair_intervals(x, mos, blocks_of(contents), std)
    four, five = fit_logistic(x, mos), fit_logistic_and_line(x, mos)
    return {
        "srcc": interval(srcc, x, mos, contents),
        "krcc": tau,
        "plcc": interval(plcc, x, mos, contents),
        "plcc_fitted": plcc_after(four, x, mos, contents),
        "plcc_fitted5": plcc_after(five, x, mos, contents),
        "rmse": _raw_error(x, mos, contents, scale),
        "rmse_fitted": rmse_after(four, x, mos, contents),
        "rmse_fitted5": rmse_after(five, x, mos, contents),
        "pairs": order,
    }


def _raw_error(x: Numbers, mos: Numbers, contents: list[str], scale: MosScale | None) -> Interval:
    """The RMSE on the data's own scale, whose ends 1 and 5 are mapped to; nothing is fitted."""
    if scale is None:
        return Interval(None, None, None, len(x), "the ends of the labels' scale are unknown")
    if len(x) and (x.min() < 1 or x.max() > 5):
        return Interval(None, None, None, len(x), "the predictions are not on the scale 1..5")
    return error_interval(rmse, scale.low + (x - 1) / 4 * (scale.high - scale.low), mos, contents)


def _fitted_on(
    predictor: Predictor, here: NDArray[np.intp], columns: Columns, tools: Mapping[str, Tool]
) -> dict[training_images.Way, int]:
    """How many images a model or a curve in a predictor was fitted on."""
    known: dict[Any, frozenset[training_images.Way]] = {}
    counts: Counter[training_images.Way] = Counter()
    for row in here:
        if parts := columns.parts[row]:
            key = predictor.used(row), parts
            if key not in known:
                each = (training_images.fitted_on(tools[name], parts) for name in key[0] & tools.keys())
                known[key] = frozenset().union(*each)
            counts.update(known[key])
    return {"model": counts["model"], "curve": 0 if predictor.raw else counts["curve"]}
