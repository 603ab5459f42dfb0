"""The outputs of a run as sinks: each takes every result and failure, and ends with an exit status."""

import os
import shlex
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from agenticiqa.configs import Config
from agenticiqa.programs.backends.limits import LimitReached, RunLimits
from agenticiqa.programs.batch.assess_many import assess_many
from agenticiqa.programs.batch.find_jobs import STDIN, FoundJobs
from agenticiqa.programs.batch.fit_fusion import RELIABLE_FROM
from agenticiqa.programs.batch.job import Job, failed_row, failure_text
from agenticiqa.programs.batch.plan_run import RunPlan, fingerprint_of, plan_run
from agenticiqa.programs.batch.results_file import ResultsFile, Row
from agenticiqa.programs.batch.stop_rule import StopRule
from agenticiqa.programs.batch.summary import Summary
from agenticiqa.programs.cli import render
from agenticiqa.programs.cli.arguments import AssessOptions
from agenticiqa.programs.cli.options import print_models
from agenticiqa.programs.cli.printable import counted, json_text, print_error, print_note
from agenticiqa.programs.cli.status import OK, SOME_FAILED, UNSCORED, USAGE, worst
from agenticiqa.programs.errors import AgenticIQAError, ImageError, UserError
from agenticiqa.programs.images.files import one_line, printable_path
from agenticiqa.programs.questions.query_type import detect_query_type
from agenticiqa.programs.result import Assessment
from agenticiqa.signatures.types import QueryType


@dataclass
class RunState:
    """A run as its outputs see it: its plan, its counts so far, the rule that ends it, and its results file, if any.

    ``problems`` has an error for each name without an image; these were already printed.
    """

    plan: RunPlan
    summary: Summary
    rule: StopRule
    problems: Sequence[ImageError]
    results: ResultsFile | None = None

    @classmethod
    def of(
        cls,
        config: Config,
        inputs: FoundJobs,
        workers: int,
        results: ResultsFile | None = None,
        *,
        keep_going: bool = False,
    ) -> Self:
        """Plan a run over the jobs, without those that have a current result in the file, and print its models."""
        plan = plan_run(config, inputs.jobs, results)
        print_models(config)
        summary = Summary(
            len(inputs.jobs) + len(inputs.problems),
            assessed_before=plan.finished,
            assessed_again=dict(plan.again),
            failed=[str(problem) for problem in inputs.problems],
            skipped=dict(inputs.skipped),
            settings=plan.settings,
        )
        rule = StopRule(workers, accepted=plan.finished > 0, keep_going=keep_going)
        return cls(plan, summary, rule, inputs.problems, results)

    def better(self, job: Job, row: Row) -> Row:
        """Return the better of a new row and the incomplete row of an earlier run, if there is one."""
        if self.results is None:
            return row
        best = self.results.better(row, self.plan.incomplete.get(job))
        self.summary.kept_earlier += best is not row
        return best

    @property
    def kept_file(self) -> Path | None:
        """The results file, unless there is none or it was deleted during the run."""
        return self.results.path if self.results and self.results.path.exists() else None


class Sink:
    """An output of a run, which keeps its own state; each method does nothing unless a subclass overrides it.

    A sink on stdout raises the OSError of a print that fails.
    """

    def open(self) -> None:
        """Begin the output, before the first image is assessed."""

    def write(self, job: Job, row: Row) -> None:
        """Take a result as soon as it is there."""

    def fail(self, job: Job | None, error: Exception) -> None:
        """Take the error of an image, or of a name without an image (no job)."""

    def interrupt(self, error: BaseException) -> None:
        """Save the finished results, because ``error`` ends the run; called in place of ``close``."""

    def close(self) -> int:
        """End the output, and return the exit status that it calls for."""
        return OK


class Printed(Sink):
    """Each result, printed by a function of its row as soon as it and those of all earlier jobs are there.

    Without ``jobs`` each is printed at once. Failures are printed only ``with_failures``. An interrupted run prints all
    finished results. An error of stdout ends the run, unless it ``may_fail`` because the run has other outputs: then
    nothing more is printed, and ``close`` raises the error.
    """

    def __init__(
        self,
        show: Callable[[Row], None],
        *,
        jobs: Sequence[Job] = (),
        with_failures: bool = False,
        may_fail: bool = False,
    ) -> None:
        self._show, self._with_failures, self._may_fail = show, with_failures, may_fail
        self._error: OSError | None = None
        self._expected = deque(jobs)
        self._waiting: dict[Job, Row | None] = {}  # None for a job without a row to print

    def write(self, job: Job | None, row: Row | None) -> None:
        """Print the row, and those that waited for it."""
        if job is None or not self._expected:
            self._print(row)
            return
        self._waiting[job] = row
        while self._expected and self._expected[0] in self._waiting:
            self._print(self._waiting.pop(self._expected.popleft()))

    def fail(self, job: Job | None, error: Exception) -> None:
        """Print the row of a failed image."""
        if self._with_failures or job:
            self.write(job, failed_row(error, job) if self._with_failures else None)

    def interrupt(self, error: BaseException) -> None:
        """Print the finished results."""
        self._print_waiting()

    def close(self) -> int:
        """Print the results after a job that was not assessed, and raise the error of stdout, if any."""
        self._print_waiting()
        if self._error:
            raise self._error
        return OK

    def _print_waiting(self) -> None:
        for job in self._expected:
            self._print(self._waiting.pop(job, None))

    def _print(self, row: Row | None) -> None:
        try:
            if row is not None and not self._error:
                self._show(row)
        except OSError as error:
            if not self._may_fail:
                raise
            self._error = error


class JsonDocument(Sink):
    """One JSON object if a ``single`` image was named, else a list in the order of the jobs, printed at the end.

    Names without an image are its last items. An interrupted run prints what it has.
    """

    def __init__(self, state: RunState, *, single: bool) -> None:
        self._state, self._single = state, single
        self._rows: dict[Job, Row] = {}

    def write(self, job: Job, row: Row) -> None:
        """Keep the row."""
        self._rows[job] = row

    def fail(self, job: Job | None, error: Exception) -> None:
        """Keep the row of a failed image."""
        if job:
            self._rows[job] = failed_row(error, job)

    def interrupt(self, error: BaseException) -> None:
        """Print the finished results."""
        self.close()

    def close(self) -> int:
        """Print the document, unless no image was assessed or failed."""
        if self._rows:
            rows = [self._rows[job] for job in self._state.plan.jobs if job in self._rows]
            rows += [failed_row(problem) for problem in self._state.problems]
            print(json_text(rows[0] if self._single else rows, indent=2), flush=True)
        return OK


class CannotAppend(AgenticIQAError):
    """The reason why a run ends if a result cannot be written to its file."""


class Appending(Sink):
    """The rows of a results file, each with the fingerprint of the run's settings.

    If one cannot be appended (because the disk is full, say), it and all later rows are printed to stdout, because
    results may have cost money, and the run ends.
    """

    def __init__(self, state: RunState, results: ResultsFile, *, stdout_may_fail: bool = False) -> None:
        self._state, self._results = state, results
        self._stdout = Printed(print_json_line, may_fail=stdout_may_fail)
        self._is_full = False

    def write(self, job: Job, row: Row) -> None:
        """Append the row, or print it once the file could not be written."""
        row = {**row, "run_fingerprint": fingerprint_of(job, self._state.plan.settings)}
        if self._is_full:
            self._stdout.write(job, row)
            return
        try:
            self._results.append(row)
        except OSError as error:
            self._is_full = True
            self._stdout.write(job, row)
            place = printable_path(self._results.path)
            self._state.rule.ended_by = CannotAppend(
                f"{place}: cannot be written ({error.strerror}); results are printed to stdout from here on"
            )
            print_error(str(self._state.rule.ended_by))

    def close(self) -> int:
        """Return whether all rows are in the file. Raises the error of stdout, if any."""
        self._stdout.close()
        return SOME_FAILED if self._is_full or self._results.lost else OK


class SavedResults(Appending):
    """The results file of ``assess``, with its summary and with notes about what it holds."""

    def open(self) -> None:
        """Note how many results of earlier runs are used, and why other images are assessed again."""
        plan = self._state.plan
        if plan.finished or plan.again:
            note = f"{plan.finished} of {self._state.summary.images} images were already assessed"
            again = ", ".join(f"{count} {reason}" for reason, count in plan.again.items())
            print_note(f"{note}; assessed again: {again}" if again else note)

    def interrupt(self, error: BaseException) -> None:
        """Save the summary; on Ctrl-C, print how many images are assessed and how to continue."""
        if isinstance(error, KeyboardInterrupt):
            summary = self._state.summary
            done = f"{summary.assessed_before + summary.assessed} of {summary.images} images are assessed"
            if summary.failed:
                done += f", {len(summary.failed)} failed"
            print_error(f"{done}; run the same command with --resume to continue {printable_path(self._results.path)}")
        self._save_summary()

    def close(self) -> int:
        """Remove outdated rows, save the summary, and note how many rows were appended and how many images failed.

        Rows of runs with other settings stay in the file.
        """
        summary, dropped = self._state.summary, 0
        try:
            self._results.keep_up()
        except OSError as error:
            print_error(
                f"{printable_path(self._results.path)}: the file was replaced or deleted during the run, and its "
                f"results are lost ({error.strerror}); run the same command again (answers of models come from the "
                "cache)"
            )
            self._save_summary()
            return SOME_FAILED
        place = printable_path(self._results.path)
        try:
            dropped = self._results.drop_replaced()
        except OSError as error:
            print_error(
                f"{place}: could not remove outdated rows ({error.strerror}); if an image has several rows, use the "
                "last one"
            )
        finally:
            self._save_summary()
        failed = f"{len(summary.failed)} failed, " if summary.failed else ""
        lost = f"{counted(self._results.lost, 'row')} lost, " if self._results.lost else ""
        note = f"{self._results.appended} assessed, {failed}{lost}saved in {place}"
        if outdated := self._results.replaced:
            note += f"; {outdated} of its {self._results.length} rows are outdated, as later rows replace them"
        if dropped:
            note += f"; {counted(dropped, 'outdated row')} {'was' if dropped == 1 else 'were'} removed"
        if summary.kept_earlier:
            note += f"; {counted(summary.kept_earlier, 'image')} kept the earlier result, because the new one was worse"
        print_note(note)
        return super().close()

    def _save_summary(self) -> None:
        """Write the summary beside the results; report a summary that cannot be written, without failing."""
        try:
            self._state.summary.write(self._results)
        except OSError as error:
            print_error(f"{printable_path(self._results.path)}: the summary cannot be written ({error.strerror})")


class Maps(Sink):
    """The folder of the pictures; it only reports on them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._drawn: list[bool] = []

    def write(self, job: Job, row: Row) -> None:
        """Note whether the picture was drawn; the reason of a failure was already logged."""
        self._drawn.append(row["map"] is not None)

    def close(self) -> int:
        """Print the folder; return whether each result has its picture."""
        if any(self._drawn):
            print_note(f"Pictures were saved in {self._folder}")
        return OK if all(self._drawn) else SOME_FAILED


class FusionHint(Sink):
    """The note that the fusion is not fitted to the model of a large run."""

    def __init__(self, config: Config, state: RunState) -> None:
        self._config, self._state = config, state

    def close(self) -> int:
        """Print the note, unless it does not apply."""
        plan, summary, file = self._state.plan, self._state.summary, self._state.kept_file
        queries = Counter(job.asked for job in plan.jobs)
        answered = plan.finished + summary.assessed - summary.unscored
        print_unfitted(self._config, queries, answered, printable_path(file) if file else None)
        return OK


class Totals(Sink):
    """The errors about images without a score and images that were not assessed."""

    def __init__(self, state: RunState) -> None:
        self._state = state
        self._errors: list[Exception] = []

    def fail(self, job: Job | None, error: Exception) -> None:
        """Keep the error, which decides about the status."""
        self._errors.append(error)

    def close(self) -> int:
        """Print what is missing, and return the status of the run without its outputs."""
        summary, results = self._state.summary, self._state.results
        print_unscored(summary.unscored, summary.assessed, "the same command with --resume" if results else None)
        print_incomplete(summary.incomplete)
        self._print_counts()
        if summary.not_assessed:
            then = f"; run the same command with --resume to continue {results.path}" if results else ""
            print_error(f"stopped; {summary.not_assessed} images were not assessed{then}")
        if not self._errors and not summary.not_assessed:
            return UNSCORED if summary.unscored else OK
        if summary.assessed or summary.assessed_before:
            return SOME_FAILED
        by_user = self._errors and all(isinstance(error, UserError) for error in self._errors)
        return USAGE if by_user else SOME_FAILED

    def interrupt(self, error: BaseException) -> None:
        """Print the counts."""
        self._print_counts()

    def _print_counts(self) -> None:
        summary = self._state.summary
        if not self._state.results and summary.images > 1 and not render.stdout_console().is_terminal:
            failed = f", {len(summary.failed)} failed" if summary.failed else ""
            print_note(f"{summary.assessed} assessed{failed}")


def assess_into(sinks: Sequence[Sink], state: RunState, to_row: Callable[[Assessment], Row]) -> None:
    """Open the sinks, assess the planned jobs into them, print each failure, and count both in the summary.

    The caller closes the sinks. If an exception ends the run, they are interrupted instead.
    """
    plan, summary, rule = state.plan, state.summary, state.rule
    outcomes = assess_many(plan.program, plan.todo, rule.workers, to_row, rule.should_stop)
    try:
        for sink in sinks:
            sink.open()
            for problem in state.problems:
                sink.fail(None, problem)
        for job, outcome in render.progress(outcomes, len(plan.todo)):
            if isinstance(outcome, Exception):
                summary.failed.append(failure_text(job, outcome))
                print_error(summary.failed[-1])
                for sink in sinks:
                    sink.fail(job, outcome)
            else:
                row = state.better(job, outcome)
                for sink in sinks:
                    sink.write(job, row)
                summary.count(row)
        if rule.gave_up:
            print_error(rule.gave_up)
    except LimitReached as limit:
        print_error(one_line(str(limit)))
    except BaseException as error:
        for sink in sinks:
            with suppress(OSError):
                sink.interrupt(error)
        raise


def closed(sinks: Sequence[Sink]) -> int:
    """Close all sinks in order, and return the status that matters most. Raises the first OSError of stdout."""
    statuses, errors = [], []
    for sink in sinks:
        try:
            statuses.append(sink.close())
        except OSError as error:
            errors.append(error)
    if errors:
        raise errors[0]
    return worst(*statuses)


def print_json_line(row: Row) -> None:
    """Print a row as one JSON line."""
    print(json_text(row), flush=True)


def print_unscored(unscored: int, images: int, again: str | None) -> None:
    """Print how many images have no score or answer, and the command (``again``), if any, that assesses them again."""
    if unscored:
        text = f"{unscored} of {images} images have no score or answer, because the model gave no usable answer"
        print_error(f"{text}; run {again} to assess them again" if again else text)


def print_incomplete(incomplete: int) -> None:
    """Print how many scores come from incomplete answers, and how to leave them out."""
    if incomplete:
        noun = "score" if incomplete == 1 else "scores"
        print_error(
            f"{incomplete} {noun} from incomplete answers of the model; a run with --strict counts these images as "
            "unscored"
        )


def print_unfitted(config: Config, queries: Mapping[str, int], images: int, place: str | None) -> None:
    """Note that the fusion is not fitted to the model of a large run, with the command that fits it.

    Nothing is printed if the configuration sets the fusion, no model rates, or fewer than 50 of the assessed ``images``
    were rated. ``queries`` has the number of images by question; ``place`` is the file or folder of the results, if
    any.
    """
    config = config.in_mode()
    scorer = config.levels or config.summarizer
    if scorer.is_offline or config.fusion.has_errors or images < RELIABLE_FROM:
        return
    ratings = sum(n for query, n in queries.items() if detect_query_type(query, "IQA") is QueryType.SCORING)
    if ratings >= RELIABLE_FROM:
        save = "" if place else "save the results with --jsonl scores.jsonl; then "
        print_note(
            f"the fusion is not fitted to {scorer.backend}: {save}`agenticiqa calibrate fusion "
            f"{shlex.quote(place or 'scores.jsonl')}` needs no labels"
        )


def to_row_from(save_maps: Path | None, jobs: Sequence[Job], names: Sequence[str] = ()) -> Callable[[Assessment], Row]:
    """Return the function from a result to its row; with ``--save-maps`` it draws the result, too.

    ``names`` are the paths that led to the images. Raises UserError if a picture would overwrite another file.
    """
    if not save_maps:
        return Assessment.to_dict
    from agenticiqa.programs.pictures import draw  # an import that one photo without a picture does not need

    return draw.drawing_into(save_maps, [job.image for job in jobs], names)


@contextmanager
def opened_results(args: AssessOptions, limits: RunLimits) -> Iterator[ResultsFile | None]:
    """Open the results file of a run, if any; with ``--batch``, requests in the block are submitted as batches.

    Raises UserError if the file has results and ``--resume`` is not set.
    """
    if args.jsonl in (None, STDIN):
        yield None
        return
    path = Path(args.jsonl)
    if not args.resume and os.path.isfile(path) and os.path.getsize(path):  # no OSError, unlike the methods of Path
        raise UserError(
            f"{printable_path(path)}: the file already has results; add --resume to continue it, or name another file"
        )
    with ExitStack() as stack:
        results = stack.enter_context(ResultsFile(path))
        if results.length and not any(row for _, row in results.outlines()):
            raise UserError(f"{printable_path(path)}: no line is a row of results; move or rename the file")
        if args.batch:
            from agenticiqa.programs.cli import batching

            stack.enter_context(batching.within_batches(args, path, limits))
        yield results
