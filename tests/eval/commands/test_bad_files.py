"""Deeply nested data is reported in one line as an error of the file, in every command that reads files."""

from pathlib import Path

import pytest

from agenticiqa.configs.reading import json_value, yaml_value
from agenticiqa.eval.cli import main
from agenticiqa.programs.cli.status import USAGE

DEEP = "[" * 3000 + "]" * 3000


@pytest.mark.parametrize(
    "words",
    [
        ["assess", "PHOTO", "--config", "FILE"],
        ["assess", "PHOTO", "--prompts", "FILE"],
        ["assess", "--jobs", "FILE"],
        ["gate", "PHOTO", "--policy", "FILE"],
        ["compare", "FOLDER", "FOLDER"],
        ["report", "FOLDER"],
        ["calibrate", "FILE", "--tool", "NIQE", "--out", "OUT"],
        ["evaluate", "FILE"],
    ],
    ids=lambda words: " ".join(words[:1] + words[-2:-1]),
)
def test_deeply_nested_files_are_reported_in_one_line(
    words: list[str],
    tmp_path: Path,
    examples: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("deep.jsonl", "results.jsonl", "report.json", "run.json"):
        (tmp_path / name).write_text(DEEP)
    at = {"PHOTO": str(examples / "coffee.webp"), "FILE": "deep.jsonl", "FOLDER": str(tmp_path), "OUT": "out.yaml"}
    assert main([at.get(word, word) for word in words]) == USAGE
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert len(shown) < 700


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
