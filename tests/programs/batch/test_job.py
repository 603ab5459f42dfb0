"""Jobs with images in every form are assessed in threads and processes, each with its name, result and errors."""

import base64
import io
import os
import pickle
from pathlib import Path
from typing import Any

import dspy
import numpy as np
import pytest
from PIL import Image

from agenticiqa.configs import Config, StageConfig
from agenticiqa.programs import AgenticIQA, Job, assess_many
from agenticiqa.programs.batch import assess_many as module
from agenticiqa.programs.batch.cost import estimate
from agenticiqa.programs.batch.job import failure_text
from agenticiqa.programs.errors import ImageError, ImageNotFound, OfImage, Unforeseen
from agenticiqa.programs.images import UndecodedImage, load
from agenticiqa.signatures.vocabulary import DEFAULT_QUERY
from support.distortion_levels import scene
from support.elsewhere import row, row_of

PIXELS = scene(60, 80)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("images") / "a photo.png"
    Image.fromarray(PIXELS).save(path)
    return path


def every_kind(path: Path) -> dict[str, Any]:
    """Return the same image in every accepted form, by the name that it has in results."""
    data = path.read_bytes()
    uri = f"data:image/png;base64,{base64.b64encode(data).decode()}"
    named = io.BytesIO(data)
    named.name = "upload.png"
    return {
        str(path): path,
        "<bytes>": data,
        "upload.png": named,
        "<file object>": io.BytesIO(data),
        "<data URI>": uri,
        "<dspy.Image>": dspy.Image(uri),
        "<array>": PIXELS,
        "<PIL image>": Image.open(path),
        "seventh": UndecodedImage("seventh", data),
    }


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_images_in_every_form_get_the_same_result_and_keep_their_names(
    path: Path, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two workers in other processes receive the images."""
    monkeypatch.setattr(module, "IMAGES_PER_PROCESS", 2)
    given = {{"<bytes>": "image 1"}.get(name, name): image for name, image in every_kind(path).items()}
    assessed = {
        job.name: outcome for job, outcome in assess_many(AgenticIQA.offline(), given.values(), workers, row_of)
    }
    assert list(assessed) == list(given) if workers == 1 else set(assessed) == set(given)
    assert (os.getpid() in [process for process, _ in assessed.values()]) == (workers == 1)
    outcomes = {name: outcome for name, (_, outcome) in assessed.items()}
    assert {name: outcome["image"] for name, outcome in outcomes.items()} == {name: name for name in given}
    expected = AgenticIQA.offline()(path).to_dict()
    for outcome in outcomes.values():
        assert outcome["query"] == DEFAULT_QUERY
        assert outcome["quality_score"] == expected["quality_score"]
        assert outcome["plan"] == expected["plan"]


@pytest.mark.slow
def test_a_reference_in_any_form_can_be_sent_to_another_process(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "IMAGES_PER_PROCESS", 2)
    references = every_kind(path)
    jobs = [Job(path, reference=reference) for reference in references.values()]
    outcomes = [outcome for _, outcome in assess_many(AgenticIQA.offline(), jobs, 2, row)]
    assert {outcome["reference"] for outcome in outcomes} == set(references)
    assert len({outcome["quality_score"] for outcome in outcomes}) == 1


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_an_unreadable_image_is_the_outcome_of_its_job(
    path: Path, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "IMAGES_PER_PROCESS", 2)
    closed = io.BytesIO(b"")
    closed.close()
    bad: list[Any] = [closed, 3, "https://127.0.0.1:9/a.png", PIXELS.astype(int), b"no image"]
    outcomes = [outcome for _, outcome in assess_many(AgenticIQA.offline(), [*bad, path, path], workers, row)]
    failures = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    assert len(failures) == len(bad)
    assert all(isinstance(failure, ImageError) for failure in failures)
    assert len(outcomes) == len(bad) + 2


def test_the_text_of_a_job_has_the_name_of_the_image_and_no_bytes(path: Path) -> None:
    assert [Job(image).name for image in every_kind(path).values()] == [*every_kind(path)]
    assert Job(path).query == DEFAULT_QUERY
    assert len(repr(Job(path.read_bytes() * 1000, reference=bytearray(10_000)))) < 200


def test_a_picklable_job_contains_the_bytes_of_its_file_objects(path: Path) -> None:
    job = Job(io.BytesIO(path.read_bytes()), "Sharp?", reference=memoryview(path.read_bytes()))
    sent = pickle.loads(pickle.dumps(job.picklable()))
    assert (sent.name, sent.query) == ("<file object>", "Sharp?")
    assert np.array_equal(load(sent.image).pixels, PIXELS)
    assert np.array_equal(load(sent.reference).pixels, PIXELS)


def test_an_estimate_accepts_images_in_every_form(path: Path) -> None:
    config = Config(summarizer=StageConfig(backend="vllm.m", api_base="http://127.0.0.1:9"))
    found = estimate(config, [Job(image) for image in every_kind(path).values()])
    assert (found.questions, found.images, found.refused) == (9, 9, [])
    (alone,), (many,) = estimate(config, [Job(path)]).stages, found.stages
    assert many.image_tokens == 9 * alone.image_tokens
    assert "uint8" in estimate(config, [Job(PIXELS.astype(int))]).refused[0]


@pytest.mark.parametrize("kind", [ImageError, ImageNotFound, Unforeseen])
def test_an_error_from_another_process_still_has_its_image(kind: type[OfImage]) -> None:
    error = pickle.loads(pickle.dumps(kind("cannot be read", "photo.png")))
    assert (type(error), error.problem, error.image) == (kind, "cannot be read", "photo.png")
    assert failure_text(Job("photo.png"), error) == str(error) == "photo.png: cannot be read"
