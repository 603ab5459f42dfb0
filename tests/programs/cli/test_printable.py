"""Text of a model, a server or a question cannot move the cursor of a terminal, wherever it is printed."""

import json
import re
from pathlib import Path

import pytest

from agenticiqa.programs.cli.main import main
from agenticiqa.programs.cli.printable import all_printable, json_text, print_note, print_text, printable
from support.fake_server import by_stage, fake_server
from support.full_run import configuration
from support.loopback import Reply
from support.scripted_answers import ASSESSMENT, SCRIPT

EVIL = "Soft\x1b]0;owned\x07 \x9b2J \u202e edges."
UNFIT = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")


def test_line_breaks_and_letters_of_all_scripts_are_kept() -> None:
    assert printable("größer\n図\x1b[2J") == "größer\n図 [2J"
    assert all_printable({"a": ["\x07", 1.5, None]}) == {"a": [" ", 1.5, None]}
    assert json.loads(json_text({"größer": EVIL})) == {"größer": EVIL}
    assert not UNFIT.search(json_text({"größer": EVIL}))


@pytest.mark.parametrize(
    ("arguments", "terminal"),
    [([], "0"), ([], "1"), (["--json"], "1"), (["--jsonl", "-"], "1"), (["-vv"], "0"), (["-vv"], "1")],
    ids=" ".join,
)
def test_text_of_a_model_is_made_harmless(
    arguments: list[str],
    terminal: str,
    tmp_path: Path,
    examples: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {"TTY_COMPATIBLE": terminal, "NO_COLOR": "1", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)
    script = {**SCRIPT, "assessment": {**ASSESSMENT, "quality_reasoning": EVIL}}
    with fake_server(by_stage(script)) as server:
        config = configuration(tmp_path, server.url)
        assert main(["assess", str(examples / "coffee.webp"), "--config", str(config), "--no-cache", *arguments]) == 0
    shown = capsys.readouterr()
    assert "edges." in shown.out or (terminal == "0" and shown.out.count("\t") == 2)
    assert not UNFIT.search(shown.out.replace("\t", " ") + shown.err)


def test_text_of_a_server_is_made_harmless(tmp_path: Path, examples: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refusal = Reply(status=401, raw_body=json.dumps({"error": {"message": EVIL}}).encode())
    with fake_server(refusal) as server:
        config = configuration(tmp_path, server.url)
        assert main(["assess", str(examples / "coffee.webp"), "--config", str(config)]) == 1
    shown = capsys.readouterr()
    assert "edges; no key was sent" in shown.err
    assert not UNFIT.search(shown.out + shown.err)


@pytest.mark.parametrize("command", ["assess PHOTO --dry-run", "backends"])
def test_a_model_name_of_a_configuration_is_made_harmless(
    command: str, tmp_path: Path, examples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "evil.json").write_text(json.dumps({"backend": f"vllm.{EVIL}", "api_base": "http://127.0.0.1:9/v1"}))
    words = command.replace("PHOTO", str(examples / "coffee.webp")).split()
    assert main([*words, "--config", str(tmp_path / "evil.json")]) == 0
    shown = capsys.readouterr()
    assert "Soft ]0;owned" in shown.out + shown.err
    assert not UNFIT.search(shown.out.replace("\t", " ") + shown.err)


def test_notes_and_lines_of_commands_are_made_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    print_note(EVIL)
    print_text(f"a\n{EVIL}")
    shown = capsys.readouterr()
    assert shown.out.startswith("a\nSoft ]0;owned")
    assert not UNFIT.search(shown.out + shown.err)
