"""Draw how the program works: ``python docs/images/how_it_works.py`` writes a wide and a narrow drawing.

The names of fields come from the types that the stages exchange, so that the figure follows the code.
"""

import textwrap
from collections.abc import Iterable
from html import escape
from pathlib import Path

from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.signatures.types import PlanFlags, PlannerOutput

HERE = Path(__file__).resolve().parent
LEFT_OUT = ("distortion_source", "reference_mode", "plan")  # fields of a plan for which the box has no room
LINE = 19  # pixels between two lines of a box
CHARACTER = 7  # pixels, in a wide font
STYLE = """
text { font: 14px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328 }
.title { font-weight: 600; font-size: 16px } .field { font: 12.5px ui-monospace, Menlo, Consolas, monospace }
.note { fill: #59636e; font-size: 13px }
.data { fill: #f6f8fa; stroke: #c4ccd4 } .stage { fill: #ddf4ff; stroke: #0969da }
.check { fill: #fff8c5; stroke: #9a6700 } .done { fill: #dafbe1; stroke: #1a7f37 }
.arrow { stroke: #59636e; stroke-width: 1.8; fill: none; marker-end: url(#head) }
#head path { fill: #59636e }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc } .note { fill: #a6b0bb } .data { fill: #151b23; stroke: #4a535d }
  .stage { fill: #10233f; stroke: #4493f8 } .check { fill: #2e2506; stroke: #d29922 }
  .done { fill: #0f2a1a; stroke: #3fb950 }
  .arrow { stroke: #a6b0bb } #head path { fill: #a6b0bb }
}
"""
BOXES = {  # a title, the color of its box, and its text
    "You give": ("data", "an image, a question, and a reference if you have one"),
    "Planner": ("stage", "reads the question and plans what to look at:"),
    "Executor": ("stage", "collects the evidence that the plan asks for:"),
    "Summarizer": (
        "stage",
        "answers from it: a letter, a text, or a score from 1 to 5, fused from tool scores and the model's levels",
    ),
    "Replan": (
        "check",
        "Is the evidence sufficient for the plan and the question? Rules look for gaps; in doubt, the model is asked.",
    ),
    "You get": ("done", "the answer with its reason, the evidence, and an interval"),
}
FIELDS = {
    "Planner": [name for name in PlannerOutput.model_fields if name not in LEFT_OUT],
    "Executor": list(PlanFlags.model_fields),
}
PLANS = f"at most {AgenticIQA.offline().max_replan_iterations} more plans"


def lines_of(title: str, wide: int) -> list[str]:
    """Return the text of a box in lines; the names of fields, in backticks, share a line where two fit."""
    columns = (wide - 24) // CHARACTER
    fields = FIELDS.get(title, [])
    each = 2 if columns > 40 else 1
    rows = [", ".join(fields[start : start + each]) for start in range(0, len(fields), each)]
    return [*textwrap.wrap(BOXES[title][1], columns), *(f"`{row}`" for row in rows)]


def box(title: str, left: int, top: int, wide: int, high: int) -> str:
    """Draw a box with its title and lines."""
    kind = BOXES[title][0]
    shapes = [f'<rect class="{kind}" x="{left}" y="{top}" width="{wide}" height="{high}" rx="8"/>']
    shapes.append(f'<text class="title" x="{left + 12}" y="{top + 25}">{escape(title)}</text>')
    for number, line in enumerate(lines_of(title, wide)):
        name = "field" if line.startswith("`") else "note"
        shapes.append(
            f'<text class="{name}" x="{left + 12}" y="{top + 48 + LINE * number}">{escape(line.strip("`"))}</text>'
        )
    return "\n".join(shapes)


def arrow(path: str) -> str:
    """Draw an arrow along a path."""
    return f'<path class="arrow" d="{path}"/>'


def label(text: str, x: int, y: int, more: str = 'text-anchor="middle"') -> str:
    """Write beside an arrow."""
    return f'<text class="note" x="{x}" y="{y}" {more}>{escape(text)}</text>'


def svg(wide: int, high: int, parts: Iterable[str]) -> str:
    """Return a drawing of a size."""
    head = '<marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}">',
            f'<style>{STYLE}</style><defs>{head}<path d="M0 0 L10 5 L0 10 z"/></marker></defs>',
            *parts,
            "</svg>\n",
        ]
    )


def row() -> str:
    """Return the drawing with the stages side by side."""
    parts = [
        box("You give", 8, 52, 136, 128),
        box("Planner", 186, 30, 192, 172),
        box("Executor", 432, 30, 192, 172),
        box("Summarizer", 700, 30, 192, 172),
        box("You get", 930, 52, 136, 128),
        box("Replan", 432, 262, 460, 84),
        arrow("M144 116 H184"),
        arrow("M378 116 H430"),
        label("plan", 404, 107),
        arrow("M624 116 H698"),
        label("evidence", 660, 107),
        arrow("M796 202 V260"),
        label("answer", 824, 236),
        arrow("M892 304 H998 V182"),
        label("yes", 945, 295),
        arrow("M432 304 H282 V204"),
        label("no, and why", 356, 295),
        label(PLANS, 350, 328),
    ]
    return svg(1074, 366, parts)


def stack() -> str:
    """Return the drawing with the stages below each other."""
    wide, gap, middle = 340, 38, 178
    labels = {"Planner": "plan", "Executor": "evidence", "Summarizer": "answer", "Replan": "yes"}
    parts, tops, top = list[str](), dict[str, int](), 8
    for title in BOXES:
        high = 44 + LINE * len(lines_of(title, wide))
        if tops:
            parts.append(arrow(f"M{middle} {top - gap} V{top - 2}"))
        parts.append(box(title, 8, top, wide, high))
        tops[title] = top
        top += high + gap
        if title in labels:
            parts.append(label(labels[title], middle + 10, top - gap // 2 + 2, ""))
    start, end, right = tops["Replan"] + 40, tops["Planner"] + 40, wide + 8
    back = (start + end) // 2
    parts.append(arrow(f"M{right} {start} H{right + 22} V{end} H{right + 2}"))
    turned = f'text-anchor="middle" transform="rotate(-90 {right + 38} {back})"'
    parts.append(label(f"no, and why ({PLANS})", right + 38, back, turned))
    return svg(right + 46, top - gap + 8, parts)


DRAWINGS = {"how-it-works.svg": row, "how-it-works-narrow.svg": stack}

if __name__ == "__main__":
    for name, draw in DRAWINGS.items():
        (HERE / name).write_text(draw(), encoding="utf-8")
