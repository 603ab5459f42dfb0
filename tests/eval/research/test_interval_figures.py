"""Coverage and width of the offline intervals."""

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the command needs onnx, of the extra train")

from agenticiqa.eval.research.adapter_figures import RatedImages
from agenticiqa.eval.research.interval_figures import ReadImages, moved


def test_a_line_has_the_coverage_and_width_of_the_intervals_of_its_images() -> None:
    names, scores = np.array(["a", "b"]), np.array([3.0, 3.0])
    rated = RatedImages(np.zeros((2, 4), np.float32), scores, np.array([3.95, 4.9]), names, names)
    reading = np.array([[3.0, 1.0, 0.8, 0.0], [3.0, 1.0, 0.3, 0.0]], np.float32)
    images = ReadImages(rated, reading, scores)
    assert images.line("both", scores) == "| both | 2 | 0.0% [0.0%, 65.8%] | 1.60 | 0.0% | 2.44 |"
    assert images.line("made", scores, names == "a", recognized=True).startswith(
        "| made | 1 | 0.0% [0.0%, 79.3%] | 1.51"
    )
    near = images.line("near", np.array([3.4, 4.5]))
    assert near.startswith("| near | 2 | 100.0% [34.2%, 100.0%] | 1.55 | 100.0%")


def test_held_out_scores_are_moved_to_the_mean_of_the_shipped_ones() -> None:
    names, mos = np.array(["a", "b"]), np.array([2.0, 4.0])
    reading = np.array([[2.5, 1.0, 0.8, 0.0], [4.5, 1.0, 0.8, 0.0]], np.float32)
    images = ReadImages(RatedImages(np.zeros((2, 4), np.float32), mos, mos, names, names), reading, mos)
    assert moved(np.array([1.0, 3.0]), images).tolist() == [2.5, 4.5]
