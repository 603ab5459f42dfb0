"""The held-out comparison before and after tuning."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agenticiqa.eval.datasets import MosScale, read_labels
from agenticiqa.eval.optimize.comparison import compare


def test_the_comparison_is_made_on_images_scored_both_times(make_labels: Callable[..., Path]) -> None:
    labels = read_labels(make_labels(scenes=2, levels=(0, 2, 4)))
    figures = compare(labels, MosScale(10, 90), [1, 2, 3, None, 2, 3], [5, 3, 1, 5, None, 1])
    assert figures["scored_both_times"] == 4
    assert figures["unscored"] == {"before": 1, "after": 1}
    assert figures["srcc"]["before"] < 0 < figures["srcc"]["after"]
    assert figures["mean_absolute_error"]["after"] == pytest.approx(0, abs=0.05)
