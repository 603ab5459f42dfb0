"""``--batch``: what is checked and told before, and where the batches of a run are kept."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from math import ceil
from pathlib import Path

from agenticiqa.configs import STAGES, Config, Price, StageConfig
from agenticiqa.programs.backends.batches.run import BatchRun
from agenticiqa.programs.backends.batches.services import limits_of, refuse_without_batches
from agenticiqa.programs.backends.connect import stage_models
from agenticiqa.programs.backends.deferred import by_batches
from agenticiqa.programs.backends.ledger import Limits
from agenticiqa.programs.batch.cost import Estimate, estimate
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.cli.printable import print_note
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.events import about


def batches_beside(results: Path) -> Path:
    """The folder of the batches of a results file."""
    return results.with_name(f"{results.name}.batches")


def check_batches(config: Config, limits: Limits, jobs: Sequence[Job]) -> Config:
    """The configuration with the prices of batches.

    Raises BackendError for a backend without batches, and UserError where no model is asked or the limits are too low:
    all images go step by step, so that a limit would leave every one of them half done.
    """
    if config.is_offline:
        raise UserError("--batch sends requests to a model: name one with --backend or --config")
    for section in config.in_profile().sections.values():
        for model in stage_models(section):
            refuse_without_batches(model)
    config = at_batch_prices(config)
    if limits.max_usd is not None or limits.max_calls is not None:
        least = estimate(config, jobs).total
        if limits.max_usd is not None and (least.least_usd or 0.0) > limits.max_usd:
            raise UserError(
                f"{len(jobs)} images take at least {least.least_usd:.4f} USD as batches, over --max-usd "
                f"{limits.max_usd:g}: judge fewer, or raise it"
            )
        if limits.max_calls is not None and least.least_calls > limits.max_calls:
            raise UserError(
                f"{len(jobs)} images take at least {least.least_calls} calls, over --max-calls {limits.max_calls}: "
                "judge fewer, or raise it"
            )
    return config


def at_batch_prices(config: Config) -> Config:
    """The configuration with each stage's price as a batch."""

    def cheaper(stage: StageConfig) -> StageConfig:
        if (price := stage.price) is None:
            return stage
        share = Price(input=price.input * price.batch, output=price.output * price.batch, batch=1)
        return stage.model_copy(update={"price": share})

    changed = {name: cheaper(getattr(config, name)) for name in STAGES}
    return config.model_copy(update=changed | ({"levels": cheaper(config.levels)} if config.levels else {}))


def within_batches(batch: bool, results: Path, limits: Limits) -> AbstractContextManager[None]:
    """``in_batches`` beside a results file where ``batch`` asks for it."""
    return in_batches(batches_beside(results), limits) if batch else nullcontext()


def print_batches(expected: Estimate) -> None:
    """Print how many batches the requests of a run make, by the limits of their providers."""
    requests, size, batches = 0, 0, 0
    for stage in expected.stages:
        most, most_bytes = limits_of(stage.model)
        requests, size = requests + stage.calls, size + stage.bytes
        batches += max(ceil(stage.calls / most), ceil(stage.bytes / most_bytes))
    print(
        f"As batches: {requests:,} requests, {size / 1e6:,.1f} MB, {batches:,} batches or more, one step after another."
    )


@contextmanager
def in_batches(folder: Path, limits: Limits) -> Iterator[None]:
    """Send the requests inside as batches, which are kept in a folder. Raises UserError as ``BatchRun``."""
    run, told = BatchRun(folder, limits, print_note), set[int]()

    def new(record: logging.LogRecord) -> bool:
        """Not what was logged before: an image is judged again and again."""
        key = hash((record.getMessage(), str(about())))
        if record.levelno < logging.INFO:
            return True
        known = key in told
        told.add(key)
        return not known

    handlers = logging.getLogger("agenticiqa").handlers
    for handler in handlers:
        handler.addFilter(new)
    try:
        with by_batches(run):
            yield
    finally:
        for handler in handlers:
            handler.removeFilter(new)
        run.close()
