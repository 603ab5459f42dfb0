"""Synthetic distortions: known order, the same bytes each time, images of any size."""

import inspect

import numpy as np
import pytest
import skimage.data

from agenticiqa.eval.research.distort import DISTORTION_STRENGTHS, KINDS, distort
from agenticiqa.programs.errors import ToolError
from agenticiqa.signatures.lexicon import fold_distortion
from agenticiqa.signatures.vocabulary import DETECTABLE, DISTORTIONS


@pytest.fixture(scope="module")
def photo() -> np.ndarray:
    return np.ascontiguousarray(skimage.data.coffee()[60:252, 140:396])


def mean_error(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a.astype(float) - b).mean())


def test_every_detectable_category_has_a_kind_and_there_are_at_least_twelve():
    assert {kind.category for kind in KINDS.values()} >= set(DETECTABLE)
    assert len(KINDS) >= 12
    for kind in KINDS.values():
        assert kind.category in DISTORTIONS
        assert len(kind.amounts) == len(DISTORTION_STRENGTHS)
        assert kind.description
        assert inspect.getdoc(kind.apply)


@pytest.mark.parametrize("kind", ["gaussian_blur", "motion_blur", "white_noise", "jpeg", "pixelate", "oversharpen"])
def test_the_name_of_a_kind_belongs_to_its_category(kind):
    assert fold_distortion(kind.replace("_", " ")) == KINDS[kind].category


@pytest.mark.parametrize("kind", KINDS)
def test_the_error_rises_with_every_level(kind, photo):
    before = photo.copy()
    made = [distort(photo, kind, level) for level in (0, *DISTORTION_STRENGTHS)]
    errors = [mean_error(each, photo) for each in made]
    assert errors[0] == 0
    assert not np.shares_memory(made[0], photo)
    assert np.all(np.diff(errors) > 0), errors
    assert made[3].tobytes() == distort(photo, kind, 3).tobytes(), "the same bytes each time"
    assert (made[3].dtype, made[3].shape) == (np.uint8, photo.shape)
    assert photo.tobytes() == before.tobytes()


# A perceptual distance, so that levels of different kinds can be set side by side.
@pytest.mark.parametrize(("kind", "level", "wrong"), [("fog", 1, "unknown distortion 'fog'"), ("jpeg", 6, "got 6")])
def test_an_unknown_kind_or_level_is_refused(kind, level, wrong, photo):
    with pytest.raises(ToolError, match=wrong):
        distort(photo, kind, level)
    with pytest.raises(ToolError, match="uint8"):
        distort(photo.astype(float), "jpeg", 1)
    with pytest.raises(ToolError, match="cannot save an image of 17000 x 1 pixels as WEBP"):
        distort(np.zeros((1, 17000, 3), np.uint8), "webp", 1)
