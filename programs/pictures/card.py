"""The card below a picture: the answer, the distortions with their severities, and what each tool measured."""

from collections.abc import Sequence
from textwrap import shorten, wrap

import dspy

from agenticiqa.programs.pictures.canvas import FAINT, INK, Canvas, Place
from agenticiqa.programs.stages.fusion import level_name
from agenticiqa.signatures.types import GLOBAL, ExecutorOutput
from agenticiqa.signatures.vocabulary import LEVELS, SEVERITIES

Row = tuple[str, ...]

ROW = 0.235  # inches
MOST_ROWS = 9
# Where the three parts begin and their columns stand, as shares of the card's width.
ANSWER_WIDTH = 0.27
DISTORTIONS = (0.31, 0.47)
TOOLS = (0.58, 0.71, 0.88, 0.95)
LEVEL_COLOURS = {1: "#b2182b", 2: "#d6604d", 3: "#777777", 4: "#4393c3", 5: "#2166ac"}  # red to blue
CHARACTERS_PER_INCH = 13  # of the tables' text, on average


def rows_of(result: dspy.Prediction) -> int:
    """How many rows of ``ROW`` inches the card needs."""
    return max(len(_distortions(result)), len(_tools(result)), 4)


def draw_card(sheet: Canvas, result: dspy.Prediction, place: Place) -> None:
    """Draw the card from the top of its place down."""
    left, bottom, width, height = place
    top = bottom + height - ROW
    _draw_answer(sheet, result, left, top, ANSWER_WIDTH * width)
    for rows, columns in ((_distortions(result), DISTORTIONS), (_tools(result), TOOLS)):
        for number, row in enumerate(rows):
            for column, cell, following in zip(columns, row, (*columns[1:], None), strict=True):
                end = following or (TOOLS[0] if columns is DISTORTIONS else 1.0)
                room = max(int((end - column) * width * CHARACTERS_PER_INCH) - 1, 8)
                text = shorten(cell, room, placeholder="...")
                x, y = left + column * width, top - number * ROW
                sheet.write(x, y, text, size=8.5 if number == 0 else 9.5, colour=FAINT if number == 0 else INK)


def _draw_answer(sheet: Canvas, result: dspy.Prediction, left: float, top: float, width: float) -> None:
    score = result.quality_score
    if score is None:
        lines = wrap(str(result.final_answer), int(width * CHARACTERS_PER_INCH * 0.9)) or ["-"]
        for number, line in enumerate(lines[:3] if len(lines) < 4 else [*lines[:2], f"{lines[2]} ..."]):
            sheet.write(left, top - number * ROW, line, size=10.5, weight="bold")
        return
    level = level_name(score)
    sheet.write(left, top - 0.14, f"{score:.2f}", size=24, weight="bold", colour=LEVEL_COLOURS[LEVELS[level]])
    sheet.write(left + 0.95, top - 0.14, f"of 5, {level}", size=12)
    bar = sheet.panel((left, top - 0.42, width, 0.13))
    bar.barh(0, score - 1, height=2, color=LEVEL_COLOURS[LEVELS[level]])
    bar.set(xlim=(0, 4), ylim=(-1, 1))
    for tick in range(1, 4):
        bar.axvline(tick, color="white", linewidth=1)
    for number, name in ((1, "1"), (3, "3"), (5, "5")):
        sheet.write(left + (number - 1) / 4 * width - 0.04, top - 0.6, name, size=8, colour=FAINT)


def _distortions(result: dspy.Prediction) -> list[Row]:
    """A heading and a row for each distortion that was looked at, the worst first."""
    evidence: ExecutorOutput = result.executor_evidence
    analysed = [(region, item) for region, items in (evidence.distortion_analysis or {}).items() for item in items]
    analysed.sort(key=lambda pair: -SEVERITIES.index(pair[1].severity))
    rows: list[Row] = [(_placed(item.type, region), item.severity) for region, item in analysed]
    return _limited([("distortion", "severity"), *(rows or [("none found", "")])])


def _tools(result: dspy.Prediction) -> list[Row]:
    """A heading and a row for each tool that was run."""
    evidence: ExecutorOutput = result.executor_evidence
    rows = [
        (
            call.tool,
            _placed(call.distortion, call.region),
            "failed" if call.raw is None else f"{call.raw:.4g}",
            "-" if call.calibrated is None else f"{call.calibrated:.2f}",
        )
        for call in evidence.tool_log
    ]
    return _limited([("tool", "for", "raw", "1..5"), *(rows or [("none was run", "", "", "")])])


def _placed(distortion: str, region: str) -> str:
    return distortion if region == GLOBAL else f"{distortion}, {region}"


def _limited(rows: Sequence[Row]) -> list[Row]:
    """The rows that there is room for, and how many are left out."""
    if len(rows) <= MOST_ROWS:
        return [*rows]
    left_out = f"and {len(rows) - MOST_ROWS + 1} more"
    return [*rows[: MOST_ROWS - 1], (left_out, *[""] * (len(rows[0]) - 1))]
