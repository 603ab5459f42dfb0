"""Deeply nested data is reported in one line as an error of the file, in every command that reads files."""

from pathlib import Path

import pytest

from agenticiqa.configs.yaml_json import json_value, yaml_value
from agenticiqa.eval.cli import main
from agenticiqa.programs.cli.status import USAGE


@pytest.mark.parametrize("reader", [json_value, yaml_value])
def test_ordinary_values_are_read(reader: object) -> None:
    assert reader('{"a": [1, null]}') == {"a": [1, None]}  # type: ignore[operator]


def test_a_long_message_is_cut_and_one_printable_line(
    tmp_path: Path, examples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "c.yaml").write_text('? "' + "k\\e\\n" * 20_000 + '"\n: 1')
    assert main(["assess", str(examples / "coffee.webp"), "--config", str(tmp_path / "c.yaml")]) == USAGE
    shown = capsys.readouterr().err
    assert len(shown) <= 615
    assert shown.count("\n") == 1
    assert "characters left out" in shown
    assert "\x1b" not in shown
