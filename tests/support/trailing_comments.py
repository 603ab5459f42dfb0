"""Find trailing comments that a reader cannot understand alone: without a noun, or with a number without its unit."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator

DIRECTIVE = re.compile(r"#\s*(type:|noqa|fmt:|pragma)")
# Words that begin a fragment or a clause without a subject.
NO_NOUN = re.compile(
    r"(?:across|after|also|although|always|as|at|avoids|because|before|beside|between|built|by|compiled|"
    r"decodes|disabled|during|for|from|gives|handled|here|if|imported|in|into|kept|later|like|loads|"
    r"makes|moved|nearly|needs|never|not|of|on|only|or|over|per|prevents|raised|raises|read|relative|"
    r"returns|sent|set|since|skips|so|stays|stored|such|takes|than|that|their|then|there|to|under|"
    r"unless|until|when|where|which|while|whose|with|within|without)\b",
    re.IGNORECASE,
)
UNITS = re.compile(
    r"\b(bit|bytes?|cd|chromaticity|correlation|cosine|degree|dB|deviation|difference|distance|divisor|EV|exponent|factor|frequency|height|hertz|ids?|index|"
    r"KB|level|limit|luma|magnitude|MB|mean|megabyte|MOS|multiple|number|opacity|order|per cent|pixel|point|power|"
    r"probability|quality|quantile|radius|ratio|reliability|s|score|SRCC|second|seed|severity|share|side|similarity|size|"
    r"sum|threshold|tolerance|times?|value|version|weight|width|%)s?\b|%"
)
PLURAL = re.compile(r"\b(?!(?:is|this|as|its|has|was|always|less|plus|minus|us)\b)[a-z]+s\b")


def unclear_comments(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line of each unclear trailing comment of a source, and what is wrong with it."""
    numbers = set(_lines_of_numbers(ast.parse(source)))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        is_trailing = token.type == tokenize.COMMENT and token.line[: token.start[1]].strip()
        if not is_trailing or DIRECTIVE.match(token.string):
            continue
        line, text = token.start[0], token.string.removeprefix("#").strip()
        if first := NO_NOUN.match(text):
            yield line, f"a comment that begins with {first[0]!r}: begin with a noun phrase"
        elif line in numbers and not UNITS.search(text) and not PLURAL.search(" ".join(text.split()[:4])):
            yield line, "a comment on a number that has no unit"


def _lines_of_numbers(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        match node:
            case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value) if _is_number(value):
                yield node.lineno


def _is_number(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=value):
            return isinstance(value, int | float) and not isinstance(value, bool)
        case ast.UnaryOp(operand=operand):
            return _is_number(operand)
        case ast.Tuple(elts=parts):
            return bool(parts) and all(map(_is_number, parts))
    return False
