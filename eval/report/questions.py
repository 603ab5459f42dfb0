"""Report a run of questions from its rows: accuracy of choices, and the judge's scores of descriptions."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from math import prod
from statistics import fmean
from typing import Any

import numpy as np

from agenticiqa.eval.intervals import Interval, accuracy, contents_text, error_interval
from agenticiqa.eval.questions.descriptions import RULES
from agenticiqa.eval.report.model import Cell, Report, ReportTable, figure, number, probability, title_of
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
    complete = any(len(each) > 1 for each in sets) and all(len(each) == len(each[0]["options"]) for each in sets)

    def figures(key: str | None = None, name: str | None = None) -> dict[str, Any]:
        def inside(row: Row) -> bool:
            return key is None or row["groups"].get(key) == name

        circular = _circular([each for each in sets if inside(each[0])]) if complete else None
        return {"vanilla": _vanilla([row for row in plain if inside(row)]), "circular": circular}

    by = {key: {name: figures(key, name) for name in groups} for key, groups in _groups(plain).items()}
    return {**_counts(plain), **figures(), "by": by}


def explanation_figures(rows: Sequence[Row], judgments: Sequence[Row]) -> dict[str, Any]:
    """Return the judge's scores of descriptions in ``rows``: the mean of each dimension, 0..2, and of their sum, 0..6.

    A description's score is the mean of its rounds, and has an interval over contents. ``shares`` are those of the
    scores 0, 1 and 2 among all rounds. ``described`` counts the rows with a description. A description without any
    score in a dimension is ``unscored`` there and excluded from its figures.
    """
    content = {row["name"]: row["content"] for row in rows}
    scores: dict[str, dict[str, list[int]]] = {dimension: {} for dimension in RULES}
    for row in judgments:
        if row["score"] is not None:
            scores[row["dimension"]].setdefault(row["name"], []).append(row["score"])
    complete = [name for name in content if all(name in found for found in scores.values())]
    sums = {name: sum(fmean(found[name]) for found in scores.values()) for name in complete}

    def dimension(found: Mapping[str, list[int]]) -> dict[str, Any]:
        given = [score for values in found.values() for score in values]
        shares = {score: given.count(score) / len(given) if given else None for score in (0, 1, 2)}
        means = _mean({name: fmean(values) for name, values in found.items()}, content)
        return {"mean": means, "shares": shares, "unscored": len(rows) - len(found)}

    return {
        "questions": len(rows),
        "contents": len(set(content.values())),
        "described": len({row["name"] for row in judgments}),
        "rounds": len({row["round"] for row in judgments}),
        "unusable_verdicts": sum(row["score"] is None for row in judgments),
        "dimensions": {name: dimension(found) for name, found in scores.items()},
        "sum": {"mean": _mean(sums, content), "unscored": len(rows) - len(sums)},
    }


def question_report(figures: Figures) -> Report:
    """Return the report of a run's figures, with its ``kind``, ``data``, ``backend`` and the number ``skipped``."""
    rows, bold = {"choice": (_choice, 0), "explanation": (_explanation, len(RULES))}[figures["kind"]]
    table = ReportTable(title_of(figures), [*rows(figures)], bold)
    return Report(figures, [table], {"How to read it": [f"{line}." for line in _sentences(figures)]})


def question_headline(figures: Figures) -> str:
    """Return a run in one sentence."""
    if figures["kind"] == "choice":
        vanilla = figures["vanilla"]
        chance = "" if vanilla["chance"] is None else f" (chance: {100 * vanilla['chance']:.1f} %)"
        return f"{_percent(vanilla['accuracy'])} % of {figures['questions']:,} answers are correct{chance}."
    mean = figure(figures["sum"]["mean"], ".2f")
    return f"The mean judge score of {figures['described']:,} descriptions is {mean} out of 6."


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
    named = {f"{key}: {name}": each for key, groups in figures["by"].items() for name, each in sorted(groups.items())}
    for name, each in {"all": figures, **named}.items():
        vanilla, circular = each["vanilla"], each["circular"]
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


def _explanation(figures: Figures) -> Rows:
    for name, each in {**figures["dimensions"], "sum (0 to 6)": figures["sum"]}.items():
        shares = [*(each.get("shares") or dict.fromkeys(range(3))).values()]
        yield {
            "dimension (0 to 2)": name,
            "n": number(each["mean"]["n"], ",d"),
            "mean": figure(each["mean"], ".2f"),
            **{f"% {k}": number(None if share is None else 100 * share, ".1f") for k, share in enumerate(shares)},
            "unscored": number(each["unscored"], ",d"),
        }


def _sentences(figures: Figures) -> Iterator[str]:
    """Yield sentences beside the table: unparsed and skipped questions, and how the figures were computed."""
    kind = figures["kind"]
    if kind == "explanation":
        yield f"The judge scored the answers to {figures['described']} of {figures['questions']} questions"
        yield (
            f"Judge: {figures['judge']}, {figures['rounds']} rounds. Unusable verdicts, excluded from all results: "
            f"{figures['unusable_verdicts']}"
        )
        yield f"Brackets: 95 % intervals from a jackknife over {contents_text(figures['contents'])}"
    else:
        reasons = ", ".join(f"{reason} {count}" for reason, count in figures["unparsed_reasons"].items())
        unparsed = f"{figures['unparsed']} of {figures['questions']} answers are unparsed"
        yield (
            f"{unparsed}{f' ({reasons})' if reasons else ''}. They count as wrong"
            f"{', but not in the accuracy of answered questions' if kind == 'choice' else ''}"
        )
        yield f"Brackets: 95 % Wilson intervals, adjusted for clustering by {figures['contents']} scenes"
    if kind == "choice":
        yield "chance: accuracy of guessing. p: exact probability of at least as many correct answers by guessing"
        if figures["circular"]:
            yield "circular: a question counts as correct only if it is answered correctly in every rotation"
    if skipped := figures.get("skipped", figures.get("left_out")):  # "left_out" as earlier versions wrote it
        yield f"{skipped} unusable questions of the set were skipped"


def _mean(values: Mapping[str, float], content: Mapping[str, str]) -> dict[str, Any]:
    numbers = list(values.values())
    if not numbers:
        return asdict(Interval(None, None, None, 0, "no description was scored"))
    contents = [content[name] for name in values]
    return asdict(error_interval(lambda x, _: float(np.mean(x)), numbers, numbers, contents))


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
    chances = [prod(1 / len(row["options"]) for row in each) for each in sets]
    hits = [all(row["correct"] for row in each) for each in sets]
    unparsed = sum(any(row["unparsed"] for row in each) for each in sets)
    return _compared([each[0] for each in sets], hits, chances) | {"unparsed": unparsed}


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
    found: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        for key, name in row["groups"].items():
            found[key][name].append(row)
    return found


def _reason(row: Row) -> str:
    if "error" in row:
        return str(row["error"]).partition(":")[0]
    return PARSING_FAILED if row.get("quality_reasoning") == PARSING_FAILED else NO_OPTION
