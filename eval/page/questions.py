"""The page of runs of questions: their figures, what was answered wrongly with its image, time and cost."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from agenticiqa.eval.mcq.judging import description_of
from agenticiqa.eval.mcq.report import cells, sentences
from agenticiqa.eval.page import sections
from agenticiqa.eval.page.run import AnyRun, opened
from agenticiqa.eval.report.table import Cells
from agenticiqa.programs.backends.cores import available_cores
from agenticiqa.programs.batch.results_file import kept_rows
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.files import printable_path, write_atomically
from agenticiqa.programs.page.render import PACKAGES, render
from agenticiqa.programs.page.sheet import link_to
from agenticiqa.programs.page.thumbnails import ThumbnailRequest, folder_beside, write_thumbnails

PACKAGE = "agenticiqa.eval.page"
SIDE = 320  # pixels of a picture
SHOWN = 24  # questions with their images
HEADINGS = {"choice": "Wrong answers", "planning": "Plans with a wrong field", "explanation": "Answers"}
FIELDS = ("image", "image_sha256", "query", "options", "truth", "answer", "correct", "unparsed", "fields", "error")


@dataclass
class QuestionRun(AnyRun):
    """A run of questions; ``rows`` has what the page shows of each question in each rotation, by its last row."""

    rows: list[dict[str, Any]] = field(default_factory=list)


def asks_questions(folder: Path) -> bool:
    """Whether a run asked questions. Raises UserError for a folder without a finished run."""
    return "kind" in opened(folder)[1]


def read_question_run(folder: Path) -> QuestionRun:
    """Read a run of questions. Raises UserError for a folder without a finished run, and rows of something else."""
    run, latest = QuestionRun(*opened(folder)), {}
    try:
        for _, row in kept_rows(folder / "results.jsonl"):
            key = row["name"], row["rotation"]
            run.add_spent(row)
            if "error" not in row or key not in latest:
                said = {"name": row["name"], "rotation": row["rotation"], "said": description_of(row) or ""}
                latest[key] = said | {name: row.get(name) for name in FIELDS} | {"ms": row.get("timings_ms") or {}}
    except (KeyError, TypeError) as error:
        shown = printable_path(folder)
        raise UserError(f"{shown}/results.jsonl: a row is none of a run of questions ({error})") from error
    run.rows = [*latest.values()]
    run.timings = [row["ms"] for row in run.rows]
    return run


def figures_table(run: QuestionRun) -> Cells:
    """The figures of a run of questions."""
    headings, *lines = cells(run.figures)
    totals = [number for number, line in enumerate(lines) if line[0] in ("all", "whole plan", "sum (0 to 6)")]
    return Cells(run.title, headings, lines, bold=totals[0] if totals else None)


def write_question_page(runs: Sequence[QuestionRun], page: Path) -> None:
    """Write the page of one or more runs, with small copies of the images that it shows in a folder beside it."""
    shown = [_to_show(run) for run in runs]
    digests = {row["image_sha256"]: row["image"] for rows in shown for row in rows[:SHOWN] if row["image_sha256"]}
    wanted = [ThumbnailRequest(image, digest) for digest, image in digests.items()]
    names = write_thumbnails(wanted, folder_beside(page), side=SIDE, workers=available_cores())
    files = dict(zip(digests, names, strict=True))
    pairs = enumerate(zip(runs, shown, strict=True))
    values = {
        "title": "Report: " + "; ".join(run.title for run in runs),
        "runs": [{"id": number, **_run(run, rows, page, files)} for number, (run, rows) in pairs],
    }
    write_atomically(page, render("report/questions.html", values, {**PACKAGES, "report": PACKAGE}))


def _to_show(run: QuestionRun) -> list[dict[str, Any]]:
    """What was answered wrongly, in the order of the set, the unparsed last; explanations, which have no marks, all."""
    return sorted(
        (row for row in run.rows if row["rotation"] == 0 and not row["correct"]),
        key=lambda row: bool(row["unparsed"] or row["error"]),
    )


def _run(
    run: QuestionRun, rows: Sequence[Mapping[str, Any]], page: Path, files: Mapping[str, str | None]
) -> dict[str, Any]:
    asked = sum(row["rotation"] == 0 for row in run.rows)
    return {
        "title": run.title,
        "table": figures_table(run),
        "sentences": sentences(run.figures),
        "heading": HEADINGS[run.figures["kind"]],
        "count": f"{len(rows)} of {asked} questions{f', of which {SHOWN} are shown' if len(rows) > SHOWN else ''}.",
        "cases": [_case(row, page, files) for row in rows[:SHOWN]],
        "seconds": sections.seconds(run),
        "spent": sections.spent(run),
        "command": sections.command(run),
        "settings": json.dumps(run.made_with, indent=2, ensure_ascii=False),
    }


def _case(row: Mapping[str, Any], page: Path, files: Mapping[str, str | None]) -> dict[str, Any]:
    file = files.get(row["image_sha256"] or "")
    wrong = [name for name, right in (row["fields"] or {}).items() if not right]
    return {
        "name": row["name"],
        "link": link_to(row["image"], page),
        "picture": f"{quote(folder_beside(page).name)}/{file}" if file else None,
        "query": row["query"],
        "options": [
            (letter, text, letter == row["truth"], letter == row["answer"])
            for letter, text in (row["options"] or {}).items()
        ],
        "said": row["error"] or row["said"] or ("" if wrong else "no usable answer"),
        "wrong": wrong,
    }
