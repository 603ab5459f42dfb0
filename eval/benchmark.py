"""Measure how a program, a metric or any function agrees with subjective scores, in one call."""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from agenticiqa.eval.datasets import LabeledImage
from agenticiqa.eval.labels.own_data import read_labels
from agenticiqa.eval.report import rating_report, summarize
from agenticiqa.eval.report.model import Report
from agenticiqa.eval.report.rating_tables import rating_headline
from agenticiqa.eval.report.run_differences import compare_report
from agenticiqa.eval.report.run_scores import rating_scores
from agenticiqa.eval.runs import made_by, pin
from agenticiqa.eval.scorers.named import scorer_of
from agenticiqa.eval.scorers.rows import Watch, assess_set, unwatched
from agenticiqa.eval.scorers.scorer import NO_QUERY, Scorer
from agenticiqa.eval.tasks.labeled_set import LabeledSet, labeled_images
from agenticiqa.eval.tasks.task import labels_sha256
from agenticiqa.programs.assess import AgenticIQA, refuse_unpriced
from agenticiqa.programs.backends.limits import LimitReached, Limits
from agenticiqa.programs.backends.run_context import current, within
from agenticiqa.programs.batch.results_file import ResultsFile, Row
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.page.forms import notebook_html
from agenticiqa.programs.questions.query_type import detect_query_type
from agenticiqa.signatures.types import QueryType
from agenticiqa.signatures.vocabulary import DEFAULT_QUERY

if TYPE_CHECKING:
    from pandas import DataFrame

GIVEN = "labels"  # the name of a sequence of labeled images


class Evaluation(NamedTuple):
    """The result of a benchmark; a notebook shows its table of figures.

    Attributes:
        rows: One row per labeled image, in their order.
        summary: The figures of ``report.summarize``.
    """

    rows: list[Row]
    summary: dict[str, Any]

    def __repr__(self) -> str:
        return f"<Evaluation: {rating_headline(self.summary)}>"

    def _repr_html_(self) -> str:
        return notebook_html(rating_report(self.summary).tables[0])

    def compare(self, other: "Evaluation") -> Report:
        """Compare the scores with those of another evaluation on the images of both, as the command ``compare`` does.

        Args:
            other: The result of another scorer or program on the same images.

        Returns:
            The figures of both, and their differences with intervals, as tables.

        Raises:
            UserError: There is no common image, or an image has different labels.
        """
        if not isinstance(other, Evaluation):
            raise UserError(f"compare needs another Evaluation, not type {type(other).__name__}; call evaluate first")
        first, second = (str(evaluation.summary["backend"]) for evaluation in (self, other))
        second = f"{second} (2)" if second == first else second
        return compare_report([rating_scores(self.rows, first), rating_scores(other.rows, second)])

    def to_frame(self) -> "DataFrame":
        """Return the rows as a DataFrame of pandas.

        Returns:
            One row per image, and one column per key of ``rows``.
        """
        from pandas import DataFrame  # a late import that takes half a second

        return DataFrame(self.rows)


def evaluate(
    program: AgenticIQA | Scorer | Callable[..., Any] | str,
    task: str | os.PathLike[str] | Iterable[Any],
    *,
    root: str | os.PathLike[str] | None = None,
    split: str | None = None,
    out: str | os.PathLike[str] | None = None,
    query: str = DEFAULT_QUERY,
    lower_is_better: bool | None = None,
    shorter_side: int | None = None,
    partial: bool = False,
    workers: int = 1,
    watch: Watch = unwatched,
    limits: Limits | None = None,
) -> Evaluation:
    """Assess every image of a task once, and correlate the scores with its MOS.

    A row has ``quality_score`` or ``error``. For a scorer, ``quality_score`` is negated where lower is better, and
    ``raw_score`` is its own number. Images without a score are counted as unscored and excluded from all figures.

    Args:
        program: An ``AgenticIQA``, the name of an embedded metric ("NIQE"), a pyiqa metric (the object of
            ``pyiqa.create_metric``, or "pyiqa:musiq"), "module:function", or any function of pixels (uint8 RGB, shape
            (H, W, 3)) that returns a number; a function with two parameters also gets the reference's pixels.
        task: Data in a form that ``labels.sources`` lists, the name of a data set, or labeled images. In Python, that
            includes a DataFrame, and (image, mos) pairs or dicts, with paths relative to the working folder.
        root: The folder with the archive of a data set that is given by name.
        split: The split to assess; by default all.
        out: A folder for the rows, ``run.json``, ``report.json`` and ``report.md``. Rows are written as they come, so
            the same call continues an interrupted run. Other settings or labels are refused in the same folder. For a
            function, only the file that defines it is compared, not its imports.
        query: The question to the program; it has to ask for a rating.
        lower_is_better: The direction of a function; embedded and pyiqa metrics declare their own.
        shorter_side: Pixels to which a scorer's larger images are downscaled; by default they are not.
        partial: Whether to accept an incomplete copy of a data set.
        workers: How many images are assessed at a time; above 1 a function has to be thread-safe.
        watch: Wraps the iterator of new rows, such as a progress bar; it also gets how many were finished before and
            how many there are in all.
        limits: The limits of this call, which apply beside those of the program.

    Returns:
        The rows and the figures.

    Raises:
        UserError: The task cannot be read, the scorer is unknown, or the question asks for no score.
        ToolError: pyiqa is missing.
        LimitReached: A limit is reached; ``results`` is the Evaluation so far. With ``out``, the same call continues.
        Exception: The error that ended the run (see ``scorers.rows.assess_labels``).
    """
    assessed_by = program if isinstance(program, AgenticIQA) else scorer_of(program, lower_is_better, shorter_side)
    if isinstance(program, AgenticIQA) and (lower_is_better, shorter_side) != (None, None):
        raise UserError("lower_is_better and shorter_side are for scorers: leave them out, or name a scorer")
    if isinstance(assessed_by, AgenticIQA):
        refuse_unpriced(assessed_by, limits)
    elif limits is not None:
        raise UserError("limits are for a program that asks models: leave them out for a scorer")
    query = scoring_question(query) if isinstance(assessed_by, AgenticIQA) else NO_QUERY
    data = _labels(task, root, split, partial)
    labels = data.labels
    refuse_without_references(assessed_by, labels)
    with TemporaryDirectory() as folder, ResultsFile(Path(folder if out is None else out) / "results.jsonl") as results:
        if out is not None:
            pinned = {"data": data.pinned} if data.pinned else {}
            pin(Path(out), made_by(assessed_by, data.digest, {"split": split, "query": query, **pinned}))
        try:
            with within(current().limits.beside(limits)):
                rows = [*assess_set(assessed_by, labels, results, query=query, workers=workers, watch=watch)]
        except LimitReached as limit:
            limit.results = _evaluation(assessed_by, data, split, [*limit.results])
            raise
    evaluation = _evaluation(assessed_by, data, split, rows)
    if out is not None:
        rating_report(evaluation.summary).write(Path(out))
    return evaluation


def _evaluation(assessed_by: AgenticIQA | Scorer, data: LabeledSet, split: str | None, rows: list[Row]) -> Evaluation:
    fusion = assessed_by.fusion if isinstance(assessed_by, AgenticIQA) else None
    summary = summarize(rows, fusion=fusion, scale=data.scale) | {
        "data": data.name,
        "split": split,
        "backend": assessed_by.backend,
        "part": data.part,
        "labels_note": data.note,
    }
    return Evaluation(rows, summary)


def scoring_question(query: str) -> str:
    """Return the question without surrounding blanks. Raises UserError if it does not ask for a score."""
    query = query.strip()
    if detect_query_type(query) is not QueryType.SCORING:
        raise UserError(
            f'{query!r} does not request a score: evaluate needs a query such as "Rate the quality of this image."'
        )
    return query


def refuse_without_references(program: AgenticIQA | Scorer, labels: Sequence[LabeledImage]) -> None:
    """Raise UserError for a full-reference scorer if no image has a reference."""
    if isinstance(program, Scorer) and program.compares == "always" and not any(label.reference for label in labels):
        raise UserError(
            f"{program.name} needs references, but none of the {len(labels)} images has one; add a column reference"
        )


def _labels(
    task: str | os.PathLike[str] | Iterable[Any],
    root: str | os.PathLike[str] | None,
    split: str | None,
    partial: bool,
) -> LabeledSet:
    if isinstance(task, str | os.PathLike):
        return labeled_images(Path(task), Path(root) if root is not None else None, split, partial=partial)
    if root is not None:
        raise UserError("root is for a data set or a table, but task is a sequence of labeled images: leave root out")
    if isinstance(task, Sequence) and all(isinstance(label, LabeledImage) for label in task):
        in_memory = cast("Sequence[LabeledImage]", task)
        labels = [label for label in in_memory if split is None or label.split == split]
        if not labels:
            raise UserError(f"no labeled images{f' of split {split}' if split else ''} found: give at least one")
    else:
        labels = read_labels(task, split)
    return LabeledSet(GIVEN, labels_sha256(labels), labels)
