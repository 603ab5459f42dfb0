"""The data of a loaded image that a model receives."""

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

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
    framed = replace(image, file=None, assessed_box=(10, 20, 110, 120))
    assert framed.assessed.size == (100, 100)
    assert np.array_equal(load(framed.assessed.data).pixels, image.pixels), "boxes of a model are in the whole frame"
