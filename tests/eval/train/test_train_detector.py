"""Training the detector: samples with known truth, and networks that learn it."""

import csv
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from agenticiqa.eval.train import distorted
from agenticiqa.eval.train.distorted import PRISTINE, SEVERITY_OF_LEVEL, SUBTYPE_OF, read_samples, targets
from agenticiqa.eval.train.small_networks import fit_networks
from agenticiqa.eval.train.train_detector import main
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.offline.detector import SUBTYPES, head_outputs
from agenticiqa.programs.tools.distort import KINDS
from agenticiqa.signatures.vocabulary import DETECTABLE
from support.ladders import scene


@pytest.fixture(scope="module")
def photos(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("packages")
    Image.fromarray(scene(150, 200)).save(folder / "one.png")
    with (folder / "photos.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("content", "file", "package"), ("one", "one.png", "made 1.0")])
    return folder


@pytest.fixture(scope="module")
def samples(photos):
    return read_samples(photos / "photos.csv", photos, photos / "cache", seed=0)


def test_every_kind_climbs_its_five_levels_from_a_pristine_frame(samples):
    for kind in KINDS:
        rows = samples.frame == samples.frame[samples.kind == kind][0]
        assert list(samples.kind[rows]) == [PRISTINE, *[kind] * 5]
        assert list(samples.level[rows]) == ["0", "1", "2", "3", "4", "5"]
        assert np.array_equal(samples.image[rows][0], samples.reference[rows][0])
        assert samples.with_reference[rows][0] == pytest.approx(0)


def test_samples_are_kept_and_read_again(samples, photos, monkeypatch):
    def recomputed(*arguments):
        raise AssertionError("the samples of the photo were kept")

    monkeypatch.setattr(distorted, "samples_of", recomputed)
    again = read_samples(photos / "photos.csv", photos, photos / "cache", seed=0)
    assert np.array_equal(again.image, samples.image)
    with pytest.raises(AssertionError, match="were kept"):
        read_samples(photos / "photos.csv", photos, photos / "cache", seed=1)


def test_missing_photos_are_named_by_their_package(photos, tmp_path):
    with pytest.raises(UserError, match=r"unpack made 1\.0 there"):
        read_samples(photos / "photos.csv", tmp_path, tmp_path / "cache", seed=0)


def test_missing_photos_end_the_command_with_one_line(tmp_path, capsys):
    assert main([str(tmp_path), "--cache", str(tmp_path / "cache")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_every_kind_of_a_detectable_category_has_a_subtype_of_that_category():
    assert set(SUBTYPE_OF) == {kind for kind, made in KINDS.items() if made.category in DETECTABLE}
    for kind, subtype in SUBTYPE_OF.items():
        assert subtype in SUBTYPES[KINDS[kind].category]


def test_the_truth_of_a_sample_is_its_kinds_at_their_levels(samples):
    truth, known = targets(samples)
    assert {PRISTINE, "pixelate"} < set(samples.kind)
    assert any("+" in kind for kind in samples.kind)
    for row, (kind, level) in enumerate(zip(samples.kind, samples.level, strict=True)):
        if kind == PRISTINE:
            assert not any(each[row] for each in truth.values())
        elif kind == "pixelate":
            assert not any(each[row] for each in known.values())
        elif "+" in kind:
            for one, step in zip(kind.split("+"), level.split("+"), strict=True):
                assert truth[KINDS[one].category][row] == SEVERITY_OF_LEVEL[int(step)]
        else:
            named = {name for name, each in truth.items() if each[row]}
            assert named == {KINDS[kind].category, SUBTYPE_OF[kind]}


def test_small_networks_learn_severities_and_ignore_samples_of_weight_0():
    rng = np.random.default_rng(0)
    given = rng.normal(size=(1500, 6))
    truth = np.stack([np.clip(given[:, 0] + 1, 0, 4), np.clip(1 - given[:, 1], 0, 4)], axis=1)
    weight = np.ones_like(truth)
    truth[:500], weight[:500] = 4, 0
    weights = {f"any_{part}": values for part, values in fit_networks(given, truth, weight, 24, seed=0).items()}
    found = np.clip(head_outputs(weights, "any", given[500:]), 0, 4)
    assert np.mean(np.abs(found - truth[500:])) < 0.3
