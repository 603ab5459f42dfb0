"""Find the regular expressions of the product in its sources, and texts on which each of them may be slow."""

import ast
import random
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from re import _constants as op  # type: ignore[attr-defined]  # the standard library's own parser of patterns
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

FUNCTIONS = ("compile", "search", "match", "fullmatch", "sub", "subn", "findall", "finditer", "split")
FLAGS_AT = {"compile": 1, "sub": 4, "subn": 4, "split": 3}  # position of the flags in a call; 2 for the others
OPEN = 200  # repetitions from which a repeat counts as open
USUAL = ' a1\n.-="`('  # characters that models repeat without end
SAMPLES = 2  # texts that match the beginning of an open repeat
_CALL = re.compile(rf"\bre\.(?:{'|'.join(FUNCTIONS)})\(")
ASCII = USUAL + "".join(map(chr, range(33, 127)))

# Patterns that only a function knows: an expression for their texts, in the names of its module.
LOCAL = {
    "programs/backends/capabilities.py": "[r'\\bmax_completion_tokens\\b']",
    "programs/backends/connect.py": "[*WELL_KNOWN]",
    "programs/backends/failures.py": "[*(row[1] for row in _MEANINGS), _in_any_form('sk-secret').pattern]",
    "programs/backends/models.py": "FAMILIES",
    "programs/backends/providers.py": "[name for row in PROVIDERS.values() for name in row.models]",
    "programs/images/decoding.py": "[*_RAW, *_OTHER]",
    "programs/images/extra_formats.py": "[extra.signature for extra in EXTRA_FORMATS]",
    "programs/offline/answers/answer.py": "[r'\\bA(?= (?:is|has|names)\\b)']",
    "programs/offline/answers/asked.py": '[r"(?<!\\w)the dog(?:\'s)?(?!\\w)"]',
    "programs/offline/answers/rules.py": "[pattern.pattern for pattern in _NARROWED_BY.values()]",
    "programs/stages/box_forms.py": "[row[1] for row in FAMILIES]",
    "programs/stages/planner.py": "['NOISE-SIGMA']",
    "programs/tools/measuring.py": "[]",  # the program's own docstrings
    "programs/tools/tool_names.py": "[_spelled(frozenset({'QALIGN'})).pattern]",
    "signatures/lexicon.py": "[word.pattern for words in (_categories(), _meanings()) for word in words.values()]",
    "eval/tasks/task.py": "[one.fields.parts for one in import_module('agenticiqa.eval.tasks.catalog').TASKS.values() "
    "if one.fields.parts]",
    "eval/optimize/reflection.py": "[r'(?<!\\w)query(?!\\w)']",
}


class Found(NamedTuple):
    """A pattern in the sources, with the methods that are called on it."""

    place: str
    pattern: re.Pattern[Any]
    methods: tuple[str, ...]


def patterns_in(folders: Mapping[str, Path]) -> Iterator[Found]:
    """Yield each pattern in the modules of these packages. Raises LookupError for one that LOCAL has to name."""
    files = {path: name for name, folder in folders.items() for path in folder.rglob("*.py")}
    texts = {path: path.read_text() for path in sorted(files) if "research" not in path.parts}
    everywhere = _called("\n".join(texts.values()))
    for path, text in texts.items():
        if _CALL.search(text) is None:
            continue
        inner = path.relative_to(folders[files[path]])
        module = ".".join([files[path], *inner.with_suffix("").parts]).removesuffix(".__init__")
        names, place, here = vars(import_module(module)), f"{folders[files[path]].name}/{inner}", _called(text)
        for call, holders in _pattern_calls(ast.parse(text), ()):
            methods = _methods(call, holders, here, everywhere)
            for source, flags in _evaluated(call, names, place):
                yield Found(f"{place}:{call.lineno}", re.compile(source, flags), methods)


def _pattern_calls(node: ast.AST, holders: tuple[str, ...]) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """Yield each call of ``re`` in a tree, with the names of the assignments and functions around it."""
    if isinstance(node, ast.Assign | ast.FunctionDef):
        holders += (node.name if isinstance(node, ast.FunctionDef) else ast.unparse(node.targets[0]),)
    function = node.func if isinstance(node, ast.Call) else None
    if isinstance(function, ast.Attribute) and function.attr in FUNCTIONS and ast.unparse(function.value) == "re":
        yield node, holders
    for child in ast.iter_child_nodes(node):
        yield from _pattern_calls(child, holders)


def _evaluated(call: Any, names: dict[str, Any], place: str) -> list[tuple[Any, int]]:
    flags = [word.value for word in call.keywords if word.arg == "flags"]
    flags += call.args[FLAGS_AT.get(call.func.attr, 2) :]
    flag = eval(ast.unparse(flags[0]), dict(names)) if flags else 0
    try:
        return [(eval(ast.unparse(call.args[0]), dict(names)), flag)]
    except NameError as error:
        if place not in LOCAL:
            raise LookupError(f"{place}:{call.lineno}: {error}: add its texts to LOCAL") from error
        return [(source, flag) for source in eval(LOCAL[place], {**names, "import_module": import_module})]


def _called(text: str) -> dict[str, set[str]]:
    """Return the methods of patterns that a source calls, by the name before each."""
    methods: dict[str, set[str]] = {}
    for name, method in re.findall(rf"\b(\w+)(?:\(\))?\.({'|'.join(FUNCTIONS)})\(", text):
        methods.setdefault(name, set()).add(method)
    return methods


def _methods(
    call: Any, names: tuple[str, ...], here: dict[str, set[str]], everywhere: dict[str, set[str]]
) -> tuple[str, ...]:
    """Return the methods that the sources call on the pattern of a call; a private name is used in its module only."""
    if call.func.attr != "compile":
        return (call.func.attr,)
    calls = here if all(name.startswith("_") for name in names) else everywhere
    return tuple(sorted({method for name in names for method in calls.get(name, ())})) or ("search",)


def slow_texts(pattern: re.Pattern[Any], length: int, most: int) -> Iterator[Any]:
    """Yield at most two texts for each of ``most`` kinds, chosen at random.

    Each has this length, and repeats what an open repeat of the pattern takes, after what precedes it.
    """
    is_text = isinstance(pattern.pattern, str)
    for head, unit in _kinds(pattern, most):
        text = (head + unit * (length // len(unit)))[:length]
        yield from (text, text + "\0x") if is_text else (text.encode("latin-1", "replace"),)


@cache
def _kinds(pattern: re.Pattern[Any], most: int) -> list[tuple[str, str]]:
    flags = pattern.flags if isinstance(pattern.pattern, str) else pattern.flags & ~re.UNICODE
    tree, rng = parser.parse(pattern.pattern, flags), random.Random(0)
    kinds: dict[tuple[str, str], None] = {}
    for _ in range(SAMPLES):
        for before, body in _open_repeats(tree, "", rng):
            taken = _characters(*body[0]) if len(body) == 1 else ""
            for unit in filter(None, (_sample(body, rng), *(c for c in USUAL if c in taken))):
                kinds |= dict.fromkeys([(before, unit), ("", before + unit), ("", unit)])
    return rng.sample([*kinds], min(len(kinds), most))


def _open_repeats(tree: Any, before: str, rng: random.Random) -> Iterator[tuple[str, Any]]:
    """Yield each repeat without an end, after a text that the pattern takes before it."""
    for name, value in tree:
        if name in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            if value[1] == op.MAXREPEAT or value[1] > OPEN:
                yield before, value[2]
            yield from _open_repeats(value[2], before, rng)
        for inner in _inner(name, value):
            yield from _open_repeats(inner, before, rng)
        before += _sample([(name, value)], rng)


def _inner(name: Any, value: Any) -> list[Any]:
    if name is op.BRANCH:
        return list(value[1])
    if name in (op.ASSERT, op.ASSERT_NOT, op.SUBPATTERN):
        return [value[-1]]
    return [value] if name is op.ATOMIC_GROUP else []


def _sample(tree: Any, rng: random.Random) -> str:
    """Return a text that a pattern, or a part of it, probably matches."""
    text = ""
    for name, value in tree:
        if name in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            times = max(value[0], min(value[1], rng.randint(0, 1)))
            text += "".join(_sample(value[2], rng) for _ in range(times))
        elif name is op.BRANCH:
            text += _sample(rng.choice(value[1]), rng)
        elif name in (op.SUBPATTERN, op.ATOMIC_GROUP):
            text += _sample(_inner(name, value)[0], rng)
        elif characters := _characters(name, value):
            text += rng.choice(characters[:8])
    return text


def _characters(name: Any, value: Any) -> str:
    """Return characters that a part of a pattern takes; none if it takes no single character."""
    if name is op.LITERAL:
        return chr(value)
    if name is op.NOT_LITERAL:
        return ASCII.replace(chr(value), "")
    if name is op.IN:
        inside = "".join(_of_set(*part) for part in value)
        return "".join(c for c in ASCII if c not in inside) if value[0][0] is op.NEGATE else inside
    return ASCII if name is op.ANY else ""


@cache
def _of_set(name: Any, value: Any) -> str:
    if name is op.LITERAL:
        return chr(value)
    if name is op.RANGE:
        return "".join(map(chr, range(value[0], min(value[1], value[0] + 99) + 1)))
    if name is not op.CATEGORY:
        return ""
    kind = re.compile({"SPACE": r"\s", "DIGIT": r"\d", "WORD": r"\w"}[str(value).rpartition("_")[2]])
    return "".join(c for c in ASCII if bool(kind.match(c)) != ("NOT" in str(value)))
