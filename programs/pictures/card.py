"""Draw the score or answer above the images, and the tables of distortions and tools below them."""

from collections.abc import Sequence
from textwrap import wrap
from typing import Literal

from agenticiqa.programs.fusion.formula import interval_text, level_name
from agenticiqa.programs.page.findings import LEVEL_COLORS, distortions_of, measured, place_of, placed, tool_rows
from agenticiqa.programs.pictures.canvas import CUT, FAINT, INK, Canvas
from agenticiqa.programs.result import Assessment
from agenticiqa.signatures.vocabulary import LEVELS, SEVERITIES

Row = tuple[str, ...]

ROW = 0.25  # height of a row in inches
MOST_ROWS = 13
SCORE_HEIGHT, ANSWER_LINE = 0.95, 0.28  # inches
# The left end of the scale from 1 to 5, and its length, in inches.
SCALE = (5.6, 4.5)
BAR = 0.17  # height of the scale's colors in inches
# Left edges of the columns, and the end of the last one, in inches.
DISTORTIONS = (0.0, 2.5, 4.2)
TOOLS = (4.55, 6.0, 7.5, 9.05, 9.65, 10.5)
LINE, ANSWER_LETTERS = 52, 85  # characters of a line
DOTS = ["\u25cf" * grade + "\u25cb" * (len(SEVERITIES) - 1 - grade) for grade in range(len(SEVERITIES))]
WEIGHT_COLOR = "#cfe0ee"


def height_of_answer(result: Assessment) -> float:
    """Return the height of the score or the answer in inches."""
    return SCORE_HEIGHT if result.quality_score is not None else ANSWER_LINE * len(_answer(result)) + 0.1


def height_of_tables(result: Assessment) -> float:
    """Return the height of the two tables in inches."""
    return ROW * max(len(_distortions(result)), len(_tools(result)))


def draw_answer(canvas: Canvas, result: Assessment, left: float, top: float) -> None:
    """Draw the score, its level and interval, and its place on the scale; for other questions, question and answer."""
    score = result.quality_score
    if score is None:
        for number, line in enumerate(_answer(result)):
            y, room = top - ANSWER_LINE * (number + 0.8), canvas.width - 2 * left
            size, weight, color = (11.5, "normal", FAINT) if number == 0 else (14, "bold", INK)
            canvas.write(left, y, line, size=size, weight=weight, color=color, room=room)
        return
    level = level_name(score)
    end = canvas.write(left, top - 0.62, f"{score:.2f}", size=36, weight="bold", color=LEVEL_COLORS[LEVELS[level]])
    canvas.write(end + 0.15, top - 0.34, f"of 5: {level}", size=16, weight="bold")
    canvas.write(end + 0.15, top - 0.62, interval_text(result.score_interval), size=11.5)
    start, length = left + SCALE[0], SCALE[1]
    for word, number in LEVELS.items():
        low, high = (start + length * (max(1.0, min(5.0, number + side)) - 1) / 4 for side in (-0.5, 0.5))
        canvas.fill((low, top - 0.55, high - low - 0.02, BAR), LEVEL_COLORS[number])
        canvas.write(start + length * (number - 1) / 4, top - 0.76, f"{number} {word}", align="center")
    ends = (result.score_interval or {}).get("80") or (score, score)
    low, at, high = (start + length * (value - 1) / 4 for value in (ends[0], score, ends[1]))
    canvas.fill((low, top - 0.28, high - low, 0.035), INK)
    canvas.fill((at - 0.05, top - 0.58, 0.1, 0.4), "white")
    canvas.fill((at - 0.025, top - 0.57, 0.05, 0.38), INK)


def draw_tables(canvas: Canvas, result: Assessment, left: float, top: float) -> None:
    """Draw the table of distortions, and beside it the table of tools, with headings in bold."""
    for rows, columns, numeric in ((_distortions(result), DISTORTIONS, 2), (_tools(result), TOOLS, 3)):
        canvas.fill((left + columns[0], top - ROW - 0.02, columns[-1] - columns[0], 0.015), INK)
        for number, row in enumerate(rows):
            y = top - ROW * (number + 0.75) - (0.04 if number else 0)
            is_plain = number > 0 and (len(row) == 1 or not any(row[1:]))  # an explanation, or a line between tools
            for place, cell in enumerate(row):
                start, end = left + columns[place], left + columns[place + 1 if len(row) > 1 else -1]
                if place == len(TOOLS) - 2 and cell.endswith("%"):
                    canvas.fill((end - 0.8, y - 0.06, 0.8 * float(cell[:-1]) / 100, ROW - 0.03), WEIGHT_COLOR)
                align: Literal["left", "right"] = "right" if place >= numeric else "left"
                x = end - 0.06 if place >= numeric else start
                weight, color = "bold" if number == 0 else "normal", FAINT if is_plain else INK
                canvas.write(x, y, cell, weight=weight, color=color, align=align, room=end - start - 0.06)


def _answer(result: Assessment) -> list[str]:
    """Return the question, and the answer in at most three lines."""
    lines = wrap(str(result.final_answer), ANSWER_LETTERS) or ["-"]
    return [result.query, *(lines if len(lines) < 4 else [*lines[:2], f"{lines[2]} {CUT}"])]


def _distortions(result: Assessment) -> list[Row]:
    """Return a heading, and for each analyzed distortion, the most severe first, its name, severity and explanation.

    Explanations are omitted if there is no room for all of them.
    """
    evidence = result.executor_evidence
    names: list[Row] = [("distortion", "severity")]
    rows = [*names]
    for region, item in distortions_of(evidence):
        grade = SEVERITIES.index(item.severity)
        row: Row = (placed(item.type, place_of(evidence, region, item.type)), f"{DOTS[grade]} {item.severity}")
        names.append(row)
        rows += [row, *((line,) for line in wrap(item.explanation, LINE))]
    nothing = "not analyzed" if evidence.distortion_analysis is None else "none found"
    return _limited((rows if len(rows) <= MOST_ROWS else names) if names[1:] else [*names, (nothing,)])


def _tools(result: Assessment) -> list[Row]:
    """Return a heading and a row for each tool call."""
    rows: list[Row] = [
        *tool_rows(
            result.executor_evidence.tool_log, lambda call: placed(measured(call.tool, call.distortion), call.region)
        )
    ]
    return _limited(rows if rows[1:] else [*rows, ("no tool was run",)])


def _limited(rows: Sequence[Row]) -> list[Row]:
    """Return at most ``MOST_ROWS`` rows; the last one then says how many more there are."""
    if len(rows) <= MOST_ROWS:
        return [*rows]
    return [*rows[: MOST_ROWS - 1], (f"and {len(rows) - MOST_ROWS + 1} more",)]
