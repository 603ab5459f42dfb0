"""Compare names of files: a Mac writes them decomposed (NFD), other systems composed (NFC), tables in any case."""

import os
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from glob import glob
from pathlib import Path
from typing import TypeVar
from unicodedata import normalize

from agenticiqa.programs.images.files import printable_path, without_controls

T = TypeVar("T")

NO_WIDTH = "\\u00ad\\u200b-\\u200d\\u2060-\\u2064\\ufeff"  # for a class of characters in a pattern
FORMULA = "[=+\\-@＝＋－＠]"  # the beginning of a formula
GUARD = re.compile(rf"'(?=[\s{NO_WIDTH}]*{FORMULA}|[\t\r\n])")  # what ``page.csv_text`` adds before one
PATTERN = re.compile(r"[*?\[]")


def folded(name: str) -> str:
    """Return a name in the form in which names are compared: composed, without case, and as in a table.

    ``page.csv_text`` writes names without control characters and with an apostrophe before what may be a formula.
    Readers remove blanks around a cell.
    """
    name = without_controls(printable_path(GUARD.sub("", name))).strip()
    return name.lower() if name.isascii() else normalize("NFC", normalize("NFD", name).casefold())


def closest(name: str, candidates: Iterable[T], name_of: Callable[[T], str]) -> list[T]:
    """Return the candidates with this name: equal, else equal when composed, else equal also without case."""
    alike = [candidate for candidate in candidates if folded(name_of(candidate)) == folded(name)]
    composed = [candidate for candidate in alike if normalize("NFC", name_of(candidate)) == normalize("NFC", name)]
    return [candidate for candidate in composed if name_of(candidate) == name] or composed or alike


def paths_named(path: str) -> list[str]:
    """Return the path if something is there, else the existing paths that ``closest`` takes for it."""
    if not path or os.path.exists(path):
        return [path]
    there = [""]
    for part in Path(path).parts:  # no recursion: base64 text given as a path has thousands of slashes
        there = [place for folder in there for place in _named_in(folder, part)]
    return there


def expanded(name: str) -> list[str]:
    """Return the paths that a name stands for, sorted: if nothing has this name, those that match it as a pattern.

    A pattern has ``*``, ``?`` or ``[...]``; ``**`` matches folders at any depth. A part of it that exists as it is
    written, such as the folder ``shoot [1]``, is no pattern. A name without a path is returned as it is.
    """
    paths = paths_named(name)
    if len(paths) == 1 or not PATTERN.search(name):
        return paths if len(paths) == 1 else [name]
    *above, last = Path(name).parts
    there = {""}
    for part in (*("**/" if part == "**" else part for part in above), last):
        named = {path for folder in there for path in _named_in(folder, part)}
        is_pattern = PATTERN.search(part) and not named
        there = {path for folder in there for path in _matching_in(folder, part)} if is_pattern else named
    return sorted(path for path in there if path and (os.path.isdir(path) or not name.endswith("/"))) or [name]


def _named_in(folder: str, name: str) -> list[str]:
    """Return the path of this name in a folder if something is there, else the existing ones of the closest names."""
    path = os.path.join(folder, name)
    if os.path.exists(path):
        return [path]
    paths = [os.path.join(folder, other) for other in closest(name, _names_in(folder, name), str)]
    return [path for path in paths if os.path.exists(path)]  # a broken link has a name, too


def _matching_in(folder: str, pattern: str) -> list[str]:
    """Return the paths that match one part of a pattern; ``**`` also matches the folder itself."""
    names = {""} if pattern in ("**", "**/") else set()
    with suppress(RecursionError):  # glob is recursive in deep folders
        for form in ("NFC", "NFD"):
            names.update(glob(normalize(form, pattern), root_dir=folder or None, recursive=True))
    return [os.path.join(folder, name) for name in names]


def _names_in(folder: str, name: str) -> Sequence[str]:
    try:
        return _listed(folder or ".", os.stat(folder or ".").st_mtime_ns).get(folded(name), ())
    except (OSError, ValueError):  # ValueError: a null character
        return ()


@lru_cache(maxsize=64)
def _listed(folder: str, changed: int) -> dict[str, list[str]]:
    """Return the names in a folder by ``folded``; ``changed`` is the time of its last change."""
    names: dict[str, list[str]] = {}
    for name in os.listdir(folder):
        names.setdefault(folded(name), []).append(name)
    return names
