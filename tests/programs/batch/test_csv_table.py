"""Tables of other programs are read completely, and text that would lose rows is an error with its line."""

import csv
import io

import pytest

from agenticiqa.programs.batch.csv_table import read_csv


def rows(text: str) -> list[list[str]]:
    table = read_csv(io.StringIO(text, newline=""), "t.csv")
    return [table.columns, *(list(row.values()) for _, row in table.rows)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", [[]]),
        ("a,b\r\n1,2\r\n\r\n", [["a", "b"], ["1", "2"]]),
        (" a ; b\n1,5 ;x, y\n", [["a", "b"], ["1.5", "x, y"]]),
        ('"a;x",b\n1,2\n', [["a;x", "b"], ["1", "2"]]),
        ("a\tb\n1,5\t-2,25\n", [["a", "b"], ["1.5", "-2.25"]]),
        ('a,b\n"1,5",2\n', [["a", "b"], ["1,5", "2"]]),
        ("sep=;\r\na;b\r\n1,5;x\r\n", [["a", "b"], ["1.5", "x"]]),
        ('"SEP=,";\na;x,b\n1,2\n', [["a;x", "b"], ["1", "2"]]),
        ("sep=\t\na\tb\n1\t2\n", [["a", "b"], ["1", "2"]]),
        ("a|b\n1|2\n", [["a", "b"], ["1", "2"]]),
        ("a,a\n1,2\n", [["a", "a.2"], ["1", "2"]]),
        ("a,b,c\n1\n", [["a", "b", "c"], ["1", "", ""]]),
        ('a,b\n1, "x, y"\n', [["a", "b"], ["1", "x, y"]]),
        ('a,b\n1,12" lens\n', [["a", "b"], ["1", '12" lens']]),
        (
            'a,b\n1,"say ""hi"", and\n2 more lines\n"\n3,4\n',
            [["a", "b"], ["1", 'say "hi", and\n2 more lines'], ["3", "4"]],
        ),
        ('a,"b\n(c)"\n1,2\n', [["a", "b\n(c)"], ["1", "2"]]),
    ],
)
def test_tables_are_read_completely(text: str, expected: list[list[str]]) -> None:
    assert rows(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('i,m,n\na.png,1,\nb.png,2,"x\nc.png,3,\n', "line 3: a quotation mark .* is misplaced or not closed"),
        ('i,m,n\na.png,1,"12" lens"\n', "line 2: a quotation mark .* is misplaced or not closed"),
        ("sep=,\ni,m\na.png,3,5\n", "line 3: 3 cells, but the header has 2"),
        ("i,m\na.png,3,5\n", "line 2: 3 cells, but the header has 2"),
    ],
)
def test_text_that_would_lose_a_row_is_an_error_with_its_line(text: str, message: str) -> None:
    with pytest.raises(csv.Error, match=message):
        rows(text)


def test_rows_without_text_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    assert rows("a,b\n,\n1,2\n\n , \n") == [["a", "b"], ["1", "2"]]
    assert "t.csv: 2 rows have only empty cells and are skipped" in caplog.text
