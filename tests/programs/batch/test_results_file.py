"""The file of finished rows: what an interruption can leave behind, and what is never lost."""

import json
import logging
from pathlib import Path

import pytest

from agenticiqa.programs.batch.results_file import ResultsFile
from agenticiqa.programs.errors import UserError


def rows_of(path: Path) -> list[dict[str, object]]:
    with ResultsFile(path) as journal:
        return journal.rows


def test_what_is_appended_is_there_on_opening_again_in_order(tmp_path: Path) -> None:
    path = tmp_path / "new" / "run.jsonl"
    rows: list[dict[str, object]] = [{"image": "été.png", "score": 3.25}, {"image": "b\nc", "score": None}]
    with ResultsFile(path) as journal:
        assert journal.rows == []
        for row in rows:
            journal.append(row)
    assert rows_of(path) == rows
    assert len(path.read_bytes().splitlines()) == 2


def test_a_row_is_on_disk_before_the_file_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with ResultsFile(path) as journal:
        journal.append({"n": 1})
        assert json.loads(path.read_text()) == {"n": 1}


def test_what_was_there_is_kept_and_new_rows_follow(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    for number in range(3):
        with ResultsFile(path) as journal:
            journal.append({"n": number})
    assert rows_of(path) == [{"n": 0}, {"n": 1}, {"n": 2}]


WHOLE = b'{"n": 0}\n{"n": 1}\n'


@pytest.mark.parametrize("cut", [b"{", b'{"n": 2', b'{"n": 2, "x": "\xc3', b"\x00\x00"])
def test_a_last_line_cut_short_is_dropped_and_said(
    tmp_path: Path, cut: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(WHOLE + cut)
    with caplog.at_level(logging.WARNING), ResultsFile(path) as journal:
        assert journal.rows == [{"n": 0}, {"n": 1}]
        journal.append({"n": 3})
    assert path.read_bytes() == WHOLE + b'{"n": 3}\n'
    assert "cut short" in caplog.text


def test_a_whole_last_line_without_its_end_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(WHOLE + b'{"n": 2}')
    with ResultsFile(path) as journal:
        assert journal.rows[-1] == {"n": 2}
        journal.append({"n": 3})
    assert path.read_bytes() == WHOLE + b'{"n": 2}\n{"n": 3}\n'


def test_a_file_of_one_cut_line_starts_anew(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(b'{"n": ')
    assert rows_of(path) == []
    assert path.read_bytes() == b""


@pytest.mark.parametrize(
    ("content", "line"),
    [(b'{"n": 0}\nnonsense\n{"n": 2}\n', 2), (b"image,mos\na.png,3\n", 1), (b'{"n": 0}\n[1]\n', 2), (b"3\n", 1)],
)
def test_what_is_no_journal_is_refused_in_one_line_and_left_as_it_is(tmp_path: Path, content: bytes, line: int) -> None:
    path = tmp_path / "labels.csv"
    path.write_bytes(content)
    with pytest.raises(UserError, match=f"line {line} is not a JSON object") as caught:
        ResultsFile(path)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == content


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_number_that_json_has_not_is_refused_and_leaves_no_half_row(tmp_path: Path, bad: float) -> None:
    path = tmp_path / "run.jsonl"
    with ResultsFile(path) as journal:
        with pytest.raises(ValueError, match="JSON"):
            journal.append({"score": bad})
        journal.append({"score": 1.0})
    assert rows_of(path) == [{"score": 1.0}]
