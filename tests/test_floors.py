"""The order of the rooms: imports point only downward, and folders, files and import chains stay small.

``pytest tests/test_floors.py -s`` prints the files per folder and per floor, the import depth and the deepest chain.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from support.imports import Sources, sources

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {
    "agenticiqa": ROOT / "programs/face",
    "agenticiqa.programs": ROOT / "programs",
    "agenticiqa.configs": ROOT / "configs",
    "agenticiqa.signatures": ROOT / "signatures",
    "agenticiqa.eval": ROOT / "eval",
}

# From the bottom up. Rooms of one floor do not import each other, but for what ALSO allows.
FLOORS = (
    ("programs.errors", "programs.events"),
    ("configs", "signatures"),
    ("programs.images", "programs.questions"),
    ("programs.backends", "programs.tools"),
    ("programs.fusion",),
    ("programs.stages",),
    ("programs.offline",),
    ("programs.result_row",),
    ("programs.assess", "programs.graph", "programs.saving", "programs.result"),
    ("programs.batch", "programs.page", "programs.pictures"),
    ("programs.scale",),
    ("programs.cli",),
    ("eval",),
    ("programs",),  # programs/__init__.py and the package's own module load what they offer when it is first asked for
    ("agenticiqa",),
    ("eval.research",),  # at the top, as the wheel has none of it: it imports the product, and nothing imports it
)
FACES = {
    "agenticiqa": "agenticiqa",
    "agenticiqa.__main__": "agenticiqa",
    "agenticiqa.metrics": "agenticiqa",
    "agenticiqa.programs": "programs",
}
ALSO = {
    "programs.assess": ("programs.result", "programs.saving"),
    "programs.graph": ("programs.assess", "programs.result"),
}
ROOMS = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}

MOST_FILES = {"programs": 8, "eval": 9}
MOST_LINES = 500
MOST_DEPTH = 15
EQUAL_NAMES = {
    "Assessment": "the signature's is written into the prompt, and the result's is what users import",
    "Scorer": "a stage of the program, and what evaluate measures: users import both",
}
NOT_FOR_A_METRIC = ("dspy", "httpx", "onnxruntime")

# Lines of Python that each room may have; a file counts in the longest name that it lies in. A change that makes a room
# smaller lowers its number. Raising one needs a reason beside it that a user would accept: those below came after the
# removals.
BUDGET = {
    "signatures": 2_064,
    "signatures/answers": 1_593,  # one package reads what a model wrote, for files of four packages
    "configs": 953,  # options are declared here, as keys of the configuration inherit them
    "programs": 2_356,  # fields of a result are declared here; each key of a row is an attribute
    "programs/stages": 3_406,  # adapters for a model's tools; the text of an empty answer
    "programs/questions": 1_088,
    "programs/fusion": 1_464,  # the interval by a user's labels
    "programs/backends": 4_515,  # security, deadlines and safety against kills; rounds of provider batches
    "programs/offline": 4_385,
    "programs/tools": 6_483,  # adapters; why MS-SSIM and BRISQUE differ from other releases; pyiqa metrics by name
    "programs/images": 3_705,  # HDR and gamma; pictures behind thumbnails; paths of other systems
    "programs/batch": 3_159,  # strict CSV, one row for each image
    "programs/scale": 1_878,
    "programs/cli": 3_941,  # outputs are checked first; gate writes tables and pages
    "programs/page": 802,  # two images over each other, with a slider
    "programs/pictures": 1_121,  # a picture names its image, so that none replaces another's
    "eval": 13_536,  # DSPy's optimizers are counted and stopped; adapters of the offline score
    "eval/research": 5_369,
    "tests": 51_202,  # lists every message and help text for review; sources to rewrite are named one a line
}

# What still breaks a rule, and why; an entry that no longer does has to go.
STILL: dict[str, str] = {}


class Violation(NamedTuple):
    """A file or folder that breaks a rule, and what to do about it."""

    where: str
    message: str


def room_of(module: str) -> str:
    """The room that a module lies in. Raises LookupError if it has none."""
    if module in FACES:
        return FACES[module]
    inner = module.removeprefix("agenticiqa.")
    inside = [room for room in ROOMS if room not in FACES.values() and (inner + ".").startswith(room + ".")]
    if not inside:
        raise LookupError(f"{module} is in none of the rooms of FLOORS: {', '.join(ROOMS)}")
    return max(inside, key=len)


def allowed(room: str) -> list[str]:
    """The rooms that a room may import, the highest first."""
    lower = [other for other in ROOMS if ROOMS[other] < ROOMS[room]]
    return [*ALSO.get(room, ()), *sorted(lower, key=lambda other: -ROOMS[other])]


def upward_imports(code: Sources) -> Iterator[Violation]:
    """Imports of a room that is not below; those for type checkers and those inside functions count, too."""
    for each in code.imports:
        room, imported = room_of(each.by), room_of(each.of)
        if room != imported and imported not in allowed(room):
            file = file_of(code, each.by)
            may = ", ".join(allowed(room)) or "nothing of ours"
            yield Violation(file, f"{file}:{each.line}: {room} must not import {each.of}; it may import: {may}")


def circles(code: Sources) -> Iterator[Violation]:
    """Modules or packages, side by side in one package, that import each other in a circle."""
    for package, circle in code.circles().items():
        steps = "; ".join(f"{file_of(code, each.by)}:{each.line} imports {each.of}" for each in circle)
        yield Violation(package.removeprefix("agenticiqa."), f"in {package} imports go in a circle: {steps}")


def long_chains(code: Sources) -> Iterator[Violation]:
    """The longest chain of imports, if it is too long."""
    chain = code.deepest()
    if len(chain) > MOST_DEPTH:
        steps = " > ".join(name.removeprefix("agenticiqa.") for name in chain)
        yield Violation("depth", f"{len(chain)} modules import each other in a chain, at most {MOST_DEPTH}: {steps}")


def large_files(code: Sources) -> Iterator[Violation]:
    """Files with too many lines."""
    for name, path in code.files.items():
        if (lines := lines_of(path)) > MOST_LINES:
            yield Violation(file_of(code, name), f"{file_of(code, name)} has {lines} lines, at most {MOST_LINES}")


def equal_names() -> Iterator[Violation]:
    """Classes of one name in two files: a reader could take one for the other."""
    places: dict[str, list[str]] = {}
    for module, path in code().files.items():
        for name in re.findall(r"^class (\w+)", path.read_text(encoding="utf-8"), re.M):
            places.setdefault(name, []).append(file_of(code(), module))
    for name, files in places.items():
        if len(files) > 1 and name not in EQUAL_NAMES:
            yield Violation(name, f"class {name} stands in {' and '.join(files)}: give one another name")


def full_folders() -> Iterator[Violation]:
    """Top folders with too many files of their own; data counts."""
    for folder, most in MOST_FILES.items():
        if len(files := files_in(ROOT / folder)) > most:
            yield Violation(folder, f"{folder}/ has {len(files)} files at its top, at most {most}: {', '.join(files)}")


def heavy_metric() -> Iterator[Violation]:
    """What a metric loads that no metric needs."""
    statement = "from agenticiqa.programs.tools import ssim"
    try:
        loaded = [name for name in NOT_FOR_A_METRIC if name in modules_after(statement)]
    except ImportError as error:
        yield Violation("import ssim", f"`{statement}`: {error}")
    else:
        if loaded:
            yield Violation("import ssim", f"`{statement}` loads {', '.join(loaded)}")


def over_budget(lines: Mapping[str, int], budget: Mapping[str, int]) -> Iterator[Violation]:
    """Rooms with more lines than their budget."""
    for room, found in lines.items():
        if found > budget[room]:
            yield Violation(room, f"{room} has {found:,} lines, at most {budget[room]:,}: see BUDGET")


def lines_per_room(files: Iterable[str], budget: Mapping[str, int]) -> dict[str, int]:
    """The lines of each room of the budget: a file belongs to the longest name that it lies in."""
    found = dict.fromkeys(budget, 0)
    for file in files:
        rooms = [room for room in budget if file.startswith(f"{room}/")]
        if rooms:
            found[max(rooms, key=len)] += lines_of(ROOT / file)
    return found


def python_files() -> list[str]:
    """The Python files of the sources and tests, from their root."""
    tops = ("signatures", "configs", "programs", "eval", "tests")
    return [path.relative_to(ROOT).as_posix() for top in tops for path in (ROOT / top).rglob("*.py")]


RULES = {
    "imports point downward": lambda: upward_imports(code()),
    "no circles": lambda: circles(code()),
    "short chains of imports": lambda: long_chains(code()),
    "small files": lambda: large_files(code()),
    "within the budget": lambda: over_budget(lines_per_room(python_files(), BUDGET), BUDGET),
    "few files at the top": full_folders,
    "a class has a name of its own": equal_names,
    "a metric loads no model": heavy_metric,
}


@cache
def code() -> Sources:
    """The sources of the four folders and of the face."""
    return sources(FOLDERS)


@cache
def broken(rule: str) -> tuple[Violation, ...]:
    """What breaks a rule."""
    return tuple(RULES[rule]())


@pytest.mark.parametrize("rule", RULES)
def test_the_order_of_the_rooms(rule: str) -> None:
    """Every rule holds, but for what STILL lists."""
    found = [each.message for each in broken(rule) if each.where not in STILL]
    assert not found, "\n" + "\n".join(found)


def test_what_still_breaks_a_rule_is_listed_no_longer_than_it_does() -> None:
    """An entry of STILL that breaks no rule any more is taken out."""
    assert set(STILL) <= {each.where for rule in RULES for each in broken(rule)}


def test_the_sources_are_all_read() -> None:
    """Every Python file of the four folders is a module with a room, and most of them import another."""
    found = {path for folder in ("programs", "configs", "signatures", "eval") for path in (ROOT / folder).rglob("*.py")}
    assert set(code().files.values()) == found
    assert len(found) > 100
    assert len({each.by for each in code().imports}) > len(found) / 2
    assert {room_of(name) for name in code().files} == set(ROOMS)


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
def test_an_import_upward_is_found_wherever_it_stands(
    tmp_path: Path, module: str, statement: str, breaks: bool
) -> None:
    """At the top, in a function, for type checkers, relative or by name; downward and elsewhere is free."""
    made = small_tree(tmp_path, {module: statement})
    assert [each.where for each in upward_imports(made)] == [file_of(made, f"agenticiqa.{module}")] * breaks


def test_circles_chains_and_long_files_are_found(tmp_path: Path) -> None:
    """Siblings that import each other, also through a package; a chain and a file of one too many."""
    one_way = {"programs.tools.tool": "import agenticiqa.programs.tools.metrics"}
    assert not list(circles(small_tree(tmp_path, one_way)))
    back = {
        "programs.tools.tool": "import agenticiqa.programs.tools.metrics.psnr",
        "programs.tools.metrics.psnr": "def late():\n    from agenticiqa.programs.tools import tool",
    }
    (circle,) = circles(small_tree(tmp_path, back))
    assert circle.where == "programs.tools"
    assert "programs/tools/metrics/psnr.py:2 imports agenticiqa.programs.tools.tool" in circle.message
    chain = {f"programs.images.m{n}": f"from . import m{n + 1}" for n in range(MOST_DEPTH)}
    assert not list(
        long_chains(small_tree(tmp_path / "short", {**chain, "programs.images.m15": "", "programs.images.m0": ""}))
    )
    (long,) = long_chains(small_tree(tmp_path / "long", {**chain, f"programs.images.m{MOST_DEPTH}": ""}))
    assert long.message.startswith(f"{MOST_DEPTH + 1} modules")
    lengths = {"programs.images.right": "\n" * MOST_LINES, "programs.images.long": "\n" * (MOST_LINES + 1)}
    (large,) = large_files(small_tree(tmp_path / "files", lengths))
    assert large.message == f"programs/images/long.py has {MOST_LINES + 1} lines, at most {MOST_LINES}"


def test_a_room_over_its_budget_is_found() -> None:
    """Each file counts in the longest name that it lies in, and one line too many is a violation."""
    counted = lines_per_room(["tests/test_floors.py", "tests/docs/test_snippets.py"], {"tests": 1, "tests/docs": 1})
    assert counted == {
        room: lines_of(ROOT / room / file)
        for room, file in (("tests", "test_floors.py"), ("tests/docs", "test_snippets.py"))
    }
    assert not list(over_budget({"tests": 7}, {"tests": 7}))
    (over,) = over_budget({"tests": 8, "eval": 3}, {"tests": 7, "eval": 3})
    assert over == ("tests", "tests has 8 lines, at most 7: see BUDGET")
    assert sum(lines_per_room(python_files(), BUDGET).values()) == sum(lines_of(ROOT / file) for file in python_files())


def test_the_modules_of_an_import_are_seen() -> None:
    """The check of what a metric loads sees a module that is loaded, and an import that fails."""
    with pytest.raises(ImportError, match="no_such_metric"):
        modules_after("from agenticiqa.programs.tools import no_such_metric")
    assert "colorsys" in modules_after("import colorsys")
    assert "colorsys" not in modules_after("import json")


def test_print_the_house() -> None:
    """With ``-s``: files per folder and floor, the depth, and the deepest chain."""
    modules = code()
    folders = sorted({path.parent for path in modules.files.values()})
    print(f"\n{'folder':34} {'files':>5} {'lines':>6}")
    for folder in folders:
        lines = sum(lines_of(path) for path in folder.glob("*.py"))
        print(f"{folder.relative_to(ROOT)!s:34} {len(files_in(folder)):5} {lines:6}")
    print("\nfloors, from the top (files, lines)")
    for floor in reversed(FLOORS):
        paths = {room: [path for name, path in modules.files.items() if room_of(name) == room] for room in floor}
        print(" = ".join(f"{room} ({len(p)}, {sum(map(lines_of, p))})" for room, p in paths.items()))
    chain = modules.deepest()
    print(f"\nimport depth {len(chain)}\n" + "\n".join(f"  {name}" for name in chain))
    print(f"\nof {len(modules.files)} modules; still to do: {json.dumps(STILL, indent=2)}")
    assert sum(len(files_in(folder)) for folder in folders) >= len(modules.files)


def small_tree(folder: Path, contents: dict[str, str]) -> Sources:
    """A tree of one module per room, and these."""
    for module in (*ROOMS, "programs.offline.stages", "programs.stages.ask"):
        write(folder, module.replace("agenticiqa", "programs.face"), "")
    for module, text in contents.items():
        write(folder, module, text)
    return sources({name: folder / path.relative_to(ROOT) for name, path in FOLDERS.items()})


def write(folder: Path, module: str, text: str) -> None:
    """Write a module; a room that is a folder in the sources is one here, too."""
    is_package = (ROOT / module.replace(".", "/")).is_dir()
    path = (
        folder / module.replace(".", "/") / "__init__.py" if is_package else folder / f"{module.replace('.', '/')}.py"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def file_of(code: Sources, module: str) -> str:
    """The path of a module in the sources, from their root."""
    parts = code.files[module].parts
    return "/".join(
        parts[max(parts.index(top) for top in ("programs", "configs", "signatures", "eval") if top in parts) :]
    )


def files_in(folder: Path) -> list[str]:
    """The names of the files directly in a folder; data counts."""
    return sorted(path.name for path in folder.iterdir() if path.is_file() and path.suffix != ".pyc")


def lines_of(path: Path) -> int:
    """The number of lines of a file."""
    return len(path.read_text(encoding="utf-8").splitlines())


def modules_after(statement: str) -> set[str]:
    """The top modules that a new interpreter has loaded after a statement. Raises ImportError if that fails."""
    script = (
        f"import sys, json\n{statement}\nprint(json.dumps(sorted({{name.partition('.')[0] for name in sys.modules}})))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ImportError(done.stderr.splitlines()[-1])
    return set(json.loads(done.stdout.splitlines()[-1]))
