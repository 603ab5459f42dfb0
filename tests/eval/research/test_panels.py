"""The opinion of a panel counts for images that look like the photos that it judged."""

import numpy as np
import pytest

from agenticiqa.eval.research.panels import NO_PANEL, RIDGE_ALIKE, members, opinions, with_panels
from agenticiqa.eval.research.quality_head import ridge_regression

BY_PANEL = 40  # images


@pytest.fixture
def judged():
    """Coordinates, opinions and panels of images: the panels agree on the first feature and not on the second."""
    rng = np.random.default_rng(0)
    coordinates = rng.normal(size=(2 * BY_PANEL, 12)).astype("f4")
    panel = np.repeat([0, 1], BY_PANEL)
    coordinates[:, 2] = np.where(panel == 0, 1.0, -1.0)  # how their photos look
    opinion = 3 + coordinates[:, 0] + np.where(panel == 0, 0.8, -0.8) * coordinates[:, 1]
    return coordinates, opinion.astype(float), panel


def followed(judged, panel, weight=None):
    """The opinion of each panel on all images."""
    coordinates, opinion, _ = judged
    weight = np.ones(len(opinion)) if weight is None else weight
    coefficients, centers = opinions(coordinates, opinion, weight, panel, 2)
    return coordinates @ coefficients + centers


def alike(judged, panel):
    """How alike all images are to the photos of each panel."""
    coefficients, centers = ridge_regression(judged[0], members(panel, 2), np.ones(len(panel)), RIDGE_ALIKE)
    return judged[0] @ coefficients + centers


def test_each_panel_is_followed_by_its_own_reading(judged):
    _, opinion, panel = judged
    found = followed(judged, panel)
    own = np.where(panel == 0, found[:, 0], found[:, 1])
    other = np.where(panel == 0, found[:, 1], found[:, 0])
    assert np.abs(own - opinion).mean() < 0.15
    assert np.abs(other - opinion).mean() > 0.7


def test_the_photos_of_a_panel_are_known(judged):
    *_, panel = judged
    found = alike(judged, panel)
    assert (found[panel == 0, 0] > 0.9).all()
    assert (found[panel == 1, 0] < 0.1).all()
    assert found.sum(axis=1) == pytest.approx(1, abs=1e-3)


def test_a_panel_without_images_has_what_is_common_and_no_photos(judged):
    *_, panel = judged
    without = np.where(panel == 1, NO_PANEL, panel)
    assert alike(judged, without)[:, 1] == pytest.approx(0, abs=1e-6)
    found = followed(judged, without)
    assert not np.allclose(found[:, 0], found[:, 1])
    common = followed(judged, np.full(len(panel), NO_PANEL))
    assert common[:, 0] == pytest.approx(common[:, 1])


def test_an_image_of_more_weight_counts_more(judged):
    _, opinion, panel = judged
    weight = np.ones(len(panel))
    weight[0] = 1e4
    off = [abs(followed(judged, panel, each)[0, 0] - opinion[0]) for each in (None, weight)]
    assert off[1] < off[0]


@pytest.mark.parametrize(
    ("alike", "expected"),
    [
        ((1, 0), 4.0),
        ((0.9, -0.5), 4.0),
        ((0, 0), 3.0),
        ((0.2, 0.1), 3.0),
        ((0.35, 0), 3.5),
        ((0, 0.8), 1.0),
        ((1, 1), 2.5),
    ],
)
def test_the_opinion_is_that_of_the_panel_whose_photos_are_alike(alike, expected):
    found = with_panels(np.array([[3, 4, 1, *alike, 7]], "f4"), 2)
    assert found[0] == pytest.approx([expected, 4, 1, *alike, 7])


def test_without_panels_nothing_changes():
    projected = np.array([[3, 4, 1]], "f4")
    assert with_panels(projected, 0).tolist() == projected.tolist()
