"""What a person sees on a terminal: a card for each result, the table of tools, a progress bar."""

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console, Group
from rich.markup import escape
from rich.panel import Panel
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from agenticiqa.programs.backends.ledger import total
from agenticiqa.programs.batch.cost import Estimate

T = TypeVar("T")

COUNTED = {
    "calls": "calls",
    "calls_at_most": "at most",
    "input_tokens": "input tokens",
    "image_tokens": "of images",
    "output_tokens": "output tokens",
}
ESTIMATED = (
    "Nothing was sent. Estimated: one clean pass, by the prompts themselves and the providers' published rules for "
    "images; at most: with every rejected answer asked again and every plan made anew."
)

COLOURS = {"Excellent": "green", "Good": "green", "Fair": "yellow", "Poor": "red", "Bad": "red"}
WIDEST = 110
BEST_SHOWN = 3
PYIQA = (
    "Embedded metrics need no download. Any metric of pyiqa can be added: pip install 'agenticiqa[pyiqa]' "
    "(its licence is non-commercial), then list it under pyiqa: in a configuration."
)


def print_result(row: dict[str, Any]) -> None:
    """One result on stdout: a card on a terminal, one JSON line otherwise."""
    console = _console()
    if console.is_terminal:
        with console.capture() as captured:
            console.print(card(row))
        sys.stdout.write(captured.get())  # which a progress bar lets through above it, unlike a console's own writing
        sys.stdout.flush()
    else:
        print(json.dumps(row, ensure_ascii=False), flush=True)


def card(row: dict[str, Any]) -> Panel:
    """A result (as its JSON) as a readable card: the answer, its reason, and the evidence."""
    parts: list[Any] = [_answer(row), Text(row["quality_reasoning"])]
    evidence = row["executor_evidence"]
    analyzed = [(region, item) for region, items in (evidence["distortion_analysis"] or {}).items() for item in items]
    if analyzed:
        table = _table("distortion", "severity", "seen or measured")
        for region, item in analyzed:
            name = item["type"] if region == "Global" else f"{item['type']} in {region}"
            table.add_row(escape(name), item["severity"], escape(item["explanation"]))
        parts.append(table)
    if evidence["tool_log"]:
        table = _table("tool", "for", "raw", "1..5")
        for call in evidence["tool_log"]:
            values = (
                (f"{call['raw']:.4g}", f"{call['calibrated']:.2f}") if call["error"] is None else ("-", call["error"])
            )
            table.add_row(call["tool"], escape(_subject(call)), *map(escape, values))
        parts.append(table)
    parts += [Text(f"note: {note}", style="dim") for note in evidence["notes"]]
    parts += [Text(f"planned again: {entry}", style="dim") for entry in row["replan_history"]]
    took = sum(row["timings_ms"].values()) / 1000
    return Panel(
        Group(*parts),
        title=escape(Path(row["image"]).name + (f" vs {Path(row['reference']).name}" if row["reference"] else "")),
        subtitle=escape(", ".join([row["backend"], f"{took:.1f} s", *_asked(row["usage_by_stage"])])),
        title_align="left",
        subtitle_align="right",
    )


def print_tools(rows: list[dict[str, Any]]) -> None:
    """The toolbox as a table on stdout."""
    table = Table(
        "tool", "kind", "better", "raw range", "ms", "best at", "status", caption=escape(PYIQA), caption_justify="left"
    )
    table.columns[0].no_wrap = True
    for row in rows:
        low, high = row["raw_range"]
        table.add_row(
            row["name"],
            row["kind"],
            row["direction"],
            f"{low:g} .. {high:g}",
            "-" if row["cost_ms"] is None else f"{row['cost_ms']:.0f}",
            ", ".join(_best_at(row)) or "-",
            escape(row["status"]),
        )
    _console().print(table)


def print_estimate(found: Estimate, as_json: bool = False) -> None:
    """What a run will ask of models, as a table or one JSON object on stdout."""
    if as_json:
        whole = {"images": found.images, "questions": found.questions, "refused": found.refused, "stages": found.rows()}
        print(json.dumps(whole, ensure_ascii=False, indent=2))
        return
    about = f"{found.questions} questions about {found.images} images"
    if not found.stages:
        print(f"{about}: no model is asked")
        return
    models = sorted({stage.model for stage in found.stages})
    several = len(models) > 1
    table = _table("stage", *COUNTED.values(), "USD", *(["model"] if several else []))
    for column in table.columns[1 : len(COUNTED) + 2]:
        column.justify = "right"
    for row in found.rows():
        usd = "no price" if row["usd"] is None else f"{row['usd']:.4f}"
        table.add_row(
            row["stage"], *(f"{row[count]:,}" for count in COUNTED), usd, *([row["model"]] if several else [])
        )
    print(f"{about}, asked of {', '.join(models)}:")
    console = _console()
    console.print(table)
    console.print(Text(ESTIMATED, style="dim"))
    for refused in found.refused:
        print(f"agenticiqa: {refused}", file=sys.stderr)


def print_backends(rows: list[dict[str, Any]], providers: list[dict[str, Any]]) -> None:
    """The backends of a configuration as a table on stdout, and below it what can be named in one, if given."""
    table = Table("stages", "backend", "JSON", "log-probs", "seed", "images", "known from")
    table.columns[1].overflow = table.columns[-1].overflow = "fold"
    for row in rows:
        where = [row["backend"], *([row["server"]] if row["server"] else [])]
        if row["key"]:
            where.append(f"key {row['key']['variable']} ({'set' if row['key']['set'] else 'not set'})")
        table.add_row(
            "\n".join(row["stages"]),
            escape("\n".join(where)),
            row["structured_outputs"] or "-",
            _yes_or_no(row["logprobs"]),
            _yes_or_no(row["seed"]),
            "several" if row["several_images"] else "one" if row["images"] else _yes_or_no(row["images"]),
            row["known"],
        )
    console = _console()
    console.print(table)
    if providers:
        table = _table("provider", "needs", "JSON objects", "log-probs", "seed", "images")
        for row in providers:
            has = (_yes_or_no(row[name]) for name in ("json_object", "logprobs", "seed"))
            table.add_row(row["provider"], row["needs"], *has, ", ".join(row["formats"]))
        console.print("\nWhat can be named, and what its interface has (a model or server may have less):")
        console.print(table)


def progress(items: Iterable[T], total: int, doing: str = "judging") -> Iterator[T]:
    """The items, with a bar on stderr while they come, if that is a terminal and there is more than one.

    ``doing`` stands before the bar.
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


def _asked(stages: dict[str, dict[str, Any]]) -> list[str]:
    """How many calls a result took, and at what price if there is one; nothing if no model was asked."""
    if not stages:
        return []
    spent = total(stages)
    told = f"{spent['calls']} calls" + (f" and {spent['cached']} from the cache" if spent["cached"] else "")
    return [told, *([f"{spent['usd']:.4f} USD"] if spent["usd"] is not None else [])]


def _subject(call: dict[str, Any]) -> str:
    """What a tool was run for, and on which crop if it was not the whole image."""
    about = call["distortion"] if call["region"] == "Global" else f"{call['distortion']} in {call['region']}"
    if not call["box"]:
        return about
    left, top, right, bottom = call["box"]
    return f"{about}, {right - left} x {bottom - top} pixels"


def _best_at(row: dict[str, Any]) -> list[str]:
    """The categories that a tool follows best, with its SRCC; what it is made for where nobody measured it."""
    measured = list(row["measured"].items())[:BEST_SHOWN]
    return [f"{name} {found['srcc']:.2f}" for name, found in measured] or row["good_at"]


def _answer(row: dict[str, Any]) -> Text:
    if row["quality_score"] is None:
        return Text(str(row["final_answer"]), style="bold")
    colour = COLOURS[row["quality_level"]]
    score = row["quality_score"]
    return Text.assemble(
        (f"{score:.2f}", f"bold {colour}"),
        " of 5  ",
        (bar((score - 1) / 4, 20), colour),
        f"  {row['quality_level']}",
    )


def _yes_or_no(value: bool | int | None) -> str:
    return "-" if value is None else "yes" if value else "no"


def bar(share: float, cells: int) -> str:
    """A share in [0, 1] as a bar of so many characters."""
    filled = round(share * cells)
    return "█" * filled + "░" * (cells - filled)


def _table(*columns: str) -> Table:
    return Table(*columns, box=None, header_style="dim", padding=(0, 2, 0, 0))


def _console() -> Console:
    console = Console(highlight=False)
    return Console(highlight=False, width=min(console.width, WIDEST)) if console.is_terminal else console
