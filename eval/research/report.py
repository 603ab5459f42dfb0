"""Tables of marked answers: right, wrong and undetermined with Wilson intervals, confusions, and what was wrong."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from agenticiqa.eval.intervals import wilson
from agenticiqa.eval.research.marking import Mark, read
from agenticiqa.eval.research.questions import Question

MARKS: tuple[Mark, ...] = ("right", "wrong", "undetermined")
TOLD_APART = ("yes_no", "severity", "category", "place", "image")  # forms whose answers make a readable confusion


@dataclass(frozen=True)
class Marked:
    """A question, the answer it got, and its mark."""

    question: Question
    answer: str
    mark: Mark


def share_text(count: int, n: int) -> str:
    """A share in percent with its interval: "83.1 [79.7, 86.0]"."""
    low, high = wilson(count, n)
    return f"{100 * count / n:.1f} [{100 * low:.1f}, {100 * high:.1f}]" if n else "-"


def shares_table(rows: Sequence[Marked], title: str, group: Callable[[Marked], str]) -> list[str]:
    """The shares of each mark by group and over all, in percent, as a Markdown table."""
    groups: dict[str, list[Marked]] = {}
    for row in rows:
        groups.setdefault(group(row), []).append(row)
    lines = [f"| {title} | n | right | wrong | undetermined |", "| --- | --- | --- | --- | --- |"]
    for name, members in [*groups.items(), ("all", list(rows))]:
        counts = Counter(row.mark for row in members)
        shares = " | ".join(share_text(counts[mark], len(members)) for mark in MARKS)
        lines.append(f"| {name} | {len(members)} | {shares} |")
    return lines


def confusion_lines(rows: Iterable[Marked]) -> list[str]:
    """By kind of question, how often each true answer got which answer; letters and numbers by their mark only."""
    counts: dict[str, Counter[tuple[str, str]]] = {}
    for row in rows:
        form = row.question.form
        found = read(row.answer, form) if form in TOLD_APART else row.mark
        true = "/".join(row.question.accepted) if form in TOLD_APART else form
        counts.setdefault(row.question.kind, Counter())[true, found] += 1
    lines = ["| kind | true | answered |", "| --- | --- | --- |"]
    for kind, pairs in counts.items():
        for true in dict.fromkeys(true for true, _ in pairs):
            answered = ", ".join(f"{found} {n}" for (of, found), n in pairs.most_common() if of == true)
            lines.append(f"| {kind} | {true} | {answered} |")
    return lines


def wrong_lines(rows: Iterable[Marked], mark: Mark = "wrong") -> list[str]:
    """One line for each answer with a mark: kind, image, question, answer, and what is true."""
    return [
        f"{row.question.kind}: {row.question.image}"
        f"{f' (reference {row.question.reference})' if row.question.reference else ''}:"
        f" {row.question.text!r} -> {row.answer!r}, true: {' or '.join(row.question.accepted)}"
        for row in rows
        if row.mark == mark
    ]
