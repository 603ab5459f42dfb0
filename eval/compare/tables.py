"""The leaderboard of runs and their differences, as cells of tables."""

from collections.abc import Mapping, Sequence

from agenticiqa.eval.compare.differences import SMALLEST_TOLD, Difference
from agenticiqa.eval.compare.run_scores import RunScores
from agenticiqa.eval.intervals import Interval, fitted_plcc_interval, interval
from agenticiqa.eval.mcq.accuracy import accuracy
from agenticiqa.eval.metrics import krcc, plcc, srcc
from agenticiqa.eval.report.table import Cells


def leaderboard(runs: Sequence[RunScores]) -> Cells:
    """Every run with its figures on the items that it has a value for, the best first."""
    figures = {id(run): _ratings(run) if run.kind == "rating" else _accuracy(run) for run in runs}
    ranked = sorted(runs, key=lambda run: -(next(iter(figures[id(run)].values())).value or -1.0))
    lines = [
        [
            str(place),
            run.name,
            run.judged_by,
            f"{len(run.values)} of {len(run.contents)}" if run.unscored else str(len(run.values)),
            *(f"{figure:.3f}" for figure in figures[id(run)].values()),
        ]
        for place, run in enumerate(ranked, 1)
    ]
    return Cells("Runs", ["", "run", "judged by", "n", *figures[id(runs[0])]], lines)


def difference_table(found: Sequence[Difference]) -> Cells:
    """The differences with their intervals, p values, and what it would take to tell one of .01."""
    headings = ["figure", "first minus second", "n", "difference", "p", "p (Holm)", f"needed for {SMALLEST_TOLD:g}"]
    lines = [
        [
            each.figure,
            f"{each.first} - {each.second}",
            str(each.interval.n),
            f"{each.interval:+.3f}",
            _shown(each.p),
            _shown(each.holm),
            "-" if each.contents_needed is None else f"{each.items_needed:,} ({each.contents_needed:,} contents)",
        ]
        for each in found
    ]
    return Cells("Differences on the items of both", headings, lines)


def _ratings(run: RunScores) -> Mapping[str, Interval]:
    items = [*run.values]
    data = [run.values[item] for item in items], [run.mos[item] for item in items], [run.contents[i] for i in items]
    correlations = {name: interval(each, *data) for name, each in (("SRCC", srcc), ("KRCC", krcc), ("PLCC raw", plcc))}
    return {**correlations, "PLCC fitted": fitted_plcc_interval(*data)}


def _accuracy(run: RunScores) -> Mapping[str, Interval]:
    right = [bool(value) for value in run.values.values()]
    return {run.figure: accuracy(right, [run.contents[item] for item in run.values])}


def _shown(p: float | None) -> str:
    return "-" if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"
