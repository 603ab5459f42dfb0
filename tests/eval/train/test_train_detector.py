"""Training the detector: samples with known truth, networks that learn it, and tables that count it."""

import csv
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from agenticiqa.eval.studies.detector_report import (
    confusion_table,
    correct_shares,
    false_alarms,
    is_correct,
    srcc_with_level,
    top_category,
)
from agenticiqa.eval.train.distorted import PRISTINE, SEVERITY_OF_LEVEL, SUBTYPE_OF, read_samples, targets
from agenticiqa.eval.train.small_networks import fit_networks
from agenticiqa.eval.train.train_detector import main
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.offline.detector import SUBTYPES, read
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


def severities(**of: float) -> np.ndarray:
    return np.array([of.get(name.split()[0].lower(), 0.0) for name in DETECTABLE])


def test_every_kind_climbs_its_five_levels_from_a_pristine_frame(samples):
    for kind in KINDS:
        rows = samples.frame == samples.frame[samples.kind == kind][0]
        assert list(samples.kind[rows]) == [PRISTINE, *[kind] * 5]
        assert list(samples.level[rows]) == ["0", "1", "2", "3", "4", "5"]
        assert np.array_equal(samples.image[rows][0], samples.reference[rows][0])
        assert samples.with_reference[rows][0] == pytest.approx(0)


def test_samples_are_kept_and_read_again(samples, photos):
    again = read_samples(photos / "photos.csv", photos, photos / "cache", seed=0)
    assert np.array_equal(again.image, samples.image)


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


def test_small_networks_learn_what_traits_tell_and_ignore_what_counts_nothing():
    rng = np.random.default_rng(0)
    given = rng.normal(size=(1500, 6))
    truth = np.stack([np.clip(given[:, 0] + 1, 0, 4), np.clip(1 - given[:, 1], 0, 4)], axis=1)
    weight = np.ones_like(truth)
    truth[:500], weight[:500] = 4, 0
    weights = {f"any_{part}": values for part, values in fit_networks(given, truth, weight, 24, seed=0).items()}
    found = np.clip(read(weights, "any", given[500:]), 0, 4)
    assert np.mean(np.abs(found - truth[500:])) < 0.3


def test_the_top_category_is_the_worst_visible_one():
    assert top_category(severities(blurs=1.2, noise=0.9)) == "Blurs"
    assert top_category(severities(blurs=0.4)) == "none"


def test_lost_packets_may_be_called_compression_or_blur_and_nothing_else():
    assert is_correct("jp2k-fast-fading", "Blurs")
    assert is_correct("fast_fading", "Compression")
    assert not is_correct("fast_fading", "Noise")
    assert not is_correct("gaussian-blur", "Sharpness")


def test_shares_alarms_and_agreement_are_counted_over_the_rows():
    rows = np.array([severities(blurs=2), severities(noise=2), severities(), severities(noise=1)])
    assert correct_shares(["defocus", "defocus", "defocus", "white_noise"], rows) == {
        "defocus": 1 / 3,
        "white_noise": 1,
    }
    alarms = false_alarms(rows)
    assert alarms["any"] == 0.5
    assert alarms["Noise"] == 0.25
    assert srcc_with_level("white_noise", [0, 1, 2], rows[[2, 3, 1]]) == pytest.approx(1)
    assert srcc_with_level("jpeg", [0, 1, 2], rows[[2, 3, 1]]) == 0


def test_the_confusion_table_has_a_row_per_kind():
    rows = np.array([severities(blurs=2), severities()])
    table = confusion_table(["defocus", PRISTINE], rows, {"defocus": [1.0]})
    assert table[2].startswith("| defocus | 1 | 1 |")
    assert table[2].endswith("| 1.00 | 1.00 |")
    assert table[3].startswith("| pristine | 1 |")
    assert table[3].endswith("| 1 | - | - |")
