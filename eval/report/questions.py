"""Report a run of questions from its rows: accuracy by group, and the probability of guessing as well."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from math import prod
from typing import Any

import numpy as np

from agenticiqa.eval.intervals import accuracy
from agenticiqa.eval.report.model import Report, figure, probability, title_of
from agenticiqa.programs.page.table import Cell, number, table_of
from agenticiqa.signatures.types import PARSING_FAILED

Row = Mapping[str, Any]
Figures = Mapping[str, Any]
Rows = Iterator[Mapping[str, str]]

NO_OPTION = "no option named"


def choice_figures(rows: Sequence[Row]) -> dict[str, Any]:
    """Return vanilla and circular accuracy of rows with options, overall and by each group.

    Vanilla accuracy uses the rows in the order of the set. Circular accuracy counts a question as right if all
    rotations of its options are; it is ``None`` unless all rotations were asked. An unparsed answer is wrong in
    ``accuracy`` and excluded from ``accuracy_of_answered``. ``chance`` is the accuracy of guessing, ``p_of_chance``
    the probability of at least as many correct answers by guessing.
    """
    plain = [row for row in rows if row["rotation"] == 0]
    by_name: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_name[row["name"]].append(row)
    sets = [*by_name.values()]
    complete = any(len(group) > 1 for group in sets) and all(len(group) == len(group[0]["options"]) for group in sets)

    def figures(key: str | None = None, name: str | None = None) -> dict[str, Any]:
        def inside(row: Row) -> bool:
            return key is None or row["groups"].get(key) == name

        circular = _circular([group for group in sets if inside(group[0])]) if complete else None
        return {"vanilla": _vanilla([row for row in plain if inside(row)]), "circular": circular}

    by = {key: {name: figures(key, name) for name in groups} for key, groups in _groups(plain).items()}
    return {**_counts(plain), **figures(), "by": by}


def question_report(figures: Figures) -> Report:
    """Return the report of a run's figures, with its ``data``, ``backend`` and the number ``skipped``."""
    table = table_of(title_of(figures), [*_choice(figures)], 0)
    return Report(figures, [table], {"How to read it": [f"{line}." for line in _sentences(figures)]})


def question_headline(figures: Figures) -> str:
    """Return a run in one sentence."""
    vanilla = figures["vanilla"]
    chance = "" if vanilla["chance"] is None else f" (chance: {100 * vanilla['chance']:.1f} %)"
    return f"{_percent(vanilla['accuracy'])} % of {figures['questions']:,} answers are correct{chance}."


def chance_of_as_many(right: int, chances: Sequence[float]) -> float:
    """Return the probability of at least this many right guesses, if guess i is right with ``chances[i]``.

    Exact: the distribution of a sum of independent Bernoulli trials with different chances (Poisson binomial), by
    convolution.
    """
    distribution = np.ones(1)
    for chance in chances:
        distribution = np.convolve(distribution, (1 - chance, chance))
    return float(min(1.0, distribution[right:].sum()))


def _choice(figures: Figures) -> Rows:
    parts = {f"{key}: {name}": part for key, groups in figures["by"].items() for name, part in sorted(groups.items())}
    for name, part in {"all": figures, **parts}.items():
        vanilla, circular = part["vanilla"], part["circular"]
        yield {
            "questions": name,
            "n": number(vanilla["n"], ",d"),
            "accuracy": _percent(vanilla["accuracy"]),
            "accuracy of answered": _percent(vanilla["accuracy_of_answered"]),
            "unparsed": number(vanilla["unparsed"], ",d"),
            "chance": number(100 * vanilla["chance"], ".1f"),
            "p": probability(vanilla["p_of_chance"]),
        } | (
            {"circular": _percent(circular["accuracy"]), "circular chance": number(100 * circular["chance"], ".1f")}
            if circular
            else {}
        )


def _sentences(figures: Figures) -> Iterator[str]:
    """Yield sentences beside the table: unparsed and skipped questions, and how the figures were computed."""
    reasons = ", ".join(f"{reason} {count}" for reason, count in figures["unparsed_reasons"].items())
    unparsed = f"{figures['unparsed']} of {figures['questions']} answers are unparsed"
    if reasons:
        unparsed += f" ({reasons})"
    yield f"{unparsed}. They count as wrong, but not in the accuracy of answered questions"
    yield f"Brackets: 95 % Wilson intervals, adjusted for clustering by {figures['contents']} scenes"
    yield "chance: accuracy of guessing. p: exact probability of at least as many correct answers by guessing"
    if figures["circular"]:
        yield "circular: a question counts as correct only if it is answered correctly in every rotation"
    if skipped := figures.get("skipped"):
        yield f"{skipped} unusable questions of the set were skipped"


def _counts(rows: Sequence[Row]) -> dict[str, Any]:
    unparsed = [row for row in rows if row["unparsed"]]
    return {
        "questions": len(rows),
        "contents": len({row["content"] for row in rows}),
        "unparsed": len(unparsed),
        "unparsed_reasons": dict(Counter(map(_reason, unparsed))),
    }


def _vanilla(rows: Sequence[Row]) -> dict[str, Any]:
    answered = [row for row in rows if not row["unparsed"]]
    chances = [1 / len(row["options"]) for row in rows]
    return _compared(rows, [row["correct"] for row in rows], chances) | {
        "unparsed": len(rows) - len(answered),
        "accuracy_of_answered": _share([row["correct"] for row in answered], answered),
    }


def _circular(sets: Sequence[Sequence[Row]]) -> dict[str, Any]:
    """Return circular figures of questions, given as rows of their rotations; guesses of rotations are independent."""
    chances = [prod(1 / len(row["options"]) for row in group) for group in sets]
    hits = [all(row["correct"] for row in group) for group in sets]
    unparsed = sum(any(row["unparsed"] for row in group) for group in sets)
    return _compared([group[0] for group in sets], hits, chances) | {"unparsed": unparsed}


def _compared(rows: Sequence[Row], hits: Sequence[bool], chances: Sequence[float]) -> dict[str, Any]:
    return {
        "n": len(rows),
        "right": sum(hits),
        "accuracy": _share(hits, rows),
        "chance": sum(chances) / len(chances) if chances else None,
        "p_of_chance": chance_of_as_many(sum(hits), chances),
    }


def _share(hits: Sequence[bool], rows: Sequence[Row]) -> dict[str, Any]:
    return asdict(accuracy(hits, [row["content"] for row in rows]))


def _percent(share: Mapping[str, Any]) -> Cell:
    return figure(share, ".1f", times=100)


def _groups(rows: Sequence[Row]) -> dict[str, dict[str, list[Row]]]:
    """Return the rows of each group for a breakdown."""
    groups: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        for key, name in row["groups"].items():
            groups[key][name].append(row)
    return groups


def _reason(row: Row) -> str:
    if "error" in row:
        return str(row["error"]).partition(":")[0]
    return PARSING_FAILED if row.get("quality_reasoning") == PARSING_FAILED else NO_OPTION
