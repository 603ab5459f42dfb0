"""Read the fenced blocks of README.md and docs/*.md, which are executed by kind.

The word after the fence is the kind of a block:

- ``console``: lines that begin with ``$ `` are commands, followed by their output. A line ``...`` stands for any lines.
  Times are not compared. With ``2>&1`` at the end of a command, its lines may come in any order.
- ``bash``: commands that are not executed, but the command line must accept each ``agenticiqa`` command.
- ``python``: executed from top to bottom, alone, in a folder that has only ``examples``. If it reads the output of a
  command, its first line is ``# after: command``, which runs before it. A comment ``# -> text`` at the end of a line
  holds the ``repr`` of that line's expression.
- ``yaml``: a configuration. If its first line is ``# name.yaml``, later blocks can read it by that name.

An HTML comment before a block changes how it is tested. ``<!-- not run: reason -->`` skips it, but the command line
must still accept each ``agenticiqa`` command in it. ``<!-- needs: path -->`` runs it with the slow tests, if the path
exists; before Python, it names a package that has to be installed.
"""

import builtins
import re
import symtable
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MARK = re.compile(r"<!-- (?P<word>not run|needs): (?P<what>[^>]+) -->\s*$")
_STYLES = re.compile(r"\x1b\[[0-9;]*m")
# Seconds and milliseconds, also at the right border of a card, and token counts, which vary between runs.
_TIMES = re.compile(r"─* ?(offline|[\w.]+), \d+(\.\d+)? s|\b\d+(\.\d+)? (ms|s)\b")


@dataclass(frozen=True)
class Snippet:
    """One block: its page, first line, kind, text, and the mark before it, if any."""

    page: str
    line: int
    kind: str
    text: str
    not_run: str = ""
    needs: str = ""

    @property
    def name(self) -> str:
        """Return the name shown in a failure."""
        return f"{self.page}:{self.line}"

    @property
    def after(self) -> str:
        """Return the command that makes the files of a Python block, or an empty text."""
        first = self.text.partition("\n")[0]
        return first.removeprefix("# after: ") if first.startswith("# after: ") else ""


def snippets(page: Path) -> list[Snippet]:
    """Return every fenced block of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = []
    for fence in _FENCE.finditer(text):
        before = text[: fence.start()]
        mark = _MARK.search(before)
        marks = {mark["word"]: mark["what"].strip()} if mark else {}
        line = before.count("\n") + 1
        found.append(
            Snippet(page.name, line, fence[1], fence[2], not_run=marks.get("not run", ""), needs=marks.get("needs", ""))
        )
    return found


def undefined_names(text: str) -> set[str]:
    """Return the names that Python source reads and never defines, so that it needs code above it."""

    def read(table: symtable.SymbolTable) -> Iterator[str]:
        for symbol in table.get_symbols():
            if symbol.is_referenced() and (table is module or symbol.is_global()):
                yield symbol.get_name()
        for inner in table.get_children():
            yield from read(inner)

    module = symtable.symtable(text, "block", "exec")
    defined = {each.get_name() for each in module.get_symbols() if each.is_assigned() or each.is_imported()}
    return set(read(module)) - defined - set(dir(builtins))


def commands(block: Snippet) -> Iterator[tuple[str, list[str]]]:
    """Yield the commands of a console or bash block, each with the lines of output below it."""
    text = re.sub(r"^(?=\S)", "$ ", block.text, flags=re.MULTILINE) if block.kind == "bash" else block.text
    command, output = "", list[str]()
    for line in text.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, output
            command, output = line[2:], []
        elif command.endswith("\\") and not output:
            command = f"{command[:-1]} {line.strip()}"
        else:
            output.append(line)
    if command:
        yield command, output


def matches(shown: list[str], printed: str) -> bool:
    """Return whether a page shows the output, except for times and the lines that ``...`` replaces."""
    pattern = ""
    for line in shown:
        pattern += r"(?:.*\n)*" if line.strip() == "..." else re.escape(_steady(line)) + r"\n"
    return re.fullmatch(pattern, "".join(f"{_steady(line)}\n" for line in printed.splitlines())) is not None


def has_lines(shown: list[str], printed: str) -> bool:
    """Return whether an output has each line that a page shows, except for times, in any order."""
    lines = {_steady(line) for line in printed.splitlines()}
    return all(_steady(line) in lines for line in shown if line.strip() != "...")


def _steady(line: str) -> str:
    return _TIMES.sub("#", _STYLES.sub("", line)).rstrip()
