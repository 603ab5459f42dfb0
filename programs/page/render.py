"""Fill the templates of HTML pages; all text is escaped, and a page can load only the images beside it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, PrefixLoader, StrictUndefined
from markupsafe import Markup

from agenticiqa.programs.images.files import without_controls

# With this policy, browsers load only images beside the page, even if hostile text gets into it.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src 'self' file: data: blob:; font-src data:; base-uri 'none'; form-action 'none'"
)
# The group is the part after the integer.
NUMBER = re.compile(r"[<+-]?[\d,]+((?:\.\d+)?%?(?: (?:of [\d,]+|[A-Za-z]+))?)")
DIGIT_WIDE = "\u2007"
PACKAGES = {"page": "agenticiqa.programs.page"}


def render(template: str, values: Mapping[str, Any], packages: Mapping[str, str] = PACKAGES) -> str:
    """Return a template filled with ``values``; texts other than ``Markup`` are escaped, without control characters.

    A template is named ``PREFIX/FILE``, a file in the folder ``templates`` of the package that ``packages`` gives for
    the prefix. Raises ``jinja2.UndefinedError`` for a value of the template that is missing.
    """
    loaders = {prefix: PackageLoader(package) for prefix, package in packages.items()}
    environment = Environment(
        loader=PrefixLoader(loaders),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: without_controls(value) if type(value) is str else value,  # Markup is trusted
    )
    environment.filters["aligned"] = aligned
    return environment.get_template(template).render({"policy": POLICY, "style": inline("style.css"), **values})


def aligned(lines: Iterable[Sequence[str]]) -> list[list[tuple[str, str, bool]]]:
    """Return the cells of a table, each as text, the interval below it, and whether its column is numeric.

    Numeric columns are right-aligned, and padded with blanks as wide as a digit so that decimal points are aligned.
    """
    columns = []
    for cells in zip(*lines, strict=True):
        parts = [cell.partition(" [") for cell in cells]
        hits = [NUMBER.fullmatch(value) for value, _, _ in parts]
        is_number = any(hits) and all(match or value == "-" for match, (value, _, _) in zip(hits, parts, strict=True))
        longest = max((len(match[1]) for match in hits if match), default=0) if is_number else 0
        rests = [len(match[1]) if match else 0 for match in hits]
        columns.append(
            [
                (f"{value}{DIGIT_WIDE * (longest - rest) if match else ''}", f"{bracket}{ends}".strip(), is_number)
                for (value, bracket, ends), rest, match in zip(parts, rests, hits, strict=True)
            ]
        )
    return [[*line] for line in zip(*columns, strict=True)]


def inline(name: str, package: str = PACKAGES["page"]) -> Markup:
    """Return a style or script of the package, unescaped, for the inside of a page."""
    return Markup((files(package) / "templates" / name).read_text(encoding="utf-8"))
