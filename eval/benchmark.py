"""Judge a labeled set: every image once, each result kept as it comes, an interrupted run continued."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from agenticiqa.eval.datasets import LabeledImage
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.limits import LimitReached
from agenticiqa.programs.batch.fit_inputs import rows_with_fit_inputs
from agenticiqa.programs.batch.job import Job, failure_text
from agenticiqa.programs.batch.judge_many import Failure, judge_many
from agenticiqa.programs.batch.results_file import Identity, ResultsFile, Row, resume
from agenticiqa.programs.batch.stop_rule import StopRule
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images import name_of
from agenticiqa.programs.images.files import sha256_of
from agenticiqa.programs.stages.question import DEFAULT_QUERY, detect_query_type
from agenticiqa.programs.tools.training_images import parts_of
from agenticiqa.signatures.types import QueryType

NewRows = Iterator[tuple[LabeledImage, Row]]
Watch = Callable[[NewRows, int, int], NewRows]  # new rows, how many were finished before, how many there are in all

LABEL_FIELDS = ("name", "mos", "mos_std", "distortion", "level", "split", "content")


def unwatched(rows: NewRows, finished: int, total: int) -> NewRows:
    """The new rows as they are."""
    return rows


def evaluate(
    program: AgenticIQA,
    labels: Sequence[LabeledImage],
    results: ResultsFile,
    *,
    query: str = DEFAULT_QUERY,
    workers: int = 1,
    watch: Watch = unwatched,
) -> list[Row]:
    """Judge the labeled images that ``results`` does not hold yet; returns a row for each label, in their order.

    A returned row has ``training_parts``: the parts of sets, with images that shipped tools were fitted on, that hold
    the image (``tools.training_images.Part``). They are not kept, as they change with the tools.

    New rows are appended to ``results`` as they come, so that after an interruption the same call continues.
    ``report.summarize`` makes figures of the rows. ``watch`` wraps the new rows, for progress and messages. Raises
    UserError for a question that asks for no score, and what ended the run as ``judge_labels`` does.
    """
    query = scoring_question(query)
    wanted = {label: identity(label, query) for label in labels} if results.rows else {}
    rows = resume(results.rows, wanted, row_identity).finished
    todo = [label for label in labels if label not in rows]
    for label, row in watch(_kept(judge_labels(program, todo, query, workers), results), len(rows), len(labels)):
        rows[label] = row
    return [{**rows[label], "training_parts": sorted(parts_of(label.image))} for label in labels]


def scoring_question(query: str) -> str:
    """The question without surrounding blanks. Raises UserError for one that does not ask for a score."""
    query = query.strip()
    if detect_query_type(query) is not QueryType.SCORING:
        raise UserError(f"evaluate compares scores, and {query!r} does not ask for one; ask to rate the quality")
    return query


def judge_labels(program: AgenticIQA, labels: Sequence[LabeledImage], query: str, workers: int) -> NewRows:
    """Judge every labeled image; yields its row as it comes: the result's JSON and the label's fields.

    A failed image has ``error`` instead of a result. After the last row, raises what ended the run (``StopRule``): a
    UserError that is not about one image, ``dspy.LMError`` when the model refuses or stays out of reach, LimitReached.
    """
    jobs = {Job(label.image, query, label.reference): label for label in labels}
    stop = StopRule(workers)
    for job, outcome in judge_many(program, jobs, workers, rows_with_fit_inputs(program), stop.should_stop):
        if not isinstance(outcome, LimitReached):
            yield jobs[job], _row(job, jobs[job], outcome)
    if stop.ended_by:
        raise stop.ended_by


def default_folder(data: str, split: str | None, backend: str) -> Path:
    """``runs/<data>[-<split>]-<backend>``, in characters that every file system takes."""
    parts = (data, *([split] if split else []), backend)
    return Path("runs") / "-".join(re.sub(r"[^\w.]+", "_", part) for part in parts)


def _kept(rows: NewRows, results: ResultsFile) -> NewRows:
    for label, row in rows:
        results.append(row)
        yield label, row


def _row(job: Job, label: LabeledImage, outcome: Row | Failure) -> Row:
    fields = {name: value for name, value in asdict(label).items() if name in LABEL_FIELDS}
    if not isinstance(outcome, Exception):
        return {**outcome, **fields}
    return {
        "image": job.name,
        "reference": name_of(label.reference) if label.reference else None,
        "query": job.query,
        "error": f"{type(outcome).__name__}: {failure_text(job, outcome)}",
        **fields,
    }


def identity(label: LabeledImage, query: str) -> Identity:
    """What a result for a label belongs to. Images go by their names in the labels file, so the folder may move.

    The settings are not in it: ``runs.pin`` keeps them the same for the whole run.
    """
    reference = _sha256(label.reference) if label.reference else None
    return Identity(label.name, _sha256(label.image), label.content, reference, query, run_fingerprint=None)


def row_identity(row: Row) -> Identity:
    """What a row of a run's results belongs to."""
    return Identity(
        image=row["name"],
        image_sha256=row["image_sha256"],
        reference=row["content"],
        reference_sha256=row["reference_sha256"],
        query=row["query"],
        run_fingerprint=None,
    )


def _sha256(path: Path) -> str | None:
    try:
        return sha256_of(path)
    except OSError:  # the image is then judged, and fails with a reason
        return None
