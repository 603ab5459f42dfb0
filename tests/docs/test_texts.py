"""Every text for users is listed in messages.txt and help.txt, for review."""

import ast
import difflib
import sys

import pytest

from support.recorded import RECORD
from support.texts import golden, is_text, of_python, of_script, of_template


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
