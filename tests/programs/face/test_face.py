"""``import agenticiqa``: it is quick, typed, has every documented name, and runs with ``python -m agenticiqa``."""

import importlib.metadata
import importlib.util
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import agenticiqa
import agenticiqa.eval.optimize
import agenticiqa.programs

ROOT = Path(__file__).resolve().parents[3]
TOPS = ("configs", "signatures", "programs", "eval")
INSTALLED_COPY = not Path(agenticiqa.programs.__file__).is_relative_to(ROOT)  # a wheel, not an editable install


def python(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, cwd=folder, check=False)


def test_importing_the_package_loads_no_heavy_package(tmp_path: Path) -> None:
    code = "import sys, agenticiqa; print(sorted(m for m in sys.modules if m.split('.')[0] in sys.argv[1:]))"
    heavy = ("agenticiqa", "dspy", "numpy", "PIL", "pydantic", "scipy", "httpx", "onnxruntime")
    assert python("-c", code, *heavy, folder=tmp_path).stdout == "['agenticiqa']\n"


def test_every_name_exists_and_is_listed() -> None:
    assert dir(agenticiqa) == sorted(agenticiqa.__all__)
    users = {
        "AgenticIQA",
        "Assessment",
        "Config",
        "Job",
        "ScoreFusion",
        "assess_many",
        "load_config",
        "draw_assessment",
    }
    assert users <= set(dir(agenticiqa))
    for name in set(agenticiqa.__all__) - {"__version__"}:
        assert getattr(agenticiqa, name) is getattr(agenticiqa.programs, name)
        assert getattr(agenticiqa, name).__module__.startswith("agenticiqa.")
        assert getattr(agenticiqa, name).__doc__
    assert dir(agenticiqa.programs) == sorted(set(agenticiqa.__all__) - {"__version__"})


def test_labels_evaluation_and_tuning_are_importable_from_one_place_each() -> None:
    from agenticiqa.eval.optimize import tuning

    assert {"evaluate", "read_labels"} <= set(agenticiqa.eval.__all__)
    for package in (agenticiqa.eval, agenticiqa.eval.optimize):
        assert all(callable(getattr(package, name)) and getattr(package, name).__doc__ for name in package.__all__)
    assert agenticiqa.eval.optimize.optimize is tuning.optimize


def test_the_version_is_that_of_the_distribution() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert agenticiqa.__version__ == importlib.metadata.version("agenticiqa") == project["version"]


@pytest.mark.parametrize("module", [agenticiqa, agenticiqa.programs])
def test_an_unknown_name_is_an_attribute_error(module: object, tmp_path: Path) -> None:
    with pytest.raises(AttributeError, match=r"^module 'agenticiqa(\.programs)?' has no attribute 'AgenticIQa'$"):
        module.AgenticIQa  # type: ignore[attr-defined]  # noqa: B018
    ended = python("-c", "from agenticiqa import AgenticIQa", folder=tmp_path)
    assert ended.stderr.splitlines()[-1].startswith("ImportError: cannot import name 'AgenticIQa' from 'agenticiqa'")


def test_python_suggests_a_similar_name(tmp_path: Path) -> None:
    ended = python("-c", "import agenticiqa; agenticiqa.AgenticIQa", folder=tmp_path)
    assert ended.stderr.splitlines()[-1].endswith("Did you mean: 'AgenticIQA'?")


def test_the_package_runs_as_a_module_from_any_folder(examples: Path, tmp_path: Path) -> None:
    ended = python("-m", "agenticiqa", "assess", str(examples / "coffee_jpeg.jpg"), "--json", folder=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["quality_level"] == "Poor"
    assert "usage: agenticiqa" in python("-m", "agenticiqa", "--help", folder=tmp_path).stdout
    assert python("-m", "agenticiqa", "no-such-command", folder=tmp_path).returncode == 2


@pytest.mark.skipif(not INSTALLED_COPY, reason="an editable install is the checkout itself; .ci/run uses a wheel")
def test_the_wheel_has_all_code_and_data_except_research() -> None:
    """What is missing there works in a checkout and fails at a user's."""
    installed = Path(agenticiqa.programs.__file__).parents[1]
    wanted = {
        path.relative_to(ROOT)
        for top in TOPS
        for path in (ROOT / top).rglob("*")
        if path.is_file() and path.suffix != ".pyc" and not path.is_relative_to(ROOT / "programs" / "face")
    }
    shipped = {path for path in wanted if not path.is_relative_to(Path("eval", "research"))}
    assert {path for path in wanted if (installed / path).exists()} == shipped
    assert not (installed / "programs" / "face").exists()


@pytest.mark.skipif(
    not importlib.util.find_spec("mypy"), reason="mypy is not installed: pip install 'agenticiqa[lint]'"
)
@pytest.mark.skipif(not INSTALLED_COPY, reason="type checkers cannot follow an editable install; .ci/run uses a wheel")
def test_type_checkers_know_every_name_of_an_installed_wheel(tmp_path: Path) -> None:
    usage = Path(__file__).with_name("usage.py")
    (tmp_path / "reveal.py").write_text("import agenticiqa\nreveal_type(agenticiqa.AgenticIQA)\n")
    command = ("-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"))
    ended = python(*command, "--warn-unused-ignores", str(usage), "reveal.py", folder=tmp_path)
    assert ended.returncode == 0, ended.stdout
    assert 'Revealed type is "def (planner: ' in ended.stdout
    assert '-> agenticiqa.programs.assess.AgenticIQA"' in ended.stdout
