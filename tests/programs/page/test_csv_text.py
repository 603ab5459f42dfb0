"""CSV: no cell is a formula, no number is changed, and no control character remains."""

import base64
import csv
import gzip
import io
import json
import re
from pathlib import Path

import pytest

from agenticiqa.eval.labels.own_data import read_labels
from agenticiqa.eval.report.page.samples import packed
from agenticiqa.programs.batch.find_jobs import read_jobs
from agenticiqa.programs.cli.main import main
from agenticiqa.programs.cli.status import OK
from agenticiqa.programs.page.csv_text import RAW_CSV, csv_text
from agenticiqa.programs.page.render import render
from agenticiqa.programs.pictures.canvas import drawable
from support.odd_names import FORMULAS, HIDDEN, ODD_NAMES

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


@pytest.mark.parametrize("text", HIDDEN)
def test_a_formula_behind_a_control_character_gets_an_apostrophe(text: str) -> None:
    assert cells(csv_text([[text]])) == [HIDDEN[text]]


def test_the_files_of_a_table_are_found_by_the_names_that_it_has(tmp_path: Path) -> None:
    for name in ODD_NAMES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name, "utf-8", "surrogateescape")
    text = csv_text([("image", "mos"), *((name, 3) for name in ODD_NAMES)])
    (tmp_path / "labels.csv").write_text(text, "utf-8")
    assert [label.image for label in read_labels(tmp_path / "labels.csv")] == [tmp_path / name for name in ODD_NAMES]
    jobs = read_jobs(str(tmp_path / "labels.csv"), "q").jobs
    assert [job.image for job in jobs] == [tmp_path / name for name in ODD_NAMES]


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
    token = RAW_CSV.set(False)
    assert main(["measure", "rms-contrast", f"=1+1{photo.suffix}", "--csv", "t.csv", *options]) == OK
    RAW_CSV.reset(token)
    assert cells((tmp_path / "t.csv").read_text("utf-8-sig"))[1] == f"{guard}=1+1{photo.suffix}"


def test_pages_and_pictures_have_no_control_characters() -> None:
    page = render("page/sheet.html", {"title": "a\x1b\x07b\u202ec\u2028d", "script": "", **dict.fromkeys(EMPTY, ())})
    assert "a  b c d" in page
    assert not {"\x1b", "\x07", "\u202e", "\u2028"} & {*page}
    columns = gzip.decompress(base64.b64decode(packed({"image": ["a\u202eb", "c\ud800"]})))
    assert json.loads(columns) == {"image": ["a b", "c?"]}
    assert drawable("a\x1b\x07b\nc\u200bd") == "a  b\nc d"


EMPTY = ("groups", "failed", "levels", "cards")
