"""Every command that makes a table writes it in every form, and only one output goes to stdout."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from agenticiqa.configs.options import Option, Writes, options_of
from agenticiqa.eval.cli import COMMANDS, main
from agenticiqa.programs.cli.arguments import OVERVIEW, AssessOptions, TableOptions
from agenticiqa.programs.cli.status import OK, USAGE
from agenticiqa.programs.cli.views import View, print_tables
from agenticiqa.programs.page.forms import FORMS, comma_separated, latex, markdown
from agenticiqa.programs.page.table import UNDEFINED, Cell, Table, data_table, number
from support.html_tags import from_elsewhere
from support.options import with_option

COMMAND_LINES = {
    "assess": ["assess", "album"],
    "gate": ["gate", "album"],
    "measure": ["measure", "niqe", "album"],
    "compare": ["compare", "album/a.png", "album/b.png"],
    "tools": ["tools"],
    "backends": ["backends"],
    "datasets": ["datasets"],
}
ODD = 'a | b,#1: "x" & {y}_$z%.png'  # what CSV, Markdown and LaTeX read as syntax


def _of_latex(text: str) -> list[str]:
    """Return the first cells of a table in LaTeX, as they are printed."""
    cells = [re.split(r"(?<!\\) & ", line)[0] for line in text.splitlines() if line.endswith(r"\\")]
    return [re.sub(r"\\([&%_#${}])", r"\1", cell.replace("$|$", "|").replace("''", '"')) for cell in cells]


def _of_markdown(text: str) -> list[str]:
    cells = [re.split(r"(?<!\\) \| ", line.removeprefix("| "))[0] for line in text.splitlines() if line.startswith("|")]
    return [unescape(cell.replace(r"\|", "|")) for cell in cells if cell != "---"]


# How a reader of each form reads the first column, with its heading.
FIRST_COLUMN: dict[str, Callable[[str], list[str]]] = {
    "csv": lambda text: [line[0] for line in csv.reader(io.StringIO(text))],
    "markdown": _of_markdown,
    "latex": _of_latex,
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an album of two photos."""
    folder = tmp_path_factory.mktemp("views")
    (folder / "album").mkdir()
    for number_, name in enumerate("ab"):
        noise = np.random.default_rng(number_).integers(0, 255, (96, 96, 3), np.uint8)
        Image.fromarray(noise).save(folder / f"album/{name}.png")
    return folder


@pytest.mark.parametrize("words", COMMAND_LINES.values(), ids=COMMAND_LINES)
def test_a_command_writes_its_table_in_every_form(
    words: list[str], place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    files = [f"--{name}" for name in ("csv", *FORMS)]
    written = [*words, "--html", "t.html", *(word for flag in files for word in (flag, f"t{flag}"))]
    main(written)
    assert from_elsewhere(Path("t.html").read_text()) == []
    assert "<table" in Path("t.html").read_text() or words[0] in ("assess", "gate"), "these two show cards"
    assert "The table was written to t--csv\n" in capsys.readouterr().err
    for flag in files:
        text = Path(f"t{flag}").read_text(encoding="utf-8-sig")
        assert len(FIRST_COLUMN[flag.removeprefix("--")](text)) > 2
        main([*words, flag, "-"])
        printed = capsys.readouterr().out
        assert printed.startswith(text.splitlines()[0]), "a file and - have the same text"
    assert not Path("-").exists()
    main([*words, "--json"])
    json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("words", COMMAND_LINES.values(), ids=COMMAND_LINES)
def test_two_outputs_on_stdout_are_refused(
    words: list[str], place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    assert main([*words, "--markdown", "-", "--csv", "-"]) == USAGE
    assert "--csv - and --markdown - both print to stdout: leave one out, or give --csv a" in capsys.readouterr().err
    assert main([*words, "--json", "--latex", "-"]) == USAGE
    assert "--json and --latex - both print to stdout: leave one out, or give --latex a" in capsys.readouterr().err


def test_a_row_and_an_option_are_a_new_form(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def listing(tables: Iterable[Table]) -> str:
        return "".join(f"- {line[0]}\n" for table in tables for line in table.lines)

    monkeypatch.chdir(place)
    added = Option("--listing FILE", "write a list", writes=Writes.FILE)
    for name in ("assess", "tools"):
        monkeypatch.setitem(COMMANDS, name, with_option(COMMANDS[name], added))
    monkeypatch.setitem(FORMS, "listing", listing)
    for words in (["assess", "album"], ["tools"]):
        assert main([*words, "--listing", "-"]) == OK
        shown = capsys.readouterr().out
        assert main([*words, "--listing", "t.txt"]) == OK
        assert "The table was written to t.txt" in capsys.readouterr().err
        assert shown == Path("t.txt").read_text() != ""
        assert main([*words, "--listing", "-", "--json"]) == USAGE


def test_every_form_has_its_option_and_the_reverse() -> None:
    assert {option.name for option in options_of(TableOptions) if option.writes} == {"json", "html", "csv", *FORMS}
    have = {name for name, command in COMMANDS.items() if issubclass(command.arguments, TableOptions)}
    assert have == {*COMMAND_LINES, "batches", "report"}
    others = {option.name for name in COMMANDS.keys() - have for option in COMMANDS[name].options}
    assert not others & {"csv", *FORMS}, "a command has all of them or none"


def test_every_form_has_a_reader_that_reads_an_odd_name() -> None:
    table = Table(("image", "n"), [[ODD, number(1, "d")], ["c.png", number(2, "d")]])
    assert FIRST_COLUMN.keys() == {"csv", *FORMS}, "add how its reader reads the first column"
    for name, form in FORMS.items():
        assert FIRST_COLUMN[name](form([table.printable])) == ["image", ODD, "c.png"], name


def test_assess_has_each_form_among_its_overviews_and_with_shards() -> None:
    forms = [option for option in options_of(AssessOptions) if option.name in ("html", "csv", "raw_csv", *FORMS)]
    assert [option.name for option in forms if option.groups != (OVERVIEW,)] == [], "declare it in AssessOptions, too"
    assert [option.name for option in forms if not option.with_shards] == []


@pytest.mark.parametrize("name", FORMS)
def test_a_form_has_no_control_characters_of_names_and_a_row_for_each_line(name: str) -> None:
    odd = Table(("image", "n"), [["a|b\n\x1b[31m&_.png", number(1, "d")], ["c.png", number(2, "d")]])
    plain = Table(("image", "n"), [["a.png", number(1, "d")], ["c.png", number(2, "d")]])
    text = FORMS[name]([odd.printable])
    assert "\x1b" not in text
    assert text.count("\n") == FORMS[name]([plain]).count("\n")


def test_the_page_about_tables_lists_every_form() -> None:
    page = (Path(__file__).parents[3] / "docs/albums.md").read_text(encoding="utf-8")
    assert [name for name in FORMS if f"| `--{name} FILE` |" not in page] == []


def test_cells_keep_their_values() -> None:
    interval = Cell("0.81 [0.79, 0.83]", {"": 0.8123, "low": 0.79, "high": 0.83})
    table = Table(("name", "n", "SRCC"), [["a|b", number(1200, ","), interval], ["-", UNDEFINED, UNDEFINED]], "A title")
    assert [*csv.reader(io.StringIO(comma_separated(table)))] == [
        ["name", "n", "SRCC", "SRCC low", "SRCC high"],
        ["a|b", "1200", "0.8123", "0.79", "0.83"],
        ["-", "", "", "", ""],  # the name of stdin is a text, not an undefined value
    ]
    assert table.records[0] == {"name": "a|b", "n": 1200, "SRCC": 0.8123, "SRCC low": 0.79, "SRCC high": 0.83}
    assert table.numeric == [False, True, True]
    assert markdown([table]).splitlines()[2:] == [
        "| name | n | SRCC |",
        "| --- | --- | --- |",
        r"| a\|b | 1,200 | 0.81 [0.79, 0.83] |",
        "| - | - | - |",
    ]
    assert r"\begin{tabular}{lrr}" in latex([table])
    assert data_table(("a",), [[None], [True], ["x"]]).records == [{"a": None}, {"a": True}, {"a": "x"}]


def test_an_empty_table_has_its_headings(capsys: pytest.CaptureFixture[str]) -> None:
    empty = Table(("image", "score"), [])
    assert comma_separated(empty) == "image,score\r\n"
    assert markdown([empty]) == "| image | score |\n| --- | --- |\n"
    assert empty.records == []
    print_tables(View([empty]))
    assert capsys.readouterr().out == "image\tscore\n"
