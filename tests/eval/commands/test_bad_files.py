"""Deeply nested data and impossible names are reported in one line, in every command that reads files."""

import json
import shutil
from pathlib import Path

import pytest

from agenticiqa.configs.yaml_json import json_value, yaml_value
from agenticiqa.eval.cli import main
from agenticiqa.programs.cli.status import OK, USAGE
from agenticiqa.programs.errors import ImageNotFound
from agenticiqa.programs.images.loading import size_of


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


TOO_LONG = {"a name": "z" * 300 + ".png", "a path": "/".join(["d" * 200] * 30) + "/a.png"}  # for any file system


@pytest.mark.parametrize("name", TOO_LONG.values(), ids=[*TOO_LONG])
def test_a_row_with_a_name_that_no_file_can_have_is_shown_like_the_others(
    name: str, tmp_path: Path, examples: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for copy in ("a.webp", "b.webp"):
        shutil.copy(examples / "coffee.webp", copy)
    assert main(["assess", "a.webp", "b.webp", "--jsonl", "kept.jsonl"]) == OK
    rows = [json.loads(line) for line in Path("kept.jsonl").read_text().splitlines()]
    rows[0] |= {"image": name, "reference": name, "map": name, "image_sha256": "0" * 64}
    Path("kept.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("policy.yaml").write_text("min_score: 1\n")
    for command in ("report kept.jsonl --html page.html --csv table.csv", "gate kept.jsonl --policy policy.yaml"):
        capsys.readouterr()
        assert main(command.split()) == OK
    assert name in capsys.readouterr().out
    assert name in Path("table.csv").read_text(encoding="utf-8-sig")
    assert "b.webp" in Path("page.html").read_text()


@pytest.mark.parametrize("name", TOO_LONG.values(), ids=[*TOO_LONG])
def test_a_name_that_no_file_can_have_is_a_missing_file(
    name: str, tmp_path: Path, examples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image, pairs = str(examples / "coffee.webp"), tmp_path / "pairs.csv"
    pairs.write_text(f"better,worse\n{image},{name}\n")
    with pytest.raises(ImageNotFound):
        size_of(name)
    for command, said in (
        (["gate", name], "there is no such file"),
        (["compare", image, name], "there is no such file"),
        (["report", name], "no results.jsonl found"),
        (["calibrate", "adapter", str(pairs), "--out", str(tmp_path / "a.npz")], "two different images that exist"),
        (["evaluate", str(pairs), "--root", name], "there is no such folder"),
        (["evaluate", str(pairs), "--splits", name], "file not found"),
    ):
        assert main(command) != OK
        error = capsys.readouterr().err
        assert said in error
        assert error.count("\n") == 1
