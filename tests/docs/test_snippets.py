"""README and docs/ are executed: every command prints what the page shows, every Python block runs."""

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

import dspy
import pytest
import yaml

from agenticiqa.configs import load_config
from agenticiqa.configs.policy import GatePolicy
from agenticiqa.eval.cli import COMMANDS, main
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.cli.parser import parse
from agenticiqa.programs.cli.status import BELOW, OK
from support.snippets import Snippet, commands, has_lines, matches, snippets

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
KINDS = {"console", "python", "yaml", "csv", "text", "json", "bash", "mermaid"}
OF_A_CHECKOUT = ("agenticiqa.eval.research.", "tests/")  # only in a checkout, not in the installed package


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the pages assume: the example photos, an album of them, and photo.jpg."""
    folder = tmp_path_factory.mktemp("work")
    no_photos = shutil.ignore_patterns("*.py", "*.md", "__pycache__")
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=no_photos)
    shutil.copytree(folder / "examples", folder / "album", ignore=shutil.ignore_patterns("copies", "labels.csv"))
    shutil.copy(folder / "examples" / "coffee_jpeg.jpg", folder / "photo.jpg")
    shutil.copy(folder / "examples" / "coffee.webp", folder / "original.webp")
    if (data := ROOT.parent / "shared" / "data").is_dir():
        (folder / "data").symlink_to(data)
    return folder


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, work: Path) -> Path:
    """A terminal of 100 columns without colors."""
    monkeypatch.chdir(work)
    for name, value in {"TTY_COMPATIBLE": "1", "COLUMNS": "100", "NO_COLOR": "1", "TERM": "xterm"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")  # for estimates, which send nothing
    return work


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


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_snippet_does_what_the_page_shows(
    page: Path, terminal: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    namespace: dict[str, Any] = {"__name__": f"docs_{page.stem}"}
    for block in snippets(page):
        if block.kind == "yaml":
            keep_configuration(block)
        elif block.kind in ("console", "bash"):
            for command, shown in commands(block.text):
                if block.not_run or block.needs:
                    understood(block, command)
                    capfd.readouterr()
                else:
                    executed(block, command, shown, capfd, monkeypatch)
        elif block.kind == "python" and not block.not_run and (not block.needs or find_spec(block.needs)):
            run_python(block, namespace)


def test_custom_parts_work_as_the_page_shows(terminal: Path) -> None:
    text = (ROOT / "docs" / "dspy.md").read_text(encoding="utf-8")
    first, last = (text[: text.index(title)].count("\n") for title in ("## Parts of your own", "## Files"))
    blocks = [block for block in snippets(ROOT / "docs" / "dspy.md") if first < block.line < last]
    assert len(blocks) == 4
    namespace: dict[str, Any] = {"__name__": "docs_parts", "dspy": dspy, "AgenticIQA": AgenticIQA}
    for block in blocks:
        run_python(block, namespace)


@pytest.mark.slow
@pytest.mark.parametrize(
    "block",
    [block for page in PAGES for block in snippets(page) if block.needs and block.kind != "python"],
    ids=lambda block: block.name,
)
def test_every_figure_is_printed_by_its_command(
    block: Snippet, terminal: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not Path(block.needs).exists():
        pytest.skip(f"no {block.needs}: the labeled images are not beside the checkout")
    for command, shown in commands(block.text):
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


def understood(block: Snippet, command: str) -> None:
    """Check that a command parses without running it; ``assess`` runs up to its cost estimate."""
    words = shlex.split(command, comments=True)
    if words[:1] != ["agenticiqa"]:
        return
    parse(words[1:], COMMANDS)
    if words[1] == "assess" and "--parquet" not in words:  # Parquet runs have no estimate
        assert main([*words[1:], "--dry-run"]) == 0, f"{block.name}: {command}"


def run_python(block: Snippet, namespace: dict[str, Any]) -> None:
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
