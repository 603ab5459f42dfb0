"""Print a result on a terminal: a card with the answer, a sentence in everyday words, and the evidence.

In a pipe, a result is one line: score, image and main finding, separated by tabs.
"""

import sys
from typing import Any

from rich.console import Group
from rich.markup import escape
from rich.panel import Panel
from rich.text import Text

from agenticiqa.programs.backends.usage import total
from agenticiqa.programs.cli.printable import all_printable, counted
from agenticiqa.programs.cli.render import COLORS, bar, plain_table, stdout_console, tabbed
from agenticiqa.programs.fusion.formula import interval_text
from agenticiqa.programs.page.entry import distinct_names, entry_of
from agenticiqa.programs.page.findings import measured, tool_rows
from agenticiqa.signatures.categories import BLURS, SHARPNESS
from agenticiqa.signatures.types import GLOBAL, ToolCall
from agenticiqa.signatures.vocabulary import SEVERITIES, everyday_name

MOST_NAMED = 3
# The severities in a photographer's words.
STRENGTHS = {"slight": "slight", "moderate": "visible", "severe": "strong", "extreme": "extreme"}
GOOD = ("Excellent", "Good")
OFFLINE_SOURCES = ("measurements", "learned")


def verdict(row: dict[str, Any]) -> str:
    """Return the quality level and the main distortions with their places; empty for a result without a score.

    ``row`` is the JSON of a result. At most three distortions are named, the most severe first. Slight ones are named
    only if there is no stronger one.
    """
    level = row["quality_level"]
    if row["quality_score"] is None or level is None:
        return ""
    analysis = row["executor_evidence"]["distortion_analysis"]
    parts = row["executor_evidence"].get("local_damage") or {}
    distortions = [
        (SEVERITIES.index(item["severity"]), item["type"], _place(parts, region, item["type"]))
        for region, items in (analysis or {}).items()
        for item in items
        if item["severity"] in STRENGTHS and not (item["type"] == SHARPNESS and _is_blurred(items))
    ]
    if not distortions:
        nothing = "no visible distortion" if level in GOOD else "no single distortion stands out"
        return f"{level} quality{': ' + nothing if analysis is not None else ''}."
    clear = [item for item in distortions if item[0] > 1] or distortions
    phrases = [_phrase(*item) for item in sorted(clear, key=lambda item: -item[0])]
    more = [f"{len(phrases) - MOST_NAMED} more"] if len(phrases) > MOST_NAMED else []
    parts = [*dict.fromkeys(phrases[:MOST_NAMED]), *more]
    listed = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    if clear[0][0] == 1:
        return f"{level} quality{': only' if level in GOOD else ', though with only'} {listed}."
    return f"{level} quality{' with ' if level in GOOD else ': '}{listed}."


def explanation(row: dict[str, Any]) -> str:
    """Return the reasoning of a result without the arithmetic of its score, which the live view of -v and JSON show.

    For an offline result, the findings are omitted, too, because the card lists them.
    """
    reasoning = str(row["quality_reasoning"])
    arithmetic = row["summarizer_result"]["score_sentence"]
    if not arithmetic:
        return reasoning
    before, _, after = reasoning.partition(arithmetic)
    by_model = row["probability_source"] not in OFFLINE_SOURCES
    return (before if by_model else "") + after.strip()


def _is_blurred(items: list[dict[str, Any]]) -> bool:
    return any(item["type"] == BLURS and item["severity"] in STRENGTHS for item in items)


def _place(parts: dict[str, list[dict[str, Any]]], region: str, distortion: str) -> str:
    """Return the part of the image that shows a distortion, if it is not the whole image; else the region."""
    return next((part["place"] for part in parts.get(region, []) if part["type"] == distortion), region)


def _phrase(severity: int, distortion: str, region: str) -> str:
    what = f"{STRENGTHS[SEVERITIES[severity]]} {everyday_name(distortion)}"
    if region == GLOBAL:
        return what
    has_article = region.split()[0].lower() in ("the", "a", "an", "my", "both") or not region[0].islower()
    return f"{what} in {region if has_article else f'the {region}'}"


def print_result(row: dict[str, Any], *, with_replans: bool = True) -> None:
    """Print one result (as its JSON) to stdout: a card on a terminal, one short line otherwise.

    Without ``with_replans`` a card leaves out the reasons for replanning, which ``-v`` shows.
    """
    console = stdout_console()
    if console.is_terminal:
        with console.capture() as captured:
            console.print(card(row if with_replans else {**row, "replan_history": []}))
        sys.stdout.write(captured.get())  # one write, which appears above a progress bar
        sys.stdout.flush()
    else:
        print(tabbed(short_line(row)), flush=True)


def short_line(row: dict[str, Any]) -> tuple[str, str, str]:
    """Return the score, "-" for none, the image, and the main finding or the answer of a result (as its JSON)."""
    entry = entry_of(row)
    score = "-" if entry.score is None else f"{entry.score:.2f}"
    return score, entry.image, entry.summary


def card(row: dict[str, Any]) -> Panel:
    """Return a result (as its JSON) as a card: the answer, a sentence in everyday words, and the evidence."""
    row = all_printable(row)
    parts: list[Any] = [_answer(row), Text(verdict(row), style="bold"), Text(explanation(row))]
    parts = [part for part in parts if part]
    evidence = row["executor_evidence"]
    findings = [(region, item) for region, items in (evidence["distortion_analysis"] or {}).items() for item in items]
    if findings:
        table = plain_table("distortion", "severity", "evidence")
        for region, item in findings:
            name = item["type"] if region == "Global" else f"{item['type']} in {region}"
            table.add_row(escape(name), item["severity"], escape(item["explanation"]))
        parts.append(table)
    if evidence["tool_log"]:
        calls = map(ToolCall.model_validate, evidence["tool_log"])
        headings, *lines = tool_rows(calls, _subject)
        table = plain_table(*headings)
        for line in lines:
            table.add_row(*map(escape, line))
        parts.append(table)
    explained = explanation(row)
    parts += [Text(f"note: {note}", style="dim") for note in evidence["notes"] if note not in explained]
    said = row["quality_reasoning"] or ""
    replans = [entry for entry in row["replan_history"] if entry.partition(": ")[2].rstrip(".") not in said]
    parts += [Text(f"replanned: {entry}", style="dim") for entry in replans]
    images = [image for image in (row["image"], row["reference"]) if image]
    took = sum(row["timings_ms"].values()) / 1000
    return Panel(
        Group(*parts),
        title=escape(" vs ".join(map(distinct_names(images).__getitem__, images))),
        subtitle=escape(", ".join([row["backend"], f"{took:.1f} s", *_usage(row["usage_by_stage"])])),
        title_align="left",
        subtitle_align="right",
    )


def _usage(stages: dict[str, dict[str, Any]]) -> list[str]:
    """Return the number of calls of a result and the cost if it is known; empty if no model was asked."""
    if not stages:
        return []
    spent = total(stages)
    calls = counted(spent["calls"], "call") + (f" and {spent['cached']} from the cache" if spent["cached"] else "")
    return [calls, *([f"{spent['usd']:.4f} USD"] if spent["usd"] is not None else [])]


def _subject(call: ToolCall) -> str:
    """Return the region that a tool measured, the size of its crop if it was not the whole image, and its error."""
    subject = measured(call.tool, call.distortion)
    about = subject if call.region == GLOBAL else f"{subject} in {call.region}"
    if call.image_kind == "generated":
        about = f"{about}, assessed as an AI-generated image"
    if call.adapted:
        about = f"{about}, adapted with {call.adapted.name}"
    if call.box:
        left, top, right, bottom = call.box
        about = f"{about}, {right - left} x {bottom - top} pixels"
    return f"{about}: {call.error}" if call.error else about


def _answer(row: dict[str, Any]) -> Text:
    if row["quality_score"] is None:
        return Text(str(row["final_answer"]), style="bold")
    color = COLORS[row["quality_level"]]
    score, interval = row["quality_score"], interval_text(row.get("score_interval"))
    answer = row["final_answer"] if isinstance(row["final_answer"], str) else ""  # rating on the scale of the question
    return Text.assemble(
        (answer and f"{answer}\n", "bold"),
        (f"{score:.2f}", f"bold {color}"),
        " of 5  ",
        (bar((score - 1) / 4, 20), color),
        f"  {row['quality_level']}",
        (f"  ({interval})" if interval else "", "dim"),
    )
