"""Draw fitted tool curves: a panel for each tool with its points, the new curve and the old one."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np

from agenticiqa.eval.research.curve_fit import CurveFit, Points
from agenticiqa.programs.images.own import MADE_BY
from agenticiqa.programs.pictures.canvas import drawable, families
from agenticiqa.programs.tools import Tool
from agenticiqa.programs.tools.tool_curves import ToolCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, ORANGE, GRAY = "#0072b2", "#d55e00", "#777777"  # colors that color-blind readers distinguish (Okabe and Ito)


@dataclass(frozen=True)
class Outcome:
    """One tool's points and its curve, or the ``refusal``; ``old`` is the base's curve."""

    tool: Tool
    points: Points
    old: ToolCurve | None
    fit: CurveFit | None = None
    refusal: str = ""


def picture(outcomes: Sequence[Outcome]) -> bytes:
    """Return a PNG with a panel for each tool, in a row."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * len(outcomes), 4.1), dpi=110, layout="constrained")
    panels = figure.subplots(1, len(outcomes), squeeze=False)[0]
    for panel, outcome in zip(panels, outcomes, strict=True):
        _draw_panel(panel, outcome)
    figure.supylabel("quality, 1 to 5")
    png = io.BytesIO()
    figure.savefig(png, format="png", metadata={"Software": MADE_BY})
    return png.getvalue()


def _draw_panel(panel: "Axes", outcome: Outcome) -> None:
    tool, points, fit = outcome.tool, outcome.points, outcome.fit
    low, high = tool.raw_range
    ends = [(value, 2.0) for value in points.worst]
    if points.perfect is not None:
        ends.append((points.perfect, 5.0))
    inside = np.clip([*points.raw, *(value for value, _ in ends)] or tool.raw_range, low, high)
    grid = np.linspace(inside.min(), inside.max(), 400)
    panel.set(ylim=(0.85, 5.15), yticks=range(1, 6))
    panel.set_xlabel(f"{tool.name}, {'higher' if tool.higher_is_better else 'lower'} is better", parse_math=False)
    panel.scatter(np.clip(points.raw, low, high), points.quality, s=9, color=BLUE, alpha=0.45, label="images")
    if outcome.old:
        panel.plot(grid, [*map(outcome.old, grid)], color=GRAY, linestyle="--", label="old curve")
    title = f"{tool.name}, refused: {outcome.refusal}"
    if fit:
        panel.plot(grid, [*map(fit.curve, grid)], color=ORANGE, linewidth=2.2, label="new curve")
        title = f"{tool.name}: n = {len(points.raw)}, SRCC {fit.srcc.value:.3f}, residual {fit.residual:.2f}"
    for value, target in ends:
        panel.plot(np.clip(value, low, high), target, "*", color=ORANGE, markeredgecolor="black", markersize=12)
    panel.set_title(drawable(fill(title, 52)), fontsize=9, parse_math=False, fontfamily=families())
    panel.legend(frameon=False)
