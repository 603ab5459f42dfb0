"""``agenticiqa measure``: print values of metrics on their own scales, without an assessment."""

import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from agenticiqa.programs.backends.cores import available_cores
from agenticiqa.programs.batch.find_jobs import find_jobs
from agenticiqa.programs.batch.job import Job, failure_text
from agenticiqa.programs.cli.arguments import MeasureOptions
from agenticiqa.programs.cli.output_paths import check_outputs
from agenticiqa.programs.cli.printable import print_error
from agenticiqa.programs.cli.status import OK, SOME_FAILED, USAGE
from agenticiqa.programs.cli.views import View, show, writes_files
from agenticiqa.programs.data_sets.kinds import holds_several
from agenticiqa.programs.errors import AgenticIQAError, ToolError, UserError
from agenticiqa.programs.images import name_of
from agenticiqa.programs.images.files import one_line
from agenticiqa.programs.page.table import Table, data_table, number
from agenticiqa.programs.tools import TOOLS, find_tool
from agenticiqa.programs.tools.measuring import metric_named, pixels_of
from agenticiqa.programs.tools.tool import PYIQA, Tool, raw_value

Measurement = dict[str, Any]  # image, reference, a value or None for each metric, and error if anything failed


def run(args: MeasureOptions) -> int:
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
    reference = args.reference if compared else None
    inputs = find_jobs(names, "", reference, column=args.image_column, system_folders=args.system_folders)
    print_error(*inputs.not_assessed)
    check_outputs(args, inputs.jobs)
    alone = len(names) == 1 and not holds_several(names[0])
    rows: list[Measurement] = []
    try:
        for row in measured(tools, inputs.jobs, workers):
            if "error" in row:
                print_error(row["error"])
            rows.append(row)
    finally:  # print the finished values, also after Ctrl-C
        is_shown = show_values(tools, rows, args, alone=alone)
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
    except AgenticIQAError as error:
        return {**row, "error": failure_text(job, error)}
    except MemoryError:
        errors.append("out of memory; try again with --workers 1")
    return {**row, "error": failure_text(job, UserError("; ".join(errors)))} if errors else row


def show_values(tools: Sequence[Tool], rows: Sequence[Measurement], args: MeasureOptions, *, alone: bool) -> bool:
    """Print a single number, or show all values; return whether they were written as requested."""
    is_number = alone and len(tools) == 1 and not writes_files(args) and not args.json
    if is_number:
        for row in rows:
            if row[tools[0].name] is not None:
                print(f"{row[tools[0].name]:.8g}")
        return True
    with_means = len(rows) > 1 and (sys.stdout.isatty() or writes_files(args))  # a pipe has only images
    return show(
        args, View([shown_values(tools, rows, with_means=with_means)], data=[values(tools, rows)], document=rows)
    )


def shown_values(tools: Sequence[Tool], rows: Sequence[Measurement], *, with_means: bool) -> Table:
    """Return the values as a table for people, ``with_means`` of the images in the last line."""
    lines = [[row["image"], *(number(row[tool.name], ".6g") for tool in tools)] for row in rows]
    if with_means:
        lines.append(_means(tools, rows))
    return Table(("image", *(tool.name for tool in tools)), lines)


def values(tools: Sequence[Tool], rows: Sequence[Measurement]) -> Table:
    """Return the rows as plain values: image, reference, a column for each metric, error; empty without a value."""
    names = ["image", "reference", *(tool.name for tool in tools)]
    if any("error" in row for row in rows):
        names.append("error")
    return data_table(names, [[row.get(name) for name in names] for row in rows])


def _means(tools: Sequence[Tool], rows: Sequence[Measurement]) -> list[str]:
    """Return the last line of a table: the mean over the images that have a value."""
    columns = [[row[tool.name] for row in rows if row[tool.name] is not None] for tool in tools]
    return ["mean", *(number(sum(column) / len(column) if column else None, ".6g") for column in columns)]
