"""The held-out comparison: the program's scores before and after tuning, against the opinion scores."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from agenticiqa.eval.bootstrap import difference_interval
from agenticiqa.eval.datasets import LabeledImage, MosScale
from agenticiqa.eval.metrics import mean_absolute_error, srcc
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.batch.judge_many import judge_many
from agenticiqa.programs.errors import NoScore, Unanswered
from agenticiqa.programs.stages.question import DEFAULT_QUERY

Progress = Callable[[Iterator[Any], int], Iterator[Any]]


def scores(
    program: AgenticIQA,
    labels: Sequence[LabeledImage],
    workers: int,
    progress: Progress = lambda outcomes, total: outcomes,
) -> list[float | None]:
    """The score of each image, ``None`` without a usable answer. ``progress`` wraps the outcomes, e.g. to show a bar.

    Raises every error but an unusable answer, outages included.
    """
    jobs = {Job(label.image, DEFAULT_QUERY, label.reference): index for index, label in enumerate(labels)}
    found: list[float | None] = [None] * len(labels)
    for job, outcome in progress(judge_many(program, jobs, workers), len(jobs)):
        if not isinstance(outcome, Exception):
            found[jobs[job]] = outcome.quality_score
        elif not isinstance(outcome, (Unanswered, NoScore)):
            raise outcome
    return found


def compare(
    labels: Sequence[LabeledImage], scale: MosScale, before: Sequence[float | None], after: Sequence[float | None]
) -> dict[str, Any]:
    """SRCC and mean absolute error (on 1 to 5) before and after, on the images that have a score both times.

    Each change is after minus before, with its paired bootstrap interval by content. Plain JSON types.
    """
    both = [(x, y, label) for x, y, label in zip(before, after, labels, strict=True) if x is not None and y is not None]
    old, new = [x for x, _, _ in both], [y for _, y, _ in both]
    target, contents = [scale.to_1_5(label.mos) for *_, label in both], [label.content for *_, label in both]
    return {
        "images": len(labels),
        "scored_both_times": len(both),
        "unscored": {"before": sum(x is None for x in before), "after": sum(y is None for y in after)},
        **{
            name: {
                "before": measure(old, target),
                "after": measure(new, target),
                "change": asdict(difference_interval(measure, new, old, target, contents)),
            }
            for name, measure in (("srcc", srcc), ("mean_absolute_error", mean_absolute_error))
        },
    }
