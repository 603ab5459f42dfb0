"""The fit of an adapter: labels that help or do not, weights of labels, and the interval from held-out errors."""

import numpy as np
import pytest

from agenticiqa.eval.calibrate.adapter_fit import GivenLabels, conformal_spread, fit_adapter, helps, label_weights
from agenticiqa.programs.errors import UserError


def given(seed: int, labels: str, count: int = 60) -> GivenLabels:
    """Labels that follow the shipped score, and one of 40 features that it does not know."""
    rng = np.random.default_rng(seed)
    features, shipped = rng.normal(size=(count, 40)).astype(np.float32), rng.normal(3, 0.5, count)
    target = shipped + rng.normal(0, 0.2, count)
    if labels == "taste":
        target = target + 0.6 * features[:, 0] - 1
    if labels == "random":
        target = rng.permutation(target)
    contents = np.stack([np.arange(count).astype(str)] * 2, axis=1)
    return GivenLabels(features, shipped, target, np.ones(count), contents)


@pytest.mark.parametrize(("labels", "least", "most"), [("taste", 9, 10), ("random", 0, 0), ("known", 0, 2)])
def test_only_labels_with_something_new_help(labels: str, least: int, most: int) -> None:
    drawn = [given(seed, labels) for seed in range(10)]
    assert least <= sum(helps(each, fit_adapter(each)[2]) for each in drawn) <= most


def test_a_label_is_not_predicted_from_its_own_content() -> None:
    """Each scene has two copies: one label predicts the other only if they count as two scenes."""
    rng = np.random.default_rng(0)
    scenes, names = np.tile(np.eye(30, 40, dtype=np.float32) * 9, (2, 1)), np.arange(60).astype(str)
    copies = given(0, "known")._replace(
        features=scenes, target=np.tile(rng.normal(3, 0.6, 30), 2), shipped=np.full(60, 3.0)
    )
    errors = [
        float(np.std(fit_adapter(copies._replace(contents=np.stack([each] * 2, axis=1)))[2] - copies.target))
        for each in (names, np.tile(names[:30], 2))
    ]
    assert errors[0] < 0.35 < 0.5 < errors[1]


def test_a_label_counts_by_its_raters_and_their_deviation() -> None:
    few, many, sure = label_weights([None, None, 0.1], [1, 100, 100])
    assert few < many < sure
    assert few + many + sure == pytest.approx(3)
    with pytest.raises(UserError, match="negative value in raters"):
        label_weights([None], [-1])


def test_the_interval_holds_for_80_of_100_new_errors() -> None:
    rng = np.random.default_rng(0)
    held = [
        np.mean(np.abs(rng.laplace(size=2000)) <= 1.2816 * conformal_spread(rng.laplace(size=50))) for _ in range(200)
    ]
    assert 0.78 < np.mean(held) < 0.84
