"""What ``help()`` shows of public names: docstrings in Google style, with every argument, field and result."""

import inspect
import re
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
OWN, PROMPTS = "agenticiqa", "agenticiqa.signatures"  # docstrings of the latter are sent to models
EXPORTING = ("", ".programs", ".programs.images", ".programs.tools", ".eval", ".eval.optimize", ".eval.report")


def public() -> dict[str, Any]:
    """Return what the packages export, what the pages import, all exceptions, and the members of these classes."""
    names = {(OWN + package, name) for package in EXPORTING for name in import_module(OWN + package).__all__}
    names |= {(f"{OWN}.metrics", name) for name in dir(import_module(f"{OWN}.metrics"))}
    for module in (f"{OWN}.configs", f"{OWN}.programs.errors"):
        names |= {(module, name) for name, each in vars(import_module(module)).items() if is_exception(each)}
    for page in PAGES:
        for module, imported in re.findall(r"^from (agenticiqa\S*) import (.+)$", page.read_text("utf-8"), re.M):
            names |= {(module, name) for name in imported.split(", ")}
    found: dict[str, Any] = {}
    for module, name in sorted(names):
        each = getattr(import_module(module), name)
        if (inspect.isfunction(each) or inspect.isclass(each)) and not each.__module__.startswith(PROMPTS):
            found[f"{each.__module__}.{each.__qualname__}"] = each
            for base in own_bases(each) if inspect.isclass(each) else []:
                members = {key: value for key, value in vars(base).items() if is_member(key, value)}
                found |= {f"{base.__module__}.{base.__name__}.{key}": value for key, value in members.items()}
    return found


def is_exception(each: object) -> bool:
    return inspect.isclass(each) and issubclass(each, Exception)


def is_member(name: str, value: object) -> bool:
    """Whether users call or read it: DSPy calls ``forward``, and a field that is a property is among Attributes."""
    described = isinstance(value, FunctionType | classmethod | property | cached_property) and value.__doc__ is not None
    return described and name != "forward" and (name == "__call__" or not name.startswith("_"))


def own_bases(of: type) -> list[type]:
    return [base for base in of.__mro__ if base.__module__.startswith(OWN)]


def section(text: str, title: str) -> set[str]:
    """Return the names that a section describes."""
    body = re.search(rf"^{title}:\n((?: {{4}}.*\n?)+)", text, re.M)
    return set(re.findall(r"^ {4}\**(\w+): \S", body[1], re.M)) if body else set()


def faults(each: Any) -> list[str]:
    """Return what is wrong with the docstring of a function, class or property."""
    text = inspect.cleandoc(each.__doc__ or "")
    found = [] if text.partition("\n\n")[0].endswith(".") else ["no sentence at the beginning"]
    each = getattr(each, "__func__", each)  # of a class method
    takes, title, returned = set[str](), "Args", None
    if inspect.isclass(each):
        fields = {name for base in own_bases(each) for name in inspect.get_annotations(base) if name[0] != "_"}
        if fields:
            takes, title = fields, "Attributes"
        elif "__init__" in vars(each) and not is_exception(each):
            takes = set(inspect.signature(each.__init__).parameters)
    elif inspect.isfunction(each):
        takes, returned = set(inspect.signature(each).parameters), inspect.signature(each).return_annotation
    described = section(text, title)
    if inspect.isclass(each):  # a class may leave the description of a field to the base that declares it
        described = described.union(*(section(inspect.cleandoc(base.__doc__ or ""), title) for base in own_bases(each)))
    if described != takes - {"self", "cls"}:
        found.append(f"{title} differ in {', '.join(sorted(described ^ (takes - {'self', 'cls'})))}")
    if returned not in (None, "None") and not re.search(r"^(Returns|Yields):\n    \S", text, re.M):
        found.append("no Returns or Yields")
    return found


def test_docstrings_of_public_names_are_complete() -> None:
    wrong = {name: found for name, each in public().items() if (found := faults(each))}
    assert not wrong, "\n".join(f"{name}: {'; '.join(found)}" for name, found in wrong.items())
    print(f"{len(public())} public names")


def test_gaps_in_a_docstring_are_found() -> None:
    def metric(image: bytes, reference: bytes | None = None) -> float:
        """The score

        Args:
            image: A file.
            scale: Of the score.
        """
        return len(image) - len(reference or b"")

    assert faults(metric) == ["no sentence at the beginning", "Args differ in reference, scale", "no Returns or Yields"]
