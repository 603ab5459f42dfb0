"""From the paths that a user names to the jobs of a run, and to what is wrong with the others."""

import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.errors import ImageError
from agenticiqa.programs.images import ImageSource, UndecodedImage, find_images, name_of, search_images
from agenticiqa.programs.images.files import one_line
from agenticiqa.programs.images.sources import local_path, read_source

STDIN = "-"


@dataclass
class FoundJobs:
    """The jobs in the order of the names that led to them, each image once.

    ``problems`` has one error for each name that leads to no image and each image that has no reference. ``skipped``
    counts what folders hold that cannot be judged, by suffix or reason (see ``images.finding``).
    """

    jobs: list[Job] = field(default_factory=list)
    problems: list[ImageError] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)


def find_jobs(
    names: Iterable[str], query: str, reference: str | None = None, resize_reference: bool = False
) -> FoundJobs:
    """Make a job of each image that the names lead to: files, folders, and ``-`` for the bytes on stdin.

    ``reference`` is one image for all, or a folder in which each image has the one of its own name without suffix.
    Raises ImageError when there is no such reference at all.
    """
    found = FoundJobs()
    images: list[ImageSource] = []
    for name in names:
        if name == STDIN:
            images.append(read_stdin(sys.stdin.buffer))
            continue
        searched = search_images([name])
        images += searched.images
        found.problems += searched.problems
        found.skipped.update(searched.skipped)
    reference_of = _references(reference)
    for image in dict.fromkeys(images):
        try:
            found.jobs.append(Job(image, query, reference_of(image), resize_reference))
        except ImageError as error:
            found.problems.append(error)
    return found


def read_stdin(stream: IO[bytes]) -> UndecodedImage:
    """The bytes of an image on stdin, up to its end. Raises ImageError when they cannot be read."""
    return UndecodedImage("<stdin>", read_source(stream).content)


def _references(reference: str | None) -> Callable[[ImageSource], Path | None]:
    """The function that gives an image its reference. Raises ImageError, and the function as well, if there is none."""
    if reference is None:
        return lambda image: None
    path = local_path(reference)
    if not path.is_dir():
        return lambda image: path
    by_stem = {found.stem: found for found in find_images([path])}

    def of_the_same_name(image: ImageSource) -> Path:
        stem = image.stem if isinstance(image, Path) else name_of(image)
        if stem not in by_stem:
            raise ImageError(one_line(f"{name_of(image)}: expected a reference named {stem}.* in {path}, found none"))
        return by_stem[stem]

    return of_the_same_name
