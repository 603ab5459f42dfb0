"""Show the tables of a command: on stdout, or as the files that its options name."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from agenticiqa.programs.cli.arguments import TableOptions
from agenticiqa.programs.cli.output_paths import Output, write_all
from agenticiqa.programs.cli.printable import is_stdout, json_text, print_error, print_note
from agenticiqa.programs.page.forms import FORMS, comma_separated, page_of
from agenticiqa.programs.page.table import Table

BYTE_ORDER_MARK = "\ufeff"  # spreadsheets recognize UTF-8 by it


@dataclass(frozen=True)
class View:
    """What a command shows.

    Attributes:
        tables: The tables for people.
        data: The tables in CSV, by default the same. The first goes to the file, the others beside it.
        document: What ``--json`` prints, by default the lines of the data.
        page: Makes the text of ``--html`` for the file of this name, by default a page with the tables.
        page_name: The page in messages.
        remark: A sentence printed below the tables.
    """

    tables: Sequence[Table]
    data: Sequence[Table] = ()
    document: Any = None
    page: Callable[[Path], str] | None = None
    page_name: str = "page"
    remark: str = ""


def show(args: TableOptions, view: View) -> bool:
    """Write the requested outputs, or print the tables; return whether everything requested was written.

    If no requested output could be written, the data is printed.
    """
    done = write_all([*files_of(args, view), json_of(args, view)])
    if done and not any(done):
        print_instead(view)
    elif not done:
        print_tables(view)
    return all(done)


def writes_files(args: TableOptions) -> bool:
    """Return whether an option of ``TableOptions`` names a file."""
    return any(getattr(args, name) for name in ("html", "csv", *FORMS))


def files_of(args: TableOptions, view: View) -> list[Output]:
    """Return the files that the options of ``TableOptions`` name."""
    page = view.page or partial(page_of, view.tables)
    return [
        *([Output(view.page_name, args.html, partial(page, args.html))] if args.html else []),
        *_csv(args.csv, view.data or view.tables),
        *(Output("table", getattr(args, name), partial(_text, form, view.tables)) for name, form in FORMS.items()),
    ]


def _text(form: Callable[[Iterable[Table]], str], tables: Sequence[Table]) -> str:
    return form([table.printable for table in tables])


def json_of(args: TableOptions, view: View) -> Output:
    """Return what ``--json`` prints."""
    return Output("JSON", "-" if args.json else None, partial(_json, view))


def print_instead(view: View) -> None:
    """Print the data as CSV, because its files could not be written."""
    print_error("the table is printed to stdout instead")
    print("\n".join(map(comma_separated, view.data or view.tables)), end="")


def print_tables(view: View) -> None:
    """Print the tables, each after the first below its title."""
    from agenticiqa.programs.cli import render  # an import of Rich

    for place, table in enumerate(view.tables):
        if place:
            print(f"\n{table.title}:")
        render.print_table(table)
    if view.remark:
        render.print_remark(view.remark)


def _json(view: View) -> str:
    document = view.document
    if document is None:
        records = [table.records for table in view.data or view.tables]
        document = records[0] if len(records) == 1 else records
    return f"{json_text(document, indent=2)}\n"


def _csv(file: Path | None, tables: Sequence[Table]) -> Iterator[Output]:
    """Yield each table: the first to ``file``, others beside it, named by title; stdout gets only the first one."""
    first, *others = tables
    if file is None:
        return
    if is_stdout(file):
        yield Output("table", file, partial(comma_separated, first))
        if others:
            names = ", ".join(table.title for table in others)
            print_note(f"only the table {first.title!r} was printed; use --csv FILE to get these tables, too: {names}")
        return
    for table in tables:
        place = file if table is first else file.with_stem(f"{file.stem}-{table.slug}")
        name = "table" if table is first else f"table {table.title!r}"
        yield Output(name, place, partial(_for_spreadsheets, table))


def _for_spreadsheets(table: Table) -> str:
    return BYTE_ORDER_MARK + comma_separated(table)
