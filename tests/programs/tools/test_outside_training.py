"""Images unlike usual photos are recognized: too small, thin, blank, drawn, printed, medical, gray."""

import pickle

import numpy as np
import pytest
import skimage.data
from PIL import Image

from agenticiqa.eval.research.drawn_pictures import drawn
from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.tools import outside_training as module
from agenticiqa.programs.tools.metrics import learned_iqa
from agenticiqa.programs.tools.metrics.learned_iqa import last_stage, outside_training
from agenticiqa.programs.tools.numerics.predicted_mos import PredictedMOS
from agenticiqa.programs.tools.outside_training import (
    LEAST_SPREAD,
    SENTENCES,
    in_words,
    widened,
)
from support.images import loaded

PHOTOS = ("astronaut", "chelsea", "coffee", "rocket")
RANDOM = np.random.default_rng(5)


def reasons_for(pixels: np.ndarray) -> tuple[str, ...]:
    return module.reasons_for(loaded(pixels), last_stage)


@pytest.mark.parametrize("name", PHOTOS)
def test_a_photo_has_no_reason_and_its_gray_version_one(name):
    photo = getattr(skimage.data, name)()
    assert reasons_for(photo) == ()
    assert reasons_for(np.asarray(Image.fromarray(photo).convert("L").convert("RGB"))) == ("gray",)


@pytest.mark.parametrize(
    ("size", "reason"),
    [
        ((1, 1), "too small"), ((8, 8), "too small"), ((63, 200), "too small"),
        ((2, 600), "thin"), ((600, 2), "thin"), ((60, 4000), "thin"), ((300, 4000), "thin"),
    ],
)  # fmt: skip
def test_images_with_too_few_pixels_on_a_side_are_too_small_or_thin(size, reason):
    assert reasons_for(RANDOM.integers(0, 256, (*size, 3), dtype=np.uint8)) == (reason,)


def test_a_wide_photo_is_not_thin():
    photo = skimage.data.astronaut()
    assert reasons_for(np.ascontiguousarray(photo[100:260])) == ()
    wide = np.concatenate([photo[:300], photo[:300, ::-1], photo[:300], photo[:300, ::-1]], axis=1)
    assert "thin" not in reasons_for(wide)


@pytest.mark.parametrize("level", [0, 128, 255])
def test_one_color_is_blank(level):
    assert reasons_for(np.full((200, 300, 3), level, np.uint8)) == ("blank",)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("window", "graphic"), ("plot", "graphic"), ("diagram", "graphic"), ("cartoon", "graphic"),
        ("qr_code", "graphic"), ("page", "page"), ("slice_of_body", "medical"),
    ],
)  # fmt: skip
def test_most_drawn_pictures_are_recognized_by_their_kind(kind, reason):
    shown = [reasons_for(drawn(kind, 1001 + seed)) for seed in range(5)]
    assert sum(each == (reason,) for each in shown) >= 4, shown


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "reasons"),
    [
        ("page", {"page"}),
        ("hubble_deep_field", {"instrument"}),
        ("logo", {"graphic"}),
        ("retina", {"medical", "instrument"}),
        *((name, {"gray"}) for name in ("camera", "coins", "clock", "brick")),
    ],
)
def test_pictures_of_scikit_image_are_recognized(name, reasons):
    picture = getattr(skimage.data, name)()
    shown = {*reasons_for(np.stack([picture] * 3, axis=-1) if picture.ndim == 2 else picture[..., :3].copy())}
    assert len(shown - {"small"}) == 1
    assert shown - {"small"} <= reasons


def test_the_reasons_are_found_once_per_loaded_image(monkeypatch):
    image, calls = loaded(skimage.data.coffee()), []
    monkeypatch.setattr(learned_iqa, "reasons_for", lambda pixels, backbone: calls.append(1) or ("graphic",))
    assert outside_training(image) == outside_training(image) == ("graphic",)
    assert len(calls) == 1
    assert outside_training(pickle.loads(pickle.dumps(image))) == ("graphic",)


def test_a_reason_never_narrows_the_interval():
    assert widened(PredictedMOS(4.0, 0.7), ()) == PredictedMOS(4.0, 0.7)
    assert widened(PredictedMOS(4.0, 0.7), ("graphic",)) == PredictedMOS(4.0, LEAST_SPREAD["graphic"])
    assert widened(PredictedMOS(4.0, 3.0), ("graphic",)) == PredictedMOS(4.0, 3.0)


@pytest.mark.parametrize("reason", SENTENCES)
def test_every_reason_is_described_in_one_sentence(reason):
    sentence = in_words([reason], (2, 600))
    assert sentence.endswith(".")
    assert "{" not in sentence
    assert set(LEAST_SPREAD) == set(SENTENCES)


def test_damaged_weights_are_refused(monkeypatch):
    monkeypatch.setattr(module, "SHA256", "0" * 64)
    with pytest.raises(ToolError, match="damaged"):
        reasons_for(skimage.data.coffee())
