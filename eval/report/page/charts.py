"""The charts of a report: Bokeh's models as JSON that stands in the page, beside the one copy of its script."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from agenticiqa.eval.report.page.kept_run import Point
from agenticiqa.eval.report.page.samples import coded
from agenticiqa.programs.page.thumbnails import stem_of

if TYPE_CHECKING:
    from bokeh.plotting import figure

BLUE, RED, GRAY = "#4393c3", "#d6604d", "#808890"
HEIGHT = 420  # pixels
MOST_COLORS = 30  # groups of images that are told apart by color
NO_PICTURE = "data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA="
HOVER = """
<div style="max-width:240px;color:#222;overflow-wrap:anywhere;white-space:normal;font:13px/1.35 sans-serif">
<img src="@picture{custom}" alt="" style="max-width:160px;max-height:160px;display:block">
<b>@score{0.00}</b>, MOS @mos{0.00}, @group<br>@evidence{custom}<br>@name</div>
"""


def scatter(
    points: Sequence[Point], curve: Sequence[tuple[float, float]], folder: str, place: str, axis: str
) -> "figure":
    """Opinion against score by color of the group, with the fitted curve; a point shows its image.

    A chosen one is also shown in ``place`` below.

    ``folder`` is that of the thumbnails, relative to the page, and ``place`` the id of an element of the page.
    """
    from bokeh.models import ColumnDataSource, CustomJS, CustomJSHover, HoverTool, TapTool
    from bokeh.palettes import Category10, turbo
    from bokeh.transform import factor_cmap

    evidence, texts = coded([point.entry.finding or "no distortion found" for point in points])
    groups = [point.group for point in points]
    source = ColumnDataSource(
        {
            "score": np.array([point.entry.score for point in points], np.float32),
            "mos": np.array([point.mos for point in points], np.float32),
            "name": [point.name for point in points],
            "picture": [stem_of(point.entry.sha256) for point in points],
            "evidence": np.array(evidence, np.uint16),
            "group": groups,
        }
    )
    picture = CustomJSHover(args={"folder": folder, "none": NO_PICTURE}, code=PICTURE)
    words = CustomJSHover(args={"texts": texts}, code="return texts[value]")
    chart = _figure(axis, "mean opinion score")
    few = len(points) <= 2000
    size, alpha = (7, 0.6) if few else (5, 0.35)
    names = sorted(set(groups))
    if 1 < len(names) <= MOST_COLORS:
        color: Any = factor_cmap("group", [*map(str, turbo(len(names)))] if len(names) > 10 else Category10[10], names)
        drawn = chart.scatter(
            "score", "mos", source=source, size=size, alpha=alpha, color=color, line_color=None, legend_group="group"
        )
        legend = chart.legend[0]
        legend.update(ncols=4, label_text_font_size="11px", label_height=12, glyph_height=12, border_line_color=None)
        legend.update(background_fill_color=None, padding=2, spacing=0)
        chart.add_layout(legend, "below")
        chart.height = HEIGHT + 18 * -(-len(names) // 4)
    else:
        drawn = chart.scatter("score", "mos", source=source, size=size, alpha=alpha, color=BLUE, line_color=None)
    if curve:
        x, y = zip(*curve, strict=True)
        chart.line(x, y, color=RED, line_width=2.5)
    chart.add_tools(
        HoverTool(renderers=[drawn], tooltips=HOVER, formatters={"@picture": picture, "@evidence": words}, limit=1),
        TapTool(renderers=[drawn]),
    )
    chosen = CustomJS(args={"source": source, "texts": texts, "folder": folder, "place": place}, code=CHOSEN)
    source.selected.js_on_change("indices", chosen)
    return chart


PICTURE = "return value ? `${folder}/${value}.webp` : none"
CHOSEN = """
const data = source.data, i = source.selected.indices[0]
if (i != null) {
  showChosen(place, data.picture[i] ? `${folder}/${data.picture[i]}.webp` : "", [
    data.name[i], `score ${data.score[i].toFixed(2)}, MOS ${data.mos[i].toFixed(2)}`, texts[data.evidence[i]]])
}
"""


def reliability_diagram(bins: Sequence[tuple[int, float, float, float, float]]) -> "figure":
    """The share of right levels against the confidence, with 95 % intervals; the diagonal is perfect calibration.

    A bin has its number of images, mean confidence, share of right levels, and the ends of that share's interval.
    """
    _, confidence, right, low, high = zip(*bins, strict=True)
    chart = _figure("confidence: probability of the most probable level", "share of images at that level")
    chart.line([0, 1], [0, 1], color=GRAY, line_dash="dashed")
    chart.segment(confidence, low, confidence, high, color=BLUE, line_width=2)
    chart.scatter(confidence, right, size=9, color=BLUE)
    several = [(x, y) for n, x, y, _, _ in bins if n > 1]  # one image is no share to draw a line to
    if several:
        chart.line(*zip(*several, strict=True), color=BLUE)
    chart.x_range.start, chart.x_range.end, chart.y_range.start, chart.y_range.end = 0, 1.02, -0.02, 1.02
    return chart


def as_json(chart: "figure") -> Markup:
    """A chart as JSON for ``Bokeh.embed.embed_item``, harmless inside a script element."""
    from bokeh.core.json_encoder import serialize_json
    from bokeh.embed import json_item

    text: str = serialize_json(json_item(chart))
    return Markup(text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))


def library() -> Markup:
    """Bokeh's own script, complete, to stand inside the page."""
    from bokeh.resources import Resources

    return Markup("\n".join(Resources(mode="inline", components=["bokeh"]).js_raw))


def _figure(x: str, y: str) -> Any:
    from bokeh.plotting import figure

    chart = figure(
        height=HEIGHT,
        sizing_mode="stretch_width",
        tools="pan,wheel_zoom,box_zoom,reset,save",
        active_drag=None,  # so that a finger scrolls the page
        x_axis_label=x,
        y_axis_label=y,
        background_fill_color=None,
        border_fill_color=None,
    )
    chart.toolbar.logo = None
    return chart
