"""A full training of the quality model on toy data."""

import csv
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from support.distortion_levels import scene

pytest.importorskip("torch", reason="training needs torch, of the extra train")
import torch

from agenticiqa.eval.research import train_quality_model as training
from agenticiqa.eval.research.quality_network import Backbone, QualityModel, backbone

pytestmark = pytest.mark.slow


def labels(folder: Path, scores: list[float]) -> Path:
    folder.mkdir()
    rng = np.random.default_rng(len(scores))
    with (folder / "labels.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["image", "mos"])
        for number, score in enumerate(scores):
            Image.fromarray(rng.integers(0, 256, (40, 48, 3), dtype=np.uint8)).save(folder / f"{number}.png")
            writer.writerow([f"{number}.png", score])
    return folder / "labels.csv"


def test_a_tiny_training_writes_figures_and_a_model_with_the_scores_of_the_head(tmp_path, monkeypatch, capsys):
    pytest.importorskip("onnxscript", reason="torch's ONNX exporter needs onnxscript, of the extra train")
    import onnxruntime

    def untrained():
        torch.manual_seed(0)
        made = Backbone()
        for norm in [each for each in made.modules() if isinstance(each, torch.nn.BatchNorm2d)]:
            norm.bias.data += 0.2
        return backbone([*made.state_dict().values()])

    sources = []
    for name in ("first", "second"):
        labels(tmp_path / name, [10, 30, 50, 70, 90])
        sources += ["--data", str(tmp_path / name / "labels.csv"), "0", "100"]
    photos = [(tmp_path / f"{n}.png", f"photo {n}", n == 2) for n in range(3)]
    for number, (file, *_) in enumerate(photos):
        Image.fromarray(scene(120, 150 + 10 * number)).save(file)
    monkeypatch.setattr(training, "read_photos", lambda packages: photos)
    monkeypatch.setattr(training, "pretrained", untrained)
    monkeypatch.setattr(training, "FOLDS", 2)
    monkeypatch.setattr("agenticiqa.eval.research.quality_head.EPOCHS", 1)
    kept = []
    monkeypatch.setattr(training, "QualityModel", lambda *parts: kept.append(QualityModel(*parts)) or kept[0])
    assert training.main([str(tmp_path), *sources, "--out", str(tmp_path / "made")]) == 0
    table = (tmp_path / "made" / "figures.md").read_text()
    assert table in capsys.readouterr().out
    assert "| all sets but first | first | 5 |" in table
    with (tmp_path / "made" / "held_out.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 20
    image = np.random.default_rng(5).integers(0, 256, (1, 3, 72, 96)).astype("f4")
    session = onnxruntime.InferenceSession(tmp_path / "made" / "quality_model.onnx")
    reading, late = session.run(["reading", "late"], {"image": image})
    with torch.no_grad():
        expected, _ = kept[0](torch.from_numpy(image))
    assert reading[0] == pytest.approx(expected[0].numpy(), abs=0.1)  # weights in half precision
    assert late.shape == (1, 320, 2, 3)
