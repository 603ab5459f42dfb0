"""``agenticiqa mcp``: assess images for programs that speak the Model Context Protocol, over stdin and stdout."""

import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Lock
from typing import Annotated, Any, TypeGuard

import dspy
from anyio import from_thread, to_thread
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import CallToolResult, ImageContent, TextContent, ToolAnnotations
from pybase64 import b64encode
from pydantic import Field

from agenticiqa.configs import Config
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.answer_cache import install
from agenticiqa.programs.backends.limits import Halted, LimitReached, RunLimits
from agenticiqa.programs.backends.run_context import within
from agenticiqa.programs.batch.assess_many import assess_many
from agenticiqa.programs.batch.job import Job, failure_text
from agenticiqa.programs.batch.results_file import Row
from agenticiqa.programs.batch.stop_rule import StopRule
from agenticiqa.programs.batch.summary import Summary
from agenticiqa.programs.cli.arguments import McpOptions
from agenticiqa.programs.cli.compare_images import ranked, row_with_metrics, with_bytes
from agenticiqa.programs.cli.options import models_of, print_models, settings_from
from agenticiqa.programs.cli.printable import json_text, message_line, print_note
from agenticiqa.programs.cli.status import OK
from agenticiqa.programs.errors import AgenticIQAError, UserError
from agenticiqa.programs.images import name_of, search_images
from agenticiqa.programs.images.files import one_line, printable_path
from agenticiqa.programs.images.own import narrowed
from agenticiqa.programs.images.sources import local_path
from agenticiqa.programs.page.entry import entry_of, worst_key
from agenticiqa.programs.pictures.draw import drawing_into
from agenticiqa.programs.result import Assessment
from agenticiqa.programs.result_row import AssessedRow
from agenticiqa.programs.tools import TOOLS, toolbox
from agenticiqa.programs.tools.measuring import list_metrics, measure
from agenticiqa.programs.tools.tool import get_tool
from agenticiqa.signatures.vocabulary import DEFAULT_QUERY

WIDTH = 1100  # pixels of the panel; its text is legible from 830
PANEL = "panel"  # the key of a picture in a row, from which it is taken before the row is sent
LINK_OUT = "link to a place outside of the roots"
SHOWN = ("image", "quality_score", "quality_level", "score_interval", "distortions", "caveats", "quality_reasoning")
METRICS = "; ".join(f"{each['name']} ({each['kind']}, {each['better']} is better)" for each in list_metrics())

ImagePath = Annotated[str, Field(description="the path of an image")]
ReferencePath = Annotated[str | None, Field(description="the path of the pristine original to compare with")]
Resize = Annotated[bool, Field(description="whether to scale a reference of another size to the size of the image")]


@dataclass(frozen=True)
class Service:
    """The tools: an asynchronous method each, whose work runs in a thread, one call at a time.

    They read images below the ``roots``, at most ``most`` of them in one call. ``limits`` are those of the whole
    server. The docstring of a tool is its description for clients.
    """

    roots: Sequence[Path]
    config: Config
    program: AgenticIQA
    workers: int
    limits: RunLimits
    most: int
    lock: Lock = field(default_factory=Lock)

    async def assess_image(
        self,
        context: Context,
        image: ImagePath,
        question: Annotated[str, Field(description="a question about the quality of the image")] = DEFAULT_QUERY,
        reference: ReferencePath = None,
        resize_reference: Resize = False,
        panel: Annotated[bool, Field(description="whether to also draw the damaged areas and the scores")] = False,
    ) -> Annotated[CallToolResult, AssessedRow]:
        """Score the quality of an image, or answer a question about it, with the distortions as evidence."""

        def work(limits: RunLimits) -> Row:
            job = self._job(image, question, reference, resize_reference)
            [(_, row)], _ = self._assessed(context, limits, [job], with_panel if panel else Assessment.to_dict)
            return row

        return await self._answered(work)

    async def worst_images(
        self,
        context: Context,
        folder: Annotated[str, Field(description="the path of a folder; all its images are assessed")] = ".",
        count: Annotated[int, Field(ge=1, description="how many images to return")] = 5,
    ) -> Annotated[CallToolResult, dict[str, Any]]:
        """Assess the images of a folder and its subfolders, and return those with the lowest scores."""

        def work(limits: RunLimits) -> Row:
            found = search_images([self._below(folder)])
            if found.problems:
                raise found.problems[0]
            paths = dict.fromkeys(map(resolved, found.images))
            jobs = [Job(path) for path in paths if self._holds(path)]
            found.skipped[LINK_OUT] = len(paths) - len(jobs)
            rows, counts = self._assessed(context, limits, jobs, Assessment.to_dict)
            lowest = sorted((row for _, row in rows if row["quality_score"]), key=lambda row: worst_key(entry_of(row)))
            shown = [{name: row[name] for name in SHOWN} for row in lowest[:count]]
            return {"images": shown, **counts, "skipped": dict(+found.skipped)}

        return await self._answered(work)

    async def compare_images(
        self,
        context: Context,
        images: Annotated[list[str], Field(min_length=2, description="the paths of the images")],
        reference: ReferencePath = None,
        resize_reference: Resize = False,
    ) -> Annotated[CallToolResult, dict[str, Any]]:
        """Rank two or more images by their scores, with the values of all metrics."""

        def work(limits: RunLimits) -> Row:
            jobs = [self._job(image, DEFAULT_QUERY, reference, resize_reference) for image in images]
            tools = toolbox(self.config.tool_curves, self.config.pyiqa, self.config.adapter)
            to_row = partial(row_with_metrics, tools, Assessment.to_dict)
            rows, counts = self._assessed(context, limits, jobs, to_row)
            return {"images": ranked([with_bytes(job, row) for job, row in rows]), **counts}

        return await self._answered(work)

    async def measure_metric(
        self,
        metric: Annotated[str, Field(description=METRICS, json_schema_extra={"enum": [*TOOLS]})],
        image: ImagePath,
        reference: ReferencePath = None,
    ) -> Annotated[CallToolResult, dict[str, Any]]:
        """Measure an image with one metric, on the metric's own scale. Metrics of the kind FR need a reference."""

        def work(limits: RunLimits) -> Row:
            name = get_tool(metric, TOOLS).name  # none of pyiqa, which downloads weights
            job = self._job(image, "", reference)
            compared = name_of(job.reference) if job.reference else None
            return {"image": job.name, "reference": compared, name: measure(name, job.image, job.reference)}

        return await self._answered(work)

    async def _answered(self, work: Callable[[RunLimits], Row]) -> CallToolResult:
        """Return what ``work`` returns, as JSON and as structured content; a cancelled call ends its work."""
        limits = replace(self.limits, halted=Event(), aborted=Event())

        def in_turn() -> Row:
            with self.lock:
                if limits.aborted.is_set():
                    raise Halted("cancelled")
                return work(limits)

        try:
            row = await to_thread.run_sync(in_turn, abandon_on_cancel=True)
        except (AgenticIQAError, dspy.LMError) as error:
            raise ToolError(message_line(str(error))) from error
        finally:
            limits.abort()
        panel = row.pop(PANEL, None)
        content: list[Any] = [TextContent(type="text", text=json_text(row))]
        if panel:
            content.append(ImageContent(type="image", data=b64encode(panel).decode(), mime_type="image/webp"))
        return CallToolResult(content=content, structured_content=row)

    def _assessed(
        self, context: Context, limits: RunLimits, jobs: Sequence[Job], to_row: Callable[[Assessment], Row]
    ) -> tuple[list[tuple[Job, Row]], dict[str, Any]]:
        """Assess images until the limits are aborted; return the results, and the counts of the run.

        Raises UserError if there are too many images, or none has a result.
        """
        if len(jobs) > self.most:
            raise UserError(
                f"{len(jobs)} images are more than {self.most}, the limit of one call: name a subfolder or fewer "
                "images, or start the server with a higher --max-images"
            )
        rule, summary = StopRule(self.workers), Summary(len(jobs))
        rows: list[tuple[Job, Row]] = []

        def should_stop(outcome: object) -> bool:
            return limits.aborted.is_set() or rule.should_stop(outcome)

        try:
            outcomes = assess_many(self.program, jobs, self.workers, to_row, should_stop)
            with within(limits), closing(outcomes):
                for job, outcome in outcomes:
                    if isinstance(outcome, Exception):
                        summary.failed.append(failure_text(job, outcome))
                    else:
                        summary.count(outcome)
                        rows.append((job, outcome))
                    from_thread.run(context.report_progress, len(rows) + len(summary.failed), len(jobs), job.name)
        except LimitReached as limit:
            rule.ended_by = limit
        stopped = one_line(str(rule.ended_by)) if rule.ended_by else None
        if not rows:
            raise UserError("; ".join(summary.failed or [stopped or "cancelled"]))
        counts = {name: getattr(summary, name) for name in ("assessed", "unscored", "not_assessed", "failed")}
        return rows, {**counts, "stopped": stopped}

    def _job(self, image: str, question: str, reference: str | None, resize: bool = False) -> Job:
        return Job(self._below(image), question, self._below(reference) if reference else None, resize)

    def _below(self, name: str) -> Path:
        """Return the file or folder that a client names, with links resolved.

        Raises ImageError if there is none, and UserError if it is outside of the roots, whether it exists or not.
        """
        path = resolved(self.roots[0] / name)
        if self._holds(path):
            found = resolved(local_path(path))  # perhaps a link, if its name differs in case
            if self._holds(found):
                return found
        readable = ", ".join(map(printable_path, self.roots))
        raise UserError(f"{printable_path(name)}: this server reads only files below {readable}")

    def _holds(self, path: Path | None) -> TypeGuard[Path]:
        return path is not None and any(path.is_relative_to(root) for root in self.roots)


def with_panel(result: Assessment) -> Row:
    """Return the row of a result with a picture of it, a WebP; without one if it cannot be drawn, which is logged."""
    with TemporaryDirectory() as folder:
        row = drawing_into(Path(folder), [result.image])(result)
        if drawn := row.pop("map"):
            row[PANEL] = narrowed(Path(drawn), WIDTH)
    return row


def resolved(path: Path) -> Path | None:
    """Return a path with links resolved; ``None`` for one with a null character, or with links in a circle."""
    try:
        return path.resolve()
    except (ValueError, OSError, RuntimeError):
        return None


def run(args: McpOptions) -> int:
    """Answer a client until it closes stdin."""
    service = service_of(args)
    print_models(service.config)
    if sys.stdin.isatty():
        print_note("waiting for an MCP client on stdin; name this command in the settings of the client")
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # an exception would wait for the thread that reads stdin
    try:
        server_of(service).run()
    except* BrokenPipeError:
        pass  # the client ended without closing stdin first
    return OK


def service_of(args: McpOptions) -> Service:
    """Return the tools for these options. Raises UserError, ConfigError or BackendError."""
    roots = [Path(root).resolve() for root in args.root]
    if missing := [root for root in roots if not root.is_dir()]:
        raise UserError(f"{printable_path(missing[0])}: --root needs an existing folder")
    config, workers, limits = settings_from(args)
    install(config)
    return Service(roots, config, AgenticIQA.from_config(config), workers, limits, args.max_images)


def server_of(service: Service) -> MCPServer:
    """Return the server with its tools, and with what it says about itself to the client's model."""
    models = sorted({model.backend for model in models_of(service.config) if not model.is_offline})
    sent = f"Images are sent to {', '.join(models)}." if models else "Nothing is sent."
    roots = ", ".join(map(printable_path, service.roots))
    about = (
        "Measure the technical quality of images. Scores are from 1 (bad) to 5 (excellent). "
        f"{sent} Readable folders: {roots}. A relative path begins at the first one."
    )
    tools = []
    for method in (service.assess_image, service.worst_images, service.compare_images, service.measure_metric):
        tool = Tool.from_function(method, annotations=ToolAnnotations(read_only_hint=True))
        arguments = tool.fn_metadata.arg_model
        arguments.model_config["extra"] = "forbid"  # a misspelled name is an error, instead of being ignored
        arguments.model_rebuild(force=True)
        tool.parameters = arguments.model_json_schema()
        tools.append(tool)
    return MCPServer("agenticiqa", instructions=about, version=version("agenticiqa"), tools=tools, log_level="ERROR")
