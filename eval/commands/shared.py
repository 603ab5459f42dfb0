"""Share code between the commands that run the program: creation, progress, and messages when a run ends early."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import dspy

from agenticiqa.configs import Config
from agenticiqa.eval.runs import report_name
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.answer_cache import install
from agenticiqa.programs.cli import render
from agenticiqa.programs.cli.options import print_models
from agenticiqa.programs.cli.printable import print_error, print_text

if TYPE_CHECKING:  # commands that write no report start without pandas
    from agenticiqa.eval.report.model import Report
    from agenticiqa.programs.page.table import Table

T = TypeVar("T")
MOST_ERRORS = 10  # lines of errors that are printed


def configured_program(config: Config) -> AgenticIQA:
    """Return the program for a configuration, print its models, and install its cache of answers."""
    install(config)
    program = AgenticIQA.from_config(config)
    print_models(config)
    return program


def watched(rows: Iterator[T], finished: int, total: int) -> Iterator[T]:
    """Yield rows, or pairs that end in one, with a progress bar, and print the first errors in rows on stderr.

    ``finished`` of ``total`` rows existed before.
    """
    failed = 0
    if finished:
        print(f"{finished} of {total} were already assessed", file=sys.stderr)
    for item in render.progress(rows, total - finished):
        row: Any = item[-1] if isinstance(item, tuple) else item
        if "error" in row:
            failed += 1
            if failed <= MOST_ERRORS:
                print_error(row["error"])
        yield item
    if failed > MOST_ERRORS:
        print_error(f"{failed - MOST_ERRORS} more failed; each row of the results has its reason")


def saved(
    report: "Report",
    out: Path,
    limit: int | None,
    tables: Sequence["Table"] | None = None,
    runs: Sequence[str] = ("results.jsonl",),
) -> None:
    """Write the report on a run of ``limit`` rows into its folder, and print it (default: all tables) and the files.

    ``runs`` are the files or folders there with the rows that it reports on.
    """
    name = report_name(out, limit)
    report.write(out, name)
    report.show(tables, out / f"{name}.md")
    print_text(f"Saved in {out}: {', '.join(runs)}, {name}.json, {name}.md")


@contextmanager
def continuing(kept: Path) -> Iterator[None]:
    """Print how to continue on stderr after Ctrl-C or an outage of a model, and re-raise it."""
    try:
        yield
    except (KeyboardInterrupt, dspy.LMError):
        print_error(f"run the same command again to continue from the results in {kept}")
        raise
