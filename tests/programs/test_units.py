"""Raw values are shown beside the mapped ones with their unit: in JSON, HTML, pictures and terminals."""

import io
from pathlib import Path

import matplotlib.figure
import pytest
from rich.console import Console

from agenticiqa.programs import AgenticIQA, draw_assessment
from agenticiqa.programs.cli.card import card
from agenticiqa.programs.cli.main import main
from agenticiqa.programs.result import Assessment
from agenticiqa.programs.tools.tool import with_unit


@pytest.fixture(scope="module")
def result(examples: Path) -> Assessment:
    question = "Rate it with PSNR, please."
    return AgenticIQA.offline()(examples / "coffee_jpeg.jpg", question, reference=examples / "coffee.webp")


def test_a_result_has_the_unit_of_a_raw_value(result: Assessment) -> None:
    call, _ = result.to_dict()["executor_evidence"]["tool_log"]  # the second is there to compare with
    assert (call["tool"], call["unit"]) == ("PSNR", "dB")
    assert 20 < call["raw"] < 40
    assert 1 <= call["calibrated"] <= 5


def test_a_terminal_card_shows_value_and_unit(result: Assessment) -> None:
    console = Console(width=110, force_terminal=False, file=io.StringIO())
    with console.capture() as captured:
        console.print(card(result.to_dict()))
    call, _ = result.executor_evidence.tool_log
    row = next(line for line in captured.get().splitlines() if line.startswith("│ PSNR"))
    assert f"{call.raw:.4g} dB  {call.calibrated:.2f}" in row


@pytest.mark.slow
def test_html_and_picture_show_the_unit(result: Assessment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call, _ = result.executor_evidence.tool_log
    assert f"{call.raw:.4g} dB" in result._repr_html_()
    written: list[str] = []
    write = matplotlib.figure.Figure.text
    monkeypatch.setattr(
        matplotlib.figure.Figure,
        "text",
        lambda self, x, y, s, **more: written.append(s) or write(self, x, y, s, **more),
    )
    draw_assessment(result, tmp_path / "card.png")
    assert f"{call.raw:.4g} dB" in written


def test_the_list_of_tools_names_units(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tools", "--json"]) == 0
    assert '"unit": "dB"' in capsys.readouterr().out


def test_a_plain_number_has_no_unit() -> None:
    assert with_unit(0.65559, None) == "0.6556"
    assert with_unit(100.0, "dB") == "100 dB"
