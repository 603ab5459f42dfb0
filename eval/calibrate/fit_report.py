"""Show the result of a calibration: a table for the terminal, and a plot with a panel for each tool."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.markup import escape
from rich.table import Table

from agenticiqa.eval.calibrate.calibration_fit import CurveFit, Points, root_mean_square_error
from agenticiqa.programs.images.own import MADE_BY
from agenticiqa.programs.pictures.canvas import drawable, families
from agenticiqa.programs.tools import Tool
from agenticiqa.programs.tools.calibration import Calibration

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = 4  # most panels in a row of the plot
BLUE, ORANGE, GRAY = "#0072b2", "#d55e00", "#777777"  # distinguishable for color-blind readers (Okabe and Ito)
CAPTION = (
    "residual: RMSE on 1..5 over the fitted points. held out: RMSE over scenes that the new curve was not fitted to. "
    "The old curve may have been fitted to them."
)


@dataclass(frozen=True)
class Outcome:
    """One tool's calibration: its points and its curve, or the ``refusal``; ``old`` is the base profile's curve."""

    tool: Tool
    old: Calibration | None
    points: Points | None = None
    fit: CurveFit | None = None
    refusal: str = ""
    trained_on: int = 0  # labeled images that the tool's model was trained on


def table(outcomes: Sequence[Outcome]) -> Table:
    """Return a table with a row for each tool; those without a curve are marked as refused."""
    rows = Table("tool", "n", "SRCC [95 %]", "residual", "direction", "held out: old", "new", caption=CAPTION)
    for outcome in outcomes:
        points, fit = outcome.points, outcome.fit
        name = outcome.tool.name + (f" (trained on {outcome.trained_on} of these)" if outcome.trained_on else "")
        if points is None or fit is None:
            rows.add_row(escape(name), *"-" * 4, "refused", "")
            continue
        rows.add_row(
            escape(name),
            str(len(points.raw)),
            f"{fit.srcc:.3f}",
            f"{fit.residual:.3f}",
            "higher is better" if outcome.tool.higher_is_better else "lower is better",
            f"{root_mean_square_error(outcome.old, points):.3f}" if outcome.old else "-",
            f"{fit.held_out:.3f}" if fit.held_out is not None else "-",
        )
    return rows


def picture(outcomes: Sequence[Outcome]) -> bytes:
    """Return a PNG with a panel for each tool: its points, the new curve and the old one."""
    from matplotlib.figure import Figure

    columns = min(COLUMNS, len(outcomes))
    rows = ceil(len(outcomes) / columns)
    figure = Figure(figsize=(4.2 * columns, 3.6 * rows + 0.5), dpi=110, layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for panel, outcome in zip(panels, outcomes, strict=False):
        _draw_panel(panel, outcome)
    for panel in panels[len(outcomes) :]:
        panel.set_axis_off()
    figure.supylabel("quality, 1 to 5")
    marks = {label: mark for panel in panels for mark, label in zip(*panel.get_legend_handles_labels(), strict=True)}
    figure.legend(marks.values(), marks.keys(), loc="outside upper center", ncols=len(marks), frameon=False)
    png = io.BytesIO()
    figure.savefig(png, format="png", metadata={"Software": MADE_BY})
    return png.getvalue()


def _draw_panel(panel: "Axes", outcome: Outcome) -> None:
    tool, points, fit = outcome.tool, outcome.points, outcome.fit
    raw: list[Any] = []
    if points is not None:
        raw = [points.raw, *([[points.perfect]] if points.perfect is not None else []), points.worst]
        panel.scatter(points.raw, points.quality, s=9, color=BLUE, alpha=0.45, linewidths=0, label="images")
    low, high = tool.raw_range
    inside = np.clip(np.concatenate(raw), low, high) if raw and sum(map(len, raw)) else np.array(tool.raw_range)
    margin = 0.04 * (float(np.ptp(inside)) or high - low)
    panel.set(ylim=(0.85, 5.15), xlim=(inside.min() - margin, inside.max() + margin), yticks=range(1, 6))
    panel.set_xlabel(f"{tool.name}, {'higher' if tool.higher_is_better else 'lower'} is better", parse_math=False)
    grid = np.linspace(max(low, inside.min() - margin), min(high, inside.max() + margin), 400)
    if outcome.old:
        before = [outcome.old(value) for value in grid]
        panel.plot(grid, before, color=GRAY, linestyle="--", linewidth=1.2, label="old curve")
    if fit:
        panel.plot(grid, [fit.curve(value) for value in grid], color=ORANGE, linewidth=2.2, label="new curve")
    if points is not None and fit is not None:
        _draw_anchors(panel, points, tool.raw_range)
        title = f"n = {len(points.raw)}, SRCC {fit.srcc.value:.3f}, residual {fit.residual:.2f}"
        panel.set_title(drawable(f"{tool.name}\n{title}"), fontsize=10, parse_math=False, fontfamily=families())
    else:
        panel.set_title(fill(f"{tool.name}, refused: {outcome.refusal}", 52), fontsize=8, parse_math=False)


def _draw_anchors(panel: "Axes", points: Points, raw_range: tuple[float, float]) -> None:
    ends = [*([(points.perfect, 5)] if points.perfect is not None else []), *((value, 2) for value in points.worst)]
    for value, target in ends:
        is_ceiling = target == 5
        panel.plot(
            np.clip(value, *raw_range),
            target,
            marker="*" if is_ceiling else "v",
            color=ORANGE,
            markeredgecolor="black",
            markersize=12 if is_ceiling else 7,
            linestyle="none",
            label="undistorted: quality 5" if is_ceiling else "extreme distortion: quality at most 2",
        )
