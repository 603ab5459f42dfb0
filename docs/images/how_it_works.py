"""Draw how the program works: ``python docs/images/how_it_works.py`` writes how-it-works.svg.

The names of fields come from the types that the stages exchange, so that the figure follows the code.
"""

from html import escape
from pathlib import Path

from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.signatures.types import PlanFlags, PlannerOutput

HERE = Path(__file__).resolve().parent
WIDTH, HEIGHT = 1062, 366
LEFT_OUT = ("distortion_source", "reference_mode", "plan")  # fields of a plan for which the box has no room
LINE = 19  # pixels between two lines of a box
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


def box(kind: str, left: int, top: int, wide: int, high: int, title: str, *lines: str) -> str:
    """Draw a box with a title and lines; a line in backticks is the name of a field."""
    shapes = [f'<rect class="{kind}" x="{left}" y="{top}" width="{wide}" height="{high}" rx="8"/>']
    shapes.append(f'<text class="title" x="{left + 12}" y="{top + 25}">{escape(title)}</text>')
    for number, line in enumerate(lines):
        name = "field" if line.startswith("`") else "note"
        shapes.append(
            f'<text class="{name}" x="{left + 12}" y="{top + 48 + LINE * number}">{escape(line.strip("`"))}</text>'
        )
    return "\n".join(shapes)


def arrow(path: str, label: str = "", at: tuple[int, int] = (0, 0)) -> str:
    """Draw an arrow along a path, with a label in the middle of its place."""
    text = f'<text class="note" x="{at[0]}" y="{at[1]}" text-anchor="middle">{escape(label)}</text>' if label else ""
    return f'<path class="arrow" d="{path}"/>{text}'


def figure() -> str:
    """Return the SVG."""
    plans = AgenticIQA.offline().max_replan_iterations
    tasks = [f"`{name}`" for name in PlanFlags.model_fields]
    planned = [f"`{name}`" for name in PlannerOutput.model_fields if name not in LEFT_OUT]
    answers = [
        "a score from 1 to 5,",
        "fused from tool scores",
        "and the levels that the",
        "model sees;",
        "a letter; or a text",
    ]
    replan = [
        "Is the evidence sufficient for the plan and the question?",
        "Rules look for gaps; in doubt, the model is asked.",
    ]
    parts = [
        box("data", 8, 52, 136, 128, "You give", "an image,", "a question, and", "a reference if", "you have one"),
        box("stage", 194, 30, 178, 172, "Planner", "reads the question and", "plans what to look at:", *planned),
        box("stage", 432, 30, 184, 172, "Executor", "collects the evidence", "that the plan asks for:", *tasks),
        box("stage", 696, 30, 176, 172, "Summarizer", "answers from it:", *answers),
        box("done", 922, 52, 132, 128, "You get", "the answer with", "its reason, the", "evidence, and", "an interval"),
        box("check", 432, 262, 440, 84, "Replan", *replan),
        arrow("M144 116 H192"),
        arrow("M372 116 H430", "plan", (401, 107)),
        arrow("M616 116 H694", "evidence", (655, 107)),
        arrow("M784 202 V260", "answer", (812, 236)),
        arrow("M872 304 H988 V182", "yes", (930, 295)),
        arrow("M432 304 H283 V204", "no, and why", (352, 295)),
        f'<text class="note" x="283" y="328" text-anchor="middle">at most {plans} more plans</text>',
    ]
    head = '<marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}">',
            f'<style>{STYLE}</style><defs>{head}<path d="M0 0 L10 5 L0 10 z"/></marker></defs>',
            *parts,
            "</svg>\n",
        ]
    )


if __name__ == "__main__":
    (HERE / "how-it-works.svg").write_text(figure(), encoding="utf-8")
