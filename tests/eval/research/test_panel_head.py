"""A panel's head is refitted: nothing else in the model changes, and held-out images are not used for training."""

import csv
import re

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("onnx", reason="the model is written with onnx, of the extra train")
pytest.importorskip("torch", reason="training needs torch, of the extra train")
import onnx

from agenticiqa.eval.research.likeness import gray_copies, groups_of
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


def test_training_on_test_photos_is_refused(labels, tmp_path, capsys):
    (tmp_path / "test.csv").write_text("Image Name,MOS\nss01 (3).png,1\n")
    call = [str(MODEL), str(labels), "--never", str(tmp_path / "test.csv"), "--out", str(tmp_path / "made")]
    assert main(call) == 2
    assert "test.csv: names 1 training photos, such as ss01 (3).png" in capsys.readouterr().err
    assert not (tmp_path / "made").exists()


def test_similar_photos_form_a_group_directly_or_via_others(tmp_path):
    rng = np.random.default_rng(1)
    scene, other = (rng.integers(0, 256, (16, 16), dtype=np.uint8) for _ in range(2))
    pictures = [scene, scene // 2, other, rng.integers(0, 256, (16, 16), dtype=np.uint8)]
    for number, picture in enumerate(pictures):
        Image.fromarray(picture).resize((128, 96), 0).save(tmp_path / f"{number}.png")
    copies = gray_copies([tmp_path / f"{number}.png" for number in range(4)])
    found = groups_of(["a", "b", "c", "c"], copies)
    assert found[0] == found[1] != found[2]
    assert found[2] == found[3], "one content"
