"""Rows that a search keeps: any text comes back, and an unfinished line costs no other row."""

from pathlib import Path

from agenticiqa.eval.optimize.kept_rows import keep_row, kept_rows


def test_text_with_other_line_ends_comes_back(tmp_path: Path) -> None:
    row = {"text": "one\u2028two\x85three\nfour\r"}
    keep_row(tmp_path / "deep" / "rows.jsonl", row)
    assert [*kept_rows(tmp_path / "deep" / "rows.jsonl")] == [row]


def test_a_row_after_an_unfinished_one_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    keep_row(path, {"n": 1})
    with path.open("a", encoding="utf-8") as file:
        file.write('{"n": ')  # a killed run
    keep_row(path, {"n": 2})
    keep_row(path, {"n": 3})
    assert [*kept_rows(path)] == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_without_a_file_nothing_is_kept(tmp_path: Path) -> None:
    keep_row(None, {"n": 1})
    assert [*kept_rows(None), *kept_rows(tmp_path / "none.jsonl")] == []
