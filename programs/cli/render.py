"""What is shown on a terminal: a card for each result, and a progress bar."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console, Group
from rich.markup import escape
from rich.panel import Panel
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from agenticiqa.programs.backends.ledger import total
from agenticiqa.programs.cli.printable import all_printable, json_text, printable
from agenticiqa.programs.cli.verdict import explanation, verdict
from agenticiqa.programs.tools.tool import with_unit

T = TypeVar("T")

COLORS = {"Excellent": "green", "Good": "green", "Fair": "yellow", "Poor": "red", "Bad": "red"}
WIDEST = 110


def print_result(row: dict[str, Any], *, with_replans: bool = True) -> None:
    """Print one result (as its JSON) to stdout: a card on a terminal, one JSON line otherwise.

    Without ``with_replans`` a card leaves out why it was planned again, which the steps of ``-v`` have.
    """
    console = stdout_console()
    if console.is_terminal:
        with console.capture() as captured:
            console.print(card(row if with_replans else {**row, "replan_history": []}))
        sys.stdout.write(captured.get())  # so that it appears above a progress bar
        sys.stdout.flush()
    else:
        print(json_text(row), flush=True)


def card(row: dict[str, Any]) -> Panel:
    """A result (as its JSON) as a card: the answer, what it means in a sentence, and the evidence."""
    row = all_printable(row)
    parts: list[Any] = [_answer(row), Text(verdict(row), style="bold"), Text(explanation(row))]
    parts = [part for part in parts if part]
    evidence = row["executor_evidence"]
    found = [(region, item) for region, items in (evidence["distortion_analysis"] or {}).items() for item in items]
    if found:
        table = plain_table("distortion", "severity", "seen or measured")
        for region, item in found:
            name = item["type"] if region == "Global" else f"{item['type']} in {region}"
            table.add_row(escape(name), item["severity"], escape(item["explanation"]))
        parts.append(table)
    if evidence["tool_log"]:
        table = plain_table("tool", "for", "raw", "1..5")
        for call in evidence["tool_log"]:
            values = (
                (with_unit(call["raw"], call.get("unit")), f"{call['calibrated']:.2f}")
                if call["error"] is None
                else ("-", call["error"])
            )
            table.add_row(call["tool"], escape(_subject(call)), *map(escape, values))
        parts.append(table)
    explained = explanation(row)
    parts += [Text(f"note: {note}", style="dim") for note in evidence["notes"] if note not in explained]
    parts += [Text(f"replanned: {entry}", style="dim") for entry in row["replan_history"]]
    took = sum(row["timings_ms"].values()) / 1000
    return Panel(
        Group(*parts),
        title=escape(Path(row["image"]).name + (f" vs {Path(row['reference']).name}" if row["reference"] else "")),
        subtitle=escape(", ".join([row["backend"], f"{took:.1f} s", *_usage(row["usage_by_stage"])])),
        title_align="left",
        subtitle_align="right",
    )


def progress(items: Iterable[T], total: int, doing: str = "judging") -> Iterator[T]:
    """Yield the items, with a bar on stderr if that is a terminal and there is more than one.

    ``doing`` is the label of the bar, ``total`` the number of items.
    """
    console = Console(stderr=True)
    bar = Progress(
        TextColumn(doing),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=total < 2 or not console.is_terminal,
        redirect_stdout=sys.stdout.isatty(),
    )
    with bar:
        yield from bar.track(items, total=total)


def _usage(stages: dict[str, dict[str, Any]]) -> list[str]:
    """The calls of a result, and their price if it is known; nothing if no model was asked."""
    if not stages:
        return []
    spent = total(stages)
    calls = f"{spent['calls']} calls" + (f" and {spent['cached']} from the cache" if spent["cached"] else "")
    return [calls, *([f"{spent['usd']:.4f} USD"] if spent["usd"] is not None else [])]


def _subject(call: dict[str, Any]) -> str:
    """What a tool measured, and the size of its crop if it was not the whole image."""
    about = call["distortion"] if call["region"] == "Global" else f"{call['distortion']} in {call['region']}"
    if not call["box"]:
        return about
    left, top, right, bottom = call["box"]
    return f"{about}, {right - left} x {bottom - top} pixels"


def _answer(row: dict[str, Any]) -> Text:
    if row["quality_score"] is None:
        return Text(str(row["final_answer"]), style="bold")
    color = COLORS[row["quality_level"]]
    score = row["quality_score"]
    asked = row["final_answer"] if isinstance(row["final_answer"], str) else ""  # on the question's own scale
    return Text.assemble(
        (asked and f"{asked}\n", "bold"),
        (f"{score:.2f}", f"bold {color}"),
        " of 5  ",
        (bar((score - 1) / 4, 20), color),
        f"  {row['quality_level']}",
        (_interval(row), "dim"),
    )


def _interval(row: dict[str, Any]) -> str:
    """Between which scores people's mean opinion lies for 80 of 100 images; results of earlier versions have none."""
    ends = (row.get("score_interval") or {}).get("80")
    return f"  ({ends[0]:.1f} to {ends[1]:.1f} with 80 %)" if ends and ends[0] < ends[1] else ""


def bar(share: float, cells: int) -> str:
    """A share in [0, 1] as a bar of ``cells`` characters."""
    filled = round(share * cells)
    return "█" * filled + "░" * (cells - filled)


def print_lines(headings: Sequence[str], lines: Iterable[Sequence[str]]) -> None:
    """Print lines of cells to stdout: a table on a terminal, otherwise a heading and lines with tabs between cells."""
    console = stdout_console()
    if not console.is_terminal:
        for line in (headings, *lines):
            print("\t".join(printable(cell).replace("\n", " ") for cell in line))
        return
    table = plain_table(*map(escape, headings))
    for line in lines:
        table.add_row(*(escape(printable(cell)) for cell in line))
    console.print(table)


def plain_table(*columns: str) -> Table:
    """A table without lines."""
    return Table(*columns, box=None, header_style="dim", padding=(0, 2, 0, 0))


def stdout_console() -> Console:
    """A console on stdout, at most 110 columns wide on a terminal."""
    console = Console(highlight=False)
    return Console(highlight=False, width=min(console.width, WIDEST)) if console.is_terminal else console
