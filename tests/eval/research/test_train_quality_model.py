"""Training the learned model: sets on one scale, no leak from held-out images, and a file that repeats the head."""

import csv
import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from PIL import Image

from agenticiqa.eval.research import train_quality_model as training
from agenticiqa.eval.research.efficientnet_lite0 import STAGES, assemble
from agenticiqa.eval.research.image_statistics import STATISTICS
from agenticiqa.eval.research.ladders import Rungs
from agenticiqa.eval.research.panels import NO_PANEL
from agenticiqa.eval.research.quality_graph import build, build_features, write
from agenticiqa.eval.research.quality_head import HIDDEN, LAST, NETWORKS, Networks, Projections
from agenticiqa.eval.research.quality_rows import Rows, wanted_of
from agenticiqa.eval.research.quality_training import networks_input
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.tools.metrics.learned_iqa import MODEL
from agenticiqa.programs.tools.numerics.networks import layers_to

pytestmark = pytest.mark.slow

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


def test_the_scale_is_that_of_the_larger_sets_on_average(monkeypatch):
    sets = np.array(["large"] * 60 + ["other"] * 60 + ["small"] * 10)
    opinion = np.concatenate([np.tile([2.0, 3.0], 30), np.tile([3.0, 6.0], 30), np.full(10, 1.0)])
    standard = np.tile([-1.0, 1.0], 65)
    scores = training.on_one_scale(training.Data([], sets, opinion, standard, np.ones(130)))
    assert scores[:2] == pytest.approx([3.5 - 1, 3.5 + 1])


def test_large_sets_have_a_panel_of_their_own(data, monkeypatch):
    assert training.panels_of(data).tolist() == [NO_PANEL] * 12
    monkeypatch.setattr(training, "FEWEST", 5)
    assert training.panels_of(data).tolist() == [0] * 8 + [NO_PANEL] * 4
    monkeypatch.setattr(training, "FEWEST", 4)
    assert training.panels_of(data).tolist() == [0] * 8 + [1] * 4


def test_what_is_made_of_a_photo_is_of_its_panel_and_a_frame_of_many_ladders_counts_once():
    rungs = Rungs(
        np.array([0, 1, 2, 2, 3, 3, 4, 4]),
        np.array(["", "jpeg", "jpeg", "jpeg", "darken", "darken", "jpeg", "jpeg"]),
        np.array([0.0, 2, 0, 3, 0, 3, 0, 3]),
        np.ones(8),
        np.full(8, np.nan),
        np.array([[1], [2], [3], [4], [3], [5], [6], [7]], np.float16),
    )
    item = np.array([0, 0, -1, -1, -1, -1, -1, -1])
    rows = Rows(rungs, item, np.array(["photo"] * 2 + ["pristine"] * 6), np.zeros(8, bool))
    wanted = wanted_of(rows, np.array([3.0]), np.array([1.0]), np.array([0]))
    assert wanted.panel.tolist() == [0, 0] + [NO_PANEL] * 6
    assert wanted.panels == 1
    assert np.flatnonzero(wanted.frame).tolist() == [2, 6]


@pytest.mark.parametrize(("low", "high"), [("5", "1"), ("1", "1"), ("a", "5")])
def test_a_scale_that_is_none_is_refused(tmp_path, low, high):
    with pytest.raises(UserError, match="scale"):
        training.read([[str(labels(tmp_path / "set", [1, 2])), low, high]])


def test_a_content_is_the_reference_of_its_set(data):
    assert data.contents[:2] == ["hundred/0.png", "hundred/1.png"]
    assert data.contents[8:] == ["one/0.png", "one/0.png", "one/1.png", "one/1.png"]


def test_the_spread_is_that_of_the_errors():
    rng = np.random.default_rng(4)
    opinion = rng.uniform(1.5, 4.5, 4000)
    predicted = opinion + rng.normal(0, 0.4, 4000)
    sets = np.array(["a"] * 4000)
    made = training.Data([], sets, opinion, opinion, np.ones(4000))
    base, more = training.spreads(made, training.Held(np.arange(4000), predicted, np.ones(4000)))
    assert base == pytest.approx(0.4, abs=0.05)
    assert more == 0


def head_of(rng, n_features=17920 + STATISTICS, n_projections=30, panels=2):
    """A head with random weights, of the shipped one's size."""

    def draw(*shape):
        return rng.normal(0, 0.1, shape).astype("f4")

    taken = n_projections + STATISTICS
    projections = Projections(
        draw(n_features),
        np.full(n_features, 0.2, "f4"),
        draw(n_features, n_projections) / 100,
        draw(n_projections) + np.float32(0.5),
        panels,
    )
    networks = Networks(
        draw(taken),
        np.ones(taken, "f4"),
        draw(taken, NETWORKS * HIDDEN),
        draw(NETWORKS * HIDDEN),
        draw(NETWORKS, HIDDEN, LAST),
        draw(NETWORKS, LAST),
        draw(NETWORKS, LAST),
        draw(taken),
        3.0,
    )
    return projections, networks


def test_the_file_gives_what_the_head_gives_for_the_features(network, tmp_path):
    rng = np.random.default_rng(5)
    image = rng.integers(0, 256, (1, 3, 64, 96)).astype("f4")
    seen = onnxruntime.InferenceSession(build_features(network).SerializeToString()).run(["inside"], {"image": image})
    features = seen[0].reshape(1, -1)
    assert features.shape == (1, 17920 + STATISTICS)
    projections, networks = head_of(rng)
    write(build(network, projections, networks), tmp_path / "model.onnx")
    reading, late = onnxruntime.InferenceSession(tmp_path / "model.onnx").run(["reading", "late"], {"image": image})
    assert reading[0, 0] == pytest.approx(networks(networks_input(projections, features))[0], abs=2e-2)
    assert reading[0, 1] == pytest.approx((projections.standardized(features) ** 2).mean(), rel=1e-3)
    assert late.shape == (1, 320, 2, 3)


def test_the_graph_is_that_of_the_shipped_file(network):
    made, shipped = build(network, *head_of(np.random.default_rng(0))).graph, onnx.load(MODEL).graph
    assert [node.SerializeToString() for node in made.node] == [node.SerializeToString() for node in shipped.node]
    pairs = [
        tuple(map(onnx.numpy_helper.to_array, pair)) for pair in zip(made.initializer, shipped.initializer, strict=True)
    ]
    assert all((one.shape, one.dtype) == (other.shape, other.dtype) for one, other in pairs)
    settings = [pair for pair in pairs if pair[0].size <= 2 and pair[0] != pytest.approx(3.0)]
    assert len(settings) > 50
    assert all(np.array_equal(one, other) for one, other in settings)


def test_the_statistics_of_a_block_are_computed_before_the_next_blocks(network, tmp_path):
    options = onnxruntime.SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, str(tmp_path / "profile")
    model = build(network, *head_of(np.random.default_rng(0)))
    reading = layers_to(model.SerializeToString(), "reading")
    session = onnxruntime.InferenceSession(reading, options, providers=["CPUExecutionProvider"])
    session.run(["reading"], {"image": np.zeros((1, 3, 64, 64), "f4")})
    events = json.loads(Path(session.end_profiling()).read_text())
    done = [event["name"] for event in events if event["name"].endswith("_kernel_time")]
    blocked = [place for place, name in enumerate(done) if name.startswith("Clip_") and "nchwc" in name]
    if not blocked:
        pytest.skip("onnxruntime keeps channels in another layout on this processor, and names its steps otherwise")
    last = max(blocked)
    operators = [node.op_type for node in model.graph.node]
    blocks = model.graph.node[: operators.index("Concat")]
    deviations = [f"{node.output[0]}_kernel_time" for node in blocks if node.op_type == "Sqrt"]
    assert len(deviations) == 16
    assert sum(name in done[:last] for name in deviations) == 15  # all but the last block's


def test_the_same_model_is_the_same_bytes(network, tmp_path):
    head = head_of(np.random.default_rng(0))
    files = tmp_path / "a.onnx", tmp_path / "b.onnx"
    for file in files:
        write(build(network, *head), file)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert files[0].stat().st_size < 9e6


def test_without_the_extra_one_line_says_what_to_install(data, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("agenticiqa.eval.research.efficientnet_lite0.find_spec", lambda name: None)
    monkeypatch.setattr(training, "read_photos", lambda packages: [])
    source = str(data.items[0].image.parent / "labels.csv")
    assert training.main([str(tmp_path), "--data", source, "0", "100", "--out", str(tmp_path / "made")]) == 2
    message = capsys.readouterr().err.strip()
    assert 'pip install "agenticiqa[train]"' in message
    assert "\n" not in message


def test_missing_photos_are_named(data, tmp_path, capsys):
    source = str(data.items[0].image.parent / "labels.csv")
    assert training.main([str(tmp_path), "--data", source, "0", "100", "--out", str(tmp_path / "made")]) == 2
    assert "scikit-image" in capsys.readouterr().err
