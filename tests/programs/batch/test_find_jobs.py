"""From names to jobs: the order, references by name, stdin, and what is wrong with the others."""

import io
from pathlib import Path

import pytest

from agenticiqa.programs.batch.find_jobs import find_jobs, read_stdin
from agenticiqa.programs.batch.job import Job, failure_text
from agenticiqa.programs.errors import ImageError, ImageNotFound, ToolError


@pytest.fixture
def album(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("album/b.png", "album/a.jpg", "album/c.cr2", "originals/a.png", "originals/b.webp", "one.png"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).touch()
    return Path("album")


def test_each_image_is_one_job_in_the_order_of_its_names(album: Path) -> None:
    found = find_jobs(["one.png", "album", "gone.png", "album/a.jpg"], "Sharp?")
    assert found.jobs == [Job(Path(name), "Sharp?") for name in ("one.png", "album/a.jpg", "album/b.png")]
    assert [type(problem) for problem in found.problems] == [ImageNotFound]
    assert found.skipped == {".cr2": 1}


def test_references_of_a_folder_are_found_by_name_without_suffix(album: Path) -> None:
    found = find_jobs(["album", "one.png"], "Sharp?", "originals", resize_reference=True)
    pairs = [(str(job.image), str(job.reference)) for job in found.jobs]
    assert pairs == [("album/a.jpg", "originals/a.png"), ("album/b.png", "originals/b.webp")]
    assert all(job.resize_reference for job in found.jobs)
    assert list(map(str, found.problems)) == ["one.png: expected a reference named one.* in originals, found none"]


def test_one_reference_is_for_all(album: Path) -> None:
    assert {job.reference for job in find_jobs(["album"], "Sharp?", "one.png").jobs} == {Path("one.png")}


@pytest.mark.parametrize("reference", ["gone.png", "https://x.org/a.png", "empty"])
def test_no_reference_at_all_is_an_error(album: Path, reference: str) -> None:
    Path("empty").mkdir()
    with pytest.raises(ImageError, match=reference):
        find_jobs(["album"], "Sharp?", reference)


def test_the_bytes_on_stdin_are_an_image() -> None:
    given = read_stdin(io.BytesIO(b"bytes"))
    assert (given.source, given.content) == ("<stdin>", b"bytes")
    assert Job(given, "Sharp?").name == "<stdin>"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ImageError("a.png: broken"), "a.png: broken"),
        (ToolError("no such\n  tool"), "a.png: no such tool"),
        (ImageError("r.png: broken"), "a.png: r.png: broken"),
    ],
)
def test_a_failure_names_its_image_once(error: Exception, text: str) -> None:
    assert failure_text(Job(Path("a.png"), "Sharp?"), error) == text
