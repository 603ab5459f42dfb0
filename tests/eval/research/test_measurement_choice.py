"""The error of a set if a model rates a part of its images."""

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the command needs onnx, of the extra train")

from agenticiqa.eval.research.measurement_choice import RatedSet, error_by_order, predicted, rows_of

MOS, LEARNED = np.array([1.0, 2.0, 3.0, 4.0]), np.array([3.0, 2.0, 3.0, 3.0])
IMAGES = RatedSet(
    MOS,
    LEARNED,
    np.array([1.0, 2.0, 3.0, 4.0]),
    np.stack([LEARNED] * 6, axis=1),
    {"vlm": np.array([1.0, 2.0, 3.5, 4.0])},
)


def test_the_images_that_come_first_are_rated() -> None:
    assert IMAGES.gain("vlm").tolist() == [2.0, 0.0, -0.5, 1.0]
    assert error_by_order(IMAGES, "vlm", IMAGES.width, 0.5) == (2 + 0 + 0.5 + 0) / 4
    assert error_by_order(IMAGES, "vlm", IMAGES.gain("vlm"), 0.25) == (0 + 0 + 0 + 1) / 4


def test_a_prediction_follows_the_features_of_other_images() -> None:
    features = np.arange(200.0)[:, None]
    assert predicted(features, 2 * features[:, 0], np.array([[50.0]]))[0] == pytest.approx(100, abs=6)


def test_all_rated_images_leave_nothing_to_choose() -> None:
    last = rows_of("set", IMAGES, [IMAGES])[-1]
    assert last == "| set | 100% rated by VLM | 0.125 | 0.125 [+0.000, +0.000] | 0.125 [+0.000, +0.000] |"
