"""The report of a calibration: a row and a panel for each tool, with the reason if it was refused."""

import io
from dataclasses import replace

import numpy as np
from PIL import Image
from rich.console import Console

from agenticiqa.eval.calibrate.calibration_fit import CurveFit, Points
from agenticiqa.eval.calibrate.fit_report import Outcome, picture, table
from agenticiqa.eval.intervals import Interval
from agenticiqa.programs.tools import TOOLS
from agenticiqa.programs.tools.calibration import Calibration

RAW = np.linspace(0, 1, 5)
POINTS = Points(RAW, 1 + 4 * RAW, tuple("abcde"), perfect=1.0, worst=(0.1, 0.2))
LINE = Calibration((0.0, 1.0, 0.0, 4.0, 1.0), (0.0, 1.0), "a line through the points")
LOWER = Calibration((0.0, 1.0, 0.0, 4.0, 0.75), (0.0, 1.0), "a line a quarter below, but for its end at 1")
FITTED = Outcome(TOOLS["SSIM"], LOWER, POINTS, CurveFit(LINE, Interval(0.9, 0.8, 0.95, 5), 0.111, 0.222))
REFUSED = Outcome(TOOLS["GMSD"], None, None, refusal="it measures 0 for every image")


def shown(*outcomes: Outcome) -> list[list[str]]:
    """The cells of the table's rows."""
    console = Console(width=170, file=io.StringIO(), record=True)
    console.print(table(outcomes))
    lines = [line for line in console.export_text().splitlines() if line.startswith("│")]
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]


def test_the_table_has_the_fit_beside_the_old_curve_on_the_same_points() -> None:
    old = np.sqrt(np.mean([(max(1.0, 0.75 + 4 * raw) - 1 - 4 * raw) ** 2 for raw in RAW]))
    cells = ["SSIM", "5", "0.900 [0.800, 0.950]", "0.111", "higher is better", f"{old:.3f}", "0.222"]
    assert shown(FITTED, REFUSED) == [cells, ["GMSD", "-", "-", "-", "-", "refused", ""]]


def test_a_tool_that_was_trained_on_the_images_is_marked() -> None:
    marked, refused = shown(replace(FITTED, trained_on=3), replace(REFUSED, trained_on=4))
    assert marked[0] == "SSIM (trained on 3 of these)"
    assert refused[0] == "GMSD (trained on 4 of these)"


def test_the_picture_has_a_panel_for_each_tool_even_without_points() -> None:
    widths = []
    for outcomes in ([FITTED], [FITTED, REFUSED]):
        with Image.open(io.BytesIO(picture(outcomes))) as drawn:
            assert drawn.format == "PNG"
            widths.append(drawn.width)
    assert widths[1] == 2 * widths[0]
