"""Read labeled images: a data set by its name, or the user's own data."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from agenticiqa.eval.datasets import LabeledImage, MosScale, archive_root, chosen_split, mos_scale
from agenticiqa.eval.labels.direction import evidence_of_reversed_scores
from agenticiqa.eval.labels.own_data import DECLARE, Declared, read_own
from agenticiqa.eval.labels.raters import NO_PANEL, Panel
from agenticiqa.eval.labels.sources import holds_labels, open_sources
from agenticiqa.eval.names import named, unknown_text
from agenticiqa.eval.tasks.catalog import TASKS
from agenticiqa.eval.tasks.task import (
    Task,
    labels_sha256,
    missing_files,
    other_files,
    read_task,
    refuse_missing_files,
)
from agenticiqa.programs.errors import UserError


class LabeledSet(NamedTuple):
    """Labeled images with a short ``name``, the SHA-256 of their labels in hex, and their commit if not on disk.

    ``doubt`` describes evidence that the direction is wrong; ``scale`` is the declared scale. ``part`` describes which
    part of a data set is used, if it is incomplete, and ``note`` has further remarks about its labels. ``panel`` has
    the raters of a table of ratings.
    """

    name: str
    digest: str
    labels: list[LabeledImage]
    pinned: str | None = None
    doubt: str | None = None
    scale: MosScale | None = None
    part: str | None = None
    note: str | None = None
    panel: Panel = NO_PANEL

    def any_scale(self) -> MosScale:
        """Return the declared scale, or the usual one that holds all scores. Raises UserError as ``mos_scale`` does."""
        return self.scale or mos_scale([label.mos for label in self.labels])


def names_labels(data: Path) -> bool:
    """Return whether ``labeled_images`` accepts ``data``, by its name and form."""
    return set_named(data) is not None or holds_labels(data)


def set_named(data: Path) -> Task | None:
    """Return the data set that ``data`` names, in any case and with any hyphens; ``None`` for data on disk."""
    if data.is_file() or (str(data) not in TASKS and holds_labels(data)):
        return None
    return named(str(data), TASKS)


def labeled_images(
    data: Path, root: Path | None, split: str | None, declared: Declared | None = None, *, partial: bool = False
) -> LabeledSet:
    """Return the images of ``data``, all or of one split, with their MOS, higher is better.

    ``data`` is the user's own data in a form that ``labels.sources`` lists, described by ``declared``, or the name of a
    data set with its archive in ``root``. ``partial`` accepts an incomplete archive and skips rows with missing files.
    Paths of own data are relative to ``root``, or else to the table. Raises UserError, in one line, as ``read_own`` and
    ``read_task`` do, for an unknown name, for a data set without ``root``, and for own labels where lower is better,
    unless their direction is declared.
    """
    task = set_named(data)
    if task is None:
        if not (data.exists() or holds_labels(data)):
            raise UserError(f"{data}: there is no such file or folder, and {unknown_text(str(data), TASKS)}")
        if partial:
            raise UserError(f"--partial applies only to public data sets, not to {data}: remove --partial")
        return own_images([data], root, split, declared or Declared())
    if declared and declared.scores:
        raise UserError(
            f"column:{declared.scores[0]} is for a table of your own, not for {task.name}; use file:TABLE with its "
            "images and your scores"
        )
    if declared not in (None, Declared()):
        raise UserError(f"the columns, direction and scale of {task.name} are fixed: remove the options that set them")
    root = archive_root(task.name, task.folder, task.source, root)
    every = read_task(task, root, partial=partial)
    if partial:
        every = _present(task, every)
    labels = [*chosen_split(task.name, every, split, lambda label: label.split)]
    refuse_missing_files(task, labels)
    return LabeledSet(
        task.name,
        labels_sha256(labels),
        labels,
        scale=MosScale(*task.scale),
        part=None if len(every) == task.count else f"{len(every):,} of {task.count:,}",
        note=other_files(task, root),
    )


def _present(task: Task, labels: Sequence[LabeledImage]) -> list[LabeledImage]:
    """Return the labels with their files on disk. Raises UserError if there are none."""
    absent = set(missing_files(labels))
    present = [label for label in labels if not absent & {label.image, label.reference}]
    if not present:
        raise UserError(
            f"{task.name}: the files of all {len(labels):,} listed images are missing, such as {labels[0].image}; "
            f"download {task.source}"
        )
    return present


def own_images(data: Sequence[Path], root: Path | None, split: str | None, declared: Declared) -> LabeledSet:
    """Return the labeled images of tables in one folder. Raises UserError as ``labeled_images`` does."""
    source = open_sources(data, root)
    labels, panel = read_own(source, declared, split)
    doubt = evidence_of_reversed_scores(labels)
    if doubt and declared.lower_is_better is None:
        raise UserError(f"{source.title}: low scores seem to mean good quality: {doubt}; {DECLARE}")
    scale = MosScale(*declared.mos_range) if declared.mos_range else None
    return LabeledSet(source.name, labels_sha256(labels), labels, source.pinned, doubt, scale, panel=panel)
