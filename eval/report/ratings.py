"""Compute every figure of a run of ratings from its rows, as plain JSON types: the content of ``report.json``."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agenticiqa.eval.datasets import MosScale, mos_scale
from agenticiqa.eval.intervals import (
    Interval,
    accuracy,
    after_curve,
    blocks_of,
    difference_interval,
    interval,
    rmse_interval,
)
from agenticiqa.eval.logistic import fit_logistic, fit_logistic_and_line
from agenticiqa.eval.metrics import Numbers, krcc, plcc, srcc, why_undefined
from agenticiqa.eval.report.columns import Columns, Row, columns_of
from agenticiqa.eval.report.pairs import pairwise_accuracy
from agenticiqa.eval.report.predictors import BEST_TOOL, FOLDS, Predictor, best_tool, predictors
from agenticiqa.eval.report.splits import Splits, medians
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.tools import TOOLS, Tool, training_images

FIGURES = {
    "srcc": "SRCC",
    "krcc": "KRCC",
    "plcc": "PLCC raw",
    "plcc_fitted": "PLCC fitted",
    "plcc_fitted5": "PLCC fitted (5)",
    "rmse": "RMSE raw",
    "rmse_fitted": "RMSE fitted",
    "rmse_fitted5": "RMSE fitted (5)",
    "pairs": "pairwise accuracy",
}
SHARES = ("80", "95")  # nominal coverage of a score's interval, in percent


def summarize(
    rows: Iterable[Row],
    tools: Mapping[str, Tool] = TOOLS,
    *,
    scale: MosScale | None = None,
    splits: tuple[Splits, str] | None = None,
) -> dict[str, Any]:
    """Compute every figure of a run from its rows, which are read once and not kept.

    - ``images``, ``contents``, ``scored``, ``unscored``, ``unscored_reasons``; ``scale``, the range of the MOS scale
    - ``systems``, one entry per predictor as in ``_system``, each measured on the images that it has a value for: our
      score first (or that of the scorer that the rows name), then its components and the usual combinations of them,
      and single tools last
    - ``best_tool``, the tool with the highest SRCC on these images among those that measured half of them
    - ``srcc_differences``: our score minus each baseline on the images with both
    - ``breakdowns`` and ``interval_coverage`` from the functions of these names
    - ``splits``: their description, their number, and the medians of each predictor over their test sets
    - ``incomplete``, the number of scores from incomplete answers of the model
    - ``probability_sources``, ``images_with_rejected_answers``, ``rejected_answers``, ``replanned``,
      ``failed_tool_calls``, ``ms_per_image``

    Images without a score are counted in ``unscored``, by reason, and excluded from all figures.

    Args:
        rows: The rows of the run, with the keys of labels.
        tools: The tools by name.
        scale: The scale of the MOS; by default the first usual one that holds them, or ``None``.
        splits: The splits and their description (``splits.splits_named``); by default none, and ``splits`` is ``None``.

    Returns:
        The figures above as plain JSON types.
    """
    columns = columns_of(rows)
    scale = scale or _usual_scale(columns)
    listed = predictors(columns)
    singles = {each.name: each.values for each in listed if each.kind == "tool"}
    best = best_tool(singles, columns.numbers("mos"), np.ones(len(columns), dtype=bool)) if len(columns) else None
    scored = int(columns.scored.sum())
    return {
        "images": len(columns),
        "contents": len(set(columns.contents)),
        "scored": scored,
        "unscored": len(columns) - scored,
        "unscored_reasons": dict(Counter(reason for reason in columns.reasons if reason is not None)),
        "scale": scale and asdict(scale),
        "systems": [_system(each, columns, tools, scale) for each in listed],
        "best_tool": best,
        "srcc_differences": {
            each.name: _difference(columns, each) for each in listed if each.kind == "baseline" or each.name == best
        },
        "breakdowns": breakdowns(columns),
        "interval_coverage": interval_coverage(columns, scale),
        "splits": splits and _over_splits(listed, columns, splits),
        **columns.conduct.summary(),
    }


def _over_splits(listed: Sequence[Predictor], columns: Columns, splits: tuple[Splits, str]) -> dict[str, Any]:
    parts, mos = splits[0](columns.names, columns.contents), columns.numbers("mos")
    by_name = {each.name: medians(each.values, mos, parts) for each in listed}
    return {"of": splits[1], "count": len(parts), "systems": by_name}


def breakdowns(columns: Columns) -> dict[str, list[dict[str, Any]]]:
    """Return, by label column with two or more groups, ``group``, ``images``, ``n``, ``unscored``, ``srcc`` by group.

    SRCC is that of the rows' score, with its interval over the contents of the group.
    """
    score, mos = columns.numbers(columns.first), columns.numbers("mos")
    contents = np.array(columns.contents, dtype=object)
    found: dict[str, list[dict[str, Any]]] = {}
    for name, values in columns.groups.items():
        named = sorted({value for value in values if value is not None})
        for group in named if len(named) > 1 else ():
            inside = np.array(values, dtype=object) == group
            here = inside & np.isfinite(score)
            images, n = int(inside.sum()), int(here.sum())
            agreement = asdict(interval(srcc, score[here], mos[here], contents[here].tolist()))
            row = {"group": group, "images": images, "n": n, "unscored": images - n, "srcc": agreement}
            found.setdefault(name, []).append(row)
    return found


def interval_coverage(columns: Columns, scale: MosScale | None) -> dict[str, dict[str, Any]]:
    """Return how often the 80 % and 95 % ``score_interval`` of the rows contains the MOS, on 1..5.

    Each has ``n`` (images with an interval), ``inside``, ``value`` (their share, 0..1), ``low`` and ``high`` (its 95 %
    interval, as in ``accuracy``). The result is empty if the range of the MOS scale is unknown.
    """
    if scale is None:
        return {}
    true = np.array([scale.to_1_5(mos) for mos in columns.numbers("mos")])
    found = {}
    for share in SHARES:
        low, high = columns.numbers(f"{share} low"), columns.numbers(f"{share} high")
        known = np.isfinite(low) & np.isfinite(high)
        if known.any():
            inside = ((low <= true) & (true <= high))[known].tolist()
            share_inside = accuracy(inside, [columns.contents[row] for row in np.flatnonzero(known)])
            found[share] = {"inside": sum(inside), **asdict(share_inside)}
    return found


def _system(
    predictor: Predictor, columns: Columns, tools: Mapping[str, Tool], scale: MosScale | None
) -> dict[str, Any]:
    """Return a predictor and its figures, as plain JSON types.

    ``n`` is the number of images with a value, ``unscored`` that of the others. ``fitted_on`` counts the images
    that its tools' models or curves were fitted on (``tools`` are looked up in ``training_parts``). The
    figures are ``Interval`` fields under the keys of ``FIGURES``.
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
        **{
            key: asdict(_of_chosen(predictor, here, columns, figure))
            for key, figure in _figures(predictor.values, here, columns, scale).items()
        },
    }


def _of_chosen(predictor: Predictor, here: NDArray[np.intp], columns: Columns, found: Interval) -> Interval:
    """Remove the interval if the best tool would be chosen on too few contents."""
    count = len({columns.contents[row] for row in here})
    if predictor.name != BEST_TOOL or found.low is None or count >= 2 * FOLDS:
        return found
    return replace(found, low=None, high=None, note=f"too few scenes to choose a tool ({count}, at least {2 * FOLDS})")


def _figures(values: Numbers, here: NDArray[np.intp], columns: Columns, scale: MosScale | None) -> dict[str, Interval]:
    x, mos, std = values[here], columns.numbers("mos")[here], columns.numbers("mos_std")[here]
    contents = [columns.contents[row] for row in here]
    plcc4, rmse4 = after_curve(fit_logistic, x, mos, contents)
    plcc5, rmse5 = after_curve(fit_logistic_and_line, x, mos, contents)
    return {
        "srcc": interval(srcc, x, mos, contents),
        "krcc": Interval(krcc(x, mos), None, None, len(x), why_undefined(x, mos) or ""),
        "plcc": interval(plcc, x, mos, contents),
        "plcc_fitted": plcc4,
        "plcc_fitted5": plcc5,
        "rmse": _raw_error(x, mos, contents, scale),
        "rmse_fitted": rmse4,
        "rmse_fitted5": rmse5,
        "pairs": pairwise_accuracy(x, mos, blocks_of(contents), std),
    }


def _raw_error(x: Numbers, mos: Numbers, contents: list[str], scale: MosScale | None) -> Interval:
    """Return the RMSE on the data's own scale, with 1 and 5 mapped to its ends and without a fit."""
    if scale is None:
        return Interval(None, None, None, len(x), "the range of the MOS scale is unknown")
    if len(x) and (x.min() < 1 or x.max() > 5):
        return Interval(None, None, None, len(x), "the predictions are not on the scale 1..5")
    return rmse_interval(scale.low + (x - 1) / 4 * (scale.high - scale.low), mos, contents)


def _fitted_on(
    predictor: Predictor, here: NDArray[np.intp], columns: Columns, tools: Mapping[str, Tool]
) -> dict[training_images.Way, int]:
    """Return how many images a model or a curve in a predictor was fitted on."""
    known: dict[Any, frozenset[training_images.Way]] = {}
    counts: Counter[training_images.Way] = Counter()
    for row in here:
        if parts := columns.parts[row]:
            key = predictor.used(row), parts
            if key not in known:
                each = (training_images.fitted_on(tools[name], parts) for name in key[0] & tools.keys())
                known[key] = frozenset().union(*each)
            counts.update(known[key])
    curve = 0 if predictor.raw else counts["curve"]
    found: dict[training_images.Way, int] = {"model": counts["model"], "curve": curve}
    return {**found, "adapter": counts["adapter"]} if counts["adapter"] else found


def _difference(columns: Columns, other: Predictor) -> dict[str, Any]:
    ours, mos = columns.numbers(columns.first), columns.numbers("mos")
    both = np.flatnonzero(np.isfinite(ours) & np.isfinite(other.values))
    contents = [columns.contents[row] for row in both]
    found = difference_interval(srcc, ours[both], other.values[both], mos[both], contents)
    return asdict(_of_chosen(other, both, columns, found))


def _usual_scale(columns: Columns) -> MosScale | None:
    try:
        return mos_scale(columns.numbers("mos").tolist()) if len(columns) else None
    except UserError:
        return None
