"""Fitting the quality model's head: what is held out stays out, and the weights give what the coordinates give."""

import numpy as np
import pytest

from agenticiqa.eval.research import quality_training
from agenticiqa.eval.research.image_statistics import STATISTICS
from agenticiqa.eval.research.ladders import JUDGED, VIEW, Rungs
from agenticiqa.eval.research.panels import NO_PANEL, with_panels
from agenticiqa.eval.research.quality_head import Wanted, regressions
from agenticiqa.eval.research.quality_rows import Rows
from agenticiqa.eval.research.quality_training import Training, networks_input

PHOTOS, RUNGS, FEATURES = 30, 4, STATISTICS + 40


@pytest.fixture
def training(monkeypatch):
    """Photos, each judged, with a view and a ladder; the last five are only measured. The networks change nothing."""
    monkeypatch.setattr(quality_training, "fit_networks", lambda given, wanted, rows, seed: lambda other: other[:, 0])
    rng = np.random.default_rng(0)
    photo, level = np.repeat(np.arange(PHOTOS), 2 + RUNGS), np.tile([0.0, 0, 0, 1, 3, 5], PHOTOS)
    kind = np.tile([JUDGED, VIEW, *["jpeg"] * RUNGS], PHOTOS)
    features = rng.normal(size=(len(photo), FEATURES)) + level[:, None] * rng.normal(size=FEATURES)
    rungs = Rungs(
        3 * photo + np.tile([0, 1, *[2] * RUNGS], PHOTOS),
        kind,
        level,
        np.ones(len(photo)),
        np.full(len(photo), np.nan),
        features.astype(np.float16),
    )
    rows = Rows(rungs, photo, photo.astype(str), photo >= PHOTOS - 5)
    score = 4 - 0.6 * level + 0.2 * rng.normal(size=len(photo))
    wanted = Wanted(
        np.stack([2 - level / 5] * 3, axis=1).astype("f4"),
        score,
        rows.authentic,
        rows.judged,
        rungs.ladder,
        np.ones(len(photo)),
        np.where(photo < 10, 0, NO_PANEL),
        np.zeros(len(photo), bool),
    )
    return Training.of(rows, wanted, photo % 5), rows, wanted


def test_the_weights_of_the_features_give_what_the_coordinates_give(training):
    made, rows, wanted = training
    projections, _ = made.fitted(0)
    given = networks_input(projections, rows.rungs.features)
    coefficients, centers = regressions(made.coordinates, wanted, ~rows.test)
    projected = with_panels(made.coordinates @ coefficients + centers, wanted.panels)
    assert given[:, : len(centers)] == pytest.approx(projected, abs=1e-3)
    assert given.shape[1] == len(centers) + STATISTICS


def test_scores_of_a_set_do_not_depend_on_its_opinions(training):
    made, rows, wanted = training
    here = rows.item < 10
    scores = made.held_out_set(here)
    assert np.isfinite(scores).tolist() == here.tolist()
    wanted.score[here] = 1.0
    wanted.targets[here] = 0.0
    assert made.held_out_set(here)[here].tolist() == scores[here].tolist()


def test_another_view_of_a_photo_counts_for_its_opinion(training):
    made, rows, wanted = training
    views = np.flatnonzero(rows.rungs.kind == VIEW)
    before = made.fitted(0)[0]
    wanted.score[views] += np.linspace(-1, 1, len(views))
    after = made.fitted(0)[0]
    assert abs(after.weight[:, 0] - before.weight[:, 0]).max() > 1e-4
    wanted.judged[views] = False
    alone = made.fitted(0)[0]
    wanted.score[views] = 1.0
    assert made.fitted(0)[0].weight[:, 0].tolist() == alone.weight[:, 0].tolist()


def test_only_photos_as_people_judged_them_are_measured(training):
    _, rows, _ = training
    assert rows.authentic.sum() == PHOTOS
    assert rows.judged.sum() == 2 * PHOTOS
