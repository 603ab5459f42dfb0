"""Read the imports between the project's modules from the sources, without running them."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path


@dataclass(frozen=True)
class Import:
    """One import of a project module: importing module, line, imported name, and whether only type checkers see it."""

    by: str
    line: int
    of: str
    typing_only: bool = False


@dataclass(frozen=True)
class Sources:
    """The modules of a package by dotted name, each with its file."""

    files: Mapping[str, Path]

    @cached_property
    def trees(self) -> dict[str, list[ast.AST]]:
        """Return the nodes of each module, the module first."""
        return {name: [*ast.walk(ast.parse(path.read_text("utf-8")))] for name, path in self.files.items()}

    @cached_property
    def imports(self) -> list[Import]:
        """Return every import of a project module, at the top of a module or inside a function."""
        return [found for name in sorted(self.files) for found in self._read(name)]

    @cached_property
    def loads(self) -> dict[str, set[str]]:
        """Return the modules that each module imports at run time."""
        found: dict[str, set[str]] = {name: set() for name in self.files}
        for each in self.imports:
            if not each.typing_only:
                found[each.by].add(each.of)
        return found

    def circles(self) -> dict[str, list[Import]]:
        """Return, by package, the shortest import circle among its direct children with their contents."""
        found = {}
        for package in sorted({parent for name in self.files for parent in parents(name)}):
            edges: dict[str, dict[str, Import]] = {}
            for each in self.imports:
                one, other = child_of(package, each.by), child_of(package, each.of)
                if not each.typing_only and one and other and one != other:
                    edges.setdefault(one, {}).setdefault(other, each)
            if circle := _shortest_circle(edges):
                found[package] = circle
        return found

    def deepest(self) -> list[str]:
        """Return the longest chain in which each module imports the next; a circle is entered once."""
        known: dict[str, list[str]] = {}

        def chain(name: str, above: frozenset[str]) -> list[str]:
            if name not in known:
                below = [chain(each, above | {name}) for each in sorted(self.loads[name] - above - {name})]
                known[name] = [name, *max(below, key=len, default=[])]
            return known[name]

        return max((chain(name, frozenset()) for name in sorted(self.files)), key=len)

    def _read(self, name: str) -> Iterator[Import]:
        nodes = self.trees[name]
        package = name if self.files[name].name == "__init__.py" else name.rpartition(".")[0]
        typing_only = {
            id(inner)
            for block in nodes
            if isinstance(block, ast.If) and ast.unparse(block.test).endswith("TYPE_CHECKING")
            for statement in block.body
            for inner in ast.walk(statement)
        }
        for node in nodes:
            if isinstance(node, ast.Import | ast.ImportFrom | ast.Call):
                for module in sorted({self._module(imported) or name for imported in _named(node, package)} - {name}):
                    yield Import(name, node.lineno, module, id(node) in typing_only)

    def _module(self, imported: str) -> str | None:
        """Return the module that holds an imported name: itself, or the nearest module or package around it."""
        return next((name for name in (imported, *parents(imported)) if name in self.files), None)


def sources(folders: Mapping[str, Path]) -> Sources:
    """Return the modules under each folder, given by dotted name; for nested folders the longest name applies."""
    files: dict[str, Path] = {}
    for name, folder in folders.items():
        nested = [other for other in folders.values() if other != folder and folder in other.parents]
        for path in sorted(folder.rglob("*.py")):
            if not any(inside in path.parents for inside in nested):
                files[".".join((name, *path.relative_to(folder).with_suffix("").parts)).removesuffix(".__init__")] = (
                    path
                )
    return Sources(files)


def parents(name: str) -> list[str]:
    """Return the packages around a module, the nearest first."""
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(len(parts) - 1, 0, -1)]


def child_of(package: str, name: str) -> str | None:
    """Return the direct child of a package that contains a module; None for other modules and the package itself."""
    return ".".join(name.split(".")[: package.count(".") + 2]) if name.startswith(package + ".") else None


def _named(node: ast.AST, package: str) -> list[str]:
    """Return the dotted names that one statement or call imports."""
    match node:
        case ast.Import(names=names):
            return [each.name for each in names]
        case ast.ImportFrom(module=module, names=names, level=level):
            around = [package, *parents(package)][level - 1] if level else ""
            base = ".".join(part for part in (around, module) if part)
            return [f"{base}.{each.name}" for each in names]
        case ast.Call(
            func=ast.Name(id="import_module") | ast.Attribute(attr="import_module"), args=[ast.Constant(str(name)), *_]
        ):
            return [name]
    return []


def _shortest_circle(edges: Mapping[str, Mapping[str, Import]]) -> list[Import]:
    """Return the imports of the shortest way from a node back to itself; empty if there is none."""
    found = [way for start in edges if (way := _way_back(start, edges))]
    return min(found, key=len, default=[])


def _way_back(start: str, edges: Mapping[str, Mapping[str, Import]]) -> list[Import]:
    ways: dict[str, list[Import]] = {start: []}
    waiting = [start]
    for node in waiting:  # grows during the loop: breadth first
        for other, each in edges.get(node, {}).items():
            if other == start:
                return [*ways[node], each]
            if other not in ways:
                ways[other] = [*ways[node], each]
                waiting.append(other)
    return []
