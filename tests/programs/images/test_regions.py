"""Boxes: which words place a region in the frame, how a small box grows, and that crops are the pixels of the box."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from agenticiqa.programs.images import LoadedImage, load
from agenticiqa.programs.images.regions import (
    SMALLEST,
    account,
    crop,
    grown,
    place_in_frame,
)
from support.distortion_levels import scene

SIZE = (640, 480)

sides = st.integers(1, 3000)
boxes_and_sizes = st.tuples(sides, sides).flatmap(
    lambda size: st.tuples(
        st.tuples(
            *(st.lists(st.integers(0, extent), min_size=2, max_size=2, unique=True).map(sorted) for extent in size)
        ).map(lambda spans: (spans[0][0], spans[1][0], spans[0][1], spans[1][1])),
        st.just(size),
    )
)


@pytest.fixture(scope="module")
def image() -> LoadedImage:
    return load(Image.fromarray(scene()))


@pytest.mark.parametrize(
    ("region", "box"),
    [
        ("left half", (0, 0, 320, 480)),
        ("Right Half", (320, 0, 640, 480)),
        ("the left", (0, 0, 320, 480)),
        ("bottom", (0, 240, 640, 480)),
        ("upper part of the image", (0, 0, 640, 240)),
        ("right-hand side", (320, 0, 640, 480)),
        ("upper third", (0, 0, 640, 160)),
        ("left quarter", (0, 0, 160, 480)),
        ("bottom right quarter", (320, 240, 640, 480)),
        ("top left", (0, 0, 320, 240)),
        ("top left corner", (0, 0, 214, 160)),
        ("lower-right corner", (426, 320, 640, 480)),
        ("upper left corner of the poster", (0, 0, 214, 160)),
        ("left edge of my scan", (0, 0, 160, 480)),
        ("centre", (160, 120, 480, 360)),
        ("center of the photo", (160, 120, 480, 360)),
        ("top centre", (160, 0, 480, 240)),
    ],
)
def test_words_for_a_place_in_the_frame_have_a_box(region: str, box: tuple[int, ...]) -> None:
    assert place_in_frame(region, SIZE) == box


@pytest.mark.parametrize(
    "region",
    [
        "sky",
        "left building",
        "top of the boat",
        "half",
        "corner",
        "left corner",
        "corners",
        "left right",
        "third",
        "",
        "?",
    ],
)
def test_other_region_names_have_no_box(region: str) -> None:
    assert place_in_frame(region, SIZE) is None


@given(size=st.tuples(sides, sides), region=st.sampled_from(["left half", "top third", "centre", "lower right corner"]))
def test_a_place_in_the_frame_is_a_part_of_any_image(size: tuple[int, int], region: str) -> None:
    left, top, right, bottom = place_in_frame(region, size) or (0, 0, 0, 0)
    assert 0 <= left < right <= size[0]
    assert 0 <= top < bottom <= size[1]


@given(given_box=boxes_and_sizes, smallest=st.integers(1, 400))
def test_a_grown_box_holds_the_box_lies_in_the_image_and_is_large_enough(
    given_box: tuple[tuple[int, int, int, int], tuple[int, int]], smallest: int
) -> None:
    box, size = given_box
    area = grown(box, size, smallest)
    for start, stop, first, last, extent in zip(box[:2], box[2:], area[:2], area[2:], size, strict=True):
        assert 0 <= first <= start < stop <= last <= extent
        assert last - first == min(max(stop - start, smallest), extent)


@pytest.mark.parametrize(
    ("box", "area"),
    [
        ((300, 200, 303, 203), (253, 153, 349, 249)),
        ((0, 0, 3, 3), (0, 0, 96, 96)),
        ((637, 477, 640, 480), (544, 384, 640, 480)),
        ((100, 100, 400, 103), (100, 53, 400, 149)),
    ],
)
def test_a_box_of_three_pixels_grows_around_its_centre_and_stays_inside(
    box: tuple[int, int, int, int], area: tuple[int, ...]
) -> None:
    assert grown(box, SIZE) == area


def test_a_crop_is_the_pixels_of_the_box_and_the_same_object_each_time(image: LoadedImage) -> None:
    part = crop(image, (10, 20, 150, 130))
    assert np.array_equal(part.pixels, image.pixels[20:130, 10:150])
    assert not part.pixels.flags.writeable
    assert crop(image, (10, 20, 150, 130)) is part
    assert crop(image, (10, 20, 151, 130)) is not part
    assert part.source == image.source
    for all_of_it in (crop(image, None), crop(image, (0, 0, *image.size)), crop(image, (5, 5, 8, 8), smallest=10_000)):
        assert all_of_it is image


def test_the_account_gives_the_box_its_size_and_the_enlarged_size() -> None:
    (large,) = account({"car": (0, 0, 200, 100)}, SIZE)
    assert "[0, 0, 200, 100]" in large
    assert "200 x 100 of 640 x 480" in large
    assert "enlarged" not in large
    (small,) = account({"car": (300, 200, 303, 203)}, SIZE)
    assert "3 x 3 of 640 x 480" in small
    assert f"enlarged to {SMALLEST} x {SMALLEST}" in small
    assert account({"sky": None}, SIZE) == []
