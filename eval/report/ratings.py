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
from agenticiqa.eval.report.scorer_columns import BEST_TOOL, FOLDS, ScorerColumn, best_tool, scorer_columns
from agenticiqa.eval.report.splits import Splits, medians
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.fusion.formula import ScoreFusion
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
    fusion: ScoreFusion | None = None,
    scale: MosScale | None = None,
    splits: tuple[Splits, str] | None = None,
) -> dict[str, Any]:
    """Compute every figure of a run from its rows, which are read once and not kept.

    - ``images``, ``contents``, ``scored``, ``unscored``, ``unscored_reasons``; ``scale``, the range of the MOS scale
    - ``systems``, one entry per scorer as in ``_system``, each measured on the images that it has a value for: our
      score first (or that of the scorer that the rows name), then its components and the usual combinations of them,
      and single tools last
    - ``best_tool``, the tool with the highest SRCC on these images among those that measured half of them
    - ``srcc_differences``: our score minus each baseline on the images with both
    - ``breakdowns`` and ``interval_coverage`` from the functions of these names
    - ``splits``: their description, their number, and the medians of each scorer over their test sets
    - ``fusion_is_known``, false if a model rated images and ``fusion`` is not given
    - ``incomplete``, the number of scores from incomplete answers of the model
    - ``probability_sources``, ``images_with_rejected_answers``, ``rejected_answers``, ``replanned``,
      ``failed_tool_calls``, ``ms_per_image``

    Images without a score are counted in ``unscored``, by reason, and excluded from all figures.

    Args:
        rows: The rows of the run, with the keys of labels.
        tools: The tools by name.
        fusion: The fusion of the program that made the rows. Without it, the score without a profile is not computed,
            and ``fusion_is_known`` is false.
        scale: The scale of the MOS; by default the first usual one that holds them, or ``None``.
        splits: The splits and their description (``splits.splits_named``); by default none, and ``splits`` is ``None``.

    Returns:
        The figures above as plain JSON types.
    """
    columns = columns_of(rows, fusion)
    scale = scale or _usual_scale(columns)
    listed = scorer_columns(columns)
    singles = {scorer.name: scorer.values for scorer in listed if scorer.kind == "tool"}
    best = best_tool(singles, columns.numbers("mos"), np.ones(len(columns), dtype=bool)) if len(columns) else None
    scored = int(columns.scored.sum())
    return {
        "images": len(columns),
        "contents": len(set(columns.contents)),
        "scored": scored,
        "unscored": len(columns) - scored,
        "unscored_reasons": dict(Counter(reason for reason in columns.reasons if reason is not None)),
        "scale": scale and asdict(scale),
        "systems": [_system(scorer, columns, tools, scale) for scorer in listed],
        "best_tool": best,
        "srcc_differences": {
            scorer.name: _difference(columns, scorer)
            for scorer in listed
            if scorer.kind == "baseline" or scorer.name == best
        },
        "breakdowns": breakdowns(columns),
        "interval_coverage": interval_coverage(columns, scale),
        "splits": splits and _over_splits(listed, columns, splits),
        "fusion_is_known": columns.fusion_is_known,
        **columns.conduct.summary(),
    }


def _over_splits(listed: Sequence[ScorerColumn], columns: Columns, splits: tuple[Splits, str]) -> dict[str, Any]:
    parts, mos = splits[0](columns.names, columns.contents), columns.numbers("mos")
    by_name = {scorer.name: medians(scorer.values, mos, parts) for scorer in listed}
    return {"of": splits[1], "count": len(parts), "systems": by_name}


def breakdowns(columns: Columns) -> dict[str, list[dict[str, Any]]]:
    """Return, by label column with two or more groups, ``group``, ``images``, ``n``, ``unscored``, ``srcc`` by group.

    SRCC is that of the rows' score, with its interval over the scenes of the group.
    """
    score, mos = columns.numbers(columns.first), columns.numbers("mos")
    contents = np.array(columns.contents, dtype=object)
    by_column: dict[str, list[dict[str, Any]]] = {}
    for name, values in columns.groups.items():
        names = sorted({value for value in values if value is not None})
        for group in names if len(names) > 1 else ():
            inside = np.array(values, dtype=object) == group
            here = inside & np.isfinite(score)
            images, n = int(inside.sum()), int(here.sum())
            agreement = asdict(interval(srcc, score[here], mos[here], contents[here].tolist()))
            row = {"group": group, "images": images, "n": n, "unscored": images - n, "srcc": agreement}
            by_column.setdefault(name, []).append(row)
    return by_column


def interval_coverage(columns: Columns, scale: MosScale | None) -> dict[str, dict[str, Any]]:
    """Return how often the 80 % and 95 % ``score_interval`` of the rows contains the MOS, on 1..5.

    Each has ``n`` (images with an interval), ``inside``, ``value`` (their share, 0..1), ``low`` and ``high`` (its 95 %
    interval, as in ``accuracy``). The result is empty if the range of the MOS scale is unknown.
    """
    if scale is None:
        return {}
    true = np.array([scale.to_1_5(mos) for mos in columns.numbers("mos")])
    coverage = {}
    for share in SHARES:
        low, high = columns.numbers(f"{share} low"), columns.numbers(f"{share} high")
        known = np.isfinite(low) & np.isfinite(high)
        if known.any():
            inside = ((low <= true) & (true <= high))[known].tolist()
            share_inside = accuracy(inside, [columns.contents[row] for row in np.flatnonzero(known)])
            coverage[share] = {"inside": sum(inside), **asdict(share_inside)}
    return coverage


def _system(
    scorer: ScorerColumn, columns: Columns, tools: Mapping[str, Tool], scale: MosScale | None
) -> dict[str, Any]:
    """Return a scorer and its figures, as plain JSON types.

    ``n`` is the number of images with a value, ``unscored`` that of the others. ``fitted_on`` counts the images
    that its tools' models or curves were fitted on (``tools`` are looked up in ``training_parts``). The
    figures are ``Interval`` fields under the keys of ``FIGURES``.
    """
    here = np.flatnonzero(np.isfinite(scorer.values))
    return {
        "name": scorer.name,
        "kind": scorer.kind,
        "n": len(here),
        "unscored": len(columns) - len(here),
        "partial": bool(scorer.partial),
        "about": scorer.about,
        "sources": dict(scorer.sources),
        "fitted_on": _fitted_on(scorer, here, columns, tools),
        **{
            key: asdict(_of_chosen(scorer, here, columns, figure))
            for key, figure in _figures(scorer.values, here, columns, scale).items()
        },
    }


def _of_chosen(scorer: ScorerColumn, here: NDArray[np.intp], columns: Columns, figure: Interval) -> Interval:
    """Remove the interval if the best tool would be chosen on too few scenes."""
    count = len({columns.contents[row] for row in here})
    if scorer.name != BEST_TOOL or figure.low is None or count >= 2 * FOLDS:
        return figure
    return replace(figure, low=None, high=None, note=f"too few scenes to choose a tool ({count}, at least {2 * FOLDS})")


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
    scorer: ScorerColumn, here: NDArray[np.intp], columns: Columns, tools: Mapping[str, Tool]
) -> dict[training_images.Way, int]:
    """Return how many images a model or a curve in a scorer was fitted on."""
    known: dict[Any, frozenset[training_images.Way]] = {}
    counts: Counter[training_images.Way] = Counter()
    for row in here:
        if parts := columns.parts[row]:
            key = scorer.used(row), parts
            if key not in known:
                sets = (training_images.fitted_on(tools[name], parts) for name in key[0] & tools.keys())
                known[key] = frozenset().union(*sets)
            counts.update(known[key])
    curve = 0 if scorer.raw else counts["curve"]
    ways: dict[training_images.Way, int] = {"model": counts["model"], "curve": curve}
    return {**ways, "adapter": counts["adapter"]} if counts["adapter"] else ways


def _difference(columns: Columns, other: ScorerColumn) -> dict[str, Any]:
    ours, mos = columns.numbers(columns.first), columns.numbers("mos")
    both = np.flatnonzero(np.isfinite(ours) & np.isfinite(other.values))
    contents = [columns.contents[row] for row in both]
    gap = difference_interval(srcc, ours[both], other.values[both], mos[both], contents)
    return asdict(_of_chosen(other, both, columns, gap))


def _usual_scale(columns: Columns) -> MosScale | None:
    try:
        return mos_scale(columns.numbers("mos").tolist()) if len(columns) else None
    except UserError:
        return None
