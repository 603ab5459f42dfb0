"""Every scenario of the specification has a test, and every test here has a scenario."""

import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

HERE = Path(__file__).resolve().parent
TEXTS = HERE.parents[2] / "shared" / "spec"
COUNTS = {"summarizer-core": 27, "summarizer-core-delta": 12, "planner-core": 14, "summarizer-state-models": 15}
# Tests without a scenario: those of this table and of the architecture document.
EXTRAS = {"test_scenarios.py", "test_architecture.py"}


class Scenario(NamedTuple):
    document: str
    requirement: str
    title: str
    test: str
    file: str
    settled: str | None


@cache
def parts() -> dict[str, dict[str, Any]]:
    return yaml.safe_load((HERE / "scenarios.yaml").read_text(encoding="utf-8"))


def scenarios() -> list[Scenario]:
    return [
        Scenario(name, row["requirement"], row["scenario"], row["test"], part["tests"], row.get("settled"))
        for name, part in parts().items()
        for row in part["scenarios"]
    ]


def table() -> str:
    """Return the scenarios as aligned lines of document, scenario and test."""
    rows = [("document", "scenario", "test"), *((row.document, row.title, row.test) for row in scenarios())]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def name_of(row: Scenario, shared: bool) -> str:
    """Return the name of a test: the title in snake case, after the part if two parts share the title."""
    words = re.sub(r"[^a-z0-9_]+", "_", row.title.lower().replace("'", "")).strip("_")
    return f"test_{row.document.replace('-', '_')}_{words}" if shared else f"test_{words}"


def collected(session: pytest.Session, path: Path) -> list[pytest.Function]:
    """Return the test functions that pytest finds in a file."""
    found = pytest.Module.from_parent(session, path=path).collect()
    return [item for item in found if isinstance(item, pytest.Function)]


def test_the_list_has_each_parts_number_of_scenarios() -> None:
    """27, 12, 14 and 15 make 68, and each is listed once."""
    rows = scenarios()
    assert Counter(row.document for row in rows) == COUNTS, table()
    assert len(rows) == 68
    assert len({(row.document, row.title) for row in rows}) == len({row.test for row in rows}) == 68, table()
    assert all(row.requirement and (row.settled is None or row.settled.endswith(".")) for row in rows)


def test_each_test_is_named_after_its_scenario() -> None:
    """The name of a test follows from the title of its scenario."""
    titles = Counter(row.title for row in scenarios())
    misnamed = {row.test: name_of(row, titles[row.title] > 1) for row in scenarios()}
    assert {was: should for was, should in misnamed.items() if was != should} == {}


def test_each_scenario_has_a_test_that_runs_and_each_test_a_scenario(request: pytest.FixtureRequest) -> None:
    """Pytest collects exactly the listed tests from the file of each document, and skips none."""
    for part in parts().values():
        items = collected(request.session, HERE / part["tests"])
        listed = {row.test for row in scenarios() if row.file == part["tests"]}
        assert {item.originalname for item in items} == listed, f"{part['tests']} differs from the list:\n{table()}"
        for item in items:
            assert (item.function.__doc__ or "").endswith("."), f"{item.name} has no docstring that ends with a period"
            for name in ("skip", "skipif", "xfail"):
                assert item.get_closest_marker(name) is None, f"{item.name} is skipped by {name}"
        assert "skip(" not in (HERE / part["tests"]).read_text(encoding="utf-8"), "a test skips itself"
    files = {path.name for path in HERE.glob("test_*.py")}
    assert files == EXTRAS | {part["tests"] for part in parts().values()}


def test_the_titles_are_those_of_the_specification() -> None:
    """The list has the titles of the specification in their order; the architecture has no scenario."""
    if not TEXTS.is_dir():
        pytest.skip(f"no specification at {TEXTS}")
    texts = {path.name.partition("_")[0]: path.read_text(encoding="utf-8") for path in TEXTS.glob("*.txt")}
    said = {number: re.findall(r"^#### Scenario: (.+?)\s*$", text, re.M) for number, text in texts.items()}
    listed = {part["text"]: [row["scenario"] for row in part["scenarios"]] for part in parts().values()}
    assert {number: titles for number, titles in said.items() if titles} == listed
