"""``agenticiqa measure``: print values of metrics on their own scales, without an assessment."""

import os
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from agenticiqa.programs.backends.cores import available_cores
from agenticiqa.programs.batch.find_jobs import find_jobs
from agenticiqa.programs.batch.job import Job, failure_text
from agenticiqa.programs.cli.output_paths import check_outputs, write_all
from agenticiqa.programs.cli.printable import csv_for, json_text, print_error
from agenticiqa.programs.cli.status import OK, SOME_FAILED, USAGE
from agenticiqa.programs.errors import ToolError, UserError
from agenticiqa.programs.images import name_of
from agenticiqa.programs.images.files import one_line
from agenticiqa.programs.page.csv_text import csv_text
from agenticiqa.programs.tools import TOOLS, find_tool
from agenticiqa.programs.tools.measuring import metric_named, pixels_of
from agenticiqa.programs.tools.tool import PYIQA, Tool, raw_value

Measurement = dict[str, Any]  # image, reference, a value or None for each metric, and error if anything failed


def run(args: Namespace) -> int:
    """Measure the images and print the values; the exit status says whether all could be measured."""
    tools, names = metrics_and_images(args.words)
    compared = [tool.name for tool in tools if tool.kind == "FR"]
    if compared and not args.reference:
        raise UserError(
            f"full-reference metrics ({', '.join(compared)}) need an original: name it, or a folder, with --reference"
        )
    if args.reference and not compared:
        raise UserError(
            f"no-reference metrics ({', '.join(tool.name for tool in tools)}) use no original: leave out --reference"
        )
    workers = args.workers or available_cores()
    inputs = find_jobs(names, "", args.reference if compared else None)
    print_error(*inputs.not_assessed)
    check_outputs(args, inputs.jobs)
    alone = len(names) == 1 and not os.path.isdir(names[0])
    rows: list[Measurement] = []
    try:
        for row in measured(tools, inputs.jobs, workers):
            if "error" in row:
                print_error(row["error"])
            rows.append(row)
    finally:  # print the finished values, also after Ctrl-C
        is_shown = show(tools, rows, args, alone=alone)
    if not any(row[tool.name] is not None for row in rows for tool in tools):
        return USAGE
    return SOME_FAILED if inputs.problems or not is_shown or any("error" in row for row in rows) else OK


def metrics_and_images(words: Sequence[str]) -> tuple[list[Tool], list[str]]:
    """Return the metrics, which come first, and the images. Raises UserError if either is missing."""
    tools: dict[str, Tool] = {}
    for place, word in enumerate(words):
        metrics = word.split(",")
        if not all(find_tool(name, TOOLS) or name.lower().startswith(PYIQA) for name in metrics):
            names = [*words[place:]]
            break
        tools |= {tool.name: tool for tool in map(metric_named, metrics)}
    else:
        names = []
    if not tools:
        if words and not (os.path.exists(words[0]) or set(words[0]) & set("./\\*-")):
            metric_named(words[0])  # an error
        raise UserError("name a metric such as ssim or niqe before the images; agenticiqa tools lists all metrics")
    if not names:
        raise UserError(f"name at least one image after {', '.join(tools)}")
    return [*tools.values()], names


def measured(tools: Sequence[Tool], jobs: Sequence[Job], workers: int) -> Iterator[Measurement]:
    """Yield a row for each job, in order: the value of each metric, or ``None`` and ``error`` if it failed."""
    with ThreadPoolExecutor(workers) as pool:  # NumPy, SciPy and Pillow compute without Python's lock
        rows = pool.map(partial(_measured, tools), jobs)
        if len(jobs) > 1 and sys.stderr.isatty():
            from agenticiqa.programs.cli import render

            rows = render.progress(rows, len(jobs), "measuring")
        yield from rows


def _measured(tools: Sequence[Tool], job: Job) -> Measurement:
    reference = None if job.reference is None else name_of(job.reference)
    row: Measurement = {"image": one_line(job.name), "reference": reference, **{tool.name: None for tool in tools}}
    errors: list[str] = []
    try:
        pixels = pixels_of(job.image)
        original = None if job.reference is None else pixels_of(job.reference)
        for tool in tools:
            try:
                row[tool.name] = raw_value(tool, pixels, original)
            except ToolError as error:
                errors.append(f"{tool.name}: {error}")
    except UserError as error:
        return {**row, "error": failure_text(job, error)}
    except MemoryError:
        errors.append("out of memory; try again with --workers 1")
    return {**row, "error": failure_text(job, UserError("; ".join(errors)))} if errors else row


def show(tools: Sequence[Tool], rows: Sequence[Measurement], args: Namespace, *, alone: bool) -> bool:
    """Print the values as the options say: a single number, a table, CSV or JSON.

    Return whether they were written as requested: CSV that cannot be written to its file is printed.
    """
    if args.json:
        print(json_text(rows, indent=2))
    elif args.csv:
        table = table_of_values(tools, rows)
        if not all(write_all([("table", args.csv, lambda: csv_for(args.csv, table))])):
            print_error("the values are printed to stdout instead")
            print(table, end="")
            return False
    elif alone and len(tools) == 1:
        for row in rows:
            if row[tools[0].name] is not None:
                print(f"{row[tools[0].name]:.8g}")
    elif rows:
        from agenticiqa.programs.cli import render

        lines = [[row["image"], *(_shown(row[tool.name]) for tool in tools)] for row in rows]
        if len(rows) > 1 and render.stdout_console().is_terminal:
            lines.append(_means(tools, rows))
        render.print_lines(("image", *(tool.name for tool in tools)), lines)
    return True


def table_of_values(tools: Sequence[Tool], rows: Sequence[Measurement]) -> str:
    """Return the rows as CSV (RFC 4180): image, reference, a column for each metric, error; empty without a value."""
    names = ["image", "reference", *(tool.name for tool in tools)]
    if any("error" in row for row in rows):
        names.append("error")
    return csv_text([names, *([row.get(name) for name in names] for row in rows)])


def _means(tools: Sequence[Tool], rows: Sequence[Measurement]) -> list[str]:
    """Return the last line of a table: the mean over the images that have a value."""
    values = [[row[tool.name] for row in rows if row[tool.name] is not None] for tool in tools]
    return ["mean", *(_shown(sum(column) / len(column)) if column else "-" for column in values)]


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"
