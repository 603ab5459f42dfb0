"""Tables never lose the end of a number or a name: they fold on a terminal, and have tabs between cells elsewhere."""

import re

import pytest
from rich.console import Console

from agenticiqa.programs.cli.main import main
from agenticiqa.programs.cli.render import print_table
from agenticiqa.programs.page.table import Table

LINES = [["distortion_detection", "25,502-50,964", "0.0759-0.1518", "openai.a-model-of-a-very-long-name-indeed"]] * 2
HEADINGS = ("stage", "input tokens", "USD", "model")


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_a_narrow_terminal_cuts_no_text(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Console, "is_terminal", True)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "dumb")
    print_table(Table(HEADINGS, LINES))
    shown = capsys.readouterr().out
    assert "\u2026" not in shown
    for cell in LINES[0]:
        assert not set(cell) - set(shown)
    whole = re.sub(r"\s", "", shown)
    assert whole.count("indeed") == 2 or columns < 60


def test_without_a_terminal_cells_have_tabs_between(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(Table(HEADINGS, LINES))
    assert [line.split("\t") for line in capsys.readouterr().out.splitlines()] == [[*HEADINGS], *LINES]


@pytest.mark.parametrize("command", ["tools", "backends"])
def test_tables_in_a_pipe_are_rows_of_cells(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command]) == 0
    found = capsys.readouterr().out
    first, *lines = found.partition("\n\n")[0].splitlines()
    assert "\u2026" not in found
    assert len(lines) >= 1
    assert {line.count("\t") for line in lines} == {first.count("\t")}
