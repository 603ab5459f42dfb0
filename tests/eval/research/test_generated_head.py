"""The head for AI-generated images: other images keep their score, and generated ones are recognized."""

import csv

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("onnx", reason="the model is written with onnx, of the extra train")
pytest.importorskip("torch", reason="training needs torch, of the extra train")
import onnx

from agenticiqa.eval.research import generated_head
from agenticiqa.eval.research.generated_head import PHOTO, GeneratedClassifier, Pictures, fit_classifier, with_generated
from agenticiqa.eval.research.panel_head import projections_of
from agenticiqa.programs.images.files import sha256_of
from agenticiqa.programs.tools.metrics.learned_iqa import MODEL, as_input
from agenticiqa.programs.tools.numerics.networks import run_network
from support.distortion_levels import scene

pytestmark = pytest.mark.slow
OWN = 2.5  # the score that the head for generated images gives here


@pytest.fixture(scope="module")
def before():
    """The shipped model without the head and classifier for generated images."""
    model = onnx.load(MODEL)
    made = next(node for node in model.graph.node if "reading" in node.output)
    score = next(node for node in model.graph.node if made.input[0] in node.output).input[0]
    kept = [node for node in model.graph.node if not node.output[0].startswith("told_") and node is not made]
    del model.graph.node[:]
    model.graph.node.extend([*kept, onnx.helper.make_node("Concat", [score, made.input[1]], ["reading"], axis=1)])
    weights = [each for each in model.graph.initializer if not each.name.startswith("told_")]
    del model.graph.initializer[:]
    model.graph.initializer.extend(weights)
    return model


@pytest.mark.parametrize(("shown", "share"), [(0.0, 0), (PHOTO, 0), (1.0, 1)])
def test_the_new_head_counts_by_the_output_of_the_classifier(before, tmp_path, shown, share):
    features = projections_of(before.graph)[1].dims[0]
    classifier = GeneratedClassifier(
        np.zeros((features, 2), np.float32), np.zeros((3, 2), np.float32), 1.0, np.zeros(3, np.float32), shown
    )
    made = with_generated(before, classifier, np.zeros(features, np.float32), OWN)
    files = {}
    for name, model in (("before", before), ("after", made)):
        (tmp_path / name).write_bytes(model.SerializeToString())
        files[name] = tmp_path / name
    given = as_input(scene(256))
    old, new = (run_network(file, sha256_of(file), "reading", given)[0] for file in files.values())
    assert new[1] == old[1], "the novelty"
    assert 0.5 * share <= new[2] <= share, "less if damage is visible"
    assert new[0] == pytest.approx(old[0] + new[2] * (OWN - old[0]), abs=1e-5)


def test_generated_images_are_recognized_and_held_out_ones_are_not_trained_on(monkeypatch):
    monkeypatch.setattr(generated_head, "CENTERS", 60)
    monkeypatch.setattr(generated_head, "DIRECTIONS", 8)
    monkeypatch.setattr(generated_head, "SPANNED", 100)
    rng = np.random.default_rng(0)
    generated, whole = np.arange(300) < 100, np.arange(300) < 200
    standard = (rng.normal(size=(300, 40)) + 2 * generated[:, None]).astype(np.float16)
    source = np.select([generated, whole], ["maker", "photos"], "pristine")
    names = np.arange(300).astype(str)
    pictures = Pictures(standard, generated, whole, source, source, names, np.full(300, 3.0))
    _, outputs_without = fit_classifier(pictures)
    shown = outputs_without(np.arange(300) % 2 == 0)[1::2]
    assert shown[generated[1::2]].min() > 0.6 > 0.4 > shown[~generated[1::2]].max()
    assert outputs_without(~generated)[generated].max() == pytest.approx(0, abs=1e-5), "not trained on such images"


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
