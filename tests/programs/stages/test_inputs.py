"""Examples with images in memory: how they are printed, compared and saved."""

import io
import json
import logging
from pathlib import Path
from typing import Any

import dspy
import numpy as np
import pytest
from PIL import Image

from agenticiqa import ImageExample
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.images import load
from agenticiqa.programs.stages.inputs import as_example

DATA = "iVBORw0KGgo"  # how the base64 of a PNG begins


def png() -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.full((24, 32, 3), 90, np.uint8)).save(file, "PNG")
    return file.getvalue()


def images() -> dict[str, Any]:
    content = png()
    return {
        "<bytes>": content,
        "<PIL image>": Image.open(io.BytesIO(content)),
        "<array>": np.full((24, 32, 3), 90, np.uint8),
        "<dspy.Image>": dspy.Image(content),
        "<data URI>": dspy.Image(content).url,
        "<file object>": io.BytesIO(content),
        "photo.png": Path("photo.png"),
    }


@pytest.mark.parametrize("name", images())
def test_an_example_shows_and_saves_the_name_of_its_image(name: str) -> None:
    example = ImageExample(image=images()[name], query="Sharp?", mos=3.5).with_inputs("image", "query")
    assert repr(example) == f"image={name}, query='Sharp?', mos=3.5"
    assert json.loads(json.dumps(example.toDict())) == {"image": name, "query": "Sharp?", "mos": 3.5}
    assert example.inputs().image is example.image
    assert example.labels().toDict() == {"mos": 3.5}


def test_examples_with_arrays_can_be_compared() -> None:
    array = images()["<array>"]
    example = ImageExample(image=array, mos=1.0)
    assert example == ImageExample(image=array.copy(), mos=1.0)
    assert hash(example) == hash(ImageExample(image=array.copy(), mos=1.0))
    assert example != ImageExample(image=array + 1, mos=1.0)
    assert example != ImageExample(image=array)
    assert example != ImageExample(image=png(), mos=1.0)
    assert example != {"image": array}


def test_a_plain_example_becomes_one_with_the_same_inputs() -> None:
    plain = dspy.Example(image=png(), query="Sharp?", mos=3.5).with_inputs("image", "query")
    example = as_example(plain)
    assert (example.inputs().keys(), example.labels().keys()) == (["image", "query"], ["mos"])
    assert as_example(example) is example


@pytest.mark.parametrize("name", sorted(images().keys() - {"photo.png"}))
def test_a_batch_that_fails_logs_no_bytes(
    name: str, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = dspy.Example(image=images()[name], query="").with_inputs("image", "query")
    with caplog.at_level(logging.DEBUG):
        for asked in (plain, {"image": images()[name], "query": ""}):
            AgenticIQA.offline().batch([asked], max_errors=9, disable_progress_bar=True, provide_traceback=True)
    printed = caplog.text + "".join(capsys.readouterr())
    assert printed.count("the question is empty") >= 2
    assert DATA not in printed
    assert "\\x89PNG" not in printed


def test_loaded_images_have_a_name_too() -> None:
    loaded = load(png())
    assert ImageExample(image=loaded).toDict() == {"image": "<bytes>"}
