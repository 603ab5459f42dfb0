"""``agenticiqa compare`` of images: rank them by score, with their sizes in bytes and the value of each metric."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from agenticiqa.programs.backends.answer_cache import install
from agenticiqa.programs.backends.run_context import within
from agenticiqa.programs.batch.find_jobs import find_jobs
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.batch.results_file import Row
from agenticiqa.programs.batch.summary import Summary
from agenticiqa.programs.cli.arguments import CompareImagesOptions
from agenticiqa.programs.cli.options import settings_from
from agenticiqa.programs.cli.output_paths import check_outputs, write_all
from agenticiqa.programs.cli.printable import print_error
from agenticiqa.programs.cli.sinks import RunState, Sink, assess_into, print_incomplete, to_row_from
from agenticiqa.programs.cli.status import OK, SOME_FAILED, UNSCORED, USAGE
from agenticiqa.programs.cli.views import View, files_of, json_of, print_tables
from agenticiqa.programs.errors import AgenticIQAError
from agenticiqa.programs.images import ImageSource, path_of
from agenticiqa.programs.images.files import write_atomically
from agenticiqa.programs.images.sources import StoredImage
from agenticiqa.programs.page.entry import distinct_names, entry_of
from agenticiqa.programs.page.ranked_images import comparison_page
from agenticiqa.programs.page.result_tables import interval_cell, with_caveats
from agenticiqa.programs.page.table import UNDEFINED, Cell, Table, number
from agenticiqa.programs.page.thumbnails import ThumbnailRequest, folder_beside, stem_of, write_thumbnails
from agenticiqa.programs.pictures.map_copy import map_copy
from agenticiqa.programs.result import Assessment
from agenticiqa.programs.stages.tool_runs import applicable
from agenticiqa.programs.tools import toolbox
from agenticiqa.programs.tools.tool import Tool, run_tool, with_unit
from agenticiqa.signatures.categories import OVERALL
from agenticiqa.signatures.types import GLOBAL
from agenticiqa.signatures.vocabulary import DEFAULT_QUERY

SIDE = 480  # pixels of a picture in the page
HEADINGS = ("rank", "image", "score", "80 % interval", "bytes", "bits/pixel", "main distortion")


def compare(images: Sequence[str], args: CompareImagesOptions) -> int:
    """Assess the images, and print them by score with their metrics; the status says whether all were assessed."""
    config, workers, limits = settings_from(args)
    inputs = find_jobs(
        images,
        DEFAULT_QUERY,
        args.reference,
        args.resize_reference,
        column=args.image_column,
        system_folders=args.system_folders,
    )
    print_error(*inputs.not_assessed)
    if not inputs.jobs:
        return USAGE
    check_outputs(args, inputs.jobs, config)
    tools = toolbox(config.tool_curves, config.pyiqa, config.adapter)
    to_row = partial(row_with_metrics, tools, to_row_from(args.save_maps, inputs.jobs))
    install(config)
    with within(limits):
        state = RunState.of(config, inputs, workers)
        comparison = Comparison(args, state.summary)
        assess_into([comparison], state, to_row)
    return comparison.close()


class Comparison(Sink):
    """The ranking of all images with their metrics, as tables, JSON or a page; an interrupted run has none."""

    def __init__(self, args: CompareImagesOptions, summary: Summary) -> None:
        self._args, self._summary = args, summary
        self._rows: list[Row] = []
        self._images: dict[str, ImageSource] = {}  # by name; the name of an image in a data set is no path

    def write(self, job: Job, row: Row) -> None:
        """Keep the row, with the size of the file."""
        self._rows.append(with_bytes(job, row))
        self._images[row["image"]] = job.image

    def close(self) -> int:
        """Print the ranking, and write the page."""
        args, summary = self._args, self._summary
        if not self._rows:
            return USAGE
        rows = ranked(self._rows)
        tables = [ranking(rows), metrics(rows)]
        view = View(
            tables,
            document={"images": rows, "failed": summary.failed},
            page=lambda page: _page(page, rows, self._images, tables, summary.failed),
        )
        done = write_all([*files_of(args, view), json_of(args, view)])
        if not args.json:
            print_tables(view)
        print_incomplete(summary.incomplete)
        is_drawn = all(row.get("map", "") is not None for row in rows)
        if summary.failed or summary.not_assessed or not all(done) or not is_drawn:
            return SOME_FAILED
        return UNSCORED if summary.unscored else OK


def ranked(rows: Sequence[Row]) -> list[Row]:
    """Return the rows by score, best first, each with its ``rank``."""
    in_order = sorted(rows, key=lambda row: -(row["quality_score"] or 0))
    return [{**row, "rank": rank} for rank, row in enumerate(in_order, 1)]


def ranking(rows: Sequence[Row]) -> Table:
    """Return a line for each image: rank, score with its interval, bytes, bits per pixel, main distortion.

    If a score is unreliable, a last column gives the reason.
    """
    lines, entries = [], [entry_of(row) for row in rows]
    for row, entry in zip(rows, entries, strict=True):
        score = Cell("no score", {"": None}) if entry.score is None else number(entry.score, ".2f")
        size = [number(row["bytes"], ","), number(row["bits_per_pixel"], ".2f")]
        interval = interval_cell(entry, "[{:.2f}, {:.2f}]")
        lines.append([number(row["rank"], "d"), entry.image, score, interval, *size, entry.summary])
    return with_caveats(entries, Table(HEADINGS, lines, "Ranking, best first"))


def metrics(rows: Sequence[Row]) -> Table:
    """Return a line for each metric with its better direction and the raw value of each image."""
    names = dict.fromkeys(name for row in rows for name in row["metrics"])
    images = distinct_names(row["image"] for row in rows)
    better = {name: metric["higher_is_better"] for row in rows for name, metric in row["metrics"].items()}
    lines = [
        [name, "higher" if better[name] else "lower", *(_value(row["metrics"].get(name)) for row in rows)]
        for name in names
    ]
    return Table(["metric", "better", *(images[row["image"]] for row in rows)], lines, "Metrics")


def _value(metric: dict[str, Any] | None) -> str:
    if metric is None or metric["raw"] is None:
        return UNDEFINED
    return Cell(with_unit(metric["raw"], metric["unit"]), {"": metric["raw"]})


def with_bytes(job: Job, row: Row) -> Row:
    """Return the row with the size of the file in bytes and bits per pixel; both ``None`` without a file."""
    path, (width, height) = path_of(job.image), row["size"]
    size = path.stat().st_size if path and path.exists() else None
    if isinstance(job.image, StoredImage):
        size = len(job.image.read_content())
    return {**row, "bytes": size, "bits_per_pixel": None if size is None else round(8 * size / (width * height), 4)}


def _page(
    page: Path, rows: Sequence[Row], images: Mapping[str, ImageSource], tables: Sequence[Table], failed: Sequence[str]
) -> str:
    """Return the page, and write its thumbnails and maps to a folder beside it."""
    folder = folder_beside(page)
    wanted = [ThumbnailRequest(images[row["image"]], row["image_sha256"]) for row in rows]
    pictures = [*write_thumbnails(wanted, folder, side=SIDE)]
    maps: dict[str, tuple[str, str]] = {}
    for row in rows:
        try:
            made = map_copy({**row, "image": images[row["image"]]}, SIDE)
        except AgenticIQAError as error:
            print_error(str(error))
            continue
        if made:
            name = f"{stem_of(row['image_sha256'])}_map.webp"
            write_atomically(folder / name, made.webp)
            maps[row["image"]] = name, made.caption
    entries = [entry_of(row) for row in rows]
    return comparison_page(entries, pictures, maps, tables, failed, page)


def row_with_metrics(tools: Mapping[str, Tool], to_row: Callable[[Assessment], Row], result: Assessment) -> Row:
    """Return the row of a result with two more keys: ``size``, the width and height in pixels, and ``metrics``.

    With a matching reference, ``metrics`` has the raw value and unit of each full-reference tool, else those of each
    no-reference tool. A metric that failed has ``None`` and an error.
    """
    check = result.reference_check
    reference = result.reference if check is not None and check.fits else None
    calls = [
        run_tool(tool, result.image, reference, region=GLOBAL, distortion=OVERALL)
        for tool in applicable(tools, result.image, reference)
    ]
    metrics: dict[str, dict[str, Any]] = {
        call.tool: {
            "raw": call.raw,
            "unit": call.unit,
            "higher_is_better": tools[call.tool].higher_is_better,
            "error": call.error,
        }
        for call in calls
    }
    return {**to_row(result), "size": list(result.image.size), "metrics": metrics}
