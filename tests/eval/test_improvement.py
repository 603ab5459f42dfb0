"""The rule by which changes that were made with labels are kept: exact for few scenes, and calibrated for many."""

import numpy as np
import pytest
from scipy.stats import binom

from agenticiqa.eval.improvement import FEWEST_SCENES, MOST_EXACT, REQUIRED, probability_of_improvement, verdict


def probability(gains: list[float], contents: list[str] | None = None) -> float:
    return probability_of_improvement(gains, np.zeros(len(gains)), contents or [str(i) for i in range(len(gains))])


def test_the_probability_is_the_share_of_signs_with_a_smaller_sum() -> None:
    assert probability([1.0, 1.0, 1.0]) == 7 / 8
    assert probability([3.0, -1.0, 1.0]) == 5 / 8
    assert probability([-1.0, -1.0, -1.0]) == 0
    assert probability([0.0] * 4) == probability([]) == 0, "nothing changed"
    assert probability([1.0] * 30) == pytest.approx(1, abs=1e-3)
    assert probability([1.0] * 30) < 1, "the signs of the data are among the random ones"


def test_images_of_one_scene_count_once() -> None:
    assert probability([1.0, 1.0, 2.0, 2.0], ["a", "a", "b", "b"]) == 3 / 4


@pytest.mark.parametrize("scenes", [8, MOST_EXACT + 8])
def test_useless_changes_pass_as_rarely_as_stated(scenes: int) -> None:
    gains = np.random.default_rng(3).standard_t(3, (400, scenes))
    passed = sum(probability(list(row)) >= REQUIRED for row in gains)
    assert 1 <= passed <= binom.ppf(0.999, len(gains), 1 - REQUIRED)
    assert binom.cdf(5, 100, 1 - REQUIRED) > 0.95, "the reason for this probability"


def test_a_change_is_kept_if_it_is_likely_better_and_nothing_is_worse() -> None:
    assert verdict(REQUIRED, FEWEST_SCENES) == (
        True,
        "the probability of an improvement is 97.5 % (97.5 % is required)",
    )
    assert verdict(0.97499, 50) == (False, "the probability of an improvement is 97.4 % (97.5 % is required)")
    assert verdict(0.99, 50, ["the SRCC fell", "so did the PLCC"]) == (False, "the SRCC fell and so did the PLCC")
    few = "only 5 held-out scenes could be compared, and 6 are needed: use labels of more scenes, or raise the limits"
    assert verdict(0.99, 5) == (False, few)
    assert 1 - 2.0**-FEWEST_SCENES >= REQUIRED > 1 - 2.0 ** (1 - FEWEST_SCENES)
