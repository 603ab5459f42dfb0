"""Write the page of runs, which opens from disk, and beside it the pictures that it shows."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from agenticiqa.eval.report.model import Report
from agenticiqa.eval.report.page import charts, sections
from agenticiqa.eval.report.page.kept_run import KeptRun, Point
from agenticiqa.eval.report.questions import question_report
from agenticiqa.eval.report.rating_tables import rating_report
from agenticiqa.programs.backends.cores import available_cores
from agenticiqa.programs.cli import render as terminal
from agenticiqa.programs.errors import AgenticIQAError
from agenticiqa.programs.images.files import write_atomically
from agenticiqa.programs.page.render import PACKAGES, inline, render
from agenticiqa.programs.page.sheet import link_to
from agenticiqa.programs.page.thumbnails import NAME_DIGITS, ThumbnailRequest, folder_beside, write_thumbnails
from agenticiqa.programs.pictures.map_copy import map_copy
from agenticiqa.signatures.types import ExecutorOutput

PACKAGE = "agenticiqa.eval.report.page"
SIDE, SIDE_OF_QUESTIONS = 160, 320  # pixels of a thumbnail
SHOWN = 24  # questions with their images
HEADINGS = {"choice": "Wrong answers", "planning": "Plans with a wrong field", "explanation": "Answers"}


def report_of(run: KeptRun) -> Report:
    """The report of a run of either kind."""
    return question_report(run.figures) if run.asks_questions else rating_report(run.figures)


def write_page(runs: Sequence[KeptRun], page: Path, mos_range: Sequence[float] | None = None) -> None:
    """Write the page of one or more runs of one kind to ``page``. Raises OSError when a file cannot be written.

    ``mos_range`` has the opinion scores that stand for 1 and 5, where they are not plain from the scores themselves.
    """
    title = "Report: " + "; ".join(run.title for run in runs)
    if runs[0].asks_questions:
        template, values = "report/questions.html", _questions(runs, page)
    else:
        template, values = "report/report.html", _ratings(runs, page, mos_range)
    html = render(template, {"title": title, **values}, {**PACKAGES, "report": PACKAGE})
    write_atomically(page, html)


def _common(run: KeptRun, number: int) -> dict[str, Any]:
    """What both templates show of a run."""
    report = report_of(run)
    return {
        "id": number,
        "title": run.title,
        "tables": report.tables,
        "sentences": report.sentences,
        "seconds": sections.seconds(run),
        "spent": sections.spent(run),
        "command": sections.command(run),
        "settings": json.dumps(run.made_with, indent=2, ensure_ascii=False),
    }


def _ratings(runs: Sequence[KeptRun], page: Path, mos_range: Sequence[float] | None) -> dict[str, Any]:
    points = {point.entry.sha256: point for run in runs for point in run.scored if point.entry.sha256}
    wanted = [ThumbnailRequest(point.entry.image, digest) for digest, point in points.items()]
    made = write_thumbnails(wanted, folder_beside(page), side=SIDE, workers=available_cores())
    files = dict(zip(points, terminal.progress(made, len(wanted), "thumbnails"), strict=True))
    return {
        "runs": [_rated(run, number, page, files, mos_range) for number, run in enumerate(runs)],
        "compared": sections.compared(runs),
        "report_style": inline("report.css", PACKAGE),
        "library": charts.library(),
        "script": inline("report.js", PACKAGE),
    }


def _rated(
    run: KeptRun, number: int, page: Path, files: Mapping[str, str | None], mos_range: Sequence[float] | None
) -> dict[str, Any]:
    """What the template shows of one run of images."""
    points, found = run.scored, sections.residual_fit(run.scored)
    chart = charts.scatter(points, found.curve if found else (), quote(folder_beside(page).name), f"chosen{number}")
    levels = sections.probabilities(run, mos_range)
    largest = found.residuals[: sections.WORST] if found else []
    smallest = found.residuals[::-1][: min(sections.BEST, len(points) - len(largest))] if found else []
    shown = {point.name: _with_map(run, point, away, page, files) for away, point in [*largest, *smallest]}
    return {
        **_common(run, number),
        "images": run.figures["images"],
        "rows": len(run.points),
        "scored": len(points),
        "unscored": [(point.name, point.entry.answer or "failed") for point in run.points if point.entry.score is None],
        "scatter": charts.as_json(chart),
        "reliability": charts.as_json(charts.reliability_diagram(levels["bins"])) if "bins" in levels else None,
        "levels": levels,
        "largest": [shown[point.name] for _, point in largest],
        "smallest": [shown[point.name] for _, point in smallest],
    }


def _with_map(run: KeptRun, point: Point, away: float, page: Path, files: Mapping[str, str | None]) -> dict[str, Any]:
    """One image with its evidence and its map, for which its file is read again; without a map where that fails."""
    row, folder, entry = run.row(point), folder_beside(page), point.entry
    evidence = ExecutorOutput.model_validate(row.get("executor_evidence") or {})
    file = folder / f"{entry.sha256[:NAME_DIGITS]}_map.webp"
    try:
        made = map_copy(row) if "executor_evidence" in row else None  # a scorer has none
        caption = made.caption if made else "no tool has a map of such an image"
        if made:
            write_atomically(file, made.webp)
    except AgenticIQAError as error:
        made, caption = None, str(error)
    return {
        "name": point.name,
        "link": link_to(entry.image, page),
        "picture": _address(page, files.get(entry.sha256)),
        "map": _address(page, file.name if made else None),
        "caption": caption,
        "score": f"{entry.score:.2f}",
        "mos": f"{point.mos:.2f}",
        "away": f"{away:+.2f}",
        "reasoning": row.get("quality_reasoning", ""),
        "tools": [
            (call.tool, call.distortion, call.region, "failed" if call.calibrated is None else f"{call.calibrated:.2f}")
            for call in evidence.tool_log
        ],
    }


def _questions(runs: Sequence[KeptRun], page: Path) -> dict[str, Any]:
    """The runs with what was answered wrongly, in the order of the set, the unparsed last; explanations all."""
    cases = [
        sorted(
            (row for row in run.questions if row["rotation"] == 0 and not row["correct"]),
            key=lambda row: bool(row["unparsed"] or row["error"]),
        )
        for run in runs
    ]
    digests = {row["image_sha256"]: row["image"] for rows in cases for row in rows[:SHOWN] if row["image_sha256"]}
    wanted = [ThumbnailRequest(image, digest) for digest, image in digests.items()]
    names = write_thumbnails(wanted, folder_beside(page), side=SIDE_OF_QUESTIONS, workers=available_cores())
    files = dict(zip(digests, names, strict=True))
    shown = []
    for number, (run, rows) in enumerate(zip(runs, cases, strict=True)):
        asked = sum(row["rotation"] == 0 for row in run.questions)
        more = f", of which {SHOWN} are shown" if len(rows) > SHOWN else ""
        values = {"heading": HEADINGS[run.figures["kind"]], "count": f"{len(rows)} of {asked} questions{more}."}
        shown.append(_common(run, number) | values | {"cases": [_case(row, page, files) for row in rows[:SHOWN]]})
    return {"runs": shown}


def _case(row: Mapping[str, Any], page: Path, files: Mapping[str, str | None]) -> dict[str, Any]:
    wrong = [name for name, right in (row["fields"] or {}).items() if not right]
    return {
        "name": row["name"],
        "link": link_to(row["image"], page),
        "picture": _address(page, files.get(row["image_sha256"] or "")),
        "query": row["query"],
        "options": [
            (letter, text, letter == row["truth"], letter == row["answer"])
            for letter, text in (row["options"] or {}).items()
        ],
        "said": row["error"] or row["said"] or ("" if wrong else "no usable answer"),
        "wrong": wrong,
    }


def _address(page: Path, file: str | None) -> str | None:
    """The address of a file in the folder beside the page."""
    return f"{quote(folder_beside(page).name)}/{file}" if file else None
