"""README and docs/ are executed: every command prints what the page shows, every Python block runs alone."""

import ast
import json
import os
import re
import runpy
import shlex
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from agenticiqa.configs import load_config
from agenticiqa.configs.policy import GatePolicy
from agenticiqa.eval.cli import COMMANDS, main
from agenticiqa.programs.cli.parser import parse
from agenticiqa.programs.cli.status import BELOW, OK
from support.snippets import Snippet, commands, has_lines, matches, snippets, undefined_names

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = [block for page in PAGES for block in snippets(page)]
KINDS = {"console", "python", "yaml", "csv", "text", "json", "bash", "mermaid", "bibtex"}
OF_A_CHECKOUT = ("agenticiqa.eval.research.", "tests/")  # only in a checkout, not in the installed package


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A terminal of 100 columns without colors, in a new folder with what the pages assume: the example photos."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    if (data := ROOT.parent / "shared" / "data").is_dir():
        (tmp_path / "data").symlink_to(data)
    monkeypatch.chdir(tmp_path)
    for name, value in {"TTY_COMPATIBLE": "1", "COLUMNS": "100", "NO_COLOR": "1", "TERM": "xterm"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")  # for estimates, which send nothing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_has_a_known_kind(page: Path) -> None:
    found = snippets(page)
    assert page.read_text(encoding="utf-8").count("\n```") >= 2 * len(found)
    assert [block.name for block in found if block.kind not in KINDS] == []
    assert all(len(block.not_run) > 5 for block in found if block.not_run), "a block that is not run says why"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_python_command_runs_where_the_page_says(page: Path) -> None:
    """Check that it runs in the installed package, or in a checkout if the paragraph says so."""
    for paragraph in re.split(r"\n\n(?!```|<!-- )", page.read_text(encoding="utf-8")):
        for what in re.findall(r"python3? (?:-m )?((?:agenticiqa|tests)[.\w/]+)", paragraph):
            if what.startswith(OF_A_CHECKOUT):
                assert "checkout" in paragraph, f"{page.name}: say that {what} runs in a checkout:\n{paragraph}"
            else:
                assert find_spec(what), f"{page.name}: {what} is not installed"


def test_each_python_block_defines_what_it_uses() -> None:
    undefined = {block.name: undefined_names(block.text) for block in BLOCKS if block.kind == "python"}
    assert {name: names for name, names in undefined.items() if names} == {}


def test_commands_that_are_not_run_are_accepted() -> None:
    listed = [block.after for block in BLOCKS if block.kind == "python"]
    for block in BLOCKS:
        if block.kind == "bash" or (block.kind == "console" and (block.not_run or block.needs)):
            listed += [command for command, _ in commands(block)]
    for command in listed:
        words = shlex.split(command, comments=True)
        if words[:1] == ["agenticiqa"]:
            parse(words[1:], COMMANDS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "block",
    [block for block in BLOCKS if block.kind == "python" and not block.not_run],
    ids=lambda block: block.name,
)
@pytest.mark.usefixtures("terminal")
def test_each_python_block_runs_alone(block: Snippet) -> None:
    if block.needs:
        pytest.importorskip(block.needs)
    if block.after:
        assert main(shlex.split(block.after)[1:]) == OK
    run_python(block)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
@pytest.mark.usefixtures("terminal")
def test_the_commands_of_a_page_print_what_it_shows(
    page: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run the commands of a page in turn, after the blocks above them, which make their files."""
    blocks = snippets(page)
    has_commands = any(block.kind == "console" for block in blocks)
    for block in blocks:
        if block.kind == "yaml":
            keep_configuration(block)
        elif block.not_run or block.needs:
            continue
        elif block.kind == "console":
            for command, shown in commands(block):
                executed(block, command, shown, capfd, monkeypatch)
        elif block.kind == "python" and has_commands:
            run_python(block)


@pytest.mark.slow
@pytest.mark.parametrize(
    "block", [block for block in BLOCKS if block.needs and block.kind == "console"], ids=lambda block: block.name
)
@pytest.mark.usefixtures("terminal")
def test_every_figure_is_printed_by_its_command(
    block: Snippet, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not Path(block.needs).exists():
        pytest.skip(f"no {block.needs}: the labeled images are not beside the checkout")
    for command, shown in commands(block):
        executed(block, command, shown, capfd, monkeypatch)


def keep_configuration(block: Snippet) -> None:
    content = yaml.safe_load(block.text)
    name = re.match(r"# ([\w./-]+\.yaml)", block.text)
    if name and "tools" not in content:
        GatePolicy.model_validate(content) if "policy" in name[1] else load_config(content)
    if name:
        Path(name[1]).write_text(block.text, encoding="utf-8")


def executed(
    block: Snippet, command: str, shown: list[str], capfd: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch
) -> None:
    words = shlex.split(command, comments=True)
    both = words[-1:] == ["2>&1"]  # steps that run side by side end in any order
    words = words[:-1] if both else words
    while words and re.fullmatch(r"[A-Z_]+=\S*", words[0]):
        variable, _, value = words.pop(0).partition("=")
        patch.setenv(variable, value)
    if words[:1] == ["export"]:
        return
    capfd.readouterr()
    try:
        if words[:2] == ["python", "-m"]:
            patch.setattr("sys.argv", words[2:])
            runpy.run_module(words[2], run_name="__main__")
            status = 0
        else:
            assert words[:1] == ["agenticiqa"], f"{block.name}: expected a command of agenticiqa: {command}"
            status = main(words[1:])
    except SystemExit as end:
        status = int(end.code or 0)
    printed = capfd.readouterr()
    refused = words[1] == "gate" and status == BELOW  # the page shows a refusal
    assert status == OK or refused, f"{block.name}: {command}: {printed.err}"
    if shown:
        page, output = "\n".join(shown), printed.err + printed.out if both else printed.out
        found = has_lines(shown, output) if both else matches(shown, output)
        assert found, f"{block.name}: {command} prints\n{output}\nthe page shows\n{page}"


def run_python(block: Snippet) -> None:
    namespace: dict[str, Any] = {"__name__": "block"}
    tree = ast.parse(block.text)
    lines = block.text.splitlines()
    for statement in tree.body:
        expected = re.search(r"# -> (.+)$", lines[(statement.end_lineno or 1) - 1])
        if isinstance(statement, ast.Expr) and expected:
            value = eval(compile(ast.Expression(statement.value), block.name, "eval"), namespace)
            assert repr(value) == expected[1].strip(), f"{block.name}: {ast.unparse(statement)} is {value!r}"
        else:
            exec(compile(ast.Module([statement], []), block.name, "exec"), namespace)


def test_the_recipe_that_moves_photos_keeps_each_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (recipe,) = (block for block in snippets(ROOT / "docs" / "albums.md") if "not moved" in block.text)
    names = ["album/a.jpg", "album/sub/a.jpg", "album/b, c.jpg", str(tmp_path / "d.jpg"), "album/sub/../a.jpg"]
    rows = [{"image": name, "quality_score": score} for name in names for score in (4.0, 1.5)]  # assessed again
    rows.append({"image": "album/gone.jpg", "quality_score": 1.0})
    Path("album/sub").mkdir(parents=True)
    for name in names:
        Path(name).write_text(os.path.normpath(name))
    Path("scores.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    exec(recipe.text, {})
    moved = {path.read_text() for path in Path("bad").rglob("*.jpg")}
    assert moved == {os.path.normpath(name) for name in names}
    assert capsys.readouterr().out == f"not moved: {Path(names[-1])}\nnot moved: album/gone.jpg\n"
