"""Draw the card below the images: score or answer, distortions with severities, and the values of the tools."""

from collections.abc import Sequence
from textwrap import shorten, wrap

from agenticiqa.programs.fusion.formula import interval_text, level_name
from agenticiqa.programs.page.findings import LEVEL_COLORS, distortions_of, measured, place_of, placed, tool_rows
from agenticiqa.programs.pictures.canvas import FAINT, INK, Canvas, Place
from agenticiqa.programs.result import Assessment
from agenticiqa.signatures.vocabulary import LEVELS

Row = tuple[str, ...]

ROW = 0.235  # height of a row in inches
MOST_ROWS = 9
# Left edges of the columns, as shares of the card's width.
ANSWER_WIDTH = 0.21
DISTORTIONS = (0.25, 0.455)
TOOLS = (0.53, 0.655, 0.795, 0.885, 0.945)
CHARACTERS_PER_INCH = 13  # characters of the tables' text, on average


def rows_of(result: Assessment) -> int:
    """Return the number of rows, each ``ROW`` inches high, that the card needs."""
    return max(len(_distortions(result)), len(_tools(result)), 4)


def draw_card(canvas: Canvas, result: Assessment, place: Place) -> None:
    """Draw the card of an assessment at the top of ``place``."""
    left, bottom, width, height = place
    top = bottom + height - ROW
    _draw_answer(canvas, result, left, top, ANSWER_WIDTH * width)
    for rows, columns in ((_distortions(result), DISTORTIONS), (_tools(result), TOOLS)):
        for number, row in enumerate(rows):
            for column, cell, following in zip(columns, row, (*columns[1:], None), strict=True):
                end = following or (TOOLS[0] if columns is DISTORTIONS else 1.0)
                room = max(int((end - column) * width * CHARACTERS_PER_INCH) - 1, 8)
                text = shorten(cell, room, placeholder="...")
                x, y = left + column * width, top - number * ROW
                canvas.write(x, y, text, size=9 if number == 0 else 9.5, color=FAINT if number == 0 else INK)


def _draw_answer(canvas: Canvas, result: Assessment, left: float, top: float, width: float) -> None:
    score = result.quality_score
    if score is None:
        lines = wrap(str(result.final_answer), int(width * CHARACTERS_PER_INCH * 0.9)) or ["-"]
        for number, line in enumerate(lines[:3] if len(lines) < 4 else [*lines[:2], f"{lines[2]} ..."]):
            canvas.write(left, top - number * ROW, line, size=10.5, weight="bold")
        return
    level = level_name(score)
    canvas.write(left, top - 0.14, f"{score:.2f}", size=24, weight="bold", color=LEVEL_COLORS[LEVELS[level]])
    canvas.write(left + 0.95, top - 0.14, f"of 5: {level}", size=12)
    bar = canvas.panel((left, top - 0.42, width, 0.13))
    bar.barh(0, score - 1, height=2, color=LEVEL_COLORS[LEVELS[level]])
    bar.set(xlim=(0, 4), ylim=(-1, 1))
    for number in LEVELS.values():
        canvas.write(left + (number - 1) / 4 * width - 0.04, top - 0.6, str(number), size=9, color=FAINT)
    if interval := interval_text(result.score_interval):
        canvas.write(left, top - 0.82, interval, size=9, color=FAINT)


def _distortions(result: Assessment) -> list[Row]:
    """Return a header and a row for each analyzed distortion, the most severe first."""
    evidence = result.executor_evidence
    rows: list[Row] = [
        (placed(item.type, place_of(evidence, region, item.type)), item.severity)
        for region, item in distortions_of(evidence)
    ]
    return _limited([("distortion", "severity"), *(rows or [("none found", "")])])


def _tools(result: Assessment) -> list[Row]:
    """Return a header and a row for each tool call."""
    rows = tool_rows(
        result.executor_evidence.tool_log, lambda call: placed(measured(call.tool, call.distortion), call.region)
    )
    return _limited(rows if rows[1:] else [*rows, ("no tool was run", "", "", "", "")])


def _limited(rows: Sequence[Row]) -> list[Row]:
    """Return at most ``MOST_ROWS`` rows; the last one then says how many more there are."""
    if len(rows) <= MOST_ROWS:
        return [*rows]
    rest = f"and {len(rows) - MOST_ROWS + 1} more"
    return [*rows[: MOST_ROWS - 1], (rest, *[""] * (len(rows[0]) - 1))]
