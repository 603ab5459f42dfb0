"""What a benchmark of questions declares of itself, and its items, checked."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from string import ascii_uppercase

from agenticiqa.eval.datasets import MISSING_SHOWN
from agenticiqa.eval.mcq.item import Item, Kind
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.questions.options import read_options


@dataclass(frozen=True)
class QuestionTask:
    """A benchmark of questions: how its archive is read, and what it holds.

    ``folder`` is the archive's own top folder. ``read`` is given that folder and a split of ``splits`` (the first is
    the default; "" where there are none); it raises FileNotFoundError for a file that is not there. ``source`` says
    what to get and from whom, ``count`` how many questions the default split has, ``None`` where that varies.
    """

    name: str
    title: str
    kind: Kind
    source: str
    folder: str
    read: Callable[[Path, str], Iterable[Item]]
    splits: tuple[str, ...] = ("",)
    count: int | None = None


@dataclass(frozen=True)
class Items:
    """The questions of a benchmark, and one sentence for each that cannot be asked or marked."""

    usable: list[Item]
    left_out: list[str]


def read_items(task: QuestionTask, root: Path, split: str | None = None) -> Items:
    """The questions of a benchmark, of one split. ``root`` holds the archive's folder, or is it.

    Raises UserError, in one line, for an absent file (what to get, where to put it), one of another form, a split that
    is not one, missing images, and a split without published answers.
    """
    folder = root / task.folder if (root / task.folder).is_dir() else root
    if split is not None and split not in task.splits:
        known = ", ".join(filter(None, task.splits)) or "none"
        raise UserError(f"{task.name} has no split {split!r}; its splits: {known}")
    try:
        items = list(task.read(folder, split or task.splits[0]))
    except FileNotFoundError as error:
        raise UserError(
            f"{task.name}: {error} not found in {root} or {root / task.folder}; get {task.source}, unpack it to "
            f"{root / task.folder}, and name its parent with --root"
        ) from error
    except (OSError, KeyError, ValueError, IndexError, TypeError, AttributeError) as error:
        raise UserError(
            f"{task.name}: what is in {folder} has another form than the sample at the head of its reader "
            f"({type(error).__name__}: {error})"
        ) from error
    if not items:
        raise UserError(f"{task.name}: there are no questions in {folder}")
    if task.kind == "choice" and all(item.correct is None for item in items):
        raise UserError(f"{task.name}: the answers of this split are not published; name another with --split")
    _refuse_missing_images(task, items)
    return _usable(items, task.kind)


def items_sha256(items: Sequence[Item]) -> str:
    """SHA-256, in hex, of the questions and what is true of them; the place on this disk is not in it."""
    digest = hashlib.sha256()
    for item in items:
        fields = {key: value for key, value in asdict(item).items() if key not in ("image", "reference")}
        digest.update(f"{sorted(fields.items())!r}\n".encode())
    return digest.hexdigest()


def file_of(folder: Path, name: str, *below: str) -> Path:
    """The file of a name: in the first of the folders ``below`` that has it, or in ``folder`` itself."""
    return next((folder / each / name for each in below if (folder / each / name).is_file()), folder / name)


def index_of(truth: str, options: Sequence[str]) -> int | None:
    """The index of the true option, given as its letter or its text; ``None`` for an empty truth.

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
    raise ValueError(f"the true answer {truth!r} is none of the options {list(options)}")


def _usable(items: Sequence[Item], kind: Kind) -> Items:
    usable: dict[str, Item] = {}
    left_out: list[str] = []
    for item in items:
        if why := _unusable(item, kind) or ("its name is taken" if item.name in usable else ""):
            left_out.append(f"{item.name}: {why}")
        else:
            usable[item.name] = item
    return Items(list(usable.values()), left_out)


def _unusable(item: Item, kind: Kind) -> str:
    if kind == "planning":
        return "" if item.plan else "no field of its plan is known"
    if kind == "explanation":
        return "" if item.golden else "it has no reference text"
    try:
        read_options(item.options)
    except UserError as error:
        return str(error)
    return "its true answer is unknown" if item.correct is None else ""


def _refuse_missing_images(task: QuestionTask, items: Sequence[Item]) -> None:
    wanted = dict.fromkeys(file for item in items for file in (item.image, item.reference) if file)
    if missing := [file for file in wanted if not file.is_file()]:
        shown = ", ".join(map(str, missing[:MISSING_SHOWN]))
        raise UserError(f"{task.name}: {len(missing)} images are missing, such as {shown}; get {task.source}")
