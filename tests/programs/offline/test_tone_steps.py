"""A part of another tone behind straight borders: found, named and placed; none where the scene only has edges."""

import numpy as np
import pytest

from agenticiqa.programs.images.boxes import overlap
from agenticiqa.programs.offline.distortions import damaged_parts, findings_of
from agenticiqa.programs.offline.tone_steps import (
    COLOR,
    JPEG_COLOR,
    MEANING,
    TONE,
    UNCHANGED,
    Planes,
    level_of,
    step_strengths,
    tone_step,
)
from agenticiqa.programs.tools.distort import KINDS
from agenticiqa.programs.tools.planted import named_box, plant, saved_as_jpeg
from support.images import coffee, loaded

SIZE = (320, 240)


@pytest.mark.parametrize(
    ("kind", "level", "where", "jpeg"),
    [
        ("darken", 3, "ninth 4", None),
        ("brighten", 3, "quarter 3", None),
        ("low_contrast", 4, "half left", None),
        ("desaturate", 5, "ninth 2", None),
        ("color_cast", 4, "quarter 0", None),
        ("darken", 4, "ninth 4", 85),
        ("brighten", 4, "quarter 3", 85),
        ("desaturate", 4, "quarter 0", 85),
        ("color_cast", 4, "quarter 3", 85),
    ],
)
def test_a_part_of_another_tone_is_placed_named_and_as_severe_as_it_is_also_after_jpeg(kind, level, where, jpeg):
    box = named_box(where, SIZE)
    planted = plant(coffee(), kind, level, box, 1).pixels
    found = tone_step(saved_as_jpeg(planted, jpeg) if jpeg else planted)
    assert found is not None
    assert overlap(found.damage.box, box) > (0.9 if jpeg else 0.999)
    assert found.category == KINDS[kind].category
    assert found.part.subtype == MEANING[kind][0]
    assert jpeg or found.part.severity == pytest.approx((0, 0.8, 1.6, 2.5, 3.3, 4.0)[level], abs=0.8)


def test_it_is_the_finding_of_the_image_with_its_own_words():
    image = loaded(plant(coffee(), "darken", 4, named_box("ninth 4", SIZE), 1).pixels)
    found = findings_of(image)["Brightness change"]
    assert found.local is not None
    assert found.local.place == "center"
    assert found.explanation.startswith("In the center, pixels [106, 80, 213, 160]: Behind its straight border it has ")
    assert "% of the brightness around it" in found.explanation
    assert found.subtype == "underexposure"


def test_a_photo_its_distorted_copies_and_a_framed_picture_have_none():
    photo = coffee()
    framed = np.full_like(photo, 20)
    framed[30:-30, 40:-40] = photo[30:-30, 40:-40]
    tall = photo.copy()
    tall[120:] = photo[119::-1][:, ::-1]
    for pixels in (photo, framed, tall, np.full_like(photo, 90), photo[:90], photo[:96, :96]):
        assert tone_step(pixels) is None
        assert tone_step(saved_as_jpeg(pixels, 85)) is None
    for kind in ("jpeg", "darken", "white_noise", "gaussian_blur"):
        assert tone_step(plant(photo, kind, 4, (0, 0, *SIZE), 1).pixels) is None


def test_a_gray_picture_has_no_color_damage():
    gray = np.repeat(coffee().mean(axis=2, keepdims=True).astype(np.uint8), 3, axis=2)
    image = loaded(plant(gray, "darken", 4, named_box("ninth 4", SIZE), 1).pixels)
    assert "Color distortions" not in damaged_parts(image, None)
    assert "Brightness change" in damaged_parts(image, None)


@pytest.mark.parametrize(("look", "place"), [(COLOR, 99), (JPEG_COLOR, 48)])
def test_a_step_of_color_is_seen_at_every_scale_and_one_of_luma_is_none(look, place):
    photo = coffee().astype(float)
    gray = photo.mean(axis=2, keepdims=True)
    faded = photo.copy()
    faded[:, 100:] = (gray + 0.2 * (photo - gray))[:, 100:]
    darker = coffee()
    darker[:, 100:] //= 2
    at_lines = step_strengths(Planes.of(darker), TONE).mean(axis=0)
    assert at_lines.argmax() == 99
    assert at_lines[99] > 3 * np.abs(np.delete(at_lines, 99)).max() / 2
    strengths = step_strengths(Planes.of(np.rint(faded).astype(np.uint8)), look).mean(axis=0)
    assert abs(int(strengths.argmax()) - place) <= 1
    shaded = np.repeat(gray, 3, axis=2).astype(np.uint8)
    shaded[:, 100:] //= 2
    assert step_strengths(Planes.of(shaded), look).max() <= 0


def test_a_loss_of_light_is_no_change_of_color():
    box = named_box("quarter 0", SIZE)
    for level in (3, 4, 5):
        darker = tone_step(saved_as_jpeg(plant(coffee(), "darken", level, box, 1).pixels, 75))
        assert darker is None or darker.part.subtype == "underexposure"


@pytest.mark.parametrize("kind", MEANING)
def test_levels_are_those_of_distort(kind):
    assert [level_of(kind, strength) for strength in KINDS[kind].strengths] == pytest.approx([1, 2, 3, 4, 5])
    assert level_of(kind, UNCHANGED.get(kind, 1.0)) == 0
