"""Fill the templates of HTML pages: everything is escaped, and a page may load nothing but the images beside it."""

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, PrefixLoader, StrictUndefined
from markupsafe import Markup

from agenticiqa.programs.images.files import without_controls

# A browser that follows it loads nothing, even if something hostile came into a page: only images beside the page.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src 'self' file: data: blob:; font-src data:; base-uri 'none'; form-action 'none'"
)
PACKAGES = {"page": "agenticiqa.programs.page"}


def render(template: str, values: Mapping[str, Any], packages: Mapping[str, str] = PACKAGES) -> str:
    """The page that a template makes of ``values``. Texts are escaped and lose control characters, but for ``Markup``.

    A template is named ``PREFIX/FILE``: a file in the folder ``templates`` of the package that ``packages`` gives for
    the prefix. Raises ``jinja2.UndefinedError`` for a value that the template names and is not there.
    """
    loaders = {prefix: PackageLoader(package) for prefix, package in packages.items()}
    environment = Environment(
        loader=PrefixLoader(loaders),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: without_controls(value) if type(value) is str else value,  # no Markup, which is ours
    )
    return environment.get_template(template).render({"policy": POLICY, "style": inline("style.css"), **values})


def inline(name: str, package: str = PACKAGES["page"]) -> Markup:
    """A style or script of ours as it is, to stand inside the page."""
    return Markup((files(package) / "templates" / name).read_text(encoding="utf-8"))
