"""Measure how a program, a metric or any function agrees with subjective scores, in one call."""

import numbers
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from agenticiqa.eval.datasets import LabeledImage
from agenticiqa.eval.labels.own_data import Declared, read_own
from agenticiqa.eval.labels.sources import open_rows
from agenticiqa.eval.report import rating_report, summarize
from agenticiqa.eval.report.model import Report
from agenticiqa.eval.report.rating_tables import rating_headline
from agenticiqa.eval.report.run_differences import compare_report
from agenticiqa.eval.report.run_scores import rating_scores
from agenticiqa.eval.report.several_scorers import over_scorers, scorers_report
from agenticiqa.eval.runs import folder_name, made_by, pin
from agenticiqa.eval.scorers.given import columns_scored
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
        rows: One row per labeled image, in their order. Several scorers have all rows of the first one first, and each
            row has the name of its ``scorer``.
        summary: The figures of ``report.summarize``; of several scorers, those of ``several_scorers.over_scorers``.
    """

    rows: list[Row]
    summary: dict[str, Any]

    @property
    def has_several(self) -> bool:
        """Whether it has the results of several scorers."""
        return "differences" in self.summary

    @property
    def report(self) -> Report:
        """The tables and their notes; for several scorers with their paired differences."""
        return scorers_report(self.summary) if self.has_several else rating_report(self.summary)

    def __repr__(self) -> str:
        return repr(self.report) if self.has_several else f"<Evaluation: {rating_headline(self.summary)}>"

    def _repr_html_(self) -> str:
        return self.report._repr_html_() if self.has_several else notebook_html(self.report.tables[0])

    def _runs(self) -> dict[str, list[Row]]:
        """Return the rows of each scorer by its name."""
        by_name: dict[str, list[Row]] = {}
        for row in self.rows:
            by_name.setdefault(str(row["scorer"] if self.has_several else self.summary["backend"]), []).append(row)
        return by_name

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
        own, others = self._runs(), other._runs()
        others = {f"{name} (2)" if name in own else name: rows for name, rows in others.items()}
        return compare_report([rating_scores(rows, name) for name, rows in {**own, **others}.items()])

    def to_frame(self) -> "DataFrame":
        """Return the rows as a DataFrame of pandas.

        Returns:
            One row per image and scorer, and one column per key of ``rows``.
        """
        from pandas import DataFrame  # a late import that takes half a second

        return DataFrame(self.rows)


def evaluate(
    program: AgenticIQA | Scorer | Callable[..., Any] | str | os.PathLike[str] | Iterable[Any],
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
            (H, W, 3)) that returns a number; a function with two parameters also gets the reference's pixels, and one
            with a parameter ``path`` the path. Scores that you already have: "column:NAME" of the labels, "file:TABLE",
            a dict by image, or a Series, an array or a list in the order of the labels. A dict of several of these, by
            name, gives one result with their paired differences.
        task: Data in a form that ``labels.sources`` lists, the name of a data set, or labeled images. In Python, that
            includes a DataFrame, and (image, mos) pairs or dicts. If the scorers are a dict, the labels may come first,
            as in ``evaluate(labels, {"mine": scores})``.
        root: The folder with the archive of a data set that is given by name, or the folder to which paths are
            relative; by default that of the table, and the working folder for labels in memory.
        split: The split to assess; by default all.
        out: A folder for the rows, ``run.json``, ``report.json`` and ``report.md``. Rows are written as they come, so
            the same call continues an interrupted run. Other settings or labels are refused in the same folder. For a
            function, only the file that defines it is compared, not its imports. Several scorers have a subfolder each.
        query: The question to the program; it has to ask for a rating.
        lower_is_better: The direction of a function or of scores; embedded and pyiqa metrics declare their own.
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
    if isinstance(task, Mapping):
        program, task = task, program
    scorers: Mapping[str, Any] = _scorers(program)
    programs = [each for each in scorers.values() if isinstance(each, AgenticIQA)]
    if programs and (lower_is_better, shorter_side) != (None, None):
        raise UserError("lower_is_better and shorter_side are for scorers: leave them out, or name a scorer")
    for each in programs:
        refuse_unpriced(each, limits)
    if limits is not None and not programs:
        raise UserError("limits are for a program that asks models: leave them out for a scorer")
    query = scoring_question(query) if programs else NO_QUERY
    data = _labels(task, root, split, partial, columns_scored(scorers.values()))
    folder = None if out is None else Path(out)
    results: dict[str, Evaluation] = {}
    for name, given in scorers.items():
        assessed_by: AgenticIQA | Scorer = given
        if not isinstance(given, AgenticIQA):
            assessed_by = scorer_of(given, lower_is_better, shorter_side, name or None).on(data.labels)
        place = folder / folder_name(name) if folder and len(scorers) > 1 else folder
        with within(current().limits.beside(limits)):
            results[name] = _evaluated(assessed_by, data, split, query, place, workers, watch)
    if len(results) == 1:
        return next(iter(results.values()))
    runs = [rating_scores(result.rows, name) for name, result in results.items()]
    summary = over_scorers({name: result.summary for name, result in results.items()}, runs)
    if folder is not None:
        scorers_report(summary).write(folder)
    return Evaluation([{**row, "scorer": name} for name, result in results.items() for row in result.rows], summary)


def _scorers(program: Any) -> Mapping[str, Any]:
    """Return the scorers by name; a single one, also a dict of scores by image, has the name "". Raises UserError."""
    if not isinstance(program, Mapping):
        return {"": program}
    if not program:
        raise UserError("the dict of scorers is empty: give at least one scorer, or scores by image")
    are_scores = all(value is None or isinstance(value, numbers.Real) for value in program.values())
    return {"": program} if are_scores else {str(name): scorer for name, scorer in program.items()}


def _evaluated(
    assessed_by: AgenticIQA | Scorer,
    data: LabeledSet,
    split: str | None,
    query: str,
    out: Path | None,
    workers: int,
    watch: Watch,
) -> Evaluation:
    """Return the result of one program or scorer, and write its run to the folder ``out``, if it is given."""
    query = query if isinstance(assessed_by, AgenticIQA) else NO_QUERY
    refuse_without_references(assessed_by, data.labels)
    with TemporaryDirectory() as folder, ResultsFile(Path(folder if out is None else out) / "results.jsonl") as results:
        if out is not None:
            pinned = {"data": data.pinned} if data.pinned else {}
            pin(out, made_by(assessed_by, data.digest, {"split": split, "query": query, **pinned}))
        try:
            rows = [*assess_set(assessed_by, data.labels, results, query=query, workers=workers, watch=watch)]
        except LimitReached as limit:
            limit.results = _evaluation(assessed_by, data, split, [*limit.results])
            raise
    evaluation = _evaluation(assessed_by, data, split, rows)
    if out is not None:
        rating_report(evaluation.summary).write(out)
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
    scores: tuple[str, ...],
) -> LabeledSet:
    folder, declared = None if root is None else Path(root), Declared(scores=scores)
    if isinstance(task, str | os.PathLike):
        return labeled_images(Path(task), folder, split, declared, partial=partial)
    if isinstance(task, Sequence) and all(isinstance(label, LabeledImage) for label in task):
        if root is not None:
            raise UserError("root is for paths in a table, but labeled images have their own: leave root out")
        in_memory = cast("Sequence[LabeledImage]", task)
        labels = [label for label in in_memory if split is None or label.split == split]
        if not labels:
            raise UserError(f"no labeled images{f' of split {split}' if split else ''} found: give at least one")
    else:
        labels, _ = read_own(open_rows(task, folder), declared, split)
    return LabeledSet(GIVEN, labels_sha256(labels), labels)
