"""A panel's head is refitted, and nothing else in the model changes."""

import csv
import re

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("onnx", reason="the model is written with onnx, of the extra train")
pytest.importorskip("torch", reason="training needs torch, of the extra train")
import onnx

from agenticiqa.eval.research.panel_head import main, projections_of
from agenticiqa.programs.tools.metrics.learned_iqa import BACKBONE, MODEL

pytestmark = pytest.mark.slow


@pytest.fixture
def labels(tmp_path):
    rng = np.random.default_rng(0)
    with (tmp_path / "labels.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["image", "mos", "source"])
        for number in range(12):
            pixels = rng.integers(20 * number, 20 * number + 30, (64, 72, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / f"{number}.png")
            rows.writerow([f"{number}.png", number / 12, f"ss01 ({number}).png"])
    return tmp_path / "labels.csv"


def parts(file):
    model = onnx.load(file)
    _, weight, bias = projections_of(model.graph)
    named = {each.name: onnx.numpy_helper.to_array(each) for each in model.graph.initializer}
    return named, weight.name, bias.name


def test_only_the_head_of_the_panel_changes_and_a_second_run_writes_the_same_bits(labels, tmp_path, capsys):
    call = [str(MODEL), str(labels), "--panel", "0", "--out", str(tmp_path / "made")]
    assert main(call) == 0
    made = tmp_path / "made" / "quality_model.onnx"
    before, weight, bias = parts(MODEL)
    after, *_ = parts(made)
    assert [name for name in before if not np.array_equal(before[name], after[name])] == [weight, bias]
    changed = np.flatnonzero((before[weight] != after[weight]).any(axis=0) | (before[bias] != after[bias]))
    assert changed.tolist() == [1], "the column of the first panel"
    first = made.read_bytes()
    assert first[:BACKBONE] == MODEL.read_bytes()[:BACKBONE], "the backbone is still the first part"
    assert re.search(r"SRCC by 5 folds: [-\d.]+ \[.*SHA256 = \"[0-9a-f]{64}\"", capsys.readouterr().out, re.DOTALL)
    assert main(call) == 0
    assert made.read_bytes() == first
