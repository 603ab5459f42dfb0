"""Replay recorded sessions of commands: what is typed, both streams, the exit status, and the files that change.

A transcript is a text file of scenes. Each scene begins with ``# title`` and runs in an empty folder of its own::

    # A missing file is named
    $ picture a.png 1
    $ agenticiqa assess gone.png a.png --csv t.csv
      a line of stdout
    !1 agenticiqa: gone.png: expected an image, ...
    + t.csv

``  `` begins a line of stdout, ``!`` of stderr; ``+``, ``~`` and ``-`` begin the names of files that a command makes,
changes or removes. An exit status other than 0 follows the last ``!``, or ``=`` if nothing is on stderr.
``agenticiqa`` runs in this process; `` < FILE`` is its stdin, and `` > FILE`` its stdout. ``picture``, ``keys``,
``export``, ``cd`` and ``archive`` are the functions below, and the shell runs all else.
"""

import hashlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from support import archives, question_archives
from support.recorded import RECORD

EXAMPLES = Path(__file__).parents[2] / "examples"
TOLERANCE = 0.02  # of numbers with decimals or thousands, which depend on the versions of libraries; scores are in 1..5
VARYING = {r"\d+\.\d+(?= s\b)": "{time}", r"20\d\d-\d\d-\d\d": "{date}", r"[0-9a-f]{20,}": "{digest}"}
NUMBER = re.compile(r"\d[\d,]*\.\d+|\d+,\d{3}")


@dataclass
class Scene:
    """A scene of a transcript: its title, and its lines as recorded."""

    file: Path
    title: str
    lines: list[str]

    @property
    def text(self) -> str:
        """The scene as it stands in the file."""
        return "\n".join([f"# {self.title}", *self.lines])


def scenes(folder: Path) -> list[Scene]:
    """Return the scenes of all transcripts of a folder."""
    found = []
    for file in sorted(folder.glob("*.txt")):
        for text in file.read_text().removeprefix("# ").split("\n\n# "):
            title, *lines = text.rstrip("\n").split("\n")
            found.append(Scene(file, title, lines))
    return found


def replay(scene: Scene, folder: Path, patch: pytest.MonkeyPatch, *, record: bool) -> None:
    """Run the commands of a scene in a folder, and compare; with ``record``, write what they do to its file instead."""
    folder = folder / "scene"
    folder.mkdir()
    patch.chdir(folder)
    for name, value in {"NO_COLOR": "1", "COLUMNS": "120", "LINES": "50"}.items():  # rich needs both for a size
        patch.setenv(name, value)
    patch.setattr("agenticiqa.programs.cli.options.available_cores", lambda: 1)  # results come in the order of images
    found = [line for command in scene.lines if command.startswith("$ ") for line in _shown(command, folder, patch)]
    if _equal(found, scene.lines):
        return
    if not record:
        raise AssertionError(
            "\n".join([f"{scene.file.name}: {RECORD}", *unified_diff(scene.lines, found, "recorded", "found")])
        )
    text = scene.file.read_text()
    assert text.count(scene.text) == 1, f"two scenes of {scene.file} are equal"
    scene.file.write_text(text.replace(scene.text, Scene(scene.file, scene.title, found).text))


def _equal(found: list[str], recorded: list[str]) -> bool:
    return len(found) == len(recorded) and all(map(_same, found, recorded))


def _same(found: str, recorded: str) -> bool:
    """Return whether two lines have the same text, and numbers with decimals that are nearly equal."""
    if NUMBER.split(found) != NUMBER.split(recorded):
        return False
    numbers, expected = ([float(n.replace(",", "")) for n in NUMBER.findall(line)] for line in (found, recorded))
    return all(abs(a - b) <= TOLERANCE * max(1, b) for a, b in zip(numbers, expected, strict=True))


def _shown(command: str, folder: Path, patch: pytest.MonkeyPatch) -> Iterator[str]:
    """Run one command, and yield it as a transcript shows it, without what differs between two runs."""
    yield command
    words, before = shlex.split(command.removeprefix("$ ")), _files(folder)
    status, out, err = _run(words, command.removeprefix("$ "), patch)
    yield from (f"  {_lasting(line, folder)}".rstrip() for line in out.splitlines())
    *errors, last = err.splitlines() or [""]
    yield from (f"! {_lasting(line, folder)}" for line in errors)
    if last:
        yield f"!{status or ''} {_lasting(last, folder)}"
    elif status:
        yield f"= {status}"
    if words[0] == "agenticiqa":
        after = _files(folder)
        changed = [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]
        for mark, names in (
            ("+", [name for name in changed if name not in before]),
            ("~", [name for name in changed if name in before and name in after]),
            ("-", [name for name in changed if name not in after]),
        ):
            if names:
                yield f"{mark} {' '.join(names)}"


def _lasting(line: str, folder: Path) -> str:
    """Replace the scene's folder, times, dates and digests."""
    line = line.replace(str(folder), "{here}")
    for pattern, name in VARYING.items():
        line = re.sub(rf"\b{pattern}", name, line)
    return line


def _files(folder: Path) -> dict[str, str]:
    """Return the digest of each file by its name, without the time when a run finished.

    Thumbnails, which are named by digests, count as their folder.
    """
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            name = str(path.relative_to(folder))
            name = f"{os.path.dirname(name)}/" if os.path.dirname(name).endswith("_files") else name
            content = re.sub(rb'"finished": "[^"]*"', b"", path.read_bytes())
            found[name] = hashlib.sha256(found.get(name, "").encode() + content).hexdigest()
    return found


def _run(words: list[str], line: str, patch: pytest.MonkeyPatch) -> tuple[int, str, str]:
    """Run a command; return its exit status, stdout and stderr."""
    if words[0] != "agenticiqa":
        if words[0] in OWN:
            return 0, OWN[words[0]](patch, *words[1:]) or "", ""
        done = subprocess.run(line, shell=True, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr
    from agenticiqa.eval.cli import main

    file = ""
    if words[-2:-1] == [">"]:
        *words, _, file = words
    if words[-2:-1] == ["<"]:
        patch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(Path(words[-1]).read_bytes())))
        words = words[:-2]
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err):
        try:
            status = main(words[1:])
        except SystemExit as end:
            status = int(end.code or 0)
    out.seek(0), err.seek(0)
    printed = out.read()
    if file:
        Path(file).write_text(printed)
    return status, "" if file else printed, err.read()


def _picture(patch: pytest.MonkeyPatch, path: str, content: str, size: str = "64x64", quality: str = "75") -> None:
    """Save a picture: an example of this name, squares of random colors for a number, or the picture of a file."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    if content.isdigit():
        colors = np.random.default_rng(int(content)).integers(0, 256, (8, 8, 3), dtype=np.uint8)
        image = Image.fromarray(colors).resize((64, 64))
    else:
        image = Image.open(EXAMPLES / content if (EXAMPLES / content).exists() else content).convert("RGB")
    width, height = map(int, size.split("x"))
    image.resize((width, height)).save(path, quality=int(quality))


def _keys(patch: pytest.MonkeyPatch, file: str, *names: str) -> str:
    """Return the values of these keys in each row of a file of JSON, or of JSON lines; ``a.b`` is b in a."""
    text = Path(file).read_text()
    whole = text.startswith(("[", "{\n"))
    rows = json.loads(f"[{text}]" if whole else "[" + ",".join(text.splitlines()) + "]")
    rows = rows[0] if text.startswith("[") else rows
    return "\n".join(", ".join(f"{name} {json.dumps(_value(row, name))}" for name in names) for row in rows)


def _value(row: dict[str, object], name: str) -> object:
    found: object = row
    for key in name.split("."):
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _export(patch: pytest.MonkeyPatch, setting: str) -> None:
    """Set a variable of the environment."""
    name, _, value = setting.partition("=")
    patch.setenv(name, value)


def _cd(patch: pytest.MonkeyPatch, folder: str) -> None:
    """Change the current folder."""
    patch.chdir(folder)


def _archive(patch: pytest.MonkeyPatch, name: str, folder: str) -> None:
    """Write a tiny archive of a public data set into a folder."""
    make = getattr(archives, name, None) or getattr(question_archives, name)
    make(Path(folder).absolute())


OWN = {"picture": _picture, "keys": _keys, "export": _export, "cd": _cd, "archive": _archive}
