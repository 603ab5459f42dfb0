"""The card of a result on a terminal: calls, cost and sources; progress bars and tables."""

import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from agenticiqa.configs import Price
from agenticiqa.programs import AgenticIQA
from agenticiqa.programs.cli.card import card
from agenticiqa.programs.cli.printable import VERBOSITY
from agenticiqa.programs.cli.render import print_table, progress
from agenticiqa.programs.page.table import Table
from support.fake_server import by_stage, fake_server
from support.scripted_answers import RATE, SCRIPT, program_for


def shown(row: dict[str, Any]) -> str:
    """A card as text."""
    console = Console(width=110, force_terminal=False)
    with console.capture() as captured:
        console.print(card(row))
    return captured.get()


def test_a_card_shows_calls_and_cost_of_a_result_with_a_model(examples: Path) -> None:
    priced = {"price": Price(input=100.0, output=100.0)}
    with fake_server(by_stage(SCRIPT)) as server:
        program = program_for(server, planner=priced, executor=priced, summarizer=priced)
        first = shown(program(examples / "coffee_jpeg.jpg", RATE).to_dict())
        again = shown(program(examples / "coffee_jpeg.jpg", RATE).to_dict())
    assert ", 5 calls, 0.0075 USD" in first
    assert ", 0 calls and 5 from the cache" in again


def test_a_card_of_an_offline_result_has_no_calls_and_names_the_subject_of_its_tool(examples: Path) -> None:
    """The tool was chosen for compression, and rates quality as a whole."""
    row = AgenticIQA.offline()(examples / "coffee_jpeg.jpg").to_dict()
    assert "calls" not in shown(row)
    assert row["executor_evidence"]["tool_log"][0]["distortion"] == "Compression"
    assert re.search(r"LEARNED-IQA +overall quality +2\.\d+", shown(row))


def test_each_tool_has_its_weight_and_one_without_weight_stands_apart(examples: Path) -> None:
    """VIF measures the compression, and repeats better tools; the score is the mean of the other two."""
    result = AgenticIQA.offline()(examples / "coffee_jpeg.jpg", reference=examples / "coffee.webp")
    text = shown(result.to_dict())
    assert re.search(
        r"tool .* weight .*HaarPSI .* 2\.44 +89\.9 %.*DEEP-SIM .* 10\.1 %.*not in the score .*VIF .* 1\.99 +0 %",
        text,
        re.DOTALL,
    )
    on_a_page = re.sub(r"<[^>]*>", " ", result._repr_html_())
    assert re.search(r"weight.*HaarPSI.*89\.9 %.*10\.1 %.*not in the score.*VIF.*0 %", on_a_page, re.DOTALL)


def test_a_card_names_the_source_of_the_quality_levels(examples: Path) -> None:
    with fake_server(by_stage(SCRIPT)) as server:
        row = program_for(server)(examples / "coffee_jpeg.jpg").to_dict()
    assert row["probability_source"] == "quality_probs"
    assert "(levels from the log-probabilities that the model wrote)" in row["quality_reasoning"]


SHOWN_CURSOR = "\x1b[?25h"


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
@pytest.mark.parametrize(
    ("total", "verbosity", "place", "shown"),
    [
        (0, 0, "terminal", False),
        (1, 0, "terminal", True),
        (1, -1, "terminal", False),
        (1, 1, "terminal", False),  # the steps are lines
        (1, 0, "file", False),
        (1, 0, "dumb", False),
        (2, 0, "terminal", True),
        (2, -1, "terminal", False),
        (2, 1, "terminal", True),
        (2, 0, "file", False),
    ],
)
def test_progress_is_shown_on_a_terminal(
    total: int, verbosity: int, place: str, shown: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """FORCE_COLOR colors what a file gets, but a file needs no animation."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb" if place == "dumb" else "xterm-256color")
    ours, theirs = os.openpty()
    token = VERBOSITY.set(verbosity)
    with open(tmp_path / "err" if place == "file" else theirs, "w", encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        for item in progress(range(total), total, "counting"):
            print(f"item {item}", file=sys.stderr)
        stream.write("end\n")
        stream.flush()
        written = (tmp_path / "err").read_text() if place == "file" else ""
        while "end" not in written:  # a terminal delivers in parts
            written += os.read(ours, 10_000).decode()
    os.close(ours)
    VERBOSITY.reset(token)
    assert ("counting" in written) is shown
    assert shown or written.splitlines() == [*(f"item {item}" for item in range(total)), "end"], "not a byte more"
    if shown and total == 1:
        assert SHOWN_CURSOR in written.partition("item 0")[0], "the spinner ends before the result is printed"


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_a_bar_counts_the_size_of_items_also_without_a_total(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    ours, theirs = os.openpty()
    with open(theirs, "w", encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        assert [*progress(["a", "bcd"], None, size=len)] == ["a", "bcd"]
    assert b"4/?" in os.read(ours, 10_000)
    os.close(ours)


FINDING = "moderate compression artifacts, top left"
CAVEAT = "model and tools differ by 1.4 levels"


@pytest.mark.parametrize("columns", [48, 60, 80, 110])
@pytest.mark.parametrize(
    ("images", "caveat"),
    [
        (["album/IMG_4064.JPG", "album/IMG_4065.JPG"], ""),
        (["holidays/2024/italy/IMG_4064.JPG", "b.png"], CAVEAT),
        (["holidays/2024/日本語の写真.jpg"], CAVEAT),
    ],
    ids=["short", "folders", "wide letters"],
)
def test_a_table_breaks_no_word_and_shows_no_empty_column(
    columns: int,
    images: list[str],
    caveat: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in {"TTY_COMPATIBLE": "1", "COLUMNS": str(columns), "TERM": "xterm", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    headings = ("score", "80 % interval", "image", "main finding", "caveat")
    print_table(Table(headings, [["3.21", "", image, FINDING, caveat] for image in images]))
    shown = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    heading, *lines = shown.splitlines()
    assert max(map(cell_len, (heading, *lines))) <= columns
    assert "interval" not in shown
    assert ("caveat" in shown) is bool(caveat)
    assert {Path(image).name for image in images} <= {word.rpartition("/")[2] for word in shown.split()}
    assert {*FINDING.split(), *caveat.split()} <= set(shown.split())
    if columns == 110 and not caveat:
        assert len(lines) == len(images), "nothing is wrapped where there is room"
        assert all(image in shown for image in images)
