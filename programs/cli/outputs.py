"""Assess the images of a run and write the results: cards, JSON, or lines in a file."""

import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from agenticiqa.configs import Config, FusionConfig
from agenticiqa.programs.backends.limits import LimitReached
from agenticiqa.programs.batch.assess_many import assess_many
from agenticiqa.programs.batch.fit_fusion import RELIABLE_FROM
from agenticiqa.programs.batch.job import Job, failed_row, failure_text
from agenticiqa.programs.batch.plan_run import RunPlan, fingerprint_of
from agenticiqa.programs.batch.results_file import ResultsFile, Row
from agenticiqa.programs.batch.stop_rule import StopRule
from agenticiqa.programs.batch.summary import Summary
from agenticiqa.programs.cli import card, render
from agenticiqa.programs.cli.printable import json_text, print_error
from agenticiqa.programs.errors import AgenticIQAError, UserError
from agenticiqa.programs.images.files import one_line, printable_path
from agenticiqa.programs.questions.query_type import detect_query_type
from agenticiqa.programs.result import Assessment, is_unscored
from agenticiqa.signatures.types import FROM_REJECTED, QueryType

Write: TypeAlias = Callable[[Job, Row], None]


class CannotAppend(AgenticIQAError):
    """Raised if a result cannot be written to its file and is printed instead."""


class NotDrawn(AgenticIQAError):
    """Raised if the picture of an assessed image cannot be drawn."""


class Appending:
    """A writer that appends each row to a results file, with the fingerprint of the run's settings.

    If that fails (because the disk is full, say), this row and all later ones are printed to stdout, because results
    may have cost money. CannotAppend is raised once.
    """

    def __init__(self, results: ResultsFile, settings: Mapping[str, Any]) -> None:
        self._results, self._settings = results, settings
        self._failed = False

    def __call__(self, job: Job, row: Row) -> None:
        """Write one row."""
        row = {**row, "run_fingerprint": fingerprint_of(job, self._settings)}
        if self._failed:
            print_line(job, row)
            return
        try:
            self._results.append(row)
        except OSError as error:
            self._failed = True
            print_line(job, row)
            place = printable_path(self._results.path)
            raise CannotAppend(
                f"{place}: cannot be written ({error.strerror}); results are printed to stdout from here on"
            ) from error


def open_results(path: Path, resume: bool) -> ResultsFile:
    """Open a results file for appending. Raises UserError if it has results and ``resume`` is not set."""
    if (
        not resume and os.path.isfile(path) and os.path.getsize(path)
    ):  # these raise no OSError, unlike the methods of Path
        raise UserError(
            f"{printable_path(path)}: the file already has results; add --resume to continue it, or name another file"
        )
    return ResultsFile(path)


def print_line(job: Job, row: Row) -> None:
    """Print a result as one JSON line."""
    print(json_text(row), flush=True)


def print_card(job: Job, row: Row, *, with_replans: bool = True) -> None:
    """Print a result: a card on a terminal, otherwise one short line."""
    card.print_result(row, with_replans=with_replans)


@contextmanager
def collect_os_errors(stdout_errors: list[OSError]) -> Iterator[None]:
    """Collect an OSError of the block in ``stdout_errors``, so that other outputs are written before it is raised."""
    try:
        yield
    except OSError as error:
        stdout_errors.append(error)


def until_stdout_fails(write: Write | None, stdout_errors: list[OSError]) -> Write | None:
    """Return a function that writes until the first error of stdout, which is added to ``stdout_errors``."""

    def guarded(job: Job, row: Row) -> None:
        if write and not stdout_errors:
            with collect_os_errors(stdout_errors):
                write(job, row)

    return guarded if write else None


@contextmanager
def one_document(
    jobs: Sequence[Job], problems: Sequence[Exception], single: bool, stdout_errors: list[OSError]
) -> Iterator[Write]:
    """Collect results, and at the end print one JSON object, or a list in the order of the jobs.

    The ``problems``, names without a job, are the last items of the list, as rows of ``failed_row``. An error of stdout
    is added to ``stdout_errors``.
    """
    rows: dict[Job, Row] = {}
    try:
        yield rows.__setitem__
    finally:
        if rows:
            in_order = [rows[job] for job in jobs if job in rows] + [failed_row(str(each)) for each in problems]
            with collect_os_errors(stdout_errors):
                print(json_text(in_order[0] if single else in_order, indent=2), flush=True)


def resumed_text(summary: Summary) -> str:
    """Return how many results of earlier runs are used, and why other images are assessed again."""
    text = f"{summary.assessed_before} of {summary.images} images were already assessed"
    again = ", ".join(f"{count} {reason}" for reason, count in summary.assessed_again.items())
    return f"{text}; assessed again: {again}" if again else text


def kept_text(results: ResultsFile, failed: int = 0, dropped: int = 0) -> str:
    """Return how many rows were appended, how many images failed, and how many replaced rows were removed.

    Rows of runs with other settings stay in the file.
    """
    counted = f"{results.appended} assessed, " + (f"{failed} failed, " if failed else "")
    text = f"{counted}saved in {printable_path(results.path)}"
    if others := results.replaced:
        text += f"; {others} of its {results.length} rows are outdated, as later rows replace them"
    return f"{text}; {dropped} outdated rows were removed" if dropped else text


def unfitted_text(config: Config, queries: Mapping[str, int], images: int, place: str | None) -> str:
    """Return the note that the fusion is not fitted to the model of a large run, with the command that fits it.

    It is empty if the configuration sets the fusion, no model rates, or fewer than 50 of the assessed ``images`` were
    rated. ``queries`` has the number of images by question; ``place`` is the file or folder of the results, if any.
    """
    config = config.in_mode()
    scorer = config.levels or config.summarizer
    if scorer.is_offline or config.fusion != FusionConfig() or images < RELIABLE_FROM:
        return ""
    ratings = sum(n for query, n in queries.items() if detect_query_type(query, "IQA") is QueryType.SCORING)
    if min(ratings, images) < RELIABLE_FROM:
        return ""
    save = "" if place else "save the results with --jsonl scores.jsonl; then "
    return (
        f"the fusion is not fitted to {scorer.backend}: {save}`agenticiqa calibrate fusion "
        f"{shlex.quote(place or 'scores.jsonl')}` needs no labels"
    )


def is_kept(results: ResultsFile) -> bool:
    """Return whether the file of the results still exists; report a file that was deleted during the run."""
    if results.path.exists():
        return True
    print_error(
        f"{printable_path(results.path)}: the file was deleted during the run, and its results are lost; run the same "
        "command again (answers of models come from the cache)"
    )
    return False


def drop_replaced(results: ResultsFile) -> int:
    """Remove rows from the file that later rows replace; return how many. Report a file that cannot be rewritten."""
    try:
        return results.drop_replaced()
    except OSError as error:
        print_error(
            f"{printable_path(results.path)}: could not remove outdated rows ({error.strerror}); if an image has "
            "several rows, use the last one"
        )
        return 0


@contextmanager
def hint_to_resume(results: ResultsFile | None, summary: Summary) -> Iterator[None]:
    """On Ctrl-C, print how many images are assessed and how to continue, if there is a file; then reraise it."""
    try:
        yield
    except KeyboardInterrupt:
        if results:
            done = f"{summary.assessed_before + summary.assessed} of {summary.images} images are assessed"
            if summary.failed:
                done += f", {len(summary.failed)} failed"
            print_error(f"{done}; run the same command with --resume to continue {printable_path(results.path)}")
        raise


def unscored_text(unscored: int, images: int, again: str | None) -> str:
    """Return how many images have no score or answer, and the command (``again``), if any, that assesses them again."""
    text = f"{unscored} of {images} images have no score or answer, because the model gave no usable answer"
    return f"{text}; run {again} to assess them again" if again else text


def incomplete_text(incomplete: int) -> str:
    """Return how many scores come from incomplete answers, and how to leave them out."""
    noun = "score" if incomplete == 1 else "scores"
    return (
        f"{incomplete} {noun} from incomplete answers of the model; a run with --strict counts these images as unscored"
    )


def save_summary(summary: Summary, results: ResultsFile) -> None:
    """Write the summary beside the results; report a summary that cannot be written, without failing."""
    try:
        summary.write(results)
    except OSError as error:
        print_error(f"{printable_path(results.path)}: the summary cannot be written ({error.strerror})")


def assess_and_write(
    plan: RunPlan,
    workers: int,
    postprocess: Callable[[Assessment], Row],
    write: Write,
    summary: Summary,
    fail: Write | None = None,
) -> list[Exception]:
    """Assess the planned jobs: write each result, print each failure, and count both. Return the failures.

    ``fail`` receives a row of ``image`` and ``error`` for each image that could not be assessed.
    """
    rule = StopRule(workers)
    errors: list[Exception] = []
    outcomes = assess_many(plan.program, plan.todo, workers, postprocess, rule.should_stop)
    for job, outcome in render.progress(outcomes, len(plan.todo)):
        if isinstance(outcome, LimitReached):
            print_error(one_line(str(outcome)))
        elif isinstance(outcome, Exception):
            errors.append(outcome)
            summary.failed.append(failure_text(job, outcome))
            print_error(summary.failed[-1])
            if fail:
                fail(job, failed_row(summary.failed[-1], job.name))
        else:
            try:
                write(job, outcome)
            except CannotAppend as error:
                errors.append(error)
                print_error(str(error))
                rule.ended_by = error
            if outcome.get("map", "") is None:  # the reason was already logged
                errors.append(NotDrawn(f"{job.name}: no picture was drawn"))
            summary.assessed += 1
            summary.unscored += is_unscored(outcome)
            summary.incomplete += outcome.get("probability_source") in FROM_REJECTED
    return errors
