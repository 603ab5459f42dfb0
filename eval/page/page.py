"""Write the report of runs: one page that opens from disk, and beside it the thumbnails and maps that it shows."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from agenticiqa.eval.page import charts, sections
from agenticiqa.eval.page.run import Point, Run
from agenticiqa.eval.report.sentences import sentences
from agenticiqa.eval.report.table import breakdown, further, headline
from agenticiqa.programs.backends.cores import available_cores
from agenticiqa.programs.cli import render as terminal
from agenticiqa.programs.errors import AgenticIQAError
from agenticiqa.programs.images.files import write_atomically
from agenticiqa.programs.page.render import PACKAGES, inline, render
from agenticiqa.programs.page.sheet import link_to
from agenticiqa.programs.page.thumbnails import NAME_DIGITS, ThumbnailRequest, folder_beside, write_thumbnails
from agenticiqa.programs.pictures.map_copy import map_copy
from agenticiqa.signatures.types import ExecutorOutput

PACKAGE = "agenticiqa.eval.page"
SIDE = 160  # pixels of a thumbnail


def write_page(runs: Sequence[Run], page: Path, mos_range: Sequence[float] | None = None) -> None:
    """Write the report of one or more runs to ``page``. Raises OSError when a file cannot be written.

    ``mos_range`` has the opinion scores that stand for 1 and 5, where they are not plain from the scores themselves.
    """
    folder = folder_beside(page)
    points = {point.entry.sha256: point for run in runs for point in run.scored if point.entry.sha256}
    wanted = [ThumbnailRequest(point.entry.image, digest) for digest, point in points.items()]
    made = write_thumbnails(wanted, folder, side=SIDE, workers=available_cores())
    files = dict(zip(points, terminal.progress(made, len(wanted), "thumbnails"), strict=True))
    values = {
        "title": "Report: " + "; ".join(run.title for run in runs),
        "runs": [_run(run, number, page, files, mos_range) for number, run in enumerate(runs)],
        "compared": sections.compared(runs),
        "report_style": inline("report.css", PACKAGE),
        "library": charts.library(),
        "script": inline("report.js", PACKAGE),
    }
    write_atomically(page, render("report/report.html", values, {**PACKAGES, "report": PACKAGE}))


def _run(
    run: Run, number: int, page: Path, files: dict[str, str | None], mos_range: Sequence[float] | None
) -> dict[str, Any]:
    """What the template shows of one run."""
    points = run.scored
    found = sections.fit(points)
    folder = quote(folder_beside(page).name)
    chart = charts.scatter(points, found.curve if found else (), folder, f"chosen{number}")
    levels = sections.probabilities(run, mos_range)
    largest = found.residuals[: sections.WORST] if found else []
    smallest = found.residuals[::-1][: min(sections.BEST, len(points) - len(largest))] if found else []
    shown = {point.name: _shown(run, point, away, page, files) for away, point in [*largest, *smallest]}
    return {
        "id": number,
        "title": run.title,
        "folder": str(run.folder),
        "headline": headline(run.figures),
        "further": further(run.figures),
        "sentences": sentences(run.figures),
        "images": run.figures["images"],
        "rows": len(run.points),
        "scored": len(points),
        "unscored": [(point.name, point.entry.answer or "failed") for point in run.points if point.entry.score is None],
        "scatter": charts.as_json(chart),
        "reliability": charts.as_json(charts.reliability_diagram(levels["bins"])) if "bins" in levels else None,
        "levels": levels,
        "groups": [breakdown(run.figures, by) for by in run.figures["breakdowns"]],
        "largest": [shown[point.name] for _, point in largest],
        "smallest": [shown[point.name] for _, point in smallest],
        "seconds": sections.seconds(run),
        "spent": sections.spent(run),
        "command": sections.command(run),
        "settings": json.dumps(run.made_with, indent=2, ensure_ascii=False),
    }


def _shown(run: Run, point: Point, away: float, page: Path, files: dict[str, str | None]) -> dict[str, Any]:
    """One image with its evidence and its map, for which its file is read again; without a map where that fails."""
    row, folder, entry = run.row(point), folder_beside(page), point.entry
    evidence = ExecutorOutput.model_validate(row["executor_evidence"])
    file = folder / f"{entry.sha256[:NAME_DIGITS]}_map.webp"
    try:
        made = map_copy(row)
        caption = made.caption if made else "no tool has a map of such an image"
        if made:
            write_atomically(file, made.webp)
    except AgenticIQAError as error:
        made, caption = None, str(error)
    address = quote(folder.name)
    picture = files.get(entry.sha256)
    return {
        "name": point.name,
        "link": link_to(entry.image, page),
        "picture": f"{address}/{picture}" if picture else None,
        "map": f"{address}/{file.name}" if made else None,
        "caption": caption,
        "score": f"{entry.score:.2f}",
        "mos": f"{point.mos:.2f}",
        "away": f"{away:+.2f}",
        "reasoning": row["quality_reasoning"],
        "tools": [
            (call.tool, call.distortion, call.region, "failed" if call.calibrated is None else f"{call.calibrated:.2f}")
            for call in evidence.tool_log
        ],
    }
