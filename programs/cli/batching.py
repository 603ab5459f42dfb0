"""``--batch``: check the options, print the expected cost, and find the folder of a run's batches."""

import logging
import os
import re
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from math import ceil
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

from agenticiqa.configs import STAGES, Config, Price, StageConfig
from agenticiqa.programs.backends.connect import stage_models
from agenticiqa.programs.backends.ledger import Limits
from agenticiqa.programs.backends.provider_batches.rounds import BatchRun
from agenticiqa.programs.backends.provider_batches.supported import refuse_without_batches, service_of
from agenticiqa.programs.batch.cost import Estimate, bytes_in_request, estimate
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.cli.expected_cost import print_estimate
from agenticiqa.programs.cli.printable import print_note
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.events import about
from agenticiqa.programs.images import ImageSource, name_of
from agenticiqa.programs.images.sources import path_of
from agenticiqa.programs.tools.tool import kept_calls

_ADDRESS = re.compile(r"https?://[\w.:@-]+(/[!$-\[\]-~]*)?", re.ASCII | re.IGNORECASE)  # nothing that JSON escapes


def batches_beside(results: Path) -> Path:
    """Return the folder of the batches of a results file."""
    return results.with_name(f"{results.name}.batches")


def check_batches(args: Namespace, config: Config, limits: Limits, jobs: Sequence[Job]) -> Config:
    """Return the configuration, with Batch API prices if ``--batch`` is set.

    Raises BackendError for a backend without batches. Raises UserError if no model is configured, an image is outside
    the folder of ``--image-urls``, or a limit is too low: all images advance together, so that none would finish.
    """
    if not args.batch:
        if args.image_urls is not None:
            raise UserError("--image-urls applies only to batches: add --batch")
        return config
    if config.is_offline:
        raise UserError("--batch needs a model: name one with --backend or --config")
    for section in config.in_profile().sections.values():
        for model in stage_models(section):
            refuse_without_batches(model)
    if args.image_urls is not None:
        _check_addresses(args.image_urls, config, jobs)
    config = at_batch_prices(config)
    if limits.max_usd is not None or limits.max_calls is not None:
        least = estimate(config, jobs).total
        if limits.max_usd is not None and (least.least_usd or 0.0) > limits.max_usd:
            raise UserError(
                f"{len(jobs)} images cost at least {least.least_usd:.4f} USD with --batch, more than --max-usd "
                f"{limits.max_usd:g}: assess fewer images or raise the limit"
            )
        if limits.max_calls is not None and least.least_calls > limits.max_calls:
            raise UserError(
                f"{len(jobs)} images need at least {least.least_calls} calls, more than --max-calls "
                f"{limits.max_calls}: assess fewer images or raise the limit"
            )
    return config


def _check_addresses(prefix: str, config: Config, jobs: Sequence[Job]) -> None:
    """Raise UserError unless the images of all jobs have addresses."""
    if not _ADDRESS.fullmatch(prefix):
        raise UserError(f"--image-urls must be an address such as https://example.org/photos/, got {prefix!r}")
    if config.max_side is not None:
        raise UserError("--max-side sends smaller copies, which have no address: leave out --max-side or --image-urls")
    for job in jobs:
        for image in (job.image, *([] if job.reference is None else [job.reference])):
            address_of(prefix, image)


def address_of(prefix: str, image: ImageSource) -> str:
    """Return the address of an image, in which ``prefix`` replaces the current folder, percent-encoded as UTF-8.

    The query string of the prefix (a signature, say) ends each address. Raises UserError for an image that is not a
    file in this folder.
    """
    path, name = path_of(image), name_of(image)
    try:
        below = Path(os.path.abspath(path or "/")).relative_to(Path.cwd()).as_posix()
        encoded = quote(below.encode())
    except UnicodeEncodeError as error:
        raise UserError(
            f"{name}: the name is not UTF-8, so it has no address: rename the file or leave out --image-urls"
        ) from error
    except ValueError as error:
        raise UserError(
            f"{name}: the image is not in the current folder, and --image-urls is the address of the current folder: "
            "run the command in the folder that is published at that address"
        ) from error
    parts = urlsplit(prefix)
    return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/{encoded}"))


def at_batch_prices(config: Config) -> Config:
    """Return the configuration with each stage's Batch API price."""

    def cheaper(stage: StageConfig) -> StageConfig:
        if (price := stage.price) is None:
            return stage
        share = Price(input=price.input * price.batch, output=price.output * price.batch, batch=1)
        return stage.model_copy(update={"price": share})

    changed = {name: cheaper(getattr(config, name)) for name in STAGES}
    return config.model_copy(update=changed | ({"levels": cheaper(config.levels)} if config.levels else {}))


def print_expected(args: Namespace, config: Config, jobs: Sequence[Job], *, as_json: bool = False) -> None:
    """Print the expected cost of a run and the number of batches, given the limits of the providers."""
    prefix = args.image_urls
    expected = estimate(config, jobs, (lambda image: len(address_of(prefix, image))) if prefix else bytes_in_request)
    print_estimate(expected, as_json=as_json)
    if args.batch and not as_json:
        _print_batches(expected)
        if prefix and jobs:
            print(
                "The provider will download the images. Check that the first one opens: "
                f"{address_of(prefix, jobs[0].image)}"
            )


def _print_batches(expected: Estimate) -> None:
    requests, size, batches = 0, 0, 0
    for stage in expected.stages:
        service = service_of(stage.model)
        requests, size = requests + stage.calls, size + stage.bytes
        batches += max(ceil(stage.calls / service.most_requests), ceil(stage.bytes / service.most_bytes))
    print(
        f"With --batch: {requests:,} requests, {size / 1e6:,.1f} MB, in at least {batches:,} batches, one stage after "
        "another."
    )


@contextmanager
def within_batches(args: Namespace, results: Path, limits: Limits) -> Iterator[None]:
    """Apply ``in_batches`` beside a results file if ``--batch`` is set, with addresses for ``--image-urls``."""
    if not args.batch:
        yield
        return
    with in_batches(batches_beside(results), limits, args.image_urls):
        yield


@contextmanager
def in_batches(folder: Path, limits: Limits, image_urls: str | None = None) -> Iterator[None]:
    """Submit the requests in the block as batches, kept in a folder. Raises UserError as ``BatchRun``."""
    addresses = None if image_urls is None else partial(address_of, image_urls)
    run, shown = BatchRun(folder, limits, print_note, addresses), set[int]()

    def is_new(record: logging.LogRecord) -> bool:
        """Return whether a record is new: an image is assessed repeatedly and logs the same each time."""
        key = hash((record.getMessage(), str(about())))
        if record.levelno < logging.INFO:
            return True
        known = key in shown
        shown.add(key)
        return not known

    handlers = logging.getLogger("agenticiqa").handlers
    for handler in handlers:
        handler.addFilter(is_new)
    try:
        with run.sending(), kept_calls(run.manifest):  # so that the next pass costs little more than decoding
            yield
    finally:
        for handler in handlers:
            handler.removeFilter(is_new)
        run.close()
