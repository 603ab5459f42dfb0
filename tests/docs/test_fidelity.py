"""The page about the paper and the specification has the clauses and differences that the tests hold."""

import pytest

from support.fidelity import BEGIN, PAGE, ROOT, page, parts
from support.recorded import RECORD


@pytest.mark.recorded
def test_the_tables_are_those_of_the_tested_scenarios(recording: bool) -> None:
    if recording:
        PAGE.write_text(page(), encoding="utf-8")
    text = PAGE.read_text(encoding="utf-8")
    assert BEGIN in text
    assert text == page(), RECORD


@pytest.mark.parametrize("name", parts())
def test_each_requirement_names_the_file_that_does_it(name: str) -> None:
    part = parts()[name]
    assert set(part["files"]) == {row["requirement"] for row in part["scenarios"]}
    assert [file for file in part["files"].values() if not (ROOT / file).is_file()] == []


@pytest.mark.parametrize("file", ["README.md", "docs/how-it-works.md", "signatures/__init__.py"])
def test_a_reader_finds_the_page_from(file: str) -> None:
    assert "fidelity.md" in (ROOT / file).read_text(encoding="utf-8")
