"""The head for AI-generated images."""

import csv

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("onnx", reason="the model is written with onnx, of the extra train")
pytest.importorskip("torch", reason="training needs torch, of the extra train")
import onnx

from agenticiqa.eval.research import generated_head
from agenticiqa.programs.tools.metrics.learned_iqa import MODEL

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def before():
    """The shipped model without the head and classifier for generated images."""
    model = onnx.load(MODEL)
    made = next(node for node in model.graph.node if "reading" in node.output)
    score = next(node for node in model.graph.node if made.input[0] in node.output).input[0]
    kept = [node for node in model.graph.node if not node.output[0].startswith("told_") and node is not made]
    del model.graph.node[:]
    model.graph.node.extend([*kept, onnx.helper.make_node("Concat", [score, *made.input[1:3]], ["reading"], axis=1)])
    weights = [each for each in model.graph.initializer if not each.name.startswith("told_")]
    del model.graph.initializer[:]
    model.graph.initializer.extend(weights)
    return model


def test_the_command_keeps_features_and_writes_a_model_and_the_scores_by_folds(before, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(generated_head, "CENTERS", 9)
    monkeypatch.setattr(generated_head, "DIRECTIONS", 4)
    monkeypatch.setattr(generated_head, "SPANNED", 24)
    monkeypatch.setattr(generated_head, "read_photos", lambda packages: [(packages / "0.png", "scene", False)])
    rng = np.random.default_rng(0)
    for folder in ("made", "taken"):
        (tmp_path / folder).mkdir()
        with (tmp_path / folder / "labels.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["image", "mos", "content", "generator"])
            for number in range(12):
                pixels = rng.integers(20 * number, 20 * number + 30, (64, 72, 3), dtype=np.uint8)
                Image.fromarray(pixels).save(tmp_path / folder / f"{number}.png")
                rows.writerow([f"{number}.png", number / 3, number, "ab"[number % 2] * (folder == "made")])
    (tmp_path / "before.onnx").write_bytes(before.SerializeToString())
    labels = [str(tmp_path / folder / "labels.csv") for folder in ("made", "taken")]
    out = tmp_path / "out"
    call = [str(tmp_path / "before.onnx"), *labels, "--packages", str(tmp_path / "taken"), "--out", str(out)]
    assert generated_head.main(call) == 0
    first, printed = (out / "quality_model.onnx").read_bytes(), capsys.readouterr().out
    assert "all generated, by folds: n = 12" in printed
    assert len((out / "folds.csv").read_text().splitlines()) == 13
    monkeypatch.setattr(generated_head, "run_network", None)
    assert generated_head.main(call) == 0
    assert (out / "quality_model.onnx").read_bytes() == first, "the features were kept"
