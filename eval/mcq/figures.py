"""The figures of a run of questions, from its rows, as plain JSON types."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from math import prod
from statistics import fmean
from typing import Any

import numpy as np

from agenticiqa.eval.intervals import Interval, error_interval
from agenticiqa.eval.mcq.accuracy import accuracy, chance_of_as_many
from agenticiqa.eval.mcq.judging import RULES
from agenticiqa.eval.mcq.planning import FIELDS
from agenticiqa.signatures.types import PARSING_FAILED

Row = Mapping[str, Any]

NO_OPTION = "names no option"


def choice_figures(rows: Sequence[Row]) -> dict[str, Any]:
    """Vanilla and circular accuracy of rows with options, overall and by each group.

    Vanilla are the rows in the order of the set. Circular counts a question as right if all rotations of its options
    are, and is ``None`` unless each question was asked in all of them. An unparsed answer is wrong in ``accuracy`` and
    left out of ``accuracy_of_answered``. ``chance`` is what guessing gets, ``p_of_chance`` the probability that it gets
    as many right.
    """
    plain = [row for row in rows if row["rotation"] == 0]
    sets = list(_by(rows, lambda row: row["name"]).values())
    complete = any(len(each) > 1 for each in sets) and all(len(each) == len(each[0]["options"]) for each in sets)
    keys = dict.fromkeys(key for row in plain for key in row["groups"])
    return {
        **_counts(plain),
        "vanilla": _vanilla(plain),
        "circular": _circular(sets) if complete else None,
        "by": {
            key: {
                name: {
                    "vanilla": _vanilla(group),
                    "circular": _circular([each for each in sets if each[0]["groups"].get(key) == name])
                    if complete
                    else None,
                }
                for name, group in _by_group(plain, key).items()
                if name is not None
            }
            for key in keys
        },
    }


def plan_figures(rows: Sequence[Row]) -> dict[str, Any]:
    """Accuracy of each field and of the whole plan, over all and by each group; without a plan all is wrong.

    ``always`` is the share of the most frequent true value of a field: what a planner gets that looks at nothing.
    """
    keys = dict.fromkeys(key for row in rows for key in row["groups"])
    return {
        **_counts(rows),
        "whole": _share([row["correct"] for row in rows], rows),
        "fields": {name: _field(name, rows) for name in FIELDS if any(name in row["fields"] for row in rows)},
        "by": {
            key: {
                name: _share([row["correct"] for row in group], group)
                for name, group in _by_group(rows, key).items()
                if name is not None
            }
            for key in keys
        },
    }


def explanation_figures(rows: Sequence[Row], judgments: Sequence[Row]) -> dict[str, Any]:
    """What the judge gave the descriptions of ``rows``: the mean of each dimension, 0..2, and of their sum, 0..6.

    A description's score is the mean of its rounds, and has an interval over contents. ``shares`` are those of the
    scores 0, 1 and 2 among all rounds. ``described`` counts the rows with a description; a description without any
    score in a dimension is ``unscored`` there and in no figure.
    """
    content = {row["name"]: row["content"] for row in rows}
    scores: dict[str, dict[str, list[int]]] = {dimension: {} for dimension in RULES}
    for row in judgments:
        if row["score"] is not None:
            scores[row["dimension"]].setdefault(row["name"], []).append(row["score"])
    described = len({row["name"] for row in judgments})
    complete = [name for name in content if all(name in found for found in scores.values())]
    sums = {name: sum(fmean(found[name]) for found in scores.values()) for name in complete}
    return {
        "questions": len(rows),
        "contents": len(set(content.values())),
        "described": described,
        "rounds": len({row["round"] for row in judgments}),
        "unusable_verdicts": sum(row["score"] is None for row in judgments),
        "dimensions": {
            dimension: _mean({name: fmean(values) for name, values in found.items()}, content)
            | {
                "shares": {
                    score: _part(score, [v for values in found.values() for v in values]) for score in (0, 1, 2)
                },
                "unscored": len(rows) - len(found),
            }
            for dimension, found in scores.items()
        },
        "sum": _mean(sums, content) | {"unscored": len(rows) - len(sums)},
    }


def _mean(values: Mapping[str, float], content: Mapping[str, str]) -> dict[str, Any]:
    numbers = list(values.values())
    if not numbers:
        return {"mean": asdict(Interval(None, None, None, 0, "nothing was scored"))}
    found = error_interval(lambda x, _: float(np.mean(x)), numbers, numbers, [content[name] for name in values])
    return {"mean": asdict(found)}


def _part(score: int, scores: Sequence[int]) -> float | None:
    return scores.count(score) / len(scores) if scores else None


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
    return _figure(rows, [row["correct"] for row in rows], chances) | {
        "unparsed": len(rows) - len(answered),
        "accuracy_of_answered": _share([row["correct"] for row in answered], answered),
    }


def _circular(sets: Sequence[Sequence[Row]]) -> dict[str, Any]:
    """Of questions, each as the rows of its rotations; guesses of the rotations are independent."""
    first = [each[0] for each in sets]
    chances = [prod(1 / len(row["options"]) for row in each) for each in sets]
    return _figure(first, [all(row["correct"] for row in each) for each in sets], chances) | {
        "unparsed": sum(any(row["unparsed"] for row in each) for each in sets)
    }


def _figure(rows: Sequence[Row], hits: Sequence[bool], chances: Sequence[float]) -> dict[str, Any]:
    return {
        "n": len(rows),
        "right": sum(hits),
        "accuracy": _share(hits, rows),
        "chance": sum(chances) / len(chances) if chances else None,
        "p_of_chance": chance_of_as_many(sum(hits), chances),
    }


def _field(name: str, rows: Sequence[Row]) -> dict[str, Any]:
    stated = [row for row in rows if name in row["fields"]]
    true = Counter(repr(_value(row["true_plan"], name)) for row in stated)
    return {
        "accuracy": _share([row["fields"][name] for row in stated], stated),
        "always": true.most_common(1)[0][1] / len(stated),
    }


def _value(plan: Mapping[str, Any], name: str) -> Any:
    return plan[name] if name in plan else plan["plan"][name]


def _share(hits: Sequence[bool], rows: Sequence[Row]) -> dict[str, Any]:
    return asdict(accuracy(hits, [row["content"] for row in rows]))


def _by(rows: Iterable[Row], key: Callable[[Row], Any]) -> dict[Any, list[Row]]:
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def _by_group(rows: Iterable[Row], group: str) -> dict[Any, list[Row]]:
    return _by(rows, lambda row: row["groups"].get(group))


def _reason(row: Row) -> str:
    if "error" in row:
        return str(row["error"]).partition(":")[0]
    return PARSING_FAILED if row.get("quality_reasoning") == PARSING_FAILED else NO_OPTION
