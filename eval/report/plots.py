"""Draw figures for papers with matplotlib: scores against MOS with the fitted curve, and SRCC with its intervals.

A figure is as wide as a column (3.5 inches, 88.9 mm) or a page (7.16 inches, 181.9 mm) of IEEE journals, has text of 8
points and embedded fonts. Equal input gives an equal file.
"""

import io
import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenticiqa.eval.intervals import Interval
from agenticiqa.eval.report.page.charts import BLUE, GRAY, RED
from agenticiqa.eval.report.page.kept_run import KeptRun
from agenticiqa.eval.report.page.sections import columns, residual_fit
from agenticiqa.eval.report.rating_tables import HEADLINE
from agenticiqa.eval.report.ratings import FIGURES
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.files import without_controls

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# By suffix, the metadata that leave out the time of writing.
FORMATS: dict[str, dict[str, None]] = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}, ".png": {}}
COLUMN, PAGE = 3.5, 7.16  # inches
DPI = 600  # of a PNG, and of points that a vector file has as a picture
PANELS = 3  # in a row
PANEL_HEIGHT = 2.6  # inches
ROW, AXIS = 0.2, 0.6  # inches of a line of intervals, and of the axis below
MOST_DRAWN = 2000  # points that a vector file has as shapes
STYLE: Any = {  # Any, because matplotlib types the names one by one
    **{"font.size": 8, "font.family": "sans-serif", "font.sans-serif": ["Arial", "Liberation Sans", "DejaVu Sans"]},
    **{"axes.linewidth": 0.6, "xtick.major.width": 0.6, "ytick.major.width": 0.6, "axes.titlesize": 8},
    **{"pdf.fonttype": 42, "svg.hashsalt": "plot", "text.parse_math": False},
}


def refuse_other_formats(*files: Path | None) -> None:
    """Raise UserError for a file whose suffix is no format of a plot."""
    for file in filter(None, files):
        if file.suffix.lower() not in FORMATS:
            raise UserError(f"{file}: a plot is written as {', '.join(FORMATS)}: end the name with one of them")


def scatter_plot(runs: Sequence[KeptRun]) -> "Figure":
    """Draw MOS against scores for each run, with the fitted curve and the agreement, in panels of one page."""
    with _style():
        rows = math.ceil(len(runs) / PANELS)
        width = COLUMN if len(runs) == 1 else PAGE
        figure = _figure(width, PANEL_HEIGHT * rows)
        across = min(len(runs), PANELS)
        for place, run in enumerate(runs, 1):
            axes = figure.add_subplot(rows, across, place, xlabel="Score", ylabel="MOS")
            scores, mos = columns(run.scored)
            many = len(scores) > MOST_DRAWN
            axes.scatter(scores, mos, s=4 if many else 9, alpha=0.5, color=BLUE, linewidths=0, rasterized=many)
            if fit := residual_fit(run.scored):
                axes.plot(*zip(*fit.curve, strict=True), color=RED, linewidth=1.2)
            agreement = [(FIGURES[key], run.figures["systems"][0][key]["value"]) for key in HEADLINE[:2]]
            known = [f"{name} {value:.3f}" for name, value in agreement if value is not None]
            title = without_controls(run.name) if len(runs) > 1 else ""
            axes.set_title("\n".join(filter(None, (title, ", ".join(known)))))
    return figure


def interval_plot(figures: Sequence[tuple[str, Interval]], axis: str) -> "Figure":
    """Draw values with their 95 % intervals, one below the other; ``axis`` names them. Absent values are left out."""
    lines = [(name, interval, value) for name, interval in figures if (value := interval.value) is not None]
    with _style():
        figure = _figure(COLUMN, ROW * max(1, len(lines)) + AXIS)
        axes = figure.add_subplot(xlabel=f"{axis} (95 % interval)")
        for place, (_, interval, _) in enumerate(lines):
            if interval.low is not None and interval.high is not None:
                axes.hlines(place, interval.low, interval.high, color=GRAY, linewidth=1.2)
        axes.scatter([value for _, _, value in lines], range(len(lines)), s=14, color=BLUE, zorder=3)
        axes.set_yticks(range(len(lines)), [without_controls(name) for name, _, _ in lines])
        axes.set_ylim(len(lines) - 0.5, -0.5)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="x", linewidth=0.3)
    return figure


def file_of(figure: "Figure", suffix: str) -> bytes:
    """Return the content of a file with a figure in the format of a suffix."""
    content = io.BytesIO()
    with _style():
        figure.savefig(content, format=suffix.lower().removeprefix("."), dpi=DPI, metadata=FORMATS[suffix.lower()])
    return content.getvalue()


def _style() -> AbstractContextManager[None]:
    from matplotlib import rc_context

    return rc_context(STYLE)


def _figure(width: float, height: float) -> "Figure":
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")
