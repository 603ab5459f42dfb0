"""The quality model: no leak from held-out images, heads of panels, regressions as in textbooks, a full training."""

import csv
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from agenticiqa.eval.research.distortion_series import RATED, VIEW, SeriesImages
from support.distortion_levels import scene

pytest.importorskip("torch", reason="training needs torch, of the extra train")
import torch

from agenticiqa.eval.research import quality_training
from agenticiqa.eval.research import train_quality_model as training
from agenticiqa.eval.research.quality_head import (
    NO_PANEL,
    RIDGE_ALIKE,
    STATISTICS_WEIGHT,
    Wanted,
    all_mos,
    members,
    reduction,
    regressions,
    ridge_regression,
)
from agenticiqa.eval.research.quality_network import STATISTICS, Backbone, QualityModel, backbone, with_panels
from agenticiqa.eval.research.quality_rows import Rows, wanted_of
from agenticiqa.eval.research.quality_training import Training

pytestmark = pytest.mark.slow


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


def test_every_set_is_mapped_to_1_to_5_by_its_own_scale(data):
    assert data.mos[:5].tolist() == [1, 2, 3, 4, 5]
    assert data.mos[8:] == pytest.approx([3, 3.4, 3.8, 4.2])


def test_the_common_scale_is_the_average_of_the_larger_sets(monkeypatch):
    sets = np.array(["large"] * 60 + ["other"] * 60 + ["small"] * 10)
    mos = np.concatenate([np.tile([2.0, 3.0], 30), np.tile([3.0, 6.0], 30), np.full(10, 1.0)])
    standard = np.tile([-1.0, 1.0], 65)
    scores = training.on_one_scale(training.Data([], sets, mos, standard, np.ones(130)))
    assert scores[:2] == pytest.approx([3.5 - 1, 3.5 + 1])


def test_large_sets_have_a_panel_of_their_own(data, monkeypatch):
    assert training.panels_of(data).tolist() == [NO_PANEL] * 12
    monkeypatch.setattr(training, "FEWEST", 5)
    assert training.panels_of(data).tolist() == [0] * 8 + [NO_PANEL] * 4
    monkeypatch.setattr(training, "FEWEST", 4)
    assert training.panels_of(data).tolist() == [0] * 8 + [1] * 4


def test_images_have_the_panel_of_their_photo_and_a_frame_of_many_series_counts_once():
    images = SeriesImages(
        np.array([0, 1, 2, 2, 3, 3, 4, 4]),
        np.array(["", "jpeg", "jpeg", "jpeg", "darken", "darken", "jpeg", "jpeg"]),
        np.array([0.0, 2, 0, 3, 0, 3, 0, 3]),
        np.ones(8),
        np.full(8, np.nan),
        np.array([[1], [2], [3], [4], [3], [5], [6], [7]], np.float16),
    )
    item = np.array([0, 0, -1, -1, -1, -1, -1, -1])
    rows = Rows(images, item, np.array(["photo"] * 2 + ["pristine"] * 6), np.zeros(8, bool))
    wanted = wanted_of(rows, np.array([3.0]), np.array([1.0]), np.array([0]))
    assert wanted.panel.tolist() == [0, 0] + [NO_PANEL] * 6
    assert wanted.panels == 1
    assert np.flatnonzero(wanted.frame).tolist() == [2, 6]


def test_the_spread_is_the_deviation_of_the_errors():
    rng = np.random.default_rng(4)
    mos = rng.uniform(1.5, 4.5, 4000)
    predicted = mos + rng.normal(0, 0.4, 4000)
    sets = np.array(["a"] * 4000)
    made = training.Data([], sets, mos, mos, np.ones(4000))
    base, more = training.spreads(made, training.HeldOut(np.arange(4000), predicted, np.ones(4000)))
    assert base == pytest.approx(0.4, abs=0.05)
    assert more == 0


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


PHOTOS, LEVELS, FEATURES = 30, 4, STATISTICS + 40


@pytest.fixture
def fitted(monkeypatch):
    """Rated photos, each with a view and a series; the last five are for testing. The networks change nothing."""
    monkeypatch.setattr(quality_training, "fit_networks", lambda given, wanted, rows, seed: lambda x: x[:, 0])
    rng = np.random.default_rng(0)
    photo, level = np.repeat(np.arange(PHOTOS), 2 + LEVELS), np.tile([0.0, 0, 0, 1, 3, 5], PHOTOS)
    kind = np.tile([RATED, VIEW, *["jpeg"] * LEVELS], PHOTOS)
    features = rng.normal(size=(len(photo), FEATURES)) + level[:, None] * rng.normal(size=FEATURES)
    images = SeriesImages(
        3 * photo + np.tile([0, 1, *[2] * LEVELS], PHOTOS),
        kind,
        level,
        np.ones(len(photo)),
        np.full(len(photo), np.nan),
        features.astype(np.float16),
    )
    rows = Rows(images, photo, photo.astype(str), photo >= PHOTOS - 5)
    score = 4 - 0.6 * level + 0.2 * rng.normal(size=len(photo))
    wanted = Wanted(
        np.stack([2 - level / 5] * 3, axis=1).astype("f4"),
        score,
        rows.authentic,
        rows.rated,
        images.series,
        np.ones(len(photo)),
        np.where(photo < 10, 0, NO_PANEL),
        np.zeros(len(photo), bool),
    )
    return Training.of(rows, wanted, photo % 5), rows, wanted


def test_features_and_coordinates_give_the_same_projections(fitted):
    made, rows, wanted = fitted
    with torch.no_grad():
        given, _ = made.fitted(0)[0](torch.from_numpy(rows.images.features.astype("f4")))
    coefficients, centers = regressions(made.coordinates, wanted, ~rows.test)
    projected = with_panels(torch.from_numpy(made.coordinates @ coefficients + centers), wanted.panels)
    assert given.numpy() == pytest.approx(projected.numpy(), abs=1e-3)


def test_held_out_scores_of_a_set_do_not_depend_on_its_mos(fitted):
    made, rows, wanted = fitted
    here = rows.item < 10
    scores = made.held_out_set(here)
    assert np.isfinite(scores).tolist() == here.tolist()
    wanted.score[here] = 1.0
    wanted.targets[here] = 0.0
    assert made.held_out_set(here)[here].tolist() == scores[here].tolist()


def test_other_views_of_a_photo_count_in_the_fit_to_mos(fitted):
    made, rows, wanted = fitted
    views = np.flatnonzero(rows.images.kind == VIEW)
    before = made.fitted(0)[0]
    wanted.score[views] += np.linspace(-1, 1, len(views))
    after = made.fitted(0)[0]
    assert abs(after.weight[:, 0] - before.weight[:, 0]).max() > 1e-4
    wanted.rated[views] = False
    alone = made.fitted(0)[0]
    wanted.score[views] = 1.0
    assert made.fitted(0)[0].weight[:, 0].tolist() == alone.weight[:, 0].tolist()


def test_only_photos_as_people_rated_them_are_authentic(fitted):
    _, rows, _ = fitted
    assert rows.authentic.sum() == PHOTOS
    assert rows.rated.sum() == 2 * PHOTOS


BY_PANEL = 40  # images


@pytest.fixture
def rated():
    """Coordinates, MOS and panels of images: the panels agree on the first feature and not on the second."""
    rng = np.random.default_rng(0)
    coordinates = rng.normal(size=(2 * BY_PANEL, 12)).astype("f4")
    panel = np.repeat([0, 1], BY_PANEL)
    coordinates[:, 2] = np.where(panel == 0, 1.0, -1.0)  # how their photos look
    mos = 3 + coordinates[:, 0] + np.where(panel == 0, 0.8, -0.8) * coordinates[:, 1]
    return coordinates, mos.astype(float), panel


def predicted(rated, panel, weight=None):
    """Return the MOS of all images predicted for each panel."""
    coordinates, mos, _ = rated
    weight = np.ones(len(mos)) if weight is None else weight
    coefficients, centers = all_mos(coordinates, mos, weight, panel, 2)
    return coordinates @ coefficients + centers


def alike(rated, panel):
    """Return the likeness of all images to the photos of each panel."""
    coefficients, centers = ridge_regression(rated[0], members(panel, 2), np.ones(len(panel)), RIDGE_ALIKE)
    return rated[0] @ coefficients + centers


def test_each_panel_has_its_own_head(rated):
    _, mos, panel = rated
    found = predicted(rated, panel)
    own = np.where(panel == 0, found[:, 0], found[:, 1])
    other = np.where(panel == 0, found[:, 1], found[:, 0])
    assert np.abs(own - mos).mean() < 0.15
    assert np.abs(other - mos).mean() > 0.7


def test_the_photos_of_a_panel_are_recognized(rated):
    *_, panel = rated
    found = alike(rated, panel)
    assert (found[panel == 0, 0] > 0.9).all()
    assert (found[panel == 1, 0] < 0.1).all()
    assert found.sum(axis=1) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(
    ("alike", "expected"),
    [
        ((1, 0), 4.0),
        ((0.9, -0.5), 4.0),
        ((0, 0), 3.0),
        ((0.2, 0.1), 3.0),
        ((0.35, 0), 3.5),
        ((0, 0.8), 1.0),
        ((1, 1), 2.5),
    ],
)
def test_the_score_is_by_the_panel_with_similar_photos(alike, expected):
    found = with_panels(torch.tensor([[3.0, 4, 1, *alike, 7]]), 2)
    assert found[0].tolist() == pytest.approx([expected, 4, 1, *alike, 7])


N, SIZE, LAST, RIDGE = 60, 200, 20, 0.5


@pytest.fixture
def images():
    rng = np.random.default_rng(3)
    standard = rng.normal(size=(N + 10, SIZE)).astype("f4")
    wanted = np.stack([standard[:, 0] + standard[:, -1], rng.normal(size=N + 10)], axis=1).astype("f4")
    return standard, wanted, rng.uniform(0.5, 3, N)


def by_all_pairs(standard, wanted, weight):
    """Return predictions by kernel ridge regression with a linear kernel over the weighted features."""
    weighted = standard.astype(float)
    weighted[:, -LAST:] *= STATISTICS_WEIGHT
    products = weighted @ weighted.T / SIZE
    center = np.average(wanted[:N], axis=0, weights=weight)
    dual = np.linalg.solve(products[:N, :N] + np.diag(RIDGE / weight), wanted[:N] - center)
    return products[N:, :N] @ dual + center


def test_a_regression_in_the_span_of_all_images_equals_one_on_all_features(images):
    standard, wanted, weight = images
    toward = reduction(standard[:N], LAST)
    coordinates = standard @ toward
    coefficients, center = ridge_regression(coordinates[:N], wanted[:N], weight, RIDGE)
    expected = by_all_pairs(standard, wanted, weight)
    assert coordinates[N:] @ coefficients + center == pytest.approx(expected, abs=2e-3)
    assert standard[N:] @ (toward @ coefficients) + center == pytest.approx(expected, abs=2e-3)
