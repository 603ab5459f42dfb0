"""Ladders for the quality model: every kind is made worse level by level, and its target score falls with it."""

import numpy as np
import pytest
from PIL import Image

from agenticiqa.eval.research.ladders import (
    NEUTRAL,
    VIEW,
    VIEWS,
    distorted,
    kept_curves,
    kept_quality,
    kept_rungs,
    mixture,
    of_a_part,
    rungs_of,
    views,
)
from agenticiqa.programs.offline.detector import TONE
from agenticiqa.programs.tools.distort import KINDS, distort
from tests.support.distortion_levels import scene

pytestmark = pytest.mark.slow

UNKNOWN = kept_curves(np.array([], str), np.array([]), np.array([]))


@pytest.mark.parametrize("kind", KINDS)
def test_whole_levels_are_those_of_distort(kind):
    photo = scene(96, 128)
    for level in (1, 3, 5):
        assert np.array_equal(distorted(photo, kind, level, 7), distort(photo, kind, level, seed=7))


@pytest.mark.parametrize("kind", KINDS)
def test_levels_between_lie_between(kind):
    photo = scene(96, 128).astype(float)
    errors = [np.square(distorted(photo.astype("u1"), kind, level, 7) - photo).mean() for level in (0.1, 1, 2, 2.5, 3)]
    assert errors[0] == 0
    assert errors[2] <= errors[3] * 1.1
    assert errors[3] <= errors[4] * 1.1
    assert kind in NEUTRAL or KINDS[kind].strengths[0] > 0


def test_damage_of_a_part_leaves_the_rest_alone():
    photo = scene(128, 160)
    for seed in range(8):
        rungs = list(of_a_part(photo, np.random.default_rng(seed)))
        assert 0.05 < rungs[-1][2] < 0.6
        changed = (rungs[-1][3] != photo).any(axis=2).mean()
        assert changed < 0.95


def test_a_mixture_names_its_kinds_and_gets_worse():
    photo = scene(128, 160)
    rungs = list(mixture(photo, np.random.default_rng(1)))
    assert set(rungs[1][0].split("+")) <= set(KINDS)
    errors = [np.square(pixels.astype(float) - photo).mean() for *_, pixels in rungs]
    assert errors[0] == 0
    assert errors == sorted(errors)


@pytest.mark.parametrize("kind", KINDS)
def test_the_quality_kept_falls_with_the_level(kind):
    for curves in (UNKNOWN, kept_curves(np.array([kind] * 5), np.arange(1.0, 6), np.array([4.5, 4.7, 3, 2, 2]))):
        kept = [kept_quality(kind, level, 1.0, np.nan, curves) for level in np.arange(0, 5.5, 0.5)]
        assert kept[0] == 1
        assert (np.diff(kept) < 0).all()


def test_a_smaller_part_and_one_kind_less_keep_more():
    whole, ninth = (kept_quality(name, 4.0, share, np.nan, UNKNOWN) for name, share in (("jpeg", 1), ("@jpeg", 0.11)))
    both = kept_quality("jpeg+darken", 4.0, 1.0, np.nan, UNKNOWN)
    assert both < whole < ninth < 0.85
    assert kept_quality("jpeg+darken", 4.0, 1.0, 5.0, UNKNOWN) > both


def labeled_photo(folder):
    file = folder / "photo.png"
    Image.fromarray(scene(200, 260)).save(file)
    return file


def test_ladders_are_kept_and_not_computed_again(tmp_path):
    photo = labeled_photo(tmp_path)
    calls = []

    def mean_color(image):
        calls.append(image.shape)
        return image.mean(axis=(0, 2, 3))

    first = kept_rungs(photo, tmp_path / "kept", mean_color, "labeled")
    done = len(calls)
    again = kept_rungs(photo, tmp_path / "kept", mean_color, "labeled")
    assert done == len(calls) == len(first.level) > 3
    assert (first.features == again.features).all()
    assert first.kind[0] == ""
    assert np.isnan(first.compared).all()


def test_a_good_labeled_photo_has_ladders_of_tones_as_well(tmp_path):
    photo = labeled_photo(tmp_path)
    found, well = (
        rungs_of(photo, lambda image: image.mean(axis=(0, 2, 3)), how) for how in ("labeled", "labeled well")
    )
    assert set(found.ladder) == {0, 1}
    assert set(well.ladder) == {0, 1, 2, 3}
    assert {KINDS[kind].category for kind in well.kind[well.ladder > 1]} <= set(TONE)


def test_a_photo_to_measure_with_has_one_ladder_of_every_kind(tmp_path):
    Image.fromarray(scene(120, 160)).save(tmp_path / "photo.png")
    rungs = rungs_of(tmp_path / "photo.png", lambda image: image.mean(axis=(0, 2, 3)), "measure")
    assert rungs.kind.reshape(len(KINDS), -1)[:, 0].tolist() == list(KINDS)
    for number in np.unique(rungs.ladder):
        assert rungs.level[rungs.ladder == number].tolist() == [0, 1, 2, 3, 4, 5]


def test_statistics_of_the_pixels_tell_damage_apart():
    torch = pytest.importorskip("torch", reason="training needs torch, of the extra train")
    from agenticiqa.eval.research.quality_network import STATISTICS, Statistics

    def found(pixels):
        image = np.ascontiguousarray(pixels.transpose(2, 0, 1)[None], np.float32)
        return Statistics()(torch.from_numpy(image))[0].numpy()

    for shape in ((32, 32), (33, 200), (192, 256)):
        plain = found(scene(*shape))
        assert plain.shape == (STATISTICS,)
        assert np.isfinite(plain).all()
    for kind in KINDS:
        assert np.abs(found(distort(scene(), kind, 3)) - plain).max() > 0.05
    for flat in (0, 255):
        assert np.isfinite(found(np.full((64, 64, 3), flat, np.uint8))).all()


def test_views_of_a_photo_are_parts_of_it_in_nearly_its_size(tmp_path):
    photo = labeled_photo(tmp_path)
    rungs = rungs_of(photo, lambda image: image.mean(axis=(0, 2, 3)), "views")
    assert rungs.kind.tolist() == [VIEW] * VIEWS
    assert not rungs.level.any()
    assert len({values.tobytes() for values in rungs.features}) == VIEWS
    pixels = scene(200, 260)
    for seed in range(20):
        for view in views(pixels, np.random.default_rng(seed)):
            assert all(0.7 * whole <= part <= whole for part, whole in zip(view.shape, pixels.shape, strict=True))
            assert abs(view.mean() - pixels.mean()) < 15
