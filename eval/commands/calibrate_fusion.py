"""Fit a fusion profile to photos that a model rates, or to the rows of a finished run, with or without labels."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import NamedTuple

from agenticiqa.configs import Config
from agenticiqa.configs.options import options_of
from agenticiqa.eval.commands.arguments import CalibrateFusionOptions, LabelOptions
from agenticiqa.eval.commands.label_options import FusionData, labels_named, sorted_by_kind
from agenticiqa.eval.commands.shared import continuing
from agenticiqa.eval.datasets import LabeledImage, MosScale, mos_scale
from agenticiqa.programs.backends.answer_cache import install
from agenticiqa.programs.backends.run_context import within
from agenticiqa.programs.batch.cost import estimate
from agenticiqa.programs.batch.find_jobs import FoundJobs, find_jobs
from agenticiqa.programs.batch.fit_fusion import RELIABLE_FROM, fit_rows, fitted_text
from agenticiqa.programs.batch.fit_inputs import rows_with_fit_inputs
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.batch.plan_run import saved_rows
from agenticiqa.programs.batch.results_file import ResultsFile, Row
from agenticiqa.programs.cli.batching import check_batches, print_estimate, print_expected, within_batches
from agenticiqa.programs.cli.options import config_from, given, limits_from, workers_from
from agenticiqa.programs.cli.output_paths import check_outputs
from agenticiqa.programs.cli.printable import print_error, print_text
from agenticiqa.programs.cli.sinks import Appending, RunState, assess_into
from agenticiqa.programs.cli.status import OK, SOME_FAILED
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.fusion.profile import write_fusion_profile
from agenticiqa.programs.images.files import printable_path, sha256_of
from agenticiqa.signatures.vocabulary import DEFAULT_QUERY


def run(args: CalibrateFusionOptions) -> int:
    """Fit the profile and write it; print on stderr the images that could not be rated."""
    source = sorted_by_kind(args.data)
    _refuse_options(args, source)
    data = labels_named(args, *source.labels) if source.labels else None
    labels = _mos_on_1_5([(label.image, label.mos) for label in data.labels], data.any_scale()) if data else {}
    if source.rows:
        rows, status = [row for file in source.rows for row in _read(file)], OK
        if not (labels or args.no_labels):
            labels = _labels_in(rows, args.mos_range)
    else:
        rated, status = _rated(args, source.photos, data.labels if data else [])
        if rated is None:
            return status
        rows = rated
    fit = fit_rows(rows, {} if args.no_labels else labels, fitted_on=date.today())
    write_fusion_profile(args.out, fit.profile)
    print_text(f"{args.out}: {fitted_text(fit)}.")
    if fit.profile.images < RELIABLE_FROM:
        print_text(
            "With so few images, the result depends strongly on a prior for typical models. Use "
            f"{RELIABLE_FROM} or more images."
        )
    print_text(
        f"To use it, add --fusion {args.out} to commands with --backend {fit.subject.model}, or fusion: {args.out} to "
        "a configuration in which that model gives the score."
    )
    return status


def _refuse_options(args: CalibrateFusionOptions, source: FusionData) -> None:
    """Raise UserError for options that do not fit the data, and for a file that would be replaced."""
    for_labels = given(args, options_of(LabelOptions), but=["--mos-range"] if source.rows else [])
    if for_labels and not source.labels:
        raise UserError(f"{for_labels[0]} is for labels; remove it, or name a table of labels or a data set")
    if args.out.exists() and not args.force and not args.dry_run:
        raise UserError(f"{args.out} already exists: name another file, or add --force to replace it")
    if not args.dry_run:
        check_outputs(args)
    if source.rows and (args.backend or args.config or args.dry_run):
        raise UserError("results of a finished run need no model: remove --backend, --config and --dry-run")


class _Rated(NamedTuple):
    """The rows of rated images, or ``None`` if there is nothing to fit, and the exit status."""

    rows: list[Row] | None
    status: int


def _rated(args: CalibrateFusionOptions, photos: Sequence[Path], labeled: Sequence[LabeledImage]) -> _Rated:
    """Rate the images with the model of the configuration; a dry run only prints the cost."""
    configured = config_from(args)
    config = configured.without_fusion()
    if config.summarizer.is_offline:
        raise UserError(
            "the configuration has no model for scores: name one with --backend, or in the section summarizer of "
            "the configuration"
        )
    jobs, problems = _jobs(photos, labeled)
    config = check_batches(args, config, limits_from(args, config), jobs)
    if args.dry_run:
        print_expected(args, config, jobs)
        return _Rated(None, SOME_FAILED if problems else OK)
    check_outputs(args, jobs, configured)
    rated = _assessed(args, config, jobs, args.out.with_suffix(".rows.jsonl"))
    return _Rated(rated.rows, SOME_FAILED) if problems else rated


def _mos_on_1_5(scored: Sequence[tuple[str | Path, float]], scale: MosScale) -> dict[str, float]:
    """Return MOS on 1..5 by the SHA-256 of the image; an image is a path or its SHA-256."""
    print(f"MOS {scale.low:g}..{scale.high:g} are mapped to 1..5", file=sys.stderr)
    return {image if isinstance(image, str) else sha256_of(image): scale.to_1_5(mos) for image, mos in scored}


def _labels_in(rows: Iterable[Row], ends: Sequence[float] | None) -> dict[str, float]:
    """Return the MOS in rows of ``evaluate``, as ``_mos_on_1_5`` does; rows without MOS are skipped."""
    scored = [
        (row["image_sha256"], row["mos"]) for row in rows if row.get("image_sha256") and row.get("mos") is not None
    ]
    return _mos_on_1_5(scored, mos_scale([mos for _, mos in scored], ends)) if scored else {}


def _jobs(photos: Sequence[Path], labeled: Sequence[LabeledImage]) -> tuple[list[Job], int]:
    """Return the images to rate, and the number of names without an image; print those names."""
    jobs = [Job(label.image, DEFAULT_QUERY, label.reference) for label in labeled]
    search = find_jobs(map(str, photos), DEFAULT_QUERY)
    print_error(*search.not_assessed)
    jobs = list(dict.fromkeys([*jobs, *search.jobs]))
    if not jobs:
        raise UserError("no image found to rate: name photos, folders of photos, or labels")
    return jobs, len(search.problems)


def _assessed(args: CalibrateFusionOptions, config: Config, jobs: list[Job], file: Path) -> _Rated:
    """Print the cost, and rate the images that are not in ``file``; no rows if a limit or an outage ended the run."""
    workers, limits = workers_from(args, config), limits_from(args, config)
    with ResultsFile(file) as results, within(limits), within_batches(args, file, limits):
        state = RunState.of(config, FoundJobs(jobs), workers, results)
        plan, summary = state.plan, state.summary
        print_estimate(estimate(config, plan.todo))
        install(config)
        if plan.finished:
            print(f"{plan.finished} of {len(jobs)} were already rated", file=sys.stderr)
        with continuing(file):
            assess_into([Appending(state, results)], state, rows_with_fit_inputs(plan.program))
        if summary.not_assessed:
            print_error(
                f"stopped; {summary.not_assessed} images were not rated; run the same command again to continue {file}"
            )
            return _Rated(None, SOME_FAILED)
        rows = [row for _, row in saved_rows(jobs, results, plan.settings)]
        return _Rated(rows, SOME_FAILED if summary.failed else OK)


def _read(file: Path) -> Iterator[Row]:
    from agenticiqa.programs.scale.table import store_at  # a late import, as it loads pyarrow

    expected = "expected results of 'assess --jsonl' or of 'evaluate' (results.jsonl)"
    try:
        yield from store_at(file).rows()
    except OSError as error:
        raise UserError(f"{printable_path(file)}: cannot be read ({error.strerror}); {expected}") from error
    except UserError as error:
        raise UserError(f"{error}; {expected}") from error
