"""Write the page of runs, which opens from disk, and a folder with its pictures."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from agenticiqa.eval.intervals import Interval
from agenticiqa.eval.report.model import Report
from agenticiqa.eval.report.page import charts, sections
from agenticiqa.eval.report.page.kept_run import KeptRun, Point
from agenticiqa.eval.report.page.samples import coded, packed
from agenticiqa.eval.report.questions import question_headline, question_report
from agenticiqa.eval.report.rating_tables import rating_headline, rating_report
from agenticiqa.programs.backends.cores import available_cores
from agenticiqa.programs.cli import render as terminal
from agenticiqa.programs.errors import AgenticIQAError
from agenticiqa.programs.images.files import write_atomically
from agenticiqa.programs.page.findings import placed, tool_rows
from agenticiqa.programs.page.render import PACKAGES, inline, render
from agenticiqa.programs.page.sheet import link_to
from agenticiqa.programs.page.thumbnails import ThumbnailRequest, folder_beside, stem_of, write_thumbnails
from agenticiqa.programs.pictures.map_copy import map_copy
from agenticiqa.signatures.types import ExecutorOutput

PACKAGE = "agenticiqa.eval.report.page"
SIDE, SIDE_OF_QUESTIONS = 160, 320  # pixels of a thumbnail
SHOWN = 24  # questions with their images


def report_of(run: KeptRun) -> Report:
    """Return the report of a run of either kind."""
    return question_report(run.figures) if run.asks_questions else rating_report(run.figures)


def page_text(runs: Sequence[KeptRun], page: Path, mos_range: Sequence[float] | None = None) -> str:
    """Return the page of one or more runs of one kind, and write its images to a folder beside ``page``.

    Raises OSError when one of these cannot be written. ``mos_range`` gives the MOS values for levels 1 and 5, if they
    cannot be inferred from the scores.
    """
    report, why = sections.compared(runs)
    common = {
        "title": f"{', '.join(run.name for run in runs)}: report",
        "names": ", ".join(run.name for run in runs),
        "compared": report,
        "not_compared": why,
        "report_style": inline("report.css", PACKAGE),
        "bars": sections.bars(headline_figures(runs)) if report else [],
        "figure": "Accuracy" if runs[0].asks_questions else "SRCC",
    }
    if runs[0].asks_questions:
        template, values = "report/questions.html", common | _questions(runs, page)
    else:
        template, values = "report/report.html", common | _ratings(runs, page, mos_range)
    return render(template, values, {**PACKAGES, "report": PACKAGE})


def headline_figures(runs: Sequence[KeptRun]) -> list[tuple[str, Interval]]:
    """Return the first figure of each run, for the bars: SRCC or accuracy."""
    headlines = []
    for run in runs:
        if run.asks_questions:
            figures = run.figures.get("vanilla", {}).get("accuracy")
        else:
            figures = run.figures["systems"][0]["srcc"]
        if figures:
            headlines.append((run.name, Interval(**figures)))
    return headlines


def headline(figures: Mapping[str, Any]) -> str:
    """Return the run in one sentence."""
    return question_headline(figures) if "kind" in figures else rating_headline(figures)


def _common(run: KeptRun, number: int) -> dict[str, Any]:
    """Return the values of a run that both templates show."""
    report = report_of(run)
    return {
        "id": number,
        "title": run.name,
        "about": run.about,
        "headline": headline(run.figures),
        "tables": [*map(sections.folded, report.tables[:2]), *report.tables[2:]],
        "notes": report.notes,
        "seconds": sections.seconds(run),
        "spent": sections.spent(run),
        "command": sections.command(run),
        "settings": sections.settings(run.made_with),
    }


def _ratings(runs: Sequence[KeptRun], page: Path, mos_range: Sequence[float] | None) -> dict[str, Any]:
    points = {point.entry.sha256: point for run in runs for point in run.scored if point.entry.sha256}
    wanted = [ThumbnailRequest(point.entry.image, digest) for digest, point in points.items()]
    made = write_thumbnails(wanted, folder_beside(page), side=SIDE, workers=available_cores())
    files = dict(zip(points, terminal.progress(made, len(wanted), "thumbnails"), strict=True))
    return {
        "runs": [_rated(run, number, page, files, mos_range) for number, run in enumerate(runs)],
        "script": inline("report.js", PACKAGE),
    }


def _rated(
    run: KeptRun, number: int, page: Path, files: Mapping[str, str | None], mos_range: Sequence[float] | None
) -> dict[str, Any]:
    """Return the values that the template shows for one run of images."""
    points, fit = run.scored, sections.residual_fit(run.scored)
    curve, folder = fit.curve if fit else (), quote(folder_beside(page).name)
    axis = "score" if "scorer" in run.made_with else "score of the program, 1 to 5"
    chart = charts.scatter(run.points, curve, axis)
    levels = sections.probabilities(run, mos_range)
    largest = fit.residuals[: sections.WORST] if fit else []
    smallest = fit.residuals[::-1][: min(sections.BEST, len(points) - len(largest))] if fit else []
    cards = {point.name: _with_map(run, point, away, page, files) for away, point in [*largest, *smallest]}
    return {
        **_common(run, number),
        "images": run.figures["images"],
        "rows": len(run.points),
        "scored": len(points),
        "unscored": [(point.name, point.entry.answer or "failed") for point in run.points if point.entry.score is None],
        "scatter": charts.as_svg(chart),
        "reliability": charts.as_svg(charts.reliability_diagram(levels["bins"])) if "bins" in levels else None,
        "levels": levels,
        "largest": [cards[point.name] for _, point in largest],
        "smallest": [cards[point.name] for _, point in smallest],
        "bars": sections.bars([(system["name"], Interval(**system["srcc"])) for system in run.figures["systems"]]),
        "samples": packed(_samples(run, fit, files)),
        "folder": folder,
    }


def _samples(
    run: KeptRun, fit: sections.ResidualFit | None, files: Mapping[str, str | None]
) -> Mapping[str, Sequence[Any]]:
    """Return the fields of all images, scored or not, for the list on the page, as columns."""
    away = {point.name: round(value, 4) for value, point in (fit.residuals if fit else ())}
    group, groups = coded([point.group for point in run.points])
    return {
        "name": [point.name for point in run.points],
        "score": [None if point.entry.score is None else round(point.entry.score, 4) for point in run.points],
        "mos": [round(point.mos, 4) for point in run.points],
        "away": [away.get(point.name) for point in run.points],
        "group": group,
        "groups": groups,
        "finding": [point.entry.finding for point in run.points],
        "picture": [(files.get(point.entry.sha256) or "").removesuffix(".webp") for point in run.points],
        "steps": [point.steps for point in run.points],
    }


def _with_map(run: KeptRun, point: Point, away: float, page: Path, files: Mapping[str, str | None]) -> dict[str, Any]:
    """Return one image with its evidence and its map, which needs the file again; without a map if reading fails."""
    row, folder, entry = run.row(point), folder_beside(page), point.entry
    evidence = ExecutorOutput.model_validate(row.get("executor_evidence") or {})
    file = folder / f"{stem_of(entry.sha256)}_map.webp"
    try:
        made = map_copy(row) if row.get("executor_evidence") else None  # a scorer has none
        caption = made.caption if made else ""
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
        "tools": tool_rows(evidence.tool_log, lambda call: placed(call.distortion, call.region))[1:],
    }


def _questions(runs: Sequence[KeptRun], page: Path) -> dict[str, Any]:
    """Return the runs with their wrong answers, in the order of the set, unparsed ones last."""
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
    entries = []
    for number, (run, rows) in enumerate(zip(runs, cases, strict=True)):
        count = sum(row["rotation"] == 0 for row in run.questions)
        more = f"; the first {SHOWN} are shown" if len(rows) > SHOWN else ""
        values = {"count": f"{len(rows)} of {count} questions{more}."}
        entries.append(_common(run, number) | values | {"cases": [_case(row, page, files) for row in rows[:SHOWN]]})
    return {"runs": entries}


def _case(row: Mapping[str, Any], page: Path, files: Mapping[str, str | None]) -> dict[str, Any]:
    return {
        "name": row["name"],
        "link": link_to(row["image"], page),
        "picture": _address(page, files.get(row["image_sha256"] or "")),
        "query": row["query"],
        "options": [
            (letter, text, letter == row["truth"], letter == row["answer"])
            for letter, text in (row["options"] or {}).items()
        ],
        "said": row["error"] or row["said"] or "no usable answer",
    }


def _address(page: Path, file: str | None) -> str | None:
    """Return the address of a file in the folder beside the page."""
    return f"{quote(folder_beside(page).name)}/{file}" if file else None
