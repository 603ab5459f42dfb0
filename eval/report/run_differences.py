"""Compare runs: a leaderboard, and differences with intervals, p values and the data needed to detect .01.

The difference of two runs is computed on the items with values in both. Its interval deletes one scene at a time from
both runs (``eval.intervals``). The p value is from Student's t with the number of scenes minus one. For right or
wrong answers it is from McNemar's exact test (1947) on the items that only one run answered correctly, which treats
items as independent. The p values of several differences are corrected by Holm's method (1979), so that the chance of
any wrong claim stays at 5 %.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from scipy.stats import binomtest, norm
from scipy.stats import t as student

from agenticiqa.eval.intervals import (
    CONFIDENCE,
    Interval,
    Measure,
    accuracy,
    blocks_of,
    difference_interval,
    fitted_plcc_interval,
    interval,
)
from agenticiqa.eval.logistic import fit_logistic
from agenticiqa.eval.metrics import Numbers, krcc, plcc, srcc
from agenticiqa.eval.report.model import Report, counted, figure, probability
from agenticiqa.eval.report.run_scores import RunScores, count_alike
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.page.table import UNDEFINED, Cell, Table, number, table_of

SMALLEST_SHOWN = 0.01  # smallest difference for which the needed data are estimated
POWER = 0.8
SENTENCES = (
    "Brackets: 95 % intervals from a jackknife over scenes; for accuracy, Wilson intervals adjusted for clustering "
    "by scene. Differences are paired: each replicate deletes the same scene from both runs.",
    "p: Student's t test over scenes; for answers, McNemar's exact test. p (Holm): corrected for the pairs of runs.",
    "Needed to detect 0.01: the estimated number of similar items and scenes for a power of 80 % at the 5 % level.",
)
OVER_SETS = "mean: all sets have equal weight. p (Holm): corrected for the pairs of runs on all sets."

# Of the scores of both runs, the MOS and the scenes.
Compared = Callable[[Numbers, Numbers, Numbers, Sequence[str]], Interval]


@dataclass(frozen=True)
class Difference:
    """The first run's figure minus the second's on the items of both.

    ``p`` is for this difference alone, ``holm`` corrected for all of them; both are ``None`` without an interval.
    ``contents_needed`` and ``items_needed`` estimate how many are needed to detect a difference of .01 with 80 % power.
    """

    first: str
    second: str
    figure: str
    interval: Interval
    p: float | None
    contents: int
    contents_needed: int | None
    holm: float | None = None

    @property
    def items_needed(self) -> int | None:
        """Return the number of items needed, at the same number per scene as here."""
        return self.contents_needed and math.ceil(self.contents_needed * self.interval.n / self.contents)


def compare_report(runs: Sequence[RunScores]) -> Report:
    """Return the leaderboard of runs and their differences. Raises UserError as ``differences`` does."""
    pairs = differences(runs)
    notes = {"How to read it": [*SENTENCES, *_about_questions(runs)]}
    return Report(None, [leaderboard(runs), difference_table(pairs)], notes)


def compare_sets(sets: Mapping[str, Sequence[RunScores]]) -> Report:
    """Compare runs over several sets: a leaderboard of runs by sets, and the differences on each set.

    ``sets`` has the runs by set; a run has the same name everywhere. Raises UserError as ``differences`` does.
    """
    figures = {title: {run.name: _ratings(run) for run in runs} for title, runs in sets.items()}
    tables = [
        _by_sets(name, {title: {run: row[name] for run, row in by_run.items()} for title, by_run in figures.items()})
        for name in ("SRCC", "PLCC fitted")
    ]
    by_set = {title: differences(runs) for title, runs in sets.items()}
    every = _corrected([pair for listed in by_set.values() for pair in listed])
    for title, listed in by_set.items():
        if listed:
            table = difference_table([every.pop(0) for _ in listed])
            tables.append(replace(table, title=f"{table.title}, {title}"))
    return Report(None, tables, {"How to read it": [*SENTENCES, OVER_SETS]})


def differences(runs: Sequence[RunScores]) -> list[Difference]:
    """Return the differences of the figures of every two runs; Holm's correction is over the pairs, figure by figure.

    Questions are counted by ``count_alike``, also in McNemar's test: it uses questions, not rotations. Raises
    UserError for runs of different kinds, without a common item, or with different labels for an item.
    """
    count_alike(runs)
    measures = RATINGS if runs[0].kind == "rating" else {runs[0].figure: _paired(_mean)}
    return _corrected(
        [
            _difference(name, measure, first, second)
            for name, measure in measures.items()
            for first, second in combinations(runs, 2)
        ]
    )


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Apply Holm's correction (1979): the smallest p value times their number, the next times one less, monotonic."""
    order = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    corrected: list[float | None] = [None] * len(p_values)
    most = 0.0
    for rank, (p, place) in enumerate(order):
        most = max(most, min(1.0, p * (len(order) - rank)))
        corrected[place] = most
    return corrected


def mcnemar(first: Numbers, second: Numbers) -> float:
    """Return McNemar's exact two-sided p value for two runs' answers to N items, each (N,), 1 if right and else 0."""
    gained, lost = int((first > second).sum()), int((first < second).sum())
    return float(binomtest(gained, gained + lost).pvalue) if gained + lost else 1.0


def _corrected(pairs: Sequence[Difference]) -> list[Difference]:
    """Return the differences with Holm's p values, over all differences of one figure."""
    by_figure = {name: [pair for pair in pairs if pair.figure == name] for name in {pair.figure for pair in pairs}}
    adjusted = {name: holm([pair.p for pair in listed]) for name, listed in by_figure.items()}
    return [replace(pair, holm=adjusted[pair.figure].pop(0)) for pair in pairs]


def _paired(measure: Measure) -> Compared:
    return lambda a, b, mos, contents: difference_interval(measure, a, b, mos, contents)


def _fitted(a: Numbers, b: Numbers, mos: Numbers, contents: Sequence[str]) -> Interval:
    """Return the difference of the PLCC after each run's own curve, which is fitted to the common items.

    The curve fit biases PLCC upward, so two runs at chance would differ: for them the raw PLCC is compared.
    """
    if all(_holds_0(interval(plcc, run, mos, contents)) for run in (a, b)):
        note = "PLCC without a curve fit, because a fit is biased upward when both runs are near chance"
        return replace(difference_interval(plcc, a, b, mos, contents), note=note)
    first, second = fit_logistic(a, mos), fit_logistic(b, mos)
    on_curves = first.directed(a) if first else a, second.directed(b) if second else b
    gap = difference_interval(plcc, *on_curves, mos=mos, contents=contents)
    return gap if first and second else replace(gap, note="raw scores of a run, because no logistic curve fits it")


def _holds_0(interval: Interval) -> bool:
    return interval.low is not None and interval.high is not None and interval.low <= 0 <= interval.high


RATINGS: dict[str, Compared] = {
    "SRCC": _paired(srcc),
    "PLCC fitted": _fitted,
    "KRCC": _paired(krcc),
    "PLCC raw": _paired(plcc),
}


def _difference(name: str, measure: Compared, first: RunScores, second: RunScores) -> Difference:
    both = _in_both(first, second)
    a, b = (np.array([run.values[item] for item in both]) for run in (first, second))
    mos = np.array([first.mos.get(item, 0.0) for item in both])
    contents = [first.contents[item] for item in both]
    gap = measure(a, b, mos, contents)
    error = _standard_error(gap, contents)
    if first.kind != "rating":
        p: float | None = mcnemar(a, b)
    elif error is None or gap.value is None:
        p = None
    else:
        degrees = int(blocks_of(contents).max())
        p = float(2 * student.sf(abs(gap.value) / error, degrees)) if error > 0 else float(gap.value == 0)
    count = len(set(contents))
    return Difference(first.name, second.name, name, gap, p, count, _needed(error, count))


def _in_both(first: RunScores, second: RunScores) -> list[str]:
    if first.kind != second.kind:
        raise UserError(
            f"{first.name} has {first.kind}s and {second.name} has {second.kind}s; compare runs of the same kind"
        )
    both = [item for item in first.values if item in second.values]
    if not both:
        raise UserError(f"{first.name} and {second.name} have no item in common; compare runs on the same data")
    for item in both:
        if first.mos.get(item) != second.mos.get(item):
            raise UserError(
                f"{first.name} and {second.name} have different labels: the MOS of {item} is {first.mos[item]:g} in "
                f"one and {second.mos[item]:g} in the other; compare runs on the same labels"
            )
    return both


def _standard_error(interval: Interval, contents: Sequence[str]) -> float | None:
    """Return the jackknife's standard error, from its interval; it is symmetric for a difference."""
    if interval.low is None or interval.high is None:
        return None
    return (interval.high - interval.low) / 2 / float(student.ppf((1 + CONFIDENCE) / 2, int(blocks_of(contents).max())))


def _needed(error: float | None, contents: int) -> int | None:
    """Return how many scenes are needed to detect ``SMALLEST_SHOWN``; the variance is inverse to their number.

    Runs with equal scores have no error, from which no number follows: ``None``.
    """
    if not error:
        return None
    quantiles = float(norm.ppf((1 + CONFIDENCE) / 2) + norm.ppf(POWER))
    return max(1, math.ceil(contents * (error * quantiles / SMALLEST_SHOWN) ** 2))


def _mean(right: Numbers, _: Numbers) -> float | None:
    return float(right.mean()) if len(right) else None


def leaderboard(runs: Sequence[RunScores]) -> Table:
    """Return every run with the figures on its scored items, the best first."""
    figures = {id(run): _ratings(run) if run.kind == "rating" else _accuracy(run) for run in runs}
    ranked = sorted(runs, key=lambda run: -_first(figures[id(run)]))
    in_part = any(run.part for run in runs)
    rows = [
        {"": str(place), "run": run.name, "assessed by": run.assessed_by, "n": counted(len(run.values), run.unscored)}
        | ({"part": run.part or "all"} if in_part else {})
        | {name: figure(interval) for name, interval in figures[id(run)].items()}
        for place, run in enumerate(ranked, 1)
    ]
    return table_of("Runs", rows, best=dict.fromkeys(figures[id(runs[0])], max))


def _first(figures: Mapping[str, Interval]) -> float:
    value = next(iter(figures.values())).value
    return -1.0 if value is None else value


def _by_sets(name: str, figures: Mapping[str, Mapping[str, Interval]]) -> Table:
    """Return a line for each run, a column for each set, and the mean over the sets with a figure for the run."""
    runs = [*dict.fromkeys(run for by_run in figures.values() for run in by_run)]
    known = {run: [by_run[run].value for by_run in figures.values() if run in by_run] for run in runs}
    values = {run: [value for value in row if value is not None] for run, row in known.items()}
    means = {run: float(np.mean(row)) if row else None for run, row in values.items()}
    ranked = sorted(runs, key=lambda run: (-len(values[run]), -(means[run] or -1.0)))
    rows = [
        {"": str(place), "run": run}
        | {title: figure(by_run.get(run)) for title, by_run in figures.items()}
        | {"mean": _mean_cell(means[run], len(values[run]), len(figures))}
        for place, run in enumerate(ranked, 1)
    ]
    return table_of(f"{name} by set", rows, best=dict.fromkeys((*figures, "mean"), max))


def _mean_cell(mean: float | None, sets: int, of: int) -> Cell:
    text = number(mean, ".3f")
    return text if sets == of else Cell(f"{text} (of {sets})", {"": mean})


def difference_table(pairs: Sequence[Difference]) -> Table:
    """Return the differences with intervals, p values, and the data needed to detect one of .01."""
    rows = [
        {
            "figure": pair.figure,
            "first minus second": f"{pair.first} - {pair.second}",
            "n": number(pair.interval.n, ",d"),
            "difference": figure(pair.interval, "+.3f"),
            "p": probability(pair.p),
            "p (Holm)": probability(pair.holm),
            f"needed to detect {SMALLEST_SHOWN:g}": Cell(
                UNDEFINED
                if pair.contents_needed is None
                else f"{pair.items_needed:,} ({pair.contents_needed:,} scenes)",
                {"items": pair.items_needed, "contents": pair.contents_needed},
            ),
        }
        for pair in pairs
    ]
    return table_of("Paired differences", rows)


def _ratings(run: RunScores) -> Mapping[str, Interval]:
    items = [*run.values]
    data = [run.values[item] for item in items], [run.mos[item] for item in items], [run.contents[i] for i in items]
    return {
        "SRCC": interval(srcc, *data),
        "PLCC fitted": fitted_plcc_interval(*data),
        "KRCC": interval(krcc, *data),
        "PLCC raw": interval(plcc, *data),
    }


def _accuracy(run: RunScores) -> Mapping[str, Interval]:
    right = [bool(value) for value in run.values.values()]
    return {run.figure: accuracy(right, [run.contents[item] for item in run.values])}


def _about_questions(runs: Sequence[RunScores]) -> Iterator[str]:
    if runs[0].circular and runs[0].kind == "choice" and runs[0].figure != "accuracy":
        yield "Circular accuracy: a question is right if it is answered correctly in all rotations of its options."
        yield "p counts questions, not rotations."
    elif some := [run.name for run in runs if run.kind == "choice" and run.circular]:
        yield f"Only {', '.join(some)} asked all rotations, so all runs are compared without rotations."
