"""Draw the charts of a report by matplotlib, as SVG inside the page in the page's colors."""

import io
import re
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from agenticiqa.eval.report.page.kept_run import Point
from agenticiqa.programs.images.files import without_controls

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, RED, GRAY = "#4393c3", "#d6604d", "#808890"
INK, LINE = "#010203", "#040506"  # placeholders for the page's colors, so that a dark page has light axes
WIDTH, HEIGHT = 10.0, 4.8  # inches; the page scales a chart to its own width
MOST_COLORS = 30  # groups of images that get distinct colors
COLUMNS = 4  # columns of the legend

_LEFT_OUT = re.compile(r"^.*?(?=<svg)|<metadata>(?:[^<]|<(?!metadata>))*?</metadata>|<style[^<]*</style>", re.DOTALL)


def scatter(points: Sequence[Point], curve: Sequence[tuple[float, float]], axis: str) -> "Figure":
    """Draw MOS against score, a color for each group, with the fitted curve.

    A scored point is a link to ``#N``, N being its place in ``points``, by which the page's script shows its image.
    ``axis`` labels the scores.
    """
    from matplotlib import colormaps

    with _style():
        figure, axes = _figure(axis, "mean opinion score (MOS)")
        groups: dict[str, list[tuple[int, float, float]]] = {}  # indices, scores and MOS
        for place, point in enumerate(points):
            if point.entry.score is not None:
                groups.setdefault(point.group, []).append((place, point.entry.score, point.mos))
        size, alpha = (26, 0.6) if len(points) <= 2000 else (13, 0.35)
        several = 1 < len(groups) <= MOST_COLORS
        colors = colormaps["tab10" if len(groups) <= 10 else "turbo"]
        for number, name in enumerate(sorted(groups)):
            places, scores, mos_values = zip(*groups[name], strict=True)
            shade = number if len(groups) <= 10 else number / (len(groups) - 1)
            drawn = axes.scatter(
                scores,
                mos_values,
                s=size,
                alpha=alpha,
                color=colors(shade) if several else BLUE,
                linewidths=0,
                label=without_controls(name),
            )
            drawn.set_urls([f"#{place}" for place in places])
        if curve:
            axes.plot(*zip(*curve, strict=True), color=RED, linewidth=2)
        if several:
            handles, labels = axes.get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside lower center", ncols=COLUMNS, frameon=False, labelcolor=INK)
            figure.set_figheight(HEIGHT + 0.2 * -(-len(groups) // COLUMNS))
    return figure


def reliability_diagram(bins: Sequence[tuple[int, float, float, float, float]]) -> "Figure":
    """Draw the share of right levels against the confidence, with 95 % intervals; the diagonal is perfect calibration.

    A bin has its number of images, mean confidence, share of right levels, and the ends of that share's interval.
    """
    _, confidence, right, low, high = zip(*bins, strict=True)
    with _style():
        figure, axes = _figure(
            "confidence: probability of the most probable level", "accuracy: share of images at that level"
        )
        axes.plot([0, 1], [0, 1], color=GRAY, linestyle="dashed")
        axes.vlines(confidence, low, high, color=BLUE, linewidth=2)
        axes.scatter(confidence, right, s=40, color=BLUE)
        several = [(x, y) for n, x, y, _, _ in bins if n > 1]  # a single image gives no meaningful share
        if several:
            axes.plot(*zip(*several, strict=True), color=BLUE)
        axes.set_xlim(0, 1.02)
        axes.set_ylim(-0.02, 1.02)
    return figure


def learning_curve(
    line: Sequence[tuple[int, float]], taken: Sequence[tuple[int, float]], left: Sequence[tuple[int, float]]
) -> "Figure":
    """Draw the gain of a search over its assessments, and each proposal as a dot: blue if it was accepted, else red."""
    with _style():
        figure, axes = _figure("assessments", "gain")
        axes.plot(*zip(*line, strict=True), color=BLUE)
        for dots, color in ((taken, BLUE), (left, RED)):
            axes.scatter([spent for spent, _ in dots], [gain for _, gain in dots], s=40, color=color)
    return figure


def as_svg(chart: "Figure") -> Markup:
    """Return a chart as an SVG element for an HTML page, without element ids, which would collide between charts."""
    text = io.StringIO()
    with _style(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # the browser draws the text, with fonts of its own
        chart.savefig(text, format="svg", transparent=True)
    svg = text.getvalue()
    svg = _LEFT_OUT.sub("", svg)
    svg = re.sub(r' (width|height)="[^"]*pt"', "", svg, count=2)
    svg = re.sub(r'<g id="[^"]*"', "<g", svg).replace(INK, "currentColor").replace(LINE, "var(--line)")
    svg = svg.replace("<a ", '<a tabindex="-1" ').replace(' target="_blank"', "")
    return Markup(re.sub(r">\s+<", "><", svg))


def _style() -> AbstractContextManager[None]:
    from matplotlib import rc_context

    colors = dict.fromkeys(("axes.labelcolor", "xtick.color", "ytick.color", "text.color"), INK)
    lines = dict.fromkeys(("axes.edgecolor", "grid.color"), LINE)
    text = {"svg.fonttype": "none", "svg.hashsalt": "chart", "text.parse_math": False}
    style: Any = {**colors, **lines, **text, "axes.grid": True}  # Any, because matplotlib types the names one by one
    return rc_context(style)


def _figure(x: str, y: str) -> "tuple[Figure, Axes]":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
    axes = figure.add_subplot(xlabel=x, ylabel=y)
    axes.set_axisbelow(True)
    return figure, axes
