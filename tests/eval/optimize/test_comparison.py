"""The held-out comparison before and after tuning."""

from collections.abc import Callable
from pathlib import Path

import dspy
import pytest

from agenticiqa.configs import Config
from agenticiqa.eval.datasets import MosScale, read_labels
from agenticiqa.eval.optimize.comparison import compare, scores
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.errors import ImageError, NoScore


def test_the_comparison_is_made_on_images_scored_both_times(make_labels: Callable[..., Path]) -> None:
    labels = read_labels(make_labels(scenes=2, levels=(0, 2, 4)))
    figures = compare(labels, MosScale(10, 90), [1, 2, 3, None, 2, 3], [5, 3, 1, 5, None, 1])
    assert figures["scored_both_times"] == 4
    assert figures["unscored"] == {"before": 1, "after": 1}
    assert figures["srcc"]["before"] < 0 < figures["srcc"]["after"]
    assert figures["mean_absolute_error"]["after"] == pytest.approx(0, abs=0.05)


def test_scores_come_in_the_order_of_the_labels(
    make_labels: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = read_labels(make_labels(scenes=1, levels=(0, 1, 2)))
    program = AgenticIQA.from_config(Config())
    forward = AgenticIQA.forward

    def unscored(self: AgenticIQA, image: Path, *args: object, **kwargs: object) -> dspy.Prediction:
        if Path(image).name == "scene0_1.png":
            raise NoScore("nothing to go by")
        return forward(self, image, *args, **kwargs)

    monkeypatch.setattr(AgenticIQA, "forward", unscored)
    best, none, worst = scores(program, labels, workers=1)
    assert none is None
    assert 1 <= worst < best <= 5


def test_an_image_that_cannot_be_judged_ends_the_comparison(make_labels: Callable[..., Path]) -> None:
    labels = read_labels(make_labels(scenes=1, levels=(0, 1)))
    labels[1].image.write_bytes(b"no image")
    with pytest.raises(ImageError, match=r"scene0_1\.png"):
        scores(AgenticIQA.from_config(Config()), labels, workers=1)
