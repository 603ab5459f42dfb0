"""Parsing the command line: help, version, suggestions for misspelled words, completion scripts."""

import json
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import shtab

from agenticiqa.eval.cli import COMMANDS, main
from agenticiqa.programs.cli.parser import parse

PHOTO = "photo.jpg"


def ended(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Return the exit status, stdout and stderr of arguments that end the program during parsing."""
    with pytest.raises(SystemExit) as end:
        main(arguments)
    out, err = capsys.readouterr()
    assert isinstance(end.value.code, int)
    return end.value.code, out, err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["asess", PHOTO], "unknown command 'asess', did you mean assess?"),
        (["assess", PHOTO, "--quary", "Is it sharp?"], "unknown option --quary, did you mean --query?"),
        (["assess", PHOTO, "--jason"], "unknown option --jason, did you mean --json?"),
        (["assess", PHOTO, "--refrence=a.png"], "unknown option --refrence, did you mean --reference?"),
        (["assess", PHOTO, "--profile", "fats"], "argument --profile: unknown value 'fats', did you mean fast?"),
        (["tools", "--jsn"], "unknown option --jsn, did you mean --json?"),
        (["evaluate", "a.csv", "--spilt", "dev"], "unknown option --spilt, did you mean --split?"),
        (["--versoin"], "unknown option --versoin, did you mean --version?"),
        (["-v", "assess", PHOTO], "write -v after the name of the command: agenticiqa COMMAND -v"),
        (["assess", PHOTO, "--model", "gpt-4o"], "unknown option --model, did you mean --backend?"),
        (["evaluate", "a.csv", "--model=gpt-4o"], "unknown option --model, did you mean --backend?"),
        (["tools", "--model", "x"], "unknown option --model;"),
        (["assess", PHOTO, "--output", "a.json"], "unknown option --output, did you mean --jsonl?"),
        (["assess", PHOTO, "-o", "a.json"], "unknown option -o, did you mean --jsonl?"),
        (["assess", PHOTO, "--top=3"], "unknown option --top, did you mean --worst?"),
        (["assess", PHOTO, "--base-url", "http://x"], "unknown option --base-url, did you mean --api-base?"),
        (["assess", PHOTO, "--question", "Sharp?"], "unknown option --question, did you mean --query?"),
        (["assess", PHOTO, "--threads", "3"], "unknown option --threads, did you mean --workers?"),
        (["assess", PHOTO, "--xyzzy"], "unknown option --xyzzy;"),
        (["tools", "extra"], "unexpected argument 'extra'"),
        (["photo.jpg", "--json"], "to assess it, run: agenticiqa assess photo.jpg --json"),
        (["no such/my photo.WEBP"], "agenticiqa assess 'no such/my photo.WEBP'"),
        (["assess", PHOTO, "-q", "-v"], "not allowed with argument -q/--quiet"),
        (["assess"], "one of the arguments IMAGE --jobs is required"),
        (["assess", PHOTO, "--jobs", "a.jsonl"], "--jobs: not allowed with argument IMAGE"),
    ],
)
def test_wrong_usage_is_one_line_with_a_suggestion(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = ended(capsys, *arguments)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert said in err
    assert "--help" in err


def test_an_unknown_command_lists_all_commands(capsys: pytest.CaptureFixture[str]) -> None:
    _, _, err = ended(capsys, "xyzzy")
    assert "did you mean" not in err
    assert all(name in err for name in COMMANDS)


def test_no_command_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = ended(capsys)
    assert (status, out) == (2, "")
    assert "examples:" in err


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_version_prints_the_version_of_the_package(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(capsys, option) == (0, f"agenticiqa {version('agenticiqa')}\n", "")


@pytest.mark.parametrize("before", [["assess"], ["assess", "--reference"], ["measure", "niqe"], []])
def test_a_file_name_that_begins_with_a_dash_gets_a_hint(
    before: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("-vacation.jpg", "-v"):
        Path(name).touch()
    status, _, err = ended(capsys, *before, "-vacation.jpg")
    assert status == 2
    assert "write ./-vacation.jpg" in err
    assert parse(["assess", "-v", "--", "-vacation.jpg"], COMMANDS).images == ["-vacation.jpg"]


def test_the_help_lists_each_command_and_fits_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = ended(capsys, "--help")
    assert status == 0
    assert all(f"    {name} " in out for name in COMMANDS)
    examples = out[out.index("examples:") :]
    assert max(map(len, examples.splitlines())) < 100


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
    for name in (*COMMANDS, "save-maps", "mos-range", "probe"):
        assert name in out


def test_a_shell_without_a_script_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = ended(capsys, "--print-completion", "ksh")
    assert status == 2
    assert "expected bash, zsh" in err


COMPLETE = """
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_shtab_agenticiqa
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (["as"], {"assess"}),
        (["assess", "--sav"], {"--save-maps"}),
        (["assess", "--profile", ""], {"full", "fast", "levels"}),
        (["tools", "--config", "min"], {"mine.yaml"}),
        (["assess", "mi"], {"mine.yaml", "mimic"}),
        (["assess", "--save-maps", "mi"], {"mimic"}),
        (["evaluate", "mi"], {"mine.yaml", "mimic"}),
        (["calibrate", "mi"], {"mine.yaml", "mimic"}),
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
