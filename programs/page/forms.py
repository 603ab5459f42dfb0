"""Write tables as CSV, Markdown, LaTeX and HTML. The terminal is in ``cli.render``."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from pathlib import Path

from agenticiqa.programs.images.files import without_controls
from agenticiqa.programs.page.csv_text import csv_text
from agenticiqa.programs.page.table import Table, values_of

LATEX = {"&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}"}
LATEX |= {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "<": "$<$", ">": "$>$", "|": "$|$", '"': "''"}


def comma_separated(table: Table) -> str:
    """Return a table as CSV, with one value per cell; numbers are unrounded, and undefined values are empty."""
    columns = table.values
    return csv_text([[heading for heading, _ in columns], *zip(*(cells for _, cells in columns), strict=True)])


def markdown(tables: Iterable[Table]) -> str:
    """Return tables in Markdown, each below its title."""
    return "\n".join(
        (f"{markdown_text(table.title)}\n\n" if table.title else "") + markdown_table(table) for table in tables
    )


def markdown_table(table: Table) -> str:
    """Return a table in Markdown, without its title."""
    rows = [[*map(markdown_text, line)] for line in (table.headings, *table.lines)]
    rows.insert(1, ["---"] * len(table.headings))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def markdown_text(text: str) -> str:
    """Return a text without control characters, line breaks, HTML, links and ends of cells."""
    safe = escape(" ".join(without_controls(text).split()), quote=False)
    return safe.replace("](", r"]\(").replace("|", r"\|")


def latex(tables: Iterable[Table]) -> str:
    """Return tables in LaTeX: each a ``tabular`` with booktabs rules if available, and its title as a comment above.

    Texts are aligned left, numbers right, and the best value of a column is bold.
    """
    return "\n".join(map(_latex_table, tables))


def _latex_table(table: Table) -> str:
    sides = "".join("r" if is_number else "l" for is_number in table.numeric)
    best = [_best(table, heading, cells) for heading, cells in table.columns]
    lines = [
        [_bold(cell) if _shown(cell) == value else _latex(cell) for cell, value in zip(line, best, strict=True)]
        for line in table.lines
    ]
    rows = [" & ".join(cells) for cells in ([*map(_latex, table.headings)], *lines)]
    body = [rf"\begin{{tabular}}{{{sides}}}", r"\toprule", rf"{rows[0]} \\", r"\midrule"]
    body += [*(rf"{row} \\" for row in rows[1:]), r"\bottomrule", r"\end{tabular}"]
    rules = "".join(rf"\providecommand{{\{rule}}}{{\hline}}" for rule in ("toprule", "midrule", "bottomrule"))
    title = [f"% {' '.join(table.title.split())}"] if table.title else []
    return "\n".join([*title, rules, *body]) + "\n"


def notebook_html(table: Table) -> str:
    """Return a table as HTML for a notebook, which has styles of its own."""
    from pandas import DataFrame

    table = table.printable
    cells = DataFrame([*table.lines], columns=[*table.headings])
    return f"<h4>{escape(table.title)}</h4>{cells.to_html(index=False)}"


def page_of(tables: Sequence[Table], page: Path) -> str:
    """Return an HTML page that shows only tables, and loads nothing; ``page`` is its file."""
    from agenticiqa.programs.page.render import render  # an import of Jinja

    return render("page/tables.html", {"title": tables[0].title or page.stem, "tables": tables})


def _shown(cell: str) -> str:
    """Return the value of a cell as text, without its interval."""
    return cell.partition(" [")[0]


def _best(table: Table, heading: str, cells: Sequence[str]) -> str | None:
    """Return the best value of a column as text; ``None`` for a column without one, and for a single row."""
    if heading not in table.best or len(cells) < 2:
        return None
    known = {_shown(cell): value for cell in cells if (value := values_of(cell).get("")) is not None}
    return table.best[heading](known, key=known.__getitem__, default=None)


def _bold(cell: str) -> str:
    value = _shown(cell)
    return rf"\textbf{{{_latex(value)}}}{_latex(cell.removeprefix(value))}"


def _latex(cell: str) -> str:
    return "".join(LATEX.get(character, character) for character in cell)


FORMS: Mapping[str, Callable[[Iterable[Table]], str]] = {"markdown": markdown, "latex": latex}  # by their options
