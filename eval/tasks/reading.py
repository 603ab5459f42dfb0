"""The labeled images of a ``labels.csv``, or of a data set by its name."""

from pathlib import Path

from agenticiqa.eval.datasets import LabeledImage, read_labels
from agenticiqa.eval.tasks.catalog import TASKS
from agenticiqa.eval.tasks.task import labels_sha256, read_task, refuse_missing_files
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.files import sha256_of


def labeled_images(data: Path, root: Path | None, split: str | None) -> tuple[str, str, list[LabeledImage]]:
    """A short name of the data, the SHA-256 of its labels in hex, and the images, all or of one split.

    ``data`` is a labels file, or the name of a data set whose archive is in ``root``. Raises UserError, in one line, as
    ``read_labels`` and ``read_task`` do, and for ``root`` without a data set or the other way round.
    """
    task = TASKS.get(str(data))
    if task is None or data.is_file():
        if root is not None:
            known = ", ".join(TASKS)
            raise UserError(f"--root is for a data set, and {data} is none of {known}; leave it out for a labels file")
        labels = read_labels(data, split)
        return data.resolve().parent.name, sha256_of(data), labels
    if root is None:
        raise UserError(f"name the folder that {task.folder} of {task.name} is in with --root; get {task.source}")
    labels = read_task(task, root, split)
    refuse_missing_files(task, labels)
    return task.name, labels_sha256(labels), labels
