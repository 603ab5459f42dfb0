"""List the texts that users read, which tests/docs/messages.txt and help.txt record.

``signatures/`` is skipped, as golden requests record the prompts (tests/programs/stages/golden/).
"""

import ast
import io
import os
import re
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from functools import cache
from pathlib import Path
from unittest.mock import patch

from agenticiqa.eval.cli import COMMANDS, main

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("configs", "eval", "programs")
GOLDEN = ROOT / "tests" / "docs"
LONGEST_VALUE = 25  # characters; the code of a longer one is shown as {...}
VALUE = r"\{[^{}]*\}"
NOT_PROSE = {
    "a regular expression has groups, classes or a bar between words": r"\(\?|\\[bsdw]|\[\^|\w\|\w|^\.\*",
    "SQL begins with its verb": r"^\s*(SELECT|INSERT|UPDATE|ALTER|CREATE|BEGIN|DELETE|PRAGMA)\b|IS NOT NULL",
    "HTML and SVG have tags": r"^\s*<|</",
    "CSS, rules for browsers and models' graphs have their own signs": r"\w-src '|^[a-z-]+:\S+;|float\[|import main",
    "a type has brackets after its first word": r"^\w+\[.*\]|\| None",
    "in a name or the form of an option, each word begins with a capital or a dash": r"^(?:[A-Z-]\S*\s*)+$",
    "a list of words has no punctuation": r"^[\w\s-]{200,}$",
}


def is_text(text: str) -> bool:
    """Return whether a string is prose of three words or more, at least two of them without placeholders."""
    words = re.sub(VALUE, "…", text).split()
    letters = [word for word in words if re.search("[A-Za-z]{2}", word)]
    values = [word for word in words if "…" in word and word not in letters]
    prose = not any(re.search(form, text) for form in NOT_PROSE.values())
    return prose and len(letters) >= 2 and len(letters) + len(values) >= 3


def shown(code: str) -> str:
    """Return the placeholder of a value; Python versions write the code of a nested f-string differently."""
    return f"{{{code if len(code) <= LONGEST_VALUE and '{' not in code else '...'}}}"


def of_python(node: ast.AST) -> Iterator[str]:
    """Yield the strings of a syntax tree in their order, without docstrings, types and arguments of the module re."""
    match node:
        case ast.Expr(value=ast.Constant()) | ast.Call(func=ast.Attribute(value=ast.Name(id="re"))):
            return
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            values = [part for part in parts if isinstance(part, ast.FormattedValue)]
            yield "".join(part.value if part not in values else shown(ast.unparse(part.value)) for part in parts)
            for part in values:
                yield from of_python(part.value)
        case _:
            for name, children in ast.iter_fields(node):
                for child in children if isinstance(children, list) else [children]:
                    if isinstance(child, ast.AST) and name not in ("annotation", "returns"):
                        yield from of_python(child)


def of_template(text: str) -> Iterator[str]:
    """Yield the texts of a page, those of its attributes, and the strings of its expressions."""
    text = re.sub(r"<(style|script)\b.*?</\1>", "", text, flags=re.S)
    strings = re.findall(r'"([^"]*)"', " ".join(re.findall(r"\{[{%].*?[%}]\}", text)))
    text = re.sub(r"\{\{ (.*?) \}\}", lambda value: shown(value[1]), re.sub(r"\{%.*?%\}", "\n", text))
    strings += re.findall(r'(?:alt|aria-label|title|placeholder)="([^"]*)"', text)
    text = re.sub(r"<[^>]+>", "\n", re.sub(r"</?(?:b|i|em|code|span|strong|label)\b[^>]*>", "", text))
    yield from (line.strip() for line in text.splitlines())
    yield from strings


def of_script(text: str) -> Iterator[str]:
    """Yield the strings of JavaScript."""
    for _, string in re.findall(r"""(["'`])((?:\\.|(?!\1)[^\\])*)\1""", text):
        yield re.sub(r"\$\{([^{}]*)\}", lambda value: shown(value[1]), string)


READERS = {".py": lambda text: of_python(ast.parse(text)), ".html": of_template, ".js": of_script}


@cache
def messages() -> dict[str, list[str]]:
    """Return the texts of each source in their order, each once."""
    found = {}
    for path in sorted(path for top in FOLDERS for path in (ROOT / top).rglob("*") if path.suffix in READERS):
        texts = dict.fromkeys(filter(is_text, READERS[path.suffix](path.read_text(encoding="utf-8"))))
        if texts:
            found[path.relative_to(ROOT).as_posix()] = list(texts)
    return found


@cache
def helps() -> dict[str, str]:
    """Return what the program and each command print for --help in a terminal of 90 columns."""
    found = {}
    for words in (["--help"], *([*name.split(), "--help"] for name in COMMANDS)):
        with redirect_stdout(io.StringIO()) as out, suppress(SystemExit), patch.dict(os.environ, COLUMNS="90"):
            main(words)
        found[" ".join(["agenticiqa", *words])] = out.getvalue()
    return found


def golden() -> dict[Path, str]:
    """Return the content of both files."""
    lines = [line for path, texts in messages().items() for line in (path, *(f"    {text}" for text in texts))]
    return {
        GOLDEN / "messages.txt": "".join(line.replace("\n", "⏎") + "\n" for line in lines),
        GOLDEN / "help.txt": "\n".join(f"$ {command}\n{text}" for command, text in helps().items()),
    }
