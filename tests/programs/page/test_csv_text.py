"""CSV: no cell is a formula, no number is changed, and no control character remains."""

import csv
import io
import re
from pathlib import Path

import pytest

from agenticiqa.programs.cli.main import main
from agenticiqa.programs.cli.status import OK
from agenticiqa.programs.page.csv_text import RAW_CSV, csv_text
from agenticiqa.programs.page.render import render
from agenticiqa.programs.pictures.canvas import drawable

FORMULAS = [
    "=1+1",
    "+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    " =1",
    "＝1",
    "＋1",
    "\nx",
    "-1.5 dB",
    "- a",
]
PLAIN = [-1.5, "-1.5", "+2e3", "-inf", "-", "1-2", "a=b", "", None, 3, True, 'größer, "x"\ny']


def cells(text: str) -> list[str]:
    return [row[0] for row in csv.reader(io.StringIO(text, newline=""))]


def test_formulas_get_an_apostrophe_and_numbers_do_not() -> None:
    assert cells(csv_text([[each] for each in FORMULAS])) == [f"'{each}" for each in FORMULAS]
    assert cells(csv_text([[each, "x"] for each in PLAIN])) == ["" if each is None else str(each) for each in PLAIN]
    for text in ("x;=1+1;.png", "a; +b", "a\n@x", "a;＝1"):
        start = re.search("[=+@＝]", text).start()
        assert cells(csv_text([[text]])) == [f"{text[:start]}'{text[start:]}"]
    assert csv_text([["\x1b]0;owned\x07"]]) == " ]0;owned \r\n"


def test_raw_cells_are_not_changed() -> None:
    token = RAW_CSV.set(True)
    assert cells(csv_text([[each] for each in [*FORMULAS, "\x1b"]])) == [*FORMULAS, "\x1b"]
    RAW_CSV.reset(token)


@pytest.mark.parametrize(("options", "guard"), [([], "'"), (["--raw-csv"], "")])
def test_raw_csv_is_an_option_of_a_command(
    options: list[str], guard: str, photo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / f"=1+1{photo.suffix}").write_bytes(photo.read_bytes())
    assert main(["measure", "rms-contrast", f"=1+1{photo.suffix}", "--csv", "t.csv", *options]) == OK
    assert cells((tmp_path / "t.csv").read_text("utf-8-sig"))[1] == f"{guard}=1+1{photo.suffix}"


def test_pages_and_pictures_have_no_control_characters() -> None:
    page = render("page/sheet.html", {"title": "a\x1b\x07b", "script": "", **dict.fromkeys(EMPTY, ())})
    assert "a  b" in page
    assert not {"\x1b", "\x07"} & {*page}
    assert drawable("a\x1b\x07b\nc\u200bd") == "a  b\nc d"


EMPTY = ("groups", "failed", "levels", "cards")
