"""Declare a benchmark of questions, read and check its items, and form the question for each."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from string import ascii_uppercase

from agenticiqa.eval.datasets import MISSING_SHOWN, archive_root
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.files import sha256_of
from agenticiqa.programs.questions.options import read_options


@dataclass(frozen=True)
class Item:
    """A question about one image, with the true answer.

    ``name`` is unique in its set. ``content`` is the picture: questions about one scene are not independent.
    ``options`` are in the order of the set, and ``correct`` is the index of the true one, ``None`` if it is not
    published. ``groups`` are for breakdowns of the figures, such as ``{"type": "how"}``.
    """

    name: str
    image: Path
    query: str
    content: str
    options: tuple[str, ...] = ()
    correct: int | None = None
    reference: Path | None = None
    groups: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class AskedItem:
    """An item as it is asked, with options by letter and the true letter; both are empty without options.

    ``rotation`` says by how many places the options are moved to the front, 0 for the order of the set.
    """

    item: Item
    rotation: int
    options: Mapping[str, str]
    truth: str

    @property
    def key(self) -> str:
        """Return a key that identifies the question in a run."""
        return f"{self.item.name}#{self.rotation}"

    @property
    def job(self) -> Job:
        """Return the question for the program."""
        return Job(self.item.image, self.item.query, self.item.reference, options=dict(self.options) or None)


def asked_of(items: Sequence[Item], *, circular: bool = False) -> Iterator[AskedItem]:
    """Yield each item in the order of its options, and with ``circular`` also in all rotations of it.

    >>> item = Item("1", Path("a.png"), "Which?", "a", ("Blur", "Noise", "None"), correct=0)
    >>> [(" ".join(asked.options.values()), asked.truth) for asked in asked_of([item], circular=True)]
    [('Blur Noise None', 'A'), ('Noise None Blur', 'C'), ('None Blur Noise', 'B')]
    """
    for item in items:
        count = len(item.options)
        for rotation in range(count if circular else 1):
            texts = item.options[rotation:] + item.options[:rotation]
            letters = dict(zip(ascii_uppercase, texts, strict=False))
            truth = "" if item.correct is None else ascii_uppercase[(item.correct - rotation) % count]
            yield AskedItem(item, rotation, letters, truth)


@cache
def digest_of(path: Path | None) -> str | None:
    """Return the SHA-256 of a file in hex; ``None`` for no file, or one that cannot be read."""
    try:
        return sha256_of(path) if path else None
    except OSError:
        return None


@dataclass(frozen=True)
class QuestionTask:
    """A benchmark of questions: its name and contents, and the function that reads its archive.

    ``folder`` is the archive's own top folder. ``read`` takes that folder and one of ``splits`` (the first is the
    default; "" if there are none); it raises FileNotFoundError for a missing file. ``source`` names the files to
    download, ``count`` the number of questions in the default split, ``None`` if that varies.
    """

    name: str
    title: str
    source: str
    folder: str
    read: Callable[[Path, str], Iterable[Item]]
    splits: tuple[str, ...] = ("",)
    count: int | None = None


@dataclass(frozen=True)
class Items:
    """The usable questions of a benchmark, and a sentence about each skipped one."""

    usable: list[Item]
    skipped: list[str]


def read_items(task: QuestionTask, root: Path | None, split: str | None = None) -> Items:
    """Return the questions of a benchmark, of one split. ``root`` is the archive's folder or its parent.

    Raises UserError, in one line, without ``root``, for a missing file (with what to get and where to put it), a file
    in another form, an unknown split, missing images, and a split without published answers.
    """
    root = archive_root(task.name, task.folder, task.source, root)
    folder = root / task.folder if (root / task.folder).is_dir() else root
    if split is not None and split not in task.splits:
        known = ", ".join(filter(None, task.splits)) or "none"
        raise UserError(f"{task.name} has no split {split!r}; known splits: {known}")
    try:
        items = list(task.read(folder, split or task.splits[0]))
    except FileNotFoundError as error:
        raise UserError(
            f"{task.name}: {error} not found in {root} or {root / task.folder}. Get {task.source}, unpack it to "
            f"{root / task.folder}, then pass --root {root}"
        ) from error
    except (OSError, KeyError, ValueError, IndexError, TypeError, AttributeError) as error:
        raise UserError(
            f"{task.name}: the files in {folder} do not have the expected format ({type(error).__name__}: {error}); "
            f"get {task.source}"
        ) from error
    if not items:
        raise UserError(f"{task.name}: no questions found in {folder}; get {task.source}")
    if all(item.correct is None for item in items):
        raise UserError(f"{task.name}: the answers of this split are not published; choose another split with --split")
    _refuse_missing_images(task, items)
    return _usable(items)


def items_sha256(items: Sequence[Item]) -> str:
    """Return SHA-256, in hex, of the questions and their true answers; it does not depend on the place on disk."""
    digest = hashlib.sha256()
    for item in items:
        fields = {key: value for key, value in asdict(item).items() if key not in ("image", "reference")}
        digest.update(f"{sorted(fields.items())!r}\n".encode())
    return digest.hexdigest()


def file_of(folder: Path, name: str, *below: str) -> Path:
    """Return the file with a name, from the first of the folders ``below`` that has it, or from ``folder`` itself."""
    return next((folder / part / name for part in below if (folder / part / name).is_file()), folder / name)


def index_of(truth: str, options: Sequence[str]) -> int | None:
    """Return the index of the true option, given as its letter or its text; ``None`` for an empty truth.

    Raises ValueError for a truth that is neither.
    """
    stated = truth.strip()
    if not stated:
        return None
    texts = [option.strip() for option in options]
    if stated in texts:
        return texts.index(stated)
    letter = stated.rstrip(".").upper()
    if len(letter) == 1 and letter in ascii_uppercase[: len(options)]:
        return ascii_uppercase.index(letter)
    raise ValueError(f"the true answer {truth!r} is not among the options {list(options)}")


def _usable(items: Sequence[Item]) -> Items:
    usable: dict[str, Item] = {}
    skipped: list[str] = []
    for item in items:
        if why := _unusable(item) or ("another question has the same name" if item.name in usable else ""):
            skipped.append(f"{item.name}: {why}")
        else:
            usable[item.name] = item
    return Items(list(usable.values()), skipped)


def _unusable(item: Item) -> str:
    try:
        read_options(item.options)
    except UserError as error:
        return str(error)
    return "it has no true answer" if item.correct is None else ""


def _refuse_missing_images(task: QuestionTask, items: Sequence[Item]) -> None:
    wanted = dict.fromkeys(file for item in items for file in (item.image, item.reference) if file)
    if missing := [file for file in wanted if not file.is_file()]:
        examples = ", ".join(map(str, missing[:MISSING_SHOWN]))
        raise UserError(f"{task.name}: {len(missing)} images are missing, such as {examples}; get {task.source}")
