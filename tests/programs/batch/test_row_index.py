"""The index of a large results file saves reading, and never changes the rows that are read."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agenticiqa.programs.batch import results_file
from agenticiqa.programs.batch.results_file import Identity, ResultsFile, lacking, resume
from agenticiqa.programs.batch.row_index import outline
from agenticiqa.programs.errors import UserError
from agenticiqa.signatures.types import PARSING_FAILED

ROWS = 40


@pytest.fixture(autouse=True)
def _large_from_ten_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results_file, "FROM_BYTES", 10 * len(line(0)))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "run.jsonl"
    with ResultsFile(path) as results:
        for number in range(ROWS):
            results.append(row(number))
    return path


def row(number: int, **changes: Any) -> dict[str, Any]:
    return {"image": f"{number:04d}.png", "query": "?", "quality_score": 3.0, "text": "é" * 200} | changes


def line(number: int, **changes: Any) -> bytes:
    return f"{json.dumps(row(number, **changes), ensure_ascii=False)}\n".encode()


def index_of(file: Path) -> Path:
    return file.with_name(f"{file.name}.index")


def found(file: Path) -> list[tuple[int, str, float]]:
    """Return the rows of the file by its index, after checking the offset of each row."""
    with ResultsFile(file) as results:
        outlines = [*results.outlines()]
        assert [outline(each) for each in results.rows(offset for offset, _ in outlines)] == [o for _, o in outlines]
        assert results.length == len(outlines)
    return [(offset, each["image"], each["quality_score"]) for offset, each in outlines]


def expected(file: Path) -> list[tuple[int, str, float]]:
    offset, rows = 0, []
    for each in file.read_bytes().splitlines(keepends=True):
        content = json.loads(each)
        rows.append((offset, content["image"], content["quality_score"]))
        offset += len(each)
    return rows


def test_large_files_have_an_index_with_a_tenth_of_their_size(file: Path, tmp_path: Path) -> None:
    assert len(index_of(file).read_bytes().splitlines()) == 1 + ROWS
    assert found(file) == expected(file)
    with ResultsFile(tmp_path / "small.jsonl") as results:
        results.append(row(0))
    assert not index_of(tmp_path / "small.jsonl").exists()


def cut(file: Path) -> None:
    index_of(file).write_bytes(index_of(file).read_bytes()[:-7])


def shorter(file: Path) -> None:
    """Shorten the index as a kill between a row and its index line does, with equal times."""
    index_of(file).write_bytes(b"".join(index_of(file).read_bytes().splitlines(keepends=True)[:-3]))


def missing(file: Path) -> None:
    index_of(file).unlink()


def garbage(file: Path) -> None:
    index_of(file).write_bytes(os.urandom(3000))


def broken_inside(file: Path) -> None:
    lines = index_of(file).read_bytes().splitlines(keepends=True)
    index_of(file).write_bytes(b"".join([*lines[:5], b"[1, 2\n", *lines[6:]]))


def of_another_version(file: Path) -> None:
    head, _, rest = index_of(file).read_bytes().partition(b"\n")
    assert b"index" in head
    index_of(file).write_bytes(b'{"index":"0.0.1"}\n' + rest.replace(b"0001.png", b"9999.png"))


def rows_taken_out(file: Path) -> None:
    """Delete rows by hand without changing the times."""
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[5:]))
    os.utime(index_of(file))


def rows_put_in(file: Path) -> None:
    file.write_bytes(line(99) + file.read_bytes())
    os.utime(index_of(file))


def a_score_changed(file: Path) -> None:
    """Change a row in the middle without changing its size, so that only the time differs."""
    file.write_bytes(file.read_bytes().replace(b"3.0", b"4.0", 1))
    later = index_of(file).stat().st_mtime_ns + 1_000_000
    os.utime(file, ns=(later, later))


def a_row_cut_short(file: Path) -> None:
    with file.open("ab") as results:
        results.write(line(77)[:50])
    os.utime(index_of(file))


def all_replaced(file: Path) -> None:
    file.write_bytes(b"".join(line(number, quality_score=1.5) for number in range(3, 30)))
    os.utime(index_of(file))


CHANGES = [cut, shorter, missing, garbage, broken_inside, of_another_version, rows_taken_out, rows_put_in]
CHANGES += [a_score_changed, a_row_cut_short, all_replaced]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_damaged_index_never_changes_the_rows(file: Path, change: Callable[[Path], None]) -> None:
    change(file)
    assert found(file) == expected(file)
    with ResultsFile(file) as results:
        results.append(row(500))
    assert found(file) == expected(file)
    assert found(file)[-1][1] == "0500.png"


def test_only_rows_missing_in_the_index_are_read_again(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shorter(file)
    read: list[bytes] = []
    parsed = results_file._row
    monkeypatch.setattr(results_file, "_row", lambda data: read.append(data) or parsed(data))  # type: ignore[func-returns-value]
    assert found(file) == expected(file)
    assert len(read) == 3


def test_an_index_that_cannot_be_written_is_not_used(tmp_path: Path) -> None:
    index_of(tmp_path / "run.jsonl").mkdir()
    with ResultsFile(tmp_path / "run.jsonl") as results:
        for number in range(ROWS):
            results.append(row(number))
        assert len([*results.outlines()]) == ROWS
    assert found(tmp_path / "run.jsonl") == expected(tmp_path / "run.jsonl")


def test_a_file_that_is_not_a_results_file_gets_no_index(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_bytes(line(0) * 20 + b"image,mos\n")
    with pytest.raises(UserError, match="line 21 is not a JSON object"):
        ResultsFile(path)
    assert [each.name for each in tmp_path.iterdir()] == ["labels.csv"]


def test_rewritten_rows_get_a_new_index(file: Path) -> None:
    with ResultsFile(file) as results:
        results.rewrite({**each, "quality_score": 1.0} for each in results.read().values())
        results.append(row(600))
        assert [each["quality_score"] for _, each in results.outlines()] == [1.0] * ROWS + [3.0]
    assert found(file) == expected(file)


@pytest.mark.parametrize(
    "result",
    [
        {"query_type": "scoring", "quality_score": None},
        {"query_type": "scoring", "quality_score": 3.0, "probability_source": "salvaged_level"},
        {"query_type": "scoring", "quality_score": 3.0, "executor_evidence": {"failures": {"a": "b"}, "notes": ["c"]}},
        {"query_type": "scoring", "quality_score": 3.0, "executor_evidence": {"failures": {}, "notes": ["c"]}},
        {"query_type": "mcq", "quality_reasoning": PARSING_FAILED},
        {"query_type": "mcq", "quality_reasoning": "It is soft.", "executor_evidence": None},
        {"query_type": "explanation", "query": "Rate it.", "rejected_answers": {"planner": ["no", "no", "no"]}},
    ],
)
def test_an_outline_lacks_what_the_row_lacks(result: dict[str, Any]) -> None:
    assert lacking(outline(result)) == lacking(result)


def test_resuming_from_outlines_equals_resuming_from_rows(file: Path) -> None:
    def identify(each: dict[str, Any]) -> Identity:
        return Identity(each["image"], None, None, None, each["query"], None)

    with ResultsFile(file) as results:
        results.append(row(3, quality_score=5.0))
        wanted = {number: identify(row(number)) for number in (3, 7, 90)}
        resumed = resume(results.outlines(), wanted, identify)
        assert [each["quality_score"] for each in results.rows(resumed.finished.values())] == [5.0, 3.0]
    assert list(resumed.finished) == [3, 7]
