"""Which jobs of a run a results file already holds."""

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.batch.results_file import Identity, ResultsFile, Resumed, Row, question_of, resume
from agenticiqa.programs.images import ImageSource, LoadedImage, UndecodedImage, name_of
from agenticiqa.programs.images.files import digest, sha256_of


def fingerprint_of(job: Job, settings: Mapping[str, Any]) -> str:
    """The ``run_fingerprint`` in a job's row: of its run's settings (``batch.fingerprint``) and its own options."""
    return digest({**settings, "resize_reference": job.resize_reference and job.reference is not None})


def find_finished(jobs: Sequence[Job], results: ResultsFile, settings: Mapping[str, Any]) -> Resumed[Job]:
    """The jobs whose result the file holds, and how many others it holds a result of that no longer counts.

    Paths are compared as absolute ones. A relative one in the file is taken from the current folder, and if that leads
    to none of the jobs' images, from the file's own folder: so the file and its images can be moved together. A
    file that was moved or renamed otherwise is judged again.
    """
    if not results.length:  # which saves hashing every image
        return Resumed({}, Counter())
    wanted = {job: identity_of(job, fingerprint_of(job, settings)) for job in jobs}
    return resume(results.outlines(), wanted, row_identifier(wanted.values(), results))


def offsets_of_latest(jobs: Sequence[Job], results: ResultsFile, settings: Mapping[str, Any]) -> list[int]:
    """Where the last result of each job begins in the file, in ascending order.

    Jobs are told apart, and matched with rows, as by ``find_finished``; a job without a result has no offset.
    """
    wanted = {identity_of(job, fingerprint_of(job, settings)) for job in jobs}
    identify = row_identifier(wanted, results)
    last: dict[Identity, int] = {}
    for offset, row in results.outlines():
        if "error" not in row and (identity := identify(row)) in wanted:
            last[identity] = offset
    return sorted(last.values())


def row_identifier(wanted: Collection[Identity], results: ResultsFile) -> Callable[[Row], Identity]:
    """The function that says what a row of a file belongs to, its paths read so that they lead to what is wanted."""
    images = {identity.image for identity in wanted}
    here, beside = os.getcwd(), os.path.dirname(os.path.realpath(results.path))

    def identify(row: Row) -> Identity:
        found = _identity_of_row(row, here)
        if found.image in images or here == beside:
            return found
        moved = _identity_of_row(row, beside)
        return moved if moved.image in images else found

    return identify


def identity_of(job: Job, run_fingerprint: str) -> Identity:
    """What the result of a job belongs to; its files are read for their hashes."""
    reference = job.reference
    return Identity(
        image=absolute(job.name, os.getcwd()),
        image_sha256=_sha256(job.image),
        reference=None if reference is None else absolute(name_of(reference), os.getcwd()),
        reference_sha256=None if reference is None else _sha256(reference),
        query=job.asked,
        run_fingerprint=run_fingerprint,
    )


def absolute(name: str, folder: str) -> str:
    """A path without links among its folders; what is not a path (``<stdin>``) stays as it is."""
    if name.startswith("<") and name.endswith(">"):
        return name
    parent, file = os.path.split(os.path.join(folder, name))
    return os.path.join(_real(parent), file)


@lru_cache(maxsize=4096)
def _real(folder: str) -> str:
    return os.path.realpath(folder)


def _identity_of_row(row: Row, folder: str) -> Identity:
    reference = row.get("reference")
    return Identity(
        image=absolute(str(row.get("image")), folder),
        image_sha256=row.get("image_sha256"),
        reference=None if reference is None else absolute(str(reference), folder),
        reference_sha256=row.get("reference_sha256"),
        query=question_of(row),
        run_fingerprint=row.get("run_fingerprint"),
    )


def _sha256(source: ImageSource) -> str | None:
    """The hash of an image's bytes; ``None`` if they cannot be read, or are none (an array)."""
    match source:
        case LoadedImage():
            return source.sha256
        case UndecodedImage(content=bytes(data)) | (bytes() as data):
            return hashlib.sha256(data).hexdigest()
        case str() | os.PathLike():
            try:
                return sha256_of(Path(source))
            except OSError:  # the job is judged, and fails with the reason
                return None
        case _:
            return None
