"""What ``agenticiqa.programs.tools`` exports: every metric under the name of its file, without loading the program."""

import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from agenticiqa.programs import tools
from agenticiqa.programs.tools.catalog import METRICS, TOOLS

FOLDER = Path(tools.__file__).parent
HEAVY = ("dspy", "httpx", "onnxruntime", "pydantic", "yaml", "scipy", "PIL", "matplotlib")
MOST_MODULES = 11  # of this package


def test_one_metric_loads_few_modules_and_nothing_heavy() -> None:
    code = "import sys; from agenticiqa.programs.tools import ssim; print(ssim.__name__, *sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    name, *loaded = done.stdout.split()
    assert name == "ssim"
    assert "numpy" in loaded
    assert not [module for module in HEAVY if module in loaded]
    ours = [module for module in loaded if module.split(".")[0] == "agenticiqa"]
    assert len(ours) <= MOST_MODULES, ours


def test_the_catalog_has_every_file_and_nothing_else() -> None:
    files = {file.stem for file in (FOLDER / "metrics").glob("*.py")} - {"__init__"}
    assert sorted(METRICS) == sorted(files)
    assert len(TOOLS) == len(METRICS)


@pytest.mark.parametrize("metric", METRICS)
def test_a_metric_is_exported_under_the_name_of_its_file(metric: str) -> None:
    module = importlib.import_module(f"agenticiqa.programs.tools.metrics.{metric}")
    function, tool = getattr(tools, metric), module.TOOL
    assert metric in tools.__all__
    assert inspect.isfunction(function)
    assert (function.__module__, function.__name__) == (module.__name__, metric)
    assert list(inspect.signature(function).parameters) == ["image", "reference"][: 2 if tool.kind == "FR" else 1]
    assert tool is TOOLS[tool.name]
    assert tool.measure is function
    assert tool.is_shared == hasattr(function, "__wrapped__"), "a kept value is asked for with the loaded image"
    assert tool.map is getattr(module, f"{metric}_map", None)
    assert (tool.map is None) == (tool.map_end is None), "the colors of a heat map need an end"


def test_type_checkers_see_the_names_that_are_exported() -> None:
    """They are in the lines under TYPE_CHECKING; one line covers all metrics."""
    tree = ast.parse((FOLDER / "__init__.py").read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    lines = [line for line in block.body if isinstance(line, ast.ImportFrom)]
    homes = {alias.asname or alias.name: line.module for line in lines for alias in line.names}
    assert homes.pop("*") == "agenticiqa.programs.tools.ranking"
    assert sorted([*homes, *METRICS]) == tools.__all__
    for name, module in homes.items():
        assert getattr(tools, name) is getattr(importlib.import_module(str(module)), name)


def test_an_unknown_name_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'lpips'"):
        _ = tools.lpips
    assert set(tools.__all__) <= set(dir(tools))
