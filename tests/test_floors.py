"""Check the layers of packages: imports only point to lower layers, without circles.

``pytest tests/test_floors.py -s`` prints the files of each folder, the layers and the longest chain of imports.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from support.dense_idioms import dense_idioms
from support.imports import Sources, sources
from support.own_sentences import sentence_searches, texts_of

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {
    "agenticiqa": ROOT / "programs/face",
    "agenticiqa.programs": ROOT / "programs",
    "agenticiqa.configs": ROOT / "configs",
    "agenticiqa.signatures": ROOT / "signatures",
    "agenticiqa.eval": ROOT / "eval",
}

# From the lowest layer up. Packages of one layer do not import each other, except as ALSO allows.
LAYERS = (
    ("programs.errors", "programs.events"),
    ("configs", "signatures"),
    ("programs.images", "programs.questions"),
    ("programs.backends", "programs.data_sets", "programs.tools"),
    ("programs.fusion",),
    ("programs.stages",),
    ("programs.offline",),
    ("programs.result_row",),
    ("programs.page",),
    ("programs.assess", "programs.graph", "programs.saving", "programs.result"),
    ("programs.batch", "programs.pictures"),
    ("programs.scale",),
    ("programs.cli",),
    ("eval",),
    ("programs",),  # programs/__init__.py and the top module load their public names on first use
    ("agenticiqa",),
    ("eval.research",),  # not in the wheel; nothing imports it
)
TOP_MODULES = {
    "agenticiqa": "agenticiqa",
    "agenticiqa.__main__": "agenticiqa",
    "agenticiqa.metrics": "agenticiqa",
    "agenticiqa.programs": "programs",
}
ALSO = {
    "programs.assess": ("programs.result", "programs.saving"),
    "programs.graph": ("programs.assess", "programs.result"),
}
PACKAGES = {package: layer for layer, packages in enumerate(LAYERS) for package in packages}

EQUAL_NAMES = {
    "Scorer": "one is a stage of the program, the other is measured by evaluate; users import both",
}
NOT_FOR_A_METRIC = ("dspy", "httpx", "onnxruntime")

# Known violations, with reasons; remove an entry that no longer breaks a rule.
STILL = {
    "programs/errors.py searches": "rejected answers are JSON for readers; its one marker is written beside this",
    "programs/backends/transport.py searches": "httpx has no other way to tell a closed connection from a bad answer",
    "eval/research/tool_table.py searches": "the words are the end of a key of the table",
    "eval/optimize/reflection.py searches": "a model wrote the text; the marker separates the parts of a request",
}


class Violation(NamedTuple):
    """A file or folder that breaks a rule, and a message."""

    where: str
    message: str


def package_of(module: str) -> str:
    """Return the package of a module. Raises LookupError if it has none."""
    if module in TOP_MODULES:
        return TOP_MODULES[module]
    inner = module.removeprefix("agenticiqa.")
    inside = [each for each in PACKAGES if each not in TOP_MODULES.values() and (inner + ".").startswith(each + ".")]
    if not inside:
        raise LookupError(f"{module} is in no package of LAYERS: {', '.join(PACKAGES)}")
    return max(inside, key=len)


def allowed(package: str) -> list[str]:
    """Return the packages that a package may import, the highest first."""
    lower = [other for other in PACKAGES if PACKAGES[other] < PACKAGES[package]]
    return [*ALSO.get(package, ()), *sorted(lower, key=lambda other: -PACKAGES[other])]


def upward_imports(code: Sources) -> Iterator[Violation]:
    """Yield imports of a package that is not in a lower layer, also those for type checkers and inside functions."""
    for each in code.imports:
        package, imported = package_of(each.by), package_of(each.of)
        if package != imported and imported not in allowed(package):
            file = file_of(code, each.by)
            names = ", ".join(allowed(package)) or "no other package"
            yield Violation(file, f"{file}:{each.line}: {package} must not import {each.of}; it may import: {names}")


def circles(code: Sources) -> Iterator[Violation]:
    """Yield circular imports between the children of one package."""
    for package, circle in code.circles().items():
        steps = "; ".join(f"{file_of(code, each.by)}:{each.line} imports {each.of}" for each in circle)
        yield Violation(package.removeprefix("agenticiqa."), f"{package} has circular imports: {steps}")


def dense_code(code: Sources) -> Iterator[Violation]:
    """Yield expressions that a plain statement would say more clearly."""
    for name, nodes in code.trees.items():
        file = file_of(code, name)
        for line, idiom in dense_idioms(nodes):
            yield Violation(file, f"{file}:{line}: {idiom}")


def searched_sentences(code: Sources) -> Iterator[Violation]:
    """Yield searches in sentences that the program itself writes."""
    texts = texts_of(code.trees.values())
    for name, nodes in code.trees.items():
        file = file_of(code, name)
        for line, kind in sentence_searches(nodes, texts):
            yield Violation(f"{file} searches", f"{file}:{line}: {kind}")


def equal_names() -> Iterator[Violation]:
    """Yield classes with the same name in two files, which a reader could confuse."""
    places: dict[str, list[str]] = {}
    for module, path in code().files.items():
        for name in re.findall(r"^class (\w+)", path.read_text(encoding="utf-8"), re.M):
            places.setdefault(name, []).append(file_of(code(), module))
    for name, files in places.items():
        if len(files) > 1 and name not in EQUAL_NAMES:
            yield Violation(name, f"class {name} is defined in {' and '.join(files)}; rename one")


def heavy_metric() -> Iterator[Violation]:
    """Yield the modules that a metric loads but does not need."""
    statement = "from agenticiqa.programs.tools import ssim"
    try:
        loaded = [name for name in NOT_FOR_A_METRIC if name in modules_after(statement)]
    except ImportError as error:
        yield Violation("import ssim", f"`{statement}`: {error}")
    else:
        if loaded:
            yield Violation("import ssim", f"`{statement}` loads {', '.join(loaded)}")


RULES = {
    "imports point to lower layers": lambda: upward_imports(code()),
    "no circular imports": lambda: circles(code()),
    "plain statements": lambda: dense_code(code()),
    "no search in own sentences": lambda: searched_sentences(code()),
    "class names are unique": equal_names,
    "a metric loads no model": heavy_metric,
}


@cache
def code() -> Sources:
    """Return the sources of all folders."""
    return sources(FOLDERS)


@cache
def broken(rule: str) -> tuple[Violation, ...]:
    """Return the violations of a rule."""
    return tuple(RULES[rule]())


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_holds(rule: str) -> None:
    """No rule is broken, except as STILL lists."""
    found = [each.message for each in broken(rule) if each.where not in STILL]
    assert not found, "\n" + "\n".join(found)


def test_known_violations_still_break_a_rule() -> None:
    """An entry of STILL must be removed when it breaks no rule any more."""
    if STILL:
        assert set(STILL) <= {each.where for rule in RULES for each in broken(rule)}


def test_all_sources_are_read() -> None:
    """Every Python file of the four folders is a module in a package, and most modules import another."""
    found = {path for folder in ("programs", "configs", "signatures", "eval") for path in (ROOT / folder).rglob("*.py")}
    assert set(code().files.values()) == found
    assert len(found) > 100
    assert len({each.by for each in code().imports}) > len(found) / 2
    assert {package_of(name) for name in code().files} == set(PACKAGES)


@pytest.mark.parametrize(
    ("module", "statement", "breaks"),
    [
        ("programs.stages.planner", "from agenticiqa.programs.offline.stages import plan", True),
        ("programs.stages.planner", "from agenticiqa.programs import offline", True),
        ("programs.stages.planner", "from ..offline import stages", True),
        ("programs.stages.planner", "import agenticiqa.programs.offline.stages as twins", True),
        ("programs.stages.planner", "def late():\n    from agenticiqa.programs import offline", True),
        ("programs.stages.planner", "if TYPE_CHECKING:\n    from agenticiqa.programs import offline", True),
        ("programs.stages.planner", "import_module('agenticiqa.programs.offline.stages')", True),
        ("programs.stages.planner", "from agenticiqa.programs import AgenticIQA", True),
        ("programs.stages.planner", "from agenticiqa.programs.tools import ssim", False),
        ("programs.stages.planner", "from . import ask", False),
        ("programs.stages.planner", "import numpy", False),
        ("programs.backends.wire", "from agenticiqa.programs.tools import ssim", True),
        ("programs.tools.tool", "from agenticiqa.programs.backends import wire", True),
        ("programs.assess", "from agenticiqa.programs.saving import save", False),
        ("programs.assess", "from agenticiqa.programs.graph import run", True),
        ("programs.graph", "from agenticiqa.programs.assess import AgenticIQA", False),
        ("programs.saving", "from agenticiqa.programs.assess import AgenticIQA", True),
        ("programs.errors", "from agenticiqa import configs", True),
        ("configs.schema", "from agenticiqa.signatures.types import Plan", True),
        ("programs.cli.main", "from agenticiqa.eval import cli", True),
        ("eval.cli", "from agenticiqa.programs.cli import main", False),
        ("eval.cli", "from agenticiqa.eval.research import styles", True),
        ("programs.cli.main", "from agenticiqa.eval.research import styles", True),
        ("eval.research.styles", "from agenticiqa.eval import metrics", False),
    ],
)
def test_an_import_from_a_higher_layer_is_found_anywhere(
    tmp_path: Path, module: str, statement: str, breaks: bool
) -> None:
    """Find it at the top, in a function, for type checkers, relative or by name; other imports are allowed."""
    made = small_tree(tmp_path, {module: statement})
    assert [each.where for each in upward_imports(made)] == [file_of(made, f"agenticiqa.{module}")] * breaks


def test_circular_imports_are_found(tmp_path: Path) -> None:
    """Find siblings that import each other, also through a package."""
    one_way = {"programs.tools.tool": "import agenticiqa.programs.tools.metrics"}
    assert not list(circles(small_tree(tmp_path, one_way)))
    back = {
        "programs.tools.tool": "import agenticiqa.programs.tools.metrics.psnr",
        "programs.tools.metrics.psnr": "def late():\n    from agenticiqa.programs.tools import tool",
    }
    (circle,) = circles(small_tree(tmp_path, back))
    assert circle.where == "programs.tools"
    assert "programs/tools/metrics/psnr.py:2 imports agenticiqa.programs.tools.tool" in circle.message


@pytest.mark.parametrize(
    ("dense", "plain"),
    [
        ("first = (*xs, '')[0]", "first = next(iter(xs), '')"),
        ("text += ' twice' * flag", "line = '-' * width"),
        ("parts += [x] if x else []", "parts += [x, y]"),
        ("print(y := f(x))", "while y := f(x): print(y)"),
        ("x = a if (b\n or c\n or d\n) else e", "x = a if (b\n or c\n) else e"),
    ],
)
def test_dense_idioms_are_found(tmp_path: Path, dense: str, plain: str) -> None:
    """Each idiom is found with its file and line; the plain statement beside it is not."""
    made = small_tree(tmp_path, {"programs.images.dense": f"\n{dense}", "programs.images.plain": plain})
    (found,) = dense_code(made)
    assert found.message.startswith("programs/images/dense.py:2: ")


@pytest.mark.parametrize(
    ("search", "field"),
    [
        ("try:\n    f()\nexcept OSError as e:\n    gone = 'gone' in str(e)", "gone = e.errno == 2"),
        ("is_there = LATER not in str(error.message).lower()", "is_there = error.is_there"),
        ("gone = re.search('gone', str(error))", "gone = re.search('gone', text)"),
        ("short = text.replace('was not found', '')", "short = text.replace(',', ' ')"),
        ("later = LATER in text", "first = str(error).partition('\\n')[0]"),
    ],
)
def test_searches_in_own_sentences_are_found(tmp_path: Path, search: str, field: str) -> None:
    """Each search is found, in the text of an error or for words that the sources write; the field is not."""
    words = "LATER = 'try again'\nMESSAGE = 'the file was not found'\n"
    made = small_tree(
        tmp_path, {"programs.images.words": words, "programs.images.search": search, "programs.images.field": field}
    )
    (found,) = searched_sentences(made)
    assert found.message.startswith(f"programs/images/search.py:{1 + search.count(chr(10))}: a search ")


def test_the_modules_loaded_by_an_import_are_found() -> None:
    """The check of a metric's imports finds loaded modules and reports an import that fails."""
    with pytest.raises(ImportError, match="no_such_metric"):
        modules_after("from agenticiqa.programs.tools import no_such_metric")
    assert "colorsys" in modules_after("import colorsys")
    assert "colorsys" not in modules_after("import json")


def test_print_the_layers() -> None:
    """Print, with ``-s``, the files of each folder and layer, the import depth and the longest chain."""
    modules = code()
    folders = sorted({path.parent for path in modules.files.values()})
    print(f"\n{'folder':34} {'files':>5}")
    for folder in folders:
        print(f"{folder.relative_to(ROOT)!s:34} {len(files_in(folder)):5}")
    print("\nlayers, from the top (files)")
    for layer in reversed(LAYERS):
        paths = {
            package: [path for name, path in modules.files.items() if package_of(name) == package] for package in layer
        }
        print(" = ".join(f"{package} ({len(p)})" for package, p in paths.items()))
    chain = modules.deepest()
    print(f"\nimport depth {len(chain)}\n" + "\n".join(f"  {name}" for name in chain))
    print(f"\n{len(modules.files)} modules; known violations: {json.dumps(STILL, indent=2)}")
    assert sum(len(files_in(folder)) for folder in folders) >= len(modules.files)


def small_tree(folder: Path, contents: dict[str, str]) -> Sources:
    """Return the sources of a tree with one module for each package, and modules with these contents."""
    for module in (*PACKAGES, "programs.offline.stages", "programs.stages.ask"):
        write(folder, module.replace("agenticiqa", "programs.face"), "")
    for module, text in contents.items():
        write(folder, module, text)
    return sources({name: folder / path.relative_to(ROOT) for name, path in FOLDERS.items()})


def write(folder: Path, module: str, text: str) -> None:
    """Write a module; it is a package if the sources have a folder of its name."""
    is_package = (ROOT / module.replace(".", "/")).is_dir()
    path = (
        folder / module.replace(".", "/") / "__init__.py" if is_package else folder / f"{module.replace('.', '/')}.py"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def file_of(code: Sources, module: str) -> str:
    """Return the path of a module, relative to the root of the sources."""
    parts = code.files[module].parts
    return "/".join(
        parts[max(parts.index(top) for top in ("programs", "configs", "signatures", "eval") if top in parts) :]
    )


def files_in(folder: Path) -> list[str]:
    """Return the names of the files directly in a folder, data included."""
    return sorted(path.name for path in folder.iterdir() if path.is_file() and path.suffix != ".pyc")


def modules_after(statement: str) -> set[str]:
    """Return the top modules that a new interpreter loads for a statement. Raises ImportError if that fails."""
    script = (
        f"import sys, json\n{statement}\nprint(json.dumps(sorted({{name.partition('.')[0] for name in sys.modules}})))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ImportError(done.stderr.splitlines()[-1])
    return set(json.loads(done.stdout.splitlines()[-1]))
