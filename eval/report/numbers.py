"""The figures of runs as numbers for other programs, unrounded."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from agenticiqa.eval.report.figures import FIGURES

ENDS = ("value", "low", "high")


def numbers_csv(reports: Sequence[Mapping[str, Any]]) -> str:
    """Reports as CSV: a line for each run and predictor; of each figure three columns: value, ``_low``, ``_high``.

    What is undefined is empty.
    """
    ways = [*dict.fromkeys(way for each in reports for system in each["systems"] for way in system["fitted_on"])]
    columns = [key if end == "value" else f"{key}_{end}" for key in FIGURES for end in ENDS]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["data", "backend", "predictor", "n", "unscored", *(f"fitted_on_{way}" for way in ways), *columns])
    for report in reports:
        for system in report["systems"]:
            about = [report["data"], report["backend"], system["name"], system["n"], system["unscored"]]
            counts = [system["fitted_on"].get(way, 0) for way in ways]
            writer.writerow([*about, *counts, *(system[key][end] for key in FIGURES for end in ENDS)])
    return text.getvalue()
