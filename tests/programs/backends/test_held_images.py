"""Images are kept out of the prompt, as long as DSPy needs this."""

import os
import tracemalloc
from pathlib import Path

import dspy
import pytest
from dspy import lm15
from PIL import Image

from agenticiqa.programs.backends.held_images import (
    HOST,
    MissingImage,
    address,
    hold,
    marked,
    with_held_images,
)
from agenticiqa.programs.backends.run_context import asking
from agenticiqa.programs.images import load
from agenticiqa.signatures.summarizer import ScoreQuality

MEGABYTES = 3


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A PNG of noise, 3 MB."""
    path = tmp_path_factory.mktemp("images") / "large.png"
    Image.frombytes("RGB", (1000, MEGABYTES * 1_000_000 // 3000), os.urandom(MEGABYTES * 1_000_000)).save(path)
    return path


def peak_of_formatting(image: dspy.Image) -> float:
    """Return the megabytes that DSPy's adapter uses for the messages of one question about this image."""
    inputs = {"reference": None, "image": image, "query": "Rate it.", "evidence": "{}"}
    adapter = dspy.JSONAdapter()
    adapter.format(ScoreQuality, [], {**inputs, "image": dspy.Image(f"{HOST}warm-up.png")})
    tracemalloc.start()
    try:
        adapter.format(ScoreQuality, [], inputs)
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


def test_dspy_still_copies_an_image_through_the_text_of_the_prompt(large: Path) -> None:
    """If this fails, DSPy no longer does so, and ``programs/backends/held_images.py`` can be removed."""
    image = load(large)
    with asking("scoring"):
        shown = hold({"image": image})
        held = peak_of_formatting(shown["image"])
    assert held < 0.1 * MEGABYTES
    assert peak_of_formatting(image.to_dspy()) > 2 * MEGABYTES


def test_the_address_of_an_image_depends_on_its_content(large: Path, examples: Path) -> None:
    photo = examples / "coffee_jpeg.jpg"
    assert address(load(photo)) == address(load(photo.read_bytes()))
    assert address(load(photo)) != address(load(large))


def test_a_body_gets_the_bytes_of_held_images_only(examples: Path) -> None:
    image = load(examples / "coffee_jpeg.jpg")
    with asking("scoring"):
        shown = hold({"image": image})
        request = lm15.Request(
            model="m", messages=(lm15.Message.user([lm15.ImagePart(url=shown["image"].url), lm15.TextPart("What?")]),)
        )
        part = marked(request).messages[0].parts[0]
        body = f'{{"a": "{part.data}", "b": "{part.data}"}}'.encode()
        assert b"".join(with_held_images(body)) == b'{"a": "%s", "b": "%s"}' % (image.base64, image.base64)
    assert part.media_type == "image/jpeg"
    assert len(part.data) < 100
    for last_gate, given in ((marked, request), (with_held_images, body)):  # neither address nor mark is ever sent
        with pytest.raises(MissingImage, match="was not sent"):
            last_gate(given)
