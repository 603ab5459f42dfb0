"""The data of a loaded image that a model receives."""

import json
import pickle
from collections.abc import Callable
from copy import deepcopy
from dataclasses import asdict
from typing import Any

import numpy as np
import orjson
import pytest
from PIL import Image
from pydantic import TypeAdapter
from pydantic_core import to_json

from agenticiqa.programs.images import LoadedImage, load
from support.distortion_levels import scene


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> LoadedImage:
    """300 x 200 pixels in a WebP."""
    path = tmp_path_factory.mktemp("images") / "photo.webp"
    Image.fromarray(scene(200, 300)).save(path, lossless=True)
    return load(path)


@pytest.mark.parametrize(("most", "size"), [(299, (299, 199)), (150, (150, 100)), (100, (100, 67)), (1, (1, 1))])
def test_a_copy_within_max_side_is_sent_and_the_image_is_measured_unchanged(
    image: LoadedImage, most: int, size: tuple[int, int]
) -> None:
    sent = image.sent_within(most)
    assert load(sent.data).size == size
    assert sent.mime == "image/png"
    assert sent.size == image.size
    assert np.array_equal(sent.pixels, image.pixels)
    assert f"{size[0]}x{size[1]} pixels" in sent.notes[-1]
    assert sent.sent_sha256 != image.sent_sha256


@pytest.mark.parametrize("most", [None, 300, 5000])
def test_a_small_image_is_sent_unchanged(image: LoadedImage, most: int | None) -> None:
    assert image.sent_within(most) is image


def test_a_server_without_the_format_receives_the_pixels_as_png(image: LoadedImage) -> None:
    assert image.sent_as(["image/webp", "image/png"]) is image
    sent = image.sent_as(["image/jpeg", "image/png"])
    assert sent.mime == "image/png"
    assert np.array_equal(load(sent.data).pixels, image.pixels)
    assert image.sent_as(["image/png"]) is sent, "it is made once"


def test_the_whole_image_is_sent_although_a_part_is_assessed(image: LoadedImage) -> None:
    framed = image.changed(file=None, assessed_box=(10, 20, 110, 120))
    assert framed.assessed.size == (100, 100)
    assert np.array_equal(load(framed.assessed.data).pixels, image.pixels), "boxes of a model are in the whole frame"


ENCODERS: dict[str, Callable[[LoadedImage], Any]] = {
    "dataclasses": asdict,
    "vars": vars,
    "json": lambda image: json.loads(json.dumps(image, default=vars)),
    "orjson": lambda image: orjson.loads(orjson.dumps(image)),
    "pydantic": lambda image: TypeAdapter(Any).dump_python(image, mode="json"),
    "pydantic JSON": lambda image: json.loads(to_json({"image": image}))["image"],
}


@pytest.mark.parametrize("encoder", ENCODERS)
def test_encoders_show_name_size_and_hash(image: LoadedImage, encoder: str) -> None:
    assert len(image.data) + len(image.base64) > 0, "what is computed later is not shown either"
    assert image.sent_sha256
    shown = {"source": image.source, "width": 300, "height": 200, "sha256": image.sha256}
    assert ENCODERS[encoder](image) == shown


def test_other_processes_get_the_whole_image(image: LoadedImage) -> None:
    for copied in (pickle.loads(pickle.dumps(image)), deepcopy(image)):
        assert copied.data == image.data
        assert copied.notes == image.notes
        assert np.array_equal(copied.pixels, image.pixels)
        assert not copied.pixels.flags.writeable
