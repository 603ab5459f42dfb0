"""``--batch``: check the options, print the expected cost, and find the folder of a run's batches."""

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import ceil
from pathlib import Path

from agenticiqa.configs import Config, StageConfig
from agenticiqa.programs.backends.connect import refuse_without_batches
from agenticiqa.programs.backends.limits import RunLimits
from agenticiqa.programs.backends.prices import price_of
from agenticiqa.programs.backends.provider_batches.openai_files import OpenAIFiles
from agenticiqa.programs.backends.provider_batches.rounds import BatchRun
from agenticiqa.programs.batch.cost import Estimate, estimate
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.cli.arguments import BatchedOptions
from agenticiqa.programs.cli.options import models_of, print_models
from agenticiqa.programs.cli.printable import counted, print_error, print_note, print_text
from agenticiqa.programs.cli.render import print_remark, print_table
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.events import about
from agenticiqa.programs.page.table import Cell, Table, number
from agenticiqa.programs.tools.tool import kept_calls

COUNTED = {
    "calls": "calls",
    "input_tokens": "input tokens",
    "image_tokens": "of images",
    "output_tokens": "output tokens",
}
ESTIMATED = (
    "Calls and tokens are estimated from the real prompts and the providers' published rules for images, for one pass "
    "without retries. Images without a distortion need fewer calls; rejected answers and new plans need more. To set "
    "an upper bound, use --max-calls or --max-usd."
)


def batches_beside(results: Path) -> Path:
    """Return the folder of the batches of a results file."""
    return results.with_name(f"{results.name}.batches")


def check_batches(args: BatchedOptions, config: Config, limits: RunLimits, jobs: Sequence[Job]) -> Config:
    """Return the configuration, with Batch API prices if ``--batch`` is set.

    Raises BackendError for a backend without batches. Raises UserError if no model is configured, or a limit is
    too low: all images advance together, so that none would finish.
    """
    if not args.batch:
        return config
    if config.is_offline:
        raise UserError("--batch needs a model: name one with --backend or --config")
    for model in models_of(config):
        refuse_without_batches(model)
    config = at_batch_prices(config)
    if config.max_usd is not None or config.max_calls is not None:
        expected = estimate(config, jobs).total
        if config.max_usd is not None and (expected.usd or 0.0) > config.max_usd:
            raise UserError(
                f"{len(jobs)} images cost about {expected.usd:.4f} USD with --batch, more than --max-usd "
                f"{config.max_usd:g}: assess fewer images or raise the limit"
            )
        if config.max_calls is not None and expected.calls > config.max_calls:
            raise UserError(
                f"{len(jobs)} images need about {expected.calls} calls, more than --max-calls "
                f"{config.max_calls}: assess fewer images or raise the limit"
            )
    return config


def at_batch_prices(config: Config) -> Config:
    """Return the configuration with each stage's Batch API price."""

    def cheaper(stage: StageConfig) -> StageConfig:
        price = price_of(stage)
        return stage.model_copy(update={"price": price.in_batches()}) if price else stage

    return config.model_copy(update={name: cheaper(section) for name, section in config.sections.items()})


def print_expected(args: BatchedOptions, config: Config, jobs: Iterable[Job], *, as_json: bool = False) -> None:
    """Print the expected cost of a dry run and the number of batches, given the limits of the providers."""
    print_models(config)
    expected = estimate(config, jobs)
    print_estimate(expected, is_dry=True, as_json=as_json)
    if as_json or not args.batch:
        return
    requests, size, batches = 0, 0, 0
    for stage in expected.stages:
        requests, size = requests + stage.calls, size + stage.bytes
        batches += max(ceil(stage.calls / OpenAIFiles.most_requests), ceil(stage.bytes / OpenAIFiles.most_bytes))
    print_text(
        f"With --batch: {requests:,} requests, {size / 1e6:,.1f} MB, in at least {batches:,} batches, one stage after "
        "another."
    )


def print_estimate(cost: Estimate, *, is_dry: bool = False, as_json: bool = False) -> None:
    """Print the estimate of a run, or of a dry one, as a table, or as one JSON object, on stdout."""
    if as_json:
        whole = {"images": cost.images, "questions": cost.questions, "refused": cost.refused, "stages": cost.rows()}
        print(json.dumps(whole, ensure_ascii=False, indent=2))
        return
    about = f"{counted(cost.questions, 'question')} about {counted(cost.images, 'image')}"
    if not cost.stages:
        print_text(f"{about}: no model is needed, so nothing is sent")
        return
    models = sorted({stage.model for stage in cost.stages})
    several = ["model"] if len(models) > 1 else []
    lines = []
    for row in cost.rows():
        usd = Cell("no price" if row["usd"] is None else f"{row['usd']:.4f}", {"": row["usd"]})
        counts = [number(row[count], ",") for count in COUNTED]
        lines.append([row["stage"], *counts, usd, *([row["model"]] if several else [])])
    print_text(f"{about}, for {', '.join(models)}:")
    print_table(Table(("stage", *COUNTED.values(), "USD", *several), lines))
    print_remark(f"Nothing was sent. {ESTIMATED}" if is_dry else ESTIMATED)
    if cost.total.most_output_tokens > cost.total.output_tokens:
        print_remark(with_reasoning(cost))
    for refusal in cost.refused:
        print_error(refusal)


def with_reasoning(cost: Estimate) -> str:
    """Return the upper bound of the same calls with hidden reasoning, which the estimate leaves out."""
    most, total = max(stage.most_output_tokens // stage.calls for stage in cost.stages), cost.total
    usd = "" if total.most_usd is None else f", {total.most_usd:.4f} USD"
    return (
        f"The estimate is without hidden reasoning. With it, an answer has up to {most:,} output tokens, and the same "
        f"calls have at most {total.most_output_tokens:,}{usd}."
    )


@contextmanager
def within_batches(args: BatchedOptions, results: Path, limits: RunLimits) -> Iterator[None]:
    """Submit the requests in the block as batches if ``--batch`` is set; they are kept beside the results file.

    Raises UserError as ``BatchRun``.
    """
    if not args.batch:
        yield
        return
    run, logged = BatchRun(batches_beside(results), limits, print_note), set[int]()

    def is_new(record: logging.LogRecord) -> bool:
        """Return whether a record is new: an image is assessed repeatedly and logs the same each time."""
        key = hash((record.getMessage(), str(about())))
        if record.levelno < logging.INFO:
            return True
        known = key in logged
        logged.add(key)
        return not known

    handlers = logging.getLogger("agenticiqa").handlers
    for handler in handlers:
        handler.addFilter(is_new)
    try:
        with run.sending(), kept_calls(run.manifest):  # results of tools, so that the next pass only decodes
            yield
    finally:
        for handler in handlers:
            handler.removeFilter(is_new)
        run.close()
