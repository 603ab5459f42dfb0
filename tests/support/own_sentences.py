"""Find searches in sentences that the program wrote itself, because a reworded message would change what it does."""

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

ERRORS = {"error", "failure", "outcome", "problem", "exception", "cause", "refused"}
SEARCHES = {"search", "match", "fullmatch", "findall", "sub"}
CUTS = {"replace", "startswith", "endswith", "partition", "rpartition", "split", "removeprefix", "removesuffix", "find"}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass
class Texts:
    """The texts of sources without docstrings, and their constants by name."""

    written: set[str] = field(default_factory=set)
    constants: dict[str, str] = field(default_factory=dict)

    def is_own(self, words: ast.expr) -> bool:
        """Return whether an expression is words of a longer text, or a constant of several words."""
        match words:
            case ast.Constant(value=str(text)):
                return len(text.split()) > 1 and any(text != other and text in other for other in self.written)
            case ast.Name(id=name):
                return len(self.constants.get(name, "").split()) > 1
        return False


def texts_of(sources: Iterable[Sequence[ast.AST]]) -> Texts:
    """Collect the texts of sources, each given by its nodes."""
    found = Texts()
    for nodes in sources:
        documented = [node.body[0] for node in nodes if isinstance(node, DOCUMENTED) and node.body]
        docstrings = {id(first.value) for first in documented if isinstance(first, ast.Expr)}
        for node in nodes:
            match node:
                case ast.Constant(value=str(text)) if id(node) not in docstrings:
                    found.written.add(text)
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(text))) if name.isupper():
                    found.constants[name] = text
    return found


def sentence_searches(nodes: Sequence[ast.AST], texts: Texts) -> Iterator[tuple[int, str]]:
    """Yield the line and the kind of each search in the text of an error, or for words of an own text."""
    caught = {node.name for node in nodes if isinstance(node, ast.ExceptHandler) and node.name}
    for node in nodes:
        match node:
            case ast.Compare(left=words, ops=[ast.In() | ast.NotIn()], comparators=[place]):
                pass
            case ast.Call(func=ast.Attribute(value=place, attr=method), args=[words, *_]) if method in CUTS:
                pass
            case ast.Call(func=ast.Attribute(attr=method), args=[words, *_, place]) if method in SEARCHES:
                pass
            case _:
                continue
        if _is_text_of_error(place, caught | ERRORS) and not _is_line_break(words):
            yield node.lineno, "a search in the text of an error: give the error a field or a class"
        elif texts.is_own(words):
            yield node.lineno, "a search for words of an own text: pass a field beside it"


def _is_text_of_error(place: ast.expr, errors: set[str]) -> bool:
    match place:
        case ast.Call(func=ast.Name(id="str"), args=[value]) | ast.Attribute(value=value, attr="message"):
            while isinstance(value, ast.Attribute):
                value = value.value
            return isinstance(value, ast.Name) and value.id in errors
        case ast.Call(func=ast.Attribute(value=inner, attr="lower" | "strip")):
            return _is_text_of_error(inner, errors)
    return False


def _is_line_break(words: ast.expr) -> bool:
    """Return whether the first line of a text is taken, whatever its words are."""
    match words:
        case ast.Constant(value=str(text)):
            return text == "\n"
        case ast.Call(func=ast.Name(id="chr")):
            return True
    return False
