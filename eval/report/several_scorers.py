"""Report several scorers of one labeled set: their figures in one table, and their paired differences."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from agenticiqa.eval.intervals import Interval
from agenticiqa.eval.report.model import Report
from agenticiqa.eval.report.rating_tables import Figures, about_held_out, scorer_tables
from agenticiqa.eval.report.run_differences import SENTENCES, Difference, difference_table, differences
from agenticiqa.eval.report.run_scores import RunScores

# Figures that describe the labels, not a scorer.
OF_LABELS = ("images", "contents", "scale", "data", "task", "split", "part", "labels_note", "limit", "command", "date")


def over_scorers(by_name: Mapping[str, Figures], runs: Sequence[RunScores]) -> dict[str, Any]:
    """Return the figures of several scorers on one set, as plain JSON types.

    Args:
        by_name: The figures of each scorer, from ``ratings.summarize``.
        runs: The scores of each, in the same order.

    Returns:
        ``systems``, one entry for each scorer as in ``summarize``; ``differences``, the fields of ``Difference`` for
        every two scorers; and the figures that describe the labels.
    """
    first = next(iter(by_name.values()))
    return {
        **{key: first[key] for key in OF_LABELS if key in first},
        "backend": ", ".join(by_name),
        "best_tool": None,
        "systems": [{**figures["systems"][0], "name": name} for name, figures in by_name.items()],
        "differences": [asdict(pair) for pair in differences(runs)],
    }


def scorers_report(figures: Figures) -> Report:
    """Build the report of the figures that ``over_scorers`` returns."""
    pairs = [Difference(**{**pair, "interval": Interval(**pair["interval"])}) for pair in figures["differences"]]
    notes = {"How to read it": [*_notes(figures), *SENTENCES]}
    return Report(figures, [*scorer_tables(figures), difference_table(pairs)], notes)


def _notes(figures: Figures) -> Iterator[str]:
    for system in figures["systems"]:
        if system["unscored"]:
            yield f"{system['name']} has no score for {system['unscored']} of {figures['images']} images."
    yield from (f"{sentence}." for sentence in about_held_out(figures))
