"""Find the files that a table or list names: beside it, below its folder by a unique name, by paths of Windows."""

import os
import re
from functools import partial
from pathlib import Path, PureWindowsPath

from agenticiqa.programs.errors import ImageError, UserError
from agenticiqa.programs.images.finding import files_below
from agenticiqa.programs.images.names import closest, folded, paths_named
from agenticiqa.programs.images.sources import is_encoded

SHOWN = 2
QUOTED = re.compile(r"""(["'])([^"]+)\1""")


class NamedFiles:
    """The files of a table with paths relative to ``folder``; ``title`` names the table in messages.

    ``searched`` has the names without a file, each with the only file found for it below the folder.
    """

    def __init__(self, title: str, folder: Path) -> None:
        self.title, self.folder = title, folder
        self.searched: dict[str, Path] = {}
        self._names: dict[Path, str] = {}
        self._below: dict[str, list[Path]] | None = None

    def locate(self, name: str) -> Path | None:
        """Return the file of a name, if unambiguous; search for a missing one only after ``find`` has searched."""
        path = self._path(name)
        if os.path.isfile(path):
            return path
        fitting = self._fitting(name) if self.searched else []
        return fitting[0] if len(fitting) == 1 else None

    def find(self, name: str) -> Path:
        r"""Return the file of a name, or the path where it should be.

        A relative name is searched below the folder as a whole ("a.png", "dist/a.png"). For an absolute name, of any
        system ("C:\set\dist\a.png"), the file with the most equal folders at its end is returned. Raises UserError if
        several files match, or if two names lead to the same file.
        """
        path = self._path(name)
        if not os.path.isfile(path):
            fitting = self._fitting(name)
            if len(fitting) > 1:
                examples = " and ".join(map(str, fitting[:SHOWN]))
                raise UserError(
                    f"{self.title}: {name} is not in {self.folder}, but {len(fitting)} files of this name are in its "
                    f"subfolders, such as {examples}; write the subfolder into the table, or name it with --root"
                )
            if fitting:
                path = self.searched[name] = fitting[0]
        other = self._names.setdefault(path, name)
        if other != name and {other, name} & self.searched.keys():
            raise UserError(
                f"{self.title}: {other} and {name} both lead to {path}; correct the paths, or give their folder with "
                "--root"
            )
        return path

    def listed(self, name: str) -> str:
        """Return the path or address of a name in a list of images; it may be in quotation marks, or of Windows.

        Raises ImageError for a Windows path that is ambiguous.
        """
        if "://" in name or is_encoded(name):
            return name
        path = self.folder / name
        if os.path.exists(path):
            return str(path)
        name = unquoted(name)
        if "\\" not in name and not PureWindowsPath(name).drive:
            return str(self.folder / name)
        try:
            return str(self.find(name))
        except UserError as error:
            problem = "several files or rows fit this Windows path; write its path on this machine"
            raise ImageError(problem, name) from error

    def note(self) -> str | None:
        """Return one line about the files that were searched; ``None`` without any."""
        if not self.searched:
            return None
        name, path = next(iter(self.searched.items()))
        return f"{len(self.searched)} files were found by name below {self.folder}, such as {path} for {name}"

    def _path(self, name: str) -> Path:
        path = self.folder / name
        paths = paths_named(os.fspath(path))
        if "\\" in name and not paths:  # it may also be a byte that is not UTF-8, as in caf\xe9.png
            windows = PureWindowsPath(name)
            path = Path(name) if windows.anchor else self.folder.joinpath(*windows.parts)
            paths = paths_named(os.fspath(path))
        return Path(paths[0]) if len(paths) == 1 else path

    def _fitting(self, name: str) -> list[Path]:
        """Return the files below the folder that end like a name; for an absolute name, like most of it."""
        windows = PureWindowsPath(name)  # a Windows path may also have slashes
        parts = tuple(part for part in windows.parts if part not in (windows.anchor, ".."))
        if not parts:
            return []
        if self._below is None:
            self._below = {}
            for path in files_below(self.folder):
                self._below.setdefault(folded(path.name), []).append(path)
        below = self._below.get(folded(parts[-1]), [])
        if not below:
            return []
        least = 1 if windows.anchor else len(parts)
        for length in range(len(parts), least - 1, -1):
            end = "/".join(parts[-length:])
            if files := closest(end, below, partial(_end_of, length)):
                return files
        return []


def unquoted(name: str) -> str:
    """Return a name without the quotation marks around it, which Windows and ``ls`` add to a copied path."""
    quoted = QUOTED.fullmatch(name.strip())
    return quoted[2] if quoted else name


def _end_of(length: int, path: Path) -> str:
    """Return the last parts of a path."""
    return "/".join(path.parts[-length:])
