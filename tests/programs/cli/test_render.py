"""The card of a result on a terminal: what it took to get it."""

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from agenticiqa.configs import Price
from agenticiqa.programs import AgenticIQA
from agenticiqa.programs.cli.card import card
from agenticiqa.programs.cli.render import progress
from support.fake_server import by_stage, fake_server
from support.judging import SCRIPT, program_for


def shown(row: dict[str, Any]) -> str:
    """A card as text."""
    console = Console(width=110, force_terminal=False)
    with console.capture() as captured:
        console.print(card(row))
    return captured.get()


def test_a_card_tells_calls_and_price_of_a_result_with_a_model(examples: Path) -> None:
    priced = {"price": Price(input=100.0, output=100.0)}
    with fake_server(by_stage(SCRIPT)) as server:
        program = program_for(server, planner=priced, executor=priced, summarizer=priced)
        first = shown(program(examples / "coffee_jpeg.jpg").to_dict())
        again = shown(program(examples / "coffee_jpeg.jpg").to_dict())
    assert ", 5 calls, 0.0075 USD" in first
    assert ", 0 calls and 5 from the cache" in again


def test_a_card_of_an_offline_result_has_no_calls(examples: Path) -> None:
    assert "calls" not in shown(AgenticIQA.offline()(examples / "coffee_jpeg.jpg").to_dict())


@pytest.mark.parametrize(("total", "terminal", "bar"), [(1, True, False), (2, True, True), (2, False, False)])
def test_a_bar_is_shown_on_a_terminal_for_more_than_one_item(
    total: int, terminal: bool, bar: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(Console, "is_terminal", terminal)
    assert list(progress(range(total), total, "counting")) == list(range(total))
    assert ("counting" in capsys.readouterr().err) is bar
