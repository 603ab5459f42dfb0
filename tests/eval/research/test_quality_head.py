"""The quality model's head: regressions in the span of some images are those on all features."""

import numpy as np
import pytest

from agenticiqa.eval.research.quality_head import STATISTICS_WEIGHT, Reduction, ridge_regression

N, FEATURES, STATISTICS, RIDGE = 60, 200, 20, 0.5


@pytest.fixture
def images():
    rng = np.random.default_rng(3)
    standard = rng.normal(size=(N + 10, FEATURES)).astype("f4")
    wanted = np.stack([standard[:, 0] + standard[:, -1], rng.normal(size=N + 10)], axis=1).astype("f4")
    return standard, wanted, rng.uniform(0.5, 3, N)


def by_all_pairs(standard, wanted, weight):
    """The textbook solution: kernel ridge regression with a linear kernel over the weighted features."""
    weighted = standard.astype(float)
    weighted[:, -STATISTICS:] *= STATISTICS_WEIGHT
    products = weighted @ weighted.T / FEATURES
    center = np.average(wanted[:N], axis=0, weights=weight)
    dual = np.linalg.solve(products[:N, :N] + np.diag(RIDGE / weight), wanted[:N] - center)
    return products[N:, :N] @ dual + center


def test_in_the_span_of_all_images_it_is_the_regression_on_all_features(images):
    standard, wanted, weight = images
    reduction = Reduction.of(standard[:N], STATISTICS)
    coordinates = standard @ reduction.toward
    coefficients, center = ridge_regression(coordinates[:N], wanted[:N], weight, RIDGE)
    expected = by_all_pairs(standard, wanted, weight)
    assert coordinates[N:] @ coefficients + center == pytest.approx(expected, abs=2e-3)
    assert standard[N:] @ (reduction.toward @ coefficients) + center == pytest.approx(expected, abs=2e-3)


def test_images_that_are_nearly_alike_do_no_harm(images):
    standard, wanted, weight = images
    twice = np.concatenate([standard[:N], standard[:5] + np.float32(1e-4)])
    coordinates = standard @ Reduction.of(twice, STATISTICS).toward
    coefficients, center = ridge_regression(coordinates[:N], wanted[:N], weight, RIDGE)
    assert coordinates[N:] @ coefficients + center == pytest.approx(by_all_pairs(standard, wanted, weight), abs=5e-3)
