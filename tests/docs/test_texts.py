"""Every text for users is listed in messages.txt and help.txt, for review, and is in plain English."""

import ast
import difflib
import re
import sys

import pytest

from support.prose import INSTEAD_IN_MESSAGES, offences
from support.recorded import RECORD
from support.texts import VALUE, golden, helps, is_text, messages, of_python, of_script, of_template

PROMPTS = ("eval/optimize/reflection.py",)  # what models read is changed with measurements only


@pytest.mark.recorded
@pytest.mark.parametrize("name", ["messages.txt", "help.txt"])
def test_the_listed_texts_are_those_of_the_code(name: str, recording: bool) -> None:
    if name == "help.txt" and sys.version_info[:2] != (3, 11):
        pytest.skip("argparse of other Python versions wraps lines elsewhere")
    file, text = next((file, text) for file, text in golden().items() if file.name == name)
    if recording:
        file.write_text(text, encoding="utf-8")
    kept = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    differing = list(difflib.unified_diff(kept, text.splitlines(), "kept", "now", lineterm="", n=0))[:20]
    assert not differing, "\n".join([RECORD, *differing])


def test_texts_are_plain_english() -> None:
    parts = {path: [line for text in texts for line in of_layout(text)] for path, texts in messages().items()}
    parts |= {command: of_help(text) for command, text in helps().items()}
    wrong = {
        where: [each for text in texts for each in offences(plain(text), INSTEAD_IN_MESSAGES)]
        for where, texts in parts.items()
        if where not in PROMPTS
    }
    assert not any(wrong.values()), "\n".join(
        line for where in wrong for line in (where, *wrong[where]) if wrong[where]
    )


def test_the_texts_of_a_source_are_found() -> None:
    source = '''
"""A docstring is no text."""
def f(path: "A type is none") -> None:
    raise ValueError(f"{path}: cannot be read ({'try it again' if path else path.with_suffix('.txt')})" " at all")
    re.search("a pattern of words", path), "SELECT one FROM a table", "too short"
'''
    assert [*filter(is_text, of_python(ast.parse(source)))] == ["{path}: cannot be read ({...}) at all", "try it again"]
    page = """{% if x %}<p>Made of <b>{{ x.name }}</b></p>{% endif %}<img alt="the red dot">{{ a or "none of it" }}"""
    found = ["Made of {x.name}", "none of it", "the red dot"]
    assert [*filter(is_text, of_template(page))] == found
    assert [*filter(is_text, of_script('say("use", `${n} of ${all.length} shown`)'))] == ["{n} of {all.length} shown"]


def plain(text: str) -> str:
    """Return a text with one word in place of each value and each piece of code."""
    return re.sub(r"`[^`]+`|\"[^\"]*\"", "code", re.sub(VALUE, "…", text))


def of_layout(text: str) -> list[str]:
    """Return the parts of a text of several lines: an indented line is a part of its own."""
    return re.split(r"\n(?= )", text)


def of_help(text: str) -> list[str]:
    """Return the parts of a help without its usage: paragraphs, lines of examples, and the text of each option."""
    text = re.sub(r"\n {8,}(?=\S)", "  ", text.split("\n\n", 1)[1])  # an option and the lines of its text
    return [re.sub(r"^ {2,}\S.*? {2,}", "", part) for part in re.split(r"\n(?= |\n)", text)]
