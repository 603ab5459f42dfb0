"""List the scorers in the table: our score, its components, the usual combinations, and every single tool."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from agenticiqa.eval.datasets import folds_by_content
from agenticiqa.eval.metrics import Numbers, srcc
from agenticiqa.eval.report.columns import (
    ABOUT,
    LEARNED_TOOL,
    MODEL_ALONE,
    OFFLINE_SCORE,
    OURS,
    WITHOUT_PROFILE,
    Columns,
)

Kind = Literal["ours", "baseline", "tool"]

BEST_TOOL = "best single tool"
FOLDS = 5
ENOUGH = 0.5  # share of the images that a tool must have measured to be chosen


@dataclass(frozen=True)
class ScorerColumn:
    """A scorer of the table: its values (N,), NaN where it has none.

    ``used`` returns the tools that a row's value depends on. ``raw`` means that no curve was applied, and ``partial``
    that a tool ran only on images that it was chosen for. ``about`` lists the tools of the best single tool, with their
    numbers of images.
    """

    name: str
    kind: Kind
    values: Numbers
    used: Callable[[int], frozenset[str]]
    partial: bool = False
    raw: bool = False
    about: str = ""
    sources: Mapping[str, int] = field(default_factory=dict)


def scorer_columns(columns: Columns) -> list[ScorerColumn]:
    """Return all scorers, ours first, single tools last; a fusion equal to our score is omitted."""
    predictions = columns.predictions
    ours = predictions[columns.first]
    values = {name: predictions[name] for name in (columns.first, *ABOUT) if name in predictions}
    default = values.get(WITHOUT_PROFILE)
    if default is not None and np.allclose(default, ours, rtol=0, atol=1e-9, equal_nan=True):
        del values[WITHOUT_PROFILE]
    listed: list[ScorerColumn] = []
    for name, column in values.items():
        kind: Kind = "ours" if name == columns.first else "baseline"
        sources = _sources(columns, name, column)
        raw = name == columns.first != OURS
        listed.append(ScorerColumn(name, kind, column, _used(columns, name), raw=raw, sources=sources))
        if len(sources) > 1:
            listed += [
                ScorerColumn(
                    f"{name}, {source}", kind, np.where(_is(columns, source), column, np.nan), lambda _: frozenset()
                )
                for source in sources
            ]
    tools = columns.tools
    if best := chosen_on_other_images(tools, columns.numbers("mos"), columns.contents):
        listed.append(best)
    most = max((int(np.isfinite(column).sum()) for column in tools.values()), default=0)
    listed += [
        ScorerColumn(name, "tool", column, _always(name), partial=bool(np.isfinite(column).sum() < most))
        for name, column in tools.items()
    ]
    return listed


def chosen_on_other_images(tools: Mapping[str, Numbers], mos: Numbers, contents: Sequence[str]) -> ScorerColumn | None:
    """Return the best single tool, chosen for each fold of scenes by its SRCC on the images of all other folds.

    Cross-validation avoids the bias of choosing the best tool on the same images. Only a tool that measured half of
    the images is chosen. Returns ``None`` without such a tool, or with a single scene.
    """
    folds = folds_by_content(contents, FOLDS, dealt=True) if contents else np.zeros(0, dtype=np.intp)
    values, chosen = np.full(len(mos), np.nan), np.full(len(mos), "", dtype=object)
    if len(np.unique(folds)) < 2:
        return None
    for fold in np.unique(folds):
        inside = folds == fold
        if best := best_tool(tools, mos, ~inside):
            values[inside] = tools[best][inside]
            chosen[inside] = best
    if not np.isfinite(values).any():
        return None
    names, counts = np.unique(chosen[chosen != ""].astype(str), return_counts=True)
    about = ", ".join(f"{name} {count}" for name, count in zip(names, counts, strict=True))
    return ScorerColumn(BEST_TOOL, "baseline", values, lambda row: frozenset({str(chosen[row])}), about=about)


def best_tool(tools: Mapping[str, Numbers], mos: Numbers, among: NDArray[np.bool_]) -> str | None:
    """Return the tool with the highest SRCC among these images (N,), if it measured at least half of them."""
    values = {}
    for name, column in tools.items():
        here = among & np.isfinite(column)
        value = srcc(column[here], mos[here]) if here.sum() >= ENOUGH * among.sum() else None
        if value is not None:
            values[name] = value
    return max(values, key=lambda name: values[name]) if values else None


def _sources(columns: Columns, name: str, values: Numbers) -> dict[str, int]:
    """Return the number of images by source of level probabilities; empty for scorers without them."""
    if name not in (MODEL_ALONE, OFFLINE_SCORE):
        return {}
    return Counter(source for row in np.flatnonzero(np.isfinite(values)) if (source := columns.mos_source[row]))


def _is(columns: Columns, source: str) -> NDArray[np.bool_]:
    return np.array([name == source for name in columns.mos_source])


def _used(columns: Columns, name: str) -> Callable[[int], frozenset[str]]:
    if name == columns.first != OURS:
        return _always(name)
    if name == MODEL_ALONE:
        return lambda _: frozenset()
    if name == OFFLINE_SCORE:
        return lambda row: frozenset({LEARNED_TOOL} if columns.mos_source[row] == "learned" else ())
    return lambda row: columns.called[row]


def _always(name: str) -> Callable[[int], frozenset[str]]:
    return lambda _: frozenset({name})
