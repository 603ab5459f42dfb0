"""No metadata of a photo reaches a model: by any engine, with a reference, in examples, traces and batches."""

import io
import json
from pathlib import Path
from typing import Any

import dspy
import numpy as np
import pytest
from PIL import Image

from agenticiqa import AgenticIQA
from agenticiqa.programs.backends.provider_batches import driver
from agenticiqa.programs.images.sources import read_source
from agenticiqa.programs.stages.ask import CheckedPredict
from agenticiqa.signatures.summarizer import AnswerQuestion
from support.batch_runs import KEY_VARIABLE, assess, configuration, script
from support.batch_server import batch_server
from support.distortion_levels import blur, scene
from support.engine import scripted_lm
from support.fake_server import by_stage, fake_server, images_of
from support.loopback import Body
from support.metadata_places import IN_JPEG, IN_PNG, MARK, exif
from support.odd_colors import encoded
from support.scripted_answers import ANSWER, RATE, SCRIPT, plan, program_for

SHARP = scene()
PLAIN = encoded(np.asarray(blur(2, SHARP)), "JPEG", quality=90)
PHOTO = IN_JPEG["EXIF"](IN_JPEG["a further picture"](PLAIN))
REFERENCE_PLAIN = encoded(np.asarray(SHARP), "PNG")
REFERENCE = IN_PNG["tEXt"](IN_PNG["eXIf"](REFERENCE_PLAIN))


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    path = tmp_path / "photo.jpg"
    path.write_bytes(PHOTO)
    return path


@pytest.fixture
def reference(tmp_path: Path) -> Path:
    path = tmp_path / "reference.png"
    path.write_bytes(REFERENCE)
    return path


def sent_in(bodies: list[Body]) -> list[bytes]:
    return [data for body in bodies for _, data in images_of(body)]


@pytest.mark.parametrize("keep", [False, True])
def test_photo_and_reference_are_sent_without_metadata(photo: Path, reference: Path, keep: bool) -> None:
    with fake_server(by_stage({**SCRIPT, "plan": plan(reference_mode="Full-Reference")})) as server:
        result = program_for(server, keep_metadata=keep)(photo, RATE, reference)
        sent = sent_in(server.requests)
    assert len(sent) >= 4
    assert {*sent} == ({PHOTO, REFERENCE} if keep else {PLAIN, REFERENCE_PLAIN})
    assert result.sent == dict.fromkeys(("image", "reference"), "file" if keep else "file without metadata")
    assert result.image_sha256 == result.image.sha256 != result.image.sent_sha256 or keep


def test_metadata_changes_neither_the_cached_answers_nor_the_score(photo: Path) -> None:
    with fake_server(by_stage(SCRIPT)) as server:
        program = program_for(server)
        first = program(photo)
        asked = len(server.requests)
        second = program(IN_JPEG["IPTC"](PLAIN))
        assert len(server.requests) == asked, "the model has seen these bytes"
        program_for(server, keep_metadata=True)(photo)
        assert len(server.requests) > asked
    assert first.quality_score == second.quality_score
    assert first.image_sha256 != second.image_sha256


def given_as(kind: str, path: Path) -> Any:
    """Return the photo in a form that a caller may give."""
    return {
        "path": lambda: path,
        "bytes": lambda: PHOTO,
        "file": lambda: path.open("rb"),
        "PIL": lambda: Image.open(path),
        "array": lambda: np.asarray(Image.open(path)),
        "dspy.Image": lambda: dspy.Image.from_path(str(path)),
        "data URI": lambda: dspy.Image.from_path(str(path)).url,
    }[kind]()


KINDS = ("path", "bytes", "file", "PIL", "array", "dspy.Image", "data URI")


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_of_dspy_gets_no_metadata_and_neither_does_a_trace(kind: str, photo: Path) -> None:
    lm, engine = scripted_lm(by_stage(SCRIPT))
    trace: list[Any] = []
    with dspy.context(trace=trace):
        AgenticIQA(lm=lm)(given_as(kind, photo))
    sent = sent_in(engine.bodies)
    assert sent
    assert all(MARK not in data for data in sent)
    if kind not in ("PIL", "array"):
        assert {*sent} == {PLAIN}
    traced = [inputs["image"] for _, inputs, _ in trace if "image" in inputs]
    assert traced
    assert not [image for image in traced if MARK in _content(image)]


def _content(image: dspy.Image) -> bytes:
    content = read_source(image).content
    assert isinstance(content, bytes)
    return content


def asked_with(example: Any) -> list[Body]:
    """Return the requests of a question with this image in an example."""
    lm, engine = scripted_lm([json.dumps({"answer": ANSWER})])
    question = CheckedPredict[Any](AnswerQuestion, stage="answering")
    question.predictor.demos = [
        dspy.Example(
            image=example, query="Sharp?", answer={"final_answer": "Sharp.", "quality_reasoning": "It has detail."}
        )
    ]
    with dspy.context(lm=lm):
        question({"image": None, "reference": None, "query": "Now?", "options": "none", "evidence": "none"})
    return engine.bodies


@pytest.mark.parametrize("kind", [*KINDS, "saved"])
def test_an_example_in_the_prompt_has_no_metadata(kind: str, photo: Path) -> None:
    bodies = asked_with(str(dspy.Image.from_path(str(photo))) if kind == "saved" else given_as(kind, photo))
    (sent,) = sent_in(bodies)
    assert MARK not in sent
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(sent))), np.asarray(Image.open(photo)))
    assert json.dumps(bodies).count("Sharp?") == 1


def test_an_example_that_must_be_turned_is_sent_upright(photo: Path) -> None:
    photo.write_bytes(encoded(np.rot90(SHARP), "JPEG", exif=exif(6)))
    (sent,) = sent_in(asked_with(dspy.Image.from_path(str(photo))))
    assert MARK not in sent
    assert Image.open(io.BytesIO(sent)).size == SHARP.shape[1::-1]


def test_an_example_at_an_address_is_left_to_the_server() -> None:
    address = "https://example.com/a.jpg"
    assert address in json.dumps(asked_with(dspy.Image(address)))


@pytest.mark.parametrize("keep", [False, True])
def test_a_batch_has_no_metadata(keep: bool, photo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "sk-batch-key")
    monkeypatch.setattr(driver, "FIRST_POLL", 0.02)
    monkeypatch.setattr(driver, "LONGEST_POLL", 0.05)
    answer, bodies = script(), list[Body]()
    with batch_server(lambda body: bodies.append(body) or answer(body), key="sk-batch-key") as server:
        more = ["--keep-metadata"] if keep else []
        out = tmp_path / "scores.jsonl"
        assert assess(photo, configuration(tmp_path, server.url), out, "--batch", *more) == 0
    assert {*sent_in(bodies)} == {PHOTO if keep else PLAIN}
    (row,) = map(json.loads, out.read_text().splitlines())
    assert row["sent"] == {"image": "file" if keep else "file without metadata"}
