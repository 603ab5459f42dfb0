"""Parsing the command line: help, version, suggestions for misspelled words, completion scripts."""

import json
import shutil
import subprocess
import sys
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import shtab

from agenticiqa.eval.cli import COMMANDS, main
from agenticiqa.programs.cli.parser import parse
from agenticiqa.programs.cli.status import USAGE

PHOTO = "photo.jpg"


def ended(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Return the exit status, stdout and stderr of arguments that end the program during parsing."""
    with pytest.raises(SystemExit) as end:
        main(arguments)
    out, err = capsys.readouterr()
    assert isinstance(end.value.code, int)
    return end.value.code, out, err


def test_no_command_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = ended(capsys)
    assert (status, out) == (2, "")
    assert "examples:" in err


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_version_prints_the_version_of_the_package(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(capsys, option) == (0, f"agenticiqa {version('agenticiqa')}\n", "")


def test_the_help_lists_each_command_and_fits_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = ended(capsys, "--help")
    assert status == 0
    assert all(f"    {name} " in out for name in COMMANDS if " " not in name)
    examples = out[out.index("examples:") :]
    assert max(map(len, examples.splitlines())) < 100


def test_the_help_of_a_group_lists_its_commands_and_not_their_options(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = ended(capsys, "calibrate", "--help")
    assert status == 0
    for name in ("adapter", "fusion"):
        assert f"    {name} " in out
        assert "--out FILE" in ended(capsys, "calibrate", name, "--help")[1]
    assert len(out.splitlines()) < 20
    assert "--out" not in out


def test_help_and_version_load_no_model_code() -> None:
    code = (
        "import sys\nfrom agenticiqa.eval.cli import main\n"
        "try:\n    main([sys.argv[1]])\nexcept SystemExit:\n    pass\n"
        "print(sorted({'dspy', 'numpy', 'pydantic', 'rich', 'PIL'} & set(sys.modules)))"
    )
    for option in ("--help", "--version"):
        done = subprocess.run([sys.executable, "-c", code, option], capture_output=True, text=True, timeout=60)
        assert done.stdout.splitlines()[-1] == "[]", done.stderr


@pytest.mark.slow  # tests/programs/face runs `python -m agenticiqa assess`
def test_python_m_works_like_the_command() -> None:
    outcomes = []
    for command in (["-m", "agenticiqa"], ["-c", "import sys; from agenticiqa.__main__ import main; main()"]):
        done = subprocess.run([sys.executable, *command, "tools", "--json"], capture_output=True, text=True, timeout=60)
        outcomes.append((done.returncode, [row["name"] for row in json.loads(done.stdout)]))
    assert outcomes[0] == outcomes[1]
    assert outcomes[0][0] == 0


@pytest.mark.parametrize("shell", shtab.SUPPORTED_SHELLS)
def test_a_completion_script_has_commands_and_options(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = ended(capsys, "--print-completion", shell)
    assert (status, err) == (0, "")
    for word in (*" ".join(COMMANDS).split(), "save-maps", "mos-range", "probe"):
        assert word in out


COMPLETE = """
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_shtab_agenticiqa
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(
    ("words", "dest", "paths"),
    [
        (["assess", "*.png", "gone*"], "images", ["a.png", "b 1.png", "gone*"]),
        (["assess", "*.png", "--parquet", "out"], "images", ["*.png"]),
        (["gate", "*.png"], "images", ["a.png", "b 1.png"]),
        (["gate", "A.PNG"], "images", ["a.png"]),
        (["measure", "ssim", "*.png"], "words", ["ssim", "a.png", "b 1.png"]),
        (["compare", "? [1].png"], "runs", [Path("b 1.png")]),
        (["compare", "runs/*"], "runs", [Path("runs/x"), Path("runs/y")]),
        (["report", "runs/?"], "runs", [Path("runs/x"), Path("runs/y")]),
        (["evaluate", "*.csv", "koniq10k"], "tasks", [Path("l.csv"), Path("koniq10k")]),
        (["calibrate", "fusion", "*.png"], "data", [Path("a.png"), Path("b 1.png")]),
        (["calibrate", "adapter", "?.csv", "l.csv"], "labels", [Path("l.csv"), Path("l.csv")]),
        (["optimize", "?.csv", "--out", "tuned"], "labels", Path("l.csv")),
        (["optimize", "*", "--out", "tuned"], "labels", Path("*")),
        (["compare", "z*"], "runs", [Path("z*")]),
        (["assess", "--jobs", "L.CSV"], "jobs", "l.csv"),
    ],
)
def test_names_of_files_are_expanded(
    words: list[str], dest: str, paths: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.png", "b 1.png", "l.csv", "runs/x/1", "runs/y/1"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()
    _, args = parse(words, COMMANDS)
    assert getattr(args, dest) == paths


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (["as"], {"assess"}),
        (["assess", "--sav"], {"--save-maps"}),
        (["assess", "--mode", ""], {"full", "fast", "levels"}),
        (["tools", "--config", "min"], {"mine.yaml"}),
        (["assess", "mi"], {"mine.yaml", "mimic"}),
        (["assess", "--save-maps", "mi"], {"mimic"}),
        (["evaluate", "mi"], {"mine.yaml", "mimic"}),
        (["calibrate", "fu"], {"fusion"}),
        (["calibrate", "fusion", "mi"], {"mine.yaml", "mimic"}),
        (["calibrate", "adapter", "--fo"], {"--force"}),
    ],
)
def test_bash_completes_with_the_script(
    words: list[str],
    completed: set[str],
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path_factory.mktemp("completion")
    (folder / "script").write_text(ended(capsys, "--print-completion", "bash")[1])
    (folder / "mine.yaml").touch()
    (folder / "mimic").mkdir()
    command = ["bash", "-c", COMPLETE, "bash", "./script", "agenticiqa", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    assert {word.strip() for word in done.stdout.splitlines()} == completed, done.stderr


@pytest.mark.parametrize(
    "command",
    ["assess Fotos 2024", "rate Fotos 2024 --out a.html", "gate b.png Fotos 2024 c.png", "assess -q Fotos 2024"],
)
def test_a_name_that_the_shell_split_is_quoted(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Fotos 2024").mkdir()
    (tmp_path / "b.png").touch()
    with suppress(SystemExit):  # of argparse, for a command that takes one name
        assert main(command.split()) == USAGE
    assert "Fotos 2024: a name with blanks needs quotes: write 'Fotos 2024'" in capsys.readouterr().err


@pytest.mark.parametrize("word", ["--duplicates", "--best", "--plot", "--explain", "--plan", "--cite", "--predictions"])
def test_no_option_is_suggested_that_has_nothing_to_do_with_the_word(
    word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("assess", "evaluate", "tools", "gate"):
        assert "did you mean" not in ended(capsys, command, word)[2]
    assert "did you mean" not in ended(capsys, "Fotos")[2]


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["--output", "x.csv"], "--csv"),
        (["--output=x.HTML"], "--html"),
        (["-o", "x.md"], "--markdown"),
        (["--out", "x.parquet"], "--parquet"),
        (["--output", "x.jsonl"], "--jsonl"),
        (["--output"], "--jsonl"),
    ],
)
def test_the_suffix_of_an_output_names_its_option(
    words: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert f"did you mean {meant}?" in ended(capsys, "assess", "a.png", *words)[2]
