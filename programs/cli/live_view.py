"""Format log events of an assessment as labeled rows of text, for the live view of ``--verbose``."""

import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from agenticiqa.programs.cli.printable import printable, shortened
from agenticiqa.programs.cli.render import COLORS, bar
from agenticiqa.programs.fusion.formula import level_name
from agenticiqa.programs.fusion.interval import SOURCES
from agenticiqa.programs.tools.tool import with_unit
from agenticiqa.signatures.types import GLOBAL
from agenticiqa.signatures.vocabulary import LEVELS

WIDEST = 100
LABEL = 10  # columns
ENDS = {"done", "failed"}
LONGEST = 1200  # characters of a warning
LONGEST_TEXT = 2000  # characters of a text of a prompt, or of a reply
LONGEST_EXPLANATION = 180

SEVERITIES = {"none": "green", "slight": "green", "moderate": "yellow", "severe": "red", "extreme": "bold red"}
TO_DO = {
    "distortion_detection": "find distortions",
    "distortion_analysis": "rate their severity",
    "tool_selection": "select tools",
    "tool_execution": "measure",
}
HIDDEN = {"asked", "summarizing"}  # another step shows the same

Event = Mapping[str, Any]
Row = tuple[str, Text]  # the label and the text beside it


def rows_of(record: logging.LogRecord) -> list[Row]:
    """Return the rows of a record: its message for warnings and records without an event, else the event's rows."""
    fields = vars(record)
    name = fields.get("event", "")
    if record.levelno >= logging.WARNING:
        label = name if name in ("rejected", "retry", "fallback", "replan") else "warning"
        return [(label, line((shortened(record.getMessage(), LONGEST), "yellow")))]
    if name in HIDDEN:
        return []
    if name in DRAWN:
        return DRAWN[name](fields)
    return [("", line((shortened(record.getMessage(), LONGEST), "dim")))]


def _begun(fields: Event) -> list[Row]:
    width, height = fields["size"]
    against = f", against {Path(fields['reference']).name}" if fields["reference"] else ""
    title = (Path(fields["image"]).name, "bold cyan")
    by = "offline" if fields["backend"] == "offline" else f"by {fields['backend']}"
    return [
        ("image", line(title, f", {width} x {height} pixels{against}, assessed {by}")),
        ("question", line(fields["query"])),
    ]


def _planned(fields: Event) -> list[Row]:
    kind = "quality question" if fields["query_type"] == "IQA" else "other question"
    where = "the whole image" if fields["scope"] == [GLOBAL] else ", ".join(fields["scope"])
    how = "with the reference" if fields["reference_mode"] == "Full-Reference" else "without a reference"
    named = [*_listed(fields["distortions"] or {}), *fields["tools"]]
    to_do = [words for flag, words in TO_DO.items() if fields["flags"][flag]]
    rows = [("plan", line(f"{kind}, about {where}, {how}"))]
    rows += [("", line(f"named: {'; '.join(named)}"))] if named else []
    return [*rows, ("", line(f"steps: {', '.join(to_do) or 'inspect the image and answer'}"))]


def _located(fields: Event) -> list[Row]:
    return _labeled("located", [line(f"{region}: {_place(box)}") for region, box in fields["boxes"].items()])


def _place(box: tuple[int, int, int, int] | None) -> str:
    if box is None:
        return "not found"
    left, top, right, bottom = box
    return f"{right - left} x {bottom - top} pixels at ({left}, {top})"


def _detected(fields: Event) -> list[Row]:
    return [("detected", line("; ".join(_listed(fields["distortions"]))))]


def _analyzed(fields: Event) -> list[Row]:
    return _labeled(
        "severity",
        [
            line(
                f"{_subject(item['type'], region)}: ",
                (item["severity"], SEVERITIES[item["severity"]]),
                (f"  {shortened(item['explanation'], LONGEST_EXPLANATION)}", "dim"),
            )
            for region, items in fields["analysis"].items()
            for item in items
        ],
    )


def _selected(fields: Event) -> list[Row]:
    chosen: dict[str, list[str]] = {}
    for region, tools in fields["tools"].items():
        for subject, tool in tools.items():
            chosen.setdefault(tool, []).append(_subject(subject, region))
    listed = [f"{tool} for {', '.join(subjects)}" for tool, subjects in chosen.items()]
    return [("chosen", line("; ".join(listed) or "no tool"))]


def _measured(fields: Event) -> list[Row]:
    about = f"  {_subject(fields['distortion'], fields['region'])}"
    if fields["error"]:
        return [("tool", line(f"{fields['tool']:<15}", ("no score", "yellow"), (about, "dim")))]
    score = fields["calibrated"]
    gauge = (bar((score - 1) / 4, 10), COLORS[level_name(score)])
    raw = (f"raw {with_unit(fields['raw'], fields.get('unit')):<10}", "dim")
    return [
        ("tool", line(f"{fields['tool']:<15}", raw, gauge, f" {score:.2f}", (f"{about}, {fields['ms']:.0f} ms", "dim")))
    ]


def _scored(fields: Event) -> list[Row]:
    shares = {level: fields["probabilities"][str(number)] for level, number in LEVELS.items()}
    rows = _labeled(
        "levels",
        [
            line(f"{level:<10}", (bar(share, 20), COLORS[level]), f" {share:>4.0%}")
            for level, share in sorted(shares.items(), key=lambda item: -LEVELS[item[0]])
        ],
    )
    rows.append(("", line((f"from {SOURCES[fields['probability_source']]}", "dim"))))
    parts = [] if fields["tool_mean"] is None else [f"tool mean {fields['tool_mean']:.2f} (n={fields['tools']})"]
    parts.append(f"expected level {fields['level_expectation']:.2f}")
    score = (f"{fields['score']:.2f} {fields['quality_level']}", f"bold {COLORS[fields['quality_level']]}")
    return [*rows, ("fusion", line(", ".join(parts), " -> ", score))]


def _concluded(fields: Event) -> list[Row]:
    return [("answer", line((str(fields["answer"]), "bold")))]  # the result has the reasoning


def _replan(fields: Event) -> list[Row]:
    if fields["need_replan"]:
        return [("replan", line(("plan again: ", "bold magenta"), (fields["reason"], "magenta")))]
    # The result lists them: contradictions in its reasoning, uncertainties in the analysis.
    doubts = f", despite {_count(len(fields['doubts']), 'doubt')}" if fields["doubts"] else ""
    return [("replan", line((f"not needed, the evidence is sufficient{doubts}", "dim")))]


def _answered(fields: Event) -> list[Row]:
    took = "from the cache" if fields["cached"] else f"{fields['seconds']:.2f} s, {_taken(fields)}"
    return [("asked", line((f"{fields['stage']}, {took}", "dim")))]


def _prompt(fields: Event) -> list[Row]:
    """Return the rows of a request: the model and its settings, each text, the images, and the form of the answer."""
    which = f"{fields['stage']}, attempt {fields['attempt']} of {fields['attempts']}, " if "stage" in fields else ""
    parameters = "".join(f", {name} {value}" for name, value in fields["parameters"].items())
    rows = [("prompt", line((f"{which}sent to {fields['model']}{parameters}", "dim")))]
    rows += [("system", _long(fields["system"]))] if fields["system"] else []
    for message in fields["messages"]:
        texts = [part if isinstance(part, str) else _other_part(part) for part in message["parts"]]
        rows += _labeled(message["role"], [_long(text) for text in texts])
    form = fields["response_format"]
    return rows + ([("schema", _long(json.dumps(form, ensure_ascii=False)))] if form else [])


def _other_part(part: Mapping[str, str]) -> str:
    return "".join(f"[{kind}: {what}]" for kind, what in part.items())


def _reply(fields: Event) -> list[Row]:
    how = [fields["stage"]] if "stage" in fields else []
    how += [f"{fields['length']:,} characters"]
    how += [f"finish_reason {fields['finish_reason']}"] if fields["finish_reason"] else []
    how += ["from DSPy's cache"] if fields["from_cache"] else []
    how += fields["adaptations"]
    rows = [("thoughts", _long(fields["thoughts"]))] if fields["thoughts"] else []
    rows.append(("reply", line((", ".join(how), "dim"))))
    return [*rows, ("", _long(fields["text"]))] if fields["text"] else rows


def _long(text: str) -> Text:
    return line((shortened(text, LONGEST_TEXT), "dim"))


def _done(fields: Event) -> list[Row]:
    answer = str(fields["answer"]) if fields["score"] is None else f"{fields['score']:.2f} of 5"
    asked = f", {_count(fields['calls'], 'call')}, {_taken(fields)}" if fields["calls"] or fields["cached"] else ""
    return [("done", line((answer, "bold"), f" in {fields['seconds']:.2f} s{asked}"))]


def _failed(fields: Event) -> list[Row]:
    return [("failed", line((f"{fields['error']} after {fields['seconds']:.2f} s", "yellow")))]


DRAWN: dict[str, Callable[[Event], list[Row]]] = {
    "begun": _begun,
    "prompt": _prompt,
    "reply": _reply,
    "planned": _planned,
    "located": _located,
    "detected": _detected,
    "analyzed": _analyzed,
    "selected": _selected,
    "measured": _measured,
    "scored": _scored,
    "concluded": _concluded,
    "replan": _replan,
    "answered": _answered,
    "done": _done,
    "failed": _failed,
}


def _taken(fields: Event) -> str:
    """Return the tokens, and the retries, cached answers and cost if there are any."""
    parts = [f"{fields['input_tokens']} + {fields['output_tokens']} tokens"]
    parts += [_count(fields["retries"], "retry", "retries")] if fields["retries"] else []
    parts += [f"{fields['cached']} from the cache"] if fields["cached"] else []
    parts += [f"{fields['usd']:.4f} USD"] if fields["usd"] is not None else []
    return ", ".join(parts)


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or f'{one}s'}"


def _subject(what: str, region: str) -> str:
    return what if region == GLOBAL else f"{what} in {region}"


def _listed(distortions: Mapping[str, list[str]]) -> list[str]:
    return [_subject(", ".join(names) or "nothing", region) for region, names in distortions.items()]


def _labeled(label: str, bodies: list[Text]) -> list[Row]:
    """Return rows with the label beside the first one only."""
    return [(label if number == 0 else "", body) for number, body in enumerate(bodies)]


def line(*parts: str | tuple[str, str]) -> Text:
    """Return one line of texts, each plain or with a style; control characters become spaces."""
    return Text.assemble(
        *(printable(part) if isinstance(part, str) else (printable(part[0]), part[1]) for part in parts)
    )


class StepFormatter(logging.Formatter):
    """A formatter of records as rows, in colors on a terminal; empty if another record has the same information.

    Rows of a later planning round are indented. After several images were assessed in parallel, each row begins with
    the name of its image.
    """

    def __init__(self) -> None:
        super().__init__()
        self.console = Console(stderr=True, highlight=False)
        self.console.width = min(self.console.width, WIDEST) if self.console.is_terminal else WIDEST
        self.running: set[str] = set()
        self.several = False

    def format(self, record: logging.LogRecord) -> str:
        """Return the rows of one record, without a final line break."""
        fields = vars(record)
        image, name = fields.get("image", ""), fields.get("event", "")
        before = Text("│ " * (0 if name in ENDS else fields.get("iteration", 0)), "dim")
        if name == "begun":
            self.running.add(image)
            self.several |= len(self.running) > 1
        if name in ENDS:
            self.running.discard(image)
        if self.several and image:
            before = line((f"{Path(image).name}: ", "cyan")) + before
        return "\n".join(self._drawn(before, rows_of(record)))

    def _drawn(self, before: Text, rows: list[Row]) -> list[str]:
        grid = Table.grid(padding=(0, 1, 0, 0))
        grid.add_column(width=LABEL, no_wrap=True)
        grid.add_column(overflow="fold")
        for label, body in rows:
            grid.add_row(Text(label, "bold"), body)
        with self.console.capture() as drawn:
            self.console.print(grid, width=max(self.console.width - before.cell_len, 3 * LABEL))
        with self.console.capture() as margin:
            self.console.print(before, end="")
        return [f"{margin.get()}{each}".rstrip() for each in drawn.get().splitlines()]
