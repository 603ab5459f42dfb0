"""What docs/architecture.md names exists: files, folders, classes, functions, and packages in the order of LAYERS."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PROSE = re.sub(r"^```.*?^```$", "", PAGE, flags=re.M | re.S)
CODE = sorted(set(re.findall(r"`([^`]+)`", PROSE)))
FOLDERS = ("programs", "configs", "signatures", "eval", "tests")
PATHS = [code for code in CODE if code.split("/")[0] in FOLDERS]
OF_OTHERS = {"SIMBA", "MIPROv2"}
CLASSES = [code for code in CODE if re.fullmatch(r"[A-Z]\w+", code) and code not in OF_OTHERS]
FUNCTIONS = [code for code in CODE if re.fullmatch(r"\w+\(\)", code)]


@cache
def source() -> str:
    """Return all code of the packages."""
    files = [file for folder in FOLDERS[:-1] for file in (ROOT / folder).rglob("*.py")]
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


@pytest.mark.parametrize("path", PATHS)
def test_a_path_exists(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_exists(name: str) -> None:
    assert re.search(rf"^class {name}\b", source(), re.M)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_exists(name: str) -> None:
    assert re.search(rf"^\s*def {name[:-2]}\(", source(), re.M)


def test_packages_are_listed_in_the_order_of_imports() -> None:
    source = (ROOT / "tests" / "test_floors.py").read_text(encoding="utf-8")
    found = re.search(r"^LAYERS = (\(.*?^\))", source, re.M | re.S)
    assert found
    layers = ast.literal_eval(found[1])
    layer_of = {package: number for number, packages in enumerate(layers) for package in packages}
    table = PAGE.partition("## Packages")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.+?) \|", table, re.M)
    listed = [code.removesuffix(".py").replace("/", ".") for row in rows for code in re.findall(r"`([^`]+)`", row)]
    packages = ["agenticiqa" if name == "programs.face" else name for name in listed]
    assert {*packages} == {*layer_of} - {"programs"}  # programs/__init__.py loads the public names
    numbers = [layer_of[package] for package in packages]
    assert numbers == sorted(numbers)
