"""Every figure of a run from its rows, as plain JSON types: what ``report.json`` holds."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from agenticiqa.eval.datasets import MosScale, mos_scale
from agenticiqa.eval.intervals import difference_interval
from agenticiqa.eval.metrics import Numbers, srcc
from agenticiqa.eval.report.breakdowns import breakdowns, interval_coverage
from agenticiqa.eval.report.columns import Columns, Row, columns_of
from agenticiqa.eval.report.figures import system
from agenticiqa.eval.report.predictors import best_tool, predictors
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.tools import TOOLS, Tool


def summarize(
    rows: Iterable[Row],
    tools: Mapping[str, Tool] = TOOLS,
    *,
    scale: MosScale | None = None,
) -> dict[str, Any]:
    """Every figure of a run, as plain JSON types; the rows are read once and not kept.

    - ``images``, ``contents``, ``scored``, ``unscored``, ``unscored_reasons``; ``scale``, the ends of the labels' scale
      (without ``scale`` the first usual one that holds them, else ``None``)
    - ``systems``, one entry per predictor as ``figures.system`` says, each measured on the images that it has a value
      for: our score first (or that of the scorer that the rows name), then what it is made of and the usual
      combinations of that, last the tools alone
    - ``best_tool``, the one with the highest SRCC on these very images among those that measured half of them
    - ``srcc_differences``: our score minus each baseline on the images with both
    - ``breakdowns`` and ``interval_coverage`` as in ``report.breakdowns``
    - ``probability_sources``, ``images_with_rejected_answers``, ``rejected_answers``, ``replanned``,
      ``failed_tool_calls``, ``ms_per_image``

    Images without a score are counted in ``unscored``, by reason, and are in no figure.
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
        "systems": [system(each, columns, tools, scale) for each in listed],
        "best_tool": best,
        "srcc_differences": {
            each.name: _difference(columns, each.values)
            for each in listed
            if each.kind == "baseline" or each.name == best
        },
        "breakdowns": breakdowns(columns),
        "interval_coverage": interval_coverage(columns, scale),
        **columns.conduct.summary(),
    }


def _difference(columns: Columns, values: Numbers) -> dict[str, Any]:
    ours, mos = columns.numbers(columns.first), columns.numbers("mos")
    both = np.flatnonzero(np.isfinite(ours) & np.isfinite(values))
    contents = [columns.contents[row] for row in both]
    return asdict(difference_interval(srcc, ours[both], values[both], mos[both], contents))


def _usual_scale(columns: Columns) -> MosScale | None:
    try:
        return mos_scale(columns.numbers("mos").tolist()) if len(columns) else None
    except UserError:
        return None
