"""The agreement by distortion, level, generator and split, and how often the score's own interval holds the opinion."""

from dataclasses import asdict
from typing import Any

import numpy as np

from agenticiqa.eval.datasets import MosScale
from agenticiqa.eval.intervals import interval, wilson
from agenticiqa.eval.metrics import srcc
from agenticiqa.eval.report.columns import Columns

SHARES = ("80", "95")


def breakdowns(columns: Columns) -> dict[str, list[dict[str, Any]]]:
    """By group of which there are two or more in the labels: ``group``, ``images``, ``n``, ``unscored``, ``srcc``.

    SRCC is that of the score of the rows, with its interval over the contents of the group.
    """
    score, mos = columns.numbers(columns.first), columns.numbers("mos")
    contents = np.array(columns.contents, dtype=object)
    found: dict[str, list[dict[str, Any]]] = {}
    for name, values in columns.groups.items():
        groups = np.array(values, dtype=object)
        named = sorted({value for value in values if value is not None})
        if len(named) < 2:
            continue
        found[name] = []
        for group in named:
            inside = groups == group
            here = inside & np.isfinite(score)
            found[name].append(
                {
                    "group": group,
                    "images": int(inside.sum()),
                    "n": int(here.sum()),
                    "unscored": int((inside & ~here).sum()),
                    "srcc": asdict(interval(srcc, score[here], mos[here], contents[here].tolist())),
                }
            )
    return found


def interval_coverage(columns: Columns, scale: MosScale | None) -> dict[str, dict[str, Any]]:
    """Of the 80 % and 95 % ``score_interval`` of the rows: in how many the opinion, on 1..5, lies.

    By share: ``n`` (images with an interval), ``inside``, ``value`` (their share, 0..1), ``low`` and ``high`` (its 95 %
    Wilson interval, which takes images as independent). Empty where the ends of the labels' scale are unknown.
    """
    if scale is None:
        return {}
    opinion = np.array([scale.to_1_5(mos) for mos in columns.numbers("mos")])
    found = {}
    for share in SHARES:
        low, high = columns.numbers(f"{share} low"), columns.numbers(f"{share} high")
        known = np.isfinite(low) & np.isfinite(high)
        if known.any():
            inside, n = int(((low <= opinion) & (opinion <= high) & known).sum()), int(known.sum())
            ends = wilson(inside, n)
            found[share] = {"n": n, "inside": inside, "value": inside / n, "low": ends[0], "high": ends[1]}
    return found
