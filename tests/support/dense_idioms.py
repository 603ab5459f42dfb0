"""Find idioms that save lines but have to be read twice."""

import ast
from collections.abc import Iterable, Iterator

LONGEST_CHOICE = 3  # lines of a conditional expression


def dense_idioms(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each dense idiom among the nodes of a source."""
    for node in nodes:
        match node:
            case ast.Subscript(value=ast.Tuple(elts=parts) | ast.List(elts=parts)) if _has_starred(parts):
                yield node.lineno, "(*values, default)[0]: use next(iter(values), default)"
            case ast.BinOp(op=ast.Mult(), left=left, right=right) if _is_text(left) or _is_text(right):
                yield node.lineno, '" text" * flag: use a condition'
            case ast.AugAssign(value=ast.IfExp()):
                yield node.lineno, "parts += [...] if x else []: use an if statement"
            case ast.Call(args=args, keywords=named):
                values = [*args, *(each.value for each in named)]
                if any(isinstance(value, ast.NamedExpr) for value in values):
                    yield node.lineno, "an assignment inside arguments: use a statement before the call"
            case ast.IfExp() if len(_span(node.lineno, node.end_lineno or 0)) > LONGEST_CHOICE:
                yield node.lineno, f"a conditional expression over more than {LONGEST_CHOICE} lines: use if and else"


def _span(first: int, last: int) -> range:
    return range(first, last + 1)


def _has_starred(parts: list[ast.expr]) -> bool:
    return any(isinstance(part, ast.Starred) for part in parts)


def _is_text(node: ast.expr) -> bool:
    """Return whether an expression is a string with letters; "-" * 20 is a line, not a choice."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and any(map(str.isalpha, node.value))
    return isinstance(node, ast.JoinedStr)
