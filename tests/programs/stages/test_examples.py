"""Images in the examples of a predictor are sent as images, in whatever form they are given."""

import base64
import hashlib
from pathlib import Path
from typing import Any

import dspy
import numpy as np
import pytest
from PIL import Image

from agenticiqa.programs.stages.ask import CheckedPredict
from agenticiqa.signatures.summarizer import AnswerQuestion
from support.engine import scripted_lm
from support.fake_server import images_of, text_of

ANSWER = '{"answer": {"final_answer": "Yes", "quality_reasoning": "Crisp."}}'
INPUTS = {"image": None, "reference": None, "query": "Now?", "options": "none", "evidence": "none"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "shown.png"
    Image.fromarray(np.full((24, 32, 3), 90, np.uint8)).save(path)
    return path


def asked_with(demos: list[Any]) -> Any:
    """Return the request of a question with these examples."""
    lm, engine = scripted_lm([ANSWER])
    question = CheckedPredict[Any](AnswerQuestion, stage="answering")
    question.predictor.demos = demos
    with dspy.context(lm=lm):
        question(INPUTS)
    (body,) = engine.bodies
    return body


@pytest.mark.parametrize("kind", ["path", "text path", "bytes", "array", "PIL", "dspy.Image", "saved"])
def test_an_image_in_an_example_is_sent_as_an_image(kind: str, path: Path) -> None:
    given: Any = {
        "path": path,
        "text path": str(path),
        "bytes": path.read_bytes(),
        "array": np.asarray(Image.open(path)),
        "PIL": Image.open(path),
        "dspy.Image": dspy.Image.from_path(str(path)),
        "saved": str(dspy.Image.from_path(str(path))),
    }[kind]
    body = asked_with([dspy.Example(image=given, query="Sharp?", answer="Yes")])
    ((mime, data),) = images_of(body)
    assert mime == "image/png"
    if kind not in ("array", "PIL"):
        assert hashlib.sha256(data).digest() == hashlib.sha256(path.read_bytes()).digest()
    assert str(path) not in text_of(body)
    assert base64.b64encode(path.read_bytes()).decode()[:40] not in text_of(body)
    assert "Sharp?" in text_of(body)


def test_an_example_with_a_truncated_image_is_skipped(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """``dspy.SIMBA`` cuts inputs to 100,000 characters, so it cuts the base64 of an image of 75 kB."""
    cut = str(dspy.Image.from_path(str(path)))[:60] + "\n\t\t... <TRUNCATED FOR BREVITY>"
    body = asked_with([dspy.Example(image=cut, query="Sharp?", answer="Yes")])
    assert "TRUNCATED" not in text_of(body)
    assert "Sharp?" not in text_of(body)
    assert "is skipped" in caplog.text


def test_examples_without_an_output_are_not_read() -> None:
    """DSPy does not show them, although ``dspy.LabeledFewShot`` gives every predictor every example."""
    body = asked_with([dspy.Example(image="gone.png", query="Sharp?", mos=3.0)])
    assert "Sharp?" not in text_of(body)
