"""Assess every image of a labeled set once, store each result as it comes, and continue interrupted runs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from agenticiqa.eval.datasets import LabeledImage
from agenticiqa.eval.labels.embedded import shown_path
from agenticiqa.eval.scorers.scorer import Scorer, ScorerStopRule
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.limits import LimitReached
from agenticiqa.programs.batch.assess_many import Failure, assess_many, run_many
from agenticiqa.programs.batch.fit_inputs import rows_with_fit_inputs
from agenticiqa.programs.batch.job import Job, failure_text
from agenticiqa.programs.batch.results_file import Identity, ResultsFile, Resumed, Row, resume
from agenticiqa.programs.batch.stop_rule import StopRule
from agenticiqa.programs.images import name_of
from agenticiqa.programs.images.files import sha256_of
from agenticiqa.programs.tools.training_images import ADAPTER, Part, parts_of

NewRows = Iterator[tuple[LabeledImage, Row]]
Watch = Callable[[NewRows, int, int], NewRows]  # new rows, number of rows finished before, number of all rows

LABEL_FIELDS = ("name", "mos", "mos_std", "distortion", "level", "split", "content", "generator")


@dataclass(frozen=True)
class SetRows:
    """The rows of the labeled images, in label order; each loop reads them from disk again, not from memory.

    Each has ``training_parts``: the training data of shipped tools that contain the image
    (``tools.training_images.Part``). They are not stored, as they change with the tools.
    """

    results: ResultsFile
    numbers: Sequence[int]
    parts: Sequence[Sequence[Part]]

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[Row]:
        for row, parts in zip(self.results.rows(self.numbers), self.parts, strict=True):
            calls = (row.get("executor_evidence") or {}).get("tool_log") or ()
            own = [Part(ADAPTER, "") for call in calls if (call.get("adapted") or {}).get("this_one")]
            yield {**row, "training_parts": [*parts, *own[:1]]}


def unwatched(rows: NewRows, finished: int, total: int) -> NewRows:
    """Return the new rows unchanged."""
    return rows


def assess_set(
    program: AgenticIQA | Scorer,
    labels: Sequence[LabeledImage],
    results: ResultsFile,
    *,
    query: str,
    workers: int = 1,
    watch: Watch = unwatched,
) -> SetRows:
    """Assess the labeled images that ``results`` does not hold yet; return a row for each label, in their order.

    New rows are appended to ``results`` as they come, so that after an interruption the same call continues.
    ``report.summarize`` computes figures from the rows. ``watch`` wraps the new rows, for progress and messages. Raises
    the error that ended the run as ``assess_labels`` does; LimitReached has the rows so far as its ``results``.
    """
    compared = not isinstance(program, Scorer) or program.compares != "never"
    wanted = {label: identity(label, query, compared) for label in labels} if results.length else {}
    resumed = resume(results.outlines(), wanted, row_identity)
    kept, failed = resumed.finished, results.failed()
    todo = [label for label in labels if label not in kept]
    todo.sort(key=lambda label: label.name in failed)  # else images that fail again could end each run
    new = assess_labels(program, todo, query, workers, accepted=bool(kept))
    try:
        for _ in watch(_kept(new, results, resumed), len(kept), len(labels)):
            pass
    except LimitReached as limit:
        limit.results = _set_rows([label for label in labels if label in kept], results, kept)
        raise
    return _set_rows(labels, results, kept)


def _set_rows(labels: Sequence[LabeledImage], results: ResultsFile, offsets: Mapping[LabeledImage, int]) -> SetRows:
    return SetRows(results, [offsets[label] for label in labels], [sorted(parts_of(label.image)) for label in labels])


def assess_labels(
    program: AgenticIQA | Scorer, labels: Sequence[LabeledImage], query: str, workers: int, *, accepted: bool = False
) -> NewRows:
    """Assess every labeled image; yield its row as it comes: the result's JSON and the label's fields.

    A failed image has ``error`` instead of a result. After the last row, raises the error that ended the run (see
    ``StopRule`` and ``ScorerStopRule``): a UserError not about one image, ``dspy.LMError`` if the model refuses or is
    unreachable, or a limit.
    """
    jobs = {Job(label.image, query, label.reference): label for label in labels}
    stop = (ScorerStopRule if isinstance(program, Scorer) else StopRule)(workers, accepted)
    outcomes: Iterator[tuple[Job, Row | Failure]]
    if isinstance(program, Scorer):
        outcomes = run_many(program, jobs, workers, stop.should_stop, computes=program.computes)
    else:
        outcomes = assess_many(program, [*jobs], workers, rows_with_fit_inputs(program), stop.should_stop)
    for job, outcome in outcomes:
        yield jobs[job], _row(program, job, jobs[job], outcome)
    if stop.ended_by:
        raise stop.ended_by


def identity(label: LabeledImage, query: str, compared: bool = True) -> Identity:
    """Return the key of a label's result. Images are identified by their name in the labels, so the folder may move.

    It excludes the settings: ``runs.pin`` keeps them the same for the whole run. It also excludes the reference
    unless it is ``compared``.
    """
    reference = _sha256(label.reference) if label.reference and compared else None
    return Identity(label.name, _sha256(label.image), label.content, reference, query, run_fingerprint=None)


def row_identity(row: Row) -> Identity:
    """Return the key of a row of a run's results."""
    return Identity(
        image=row["name"],
        image_sha256=row["image_sha256"],
        reference=row["content"],
        reference_sha256=row["reference_sha256"],
        query=row["query"],
        run_fingerprint=None,
    )


def _kept(rows: NewRows, results: ResultsFile, resumed: Resumed[LabeledImage]) -> NewRows:
    for label, row in rows:
        resumed.finished[label] = results.append_better(row, resumed.incomplete.get(label))
        yield label, row


def _row(program: AgenticIQA | Scorer, job: Job, label: LabeledImage, outcome: Row | Failure) -> Row:
    fields = {name: value for name, value in asdict(label).items() if name in LABEL_FIELDS}
    if not isinstance(outcome, Exception):
        return {**outcome, **fields}
    cause = outcome.__cause__ if isinstance(program, Scorer) else None  # the error of the caller's function
    failure = failure_text(job, outcome).replace(str(label.image), shown_path(label))
    return {
        "image": job.name,
        "reference": name_of(label.reference) if label.reference else None,
        "query": job.query,
        **({"scorer": program.name} if isinstance(program, Scorer) else {}),
        "error": f"{type(cause or outcome).__name__}: {failure}",
        **fields,
    }


def _sha256(path: Path) -> str | None:
    try:
        return sha256_of(path)
    except OSError:  # the assessment then fails with a reason
        return None
