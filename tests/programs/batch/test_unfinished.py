"""Which jobs have a result in a results file: paths, bytes and settings are compared."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.batch.plan_run import absolute, find_finished, fingerprint_of, identity_of
from agenticiqa.programs.batch.results_file import ResultsFile
from agenticiqa.programs.images import UndecodedImage, load
from agenticiqa.programs.images.files import sha256_of
from agenticiqa.programs.questions.options import parse_options

SETTINGS: dict[str, Any] = {"version": "1", "config": {"max_side": None}}


@pytest.fixture
def image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("album").mkdir()
    Path("album/a.png").write_bytes(b"bytes of a")
    return Path("album/a.png")


def row(job: Job, settings: dict[str, Any] = SETTINGS, **changes: Any) -> dict[str, Any]:
    """Return the row that a run writes for a job."""
    identity = identity_of(job, fingerprint_of(job, settings))
    reference = None if job.reference is None else str(job.reference)
    return {**identity._asdict(), "image": job.name, "reference": reference, **changes}


def finished(job: Job, *rows: dict[str, Any], file: str = "scores.jsonl") -> tuple[bool, dict[str, int]]:
    Path(file).unlink(missing_ok=True)
    with ResultsFile(file) as results:
        for each in rows:
            results.append(each)
        resumed = find_finished([job], results, SETTINGS)
    return job in resumed.finished, dict(resumed.again)


def test_other_options_are_another_question(image: Path) -> None:
    def written(job: Job) -> dict[str, Any]:
        return row(job, query=job.query, options=job.options or parse_options(job.query))

    given, others = Job(image, "Which?", options=["Blur", "Noise"]), Job(image, "Which?", options=["Noise", "Blur"])
    assert finished(given, written(given)) == (True, {})
    assert finished(given, written(others)) == finished(given, written(Job(image, "Which?"))) == (False, {})
    assert finished(Job(image, "Which?"), written(given)) == (False, {})
    listed = Job(image, "Which?\nA) Blur\nB) Noise")
    assert finished(listed, written(listed)) == finished(listed, row(listed)) == (True, {}), "also without the key"


def test_a_path_that_leads_to_both_is_read_from_the_current_folder(
    image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same bytes are at album/a.png and sub/album/a.png, and a row of the first was written here."""
    other = Path("sub/album/a.png")
    other.parent.mkdir(parents=True)
    other.write_bytes(image.read_bytes())
    with ResultsFile("sub/scores.jsonl") as results:
        results.append(row(Job(image, "?")))
        resumed = find_finished([Job(image, "?"), Job(other, "?")], results, SETTINGS)
    assert list(resumed.finished) == [Job(image, "?")]


def test_a_linked_image_is_another_image_but_a_linked_folder_is_the_same(image: Path) -> None:
    Path("link.png").symlink_to(image)
    Path("linked").symlink_to("album")
    assert finished(Job("link.png", "?"), row(Job(image, "?"))) == (False, {})
    assert finished(Job("linked/a.png", "?"), row(Job(image, "?"))) == (True, {})


def test_images_in_memory_are_identified_by_their_bytes(image: Path) -> None:
    assert absolute("<stdin>", os.getcwd()) == "<stdin>"
    job = Job(UndecodedImage("<stdin>", image.read_bytes()), "?")
    assert finished(job, row(job)) == (True, {})
    assert row(job)["image_sha256"] == row(Job(image.read_bytes(), "?"))["image_sha256"] == sha256_of(image)
    array = np.zeros((8, 8, 3), np.uint8)
    assert identity_of(Job(array, "?"), "").image_sha256 is None
    assert identity_of(Job(load(array), "?"), "").image_sha256 == load(array).sha256
