"""Training of the detector: samples have known severities, and networks learn them."""

import csv
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from agenticiqa.eval.research import distorted
from agenticiqa.eval.research.distort import KINDS
from agenticiqa.eval.research.distorted import (
    ALSO_SLIGHT,
    PLAIN,
    PRISTINE,
    SEVERITY_OF_LEVEL,
    STYLED,
    STYLES_EACH,
    SUBTYPE_OF,
    listed_photos,
    read_samples,
    targets,
)
from agenticiqa.programs.images.files import sha256_of
from agenticiqa.programs.offline.measured.detector import HEADS, SUBTYPES, head_outputs
from agenticiqa.programs.offline.measured.findings import NETWORK_SHARE
from agenticiqa.signatures.vocabulary import DETECTABLE
from support.distortion_levels import scene

pytest.importorskip("torch", reason="training needs torch, of the extra train")
from agenticiqa.eval.research import small_networks, train_detector
from agenticiqa.eval.research.small_networks import fit_networks
from agenticiqa.eval.research.train_detector import main

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def photos(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("packages")
    Image.fromarray(scene(150, 200)).save(folder / "one.png")
    with (folder / "photos.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("content", "file", "package"), ("one", "one.png", "made 1.0")])
    return folder


@pytest.fixture(scope="module")
def samples(photos):
    return read_samples([photos / "photos.csv"], photos, photos / "cache", seed=0)


def test_every_kind_has_a_pristine_frame_and_five_levels(samples):
    for kind in KINDS:
        rows = samples.frame == samples.frame[samples.kind == kind][0]
        assert list(samples.kind[rows]) == [PRISTINE, *[kind] * 5]
        assert list(samples.level[rows]) == ["0", "1", "2", "3", "4", "5"]
        assert np.array_equal(samples.image[rows][0], samples.reference[rows][0])
        assert samples.with_reference[rows][0] == pytest.approx(0)


def test_test_photos_are_not_used(photos, samples):
    manifest = photos / "with_test.csv"
    rows = [("content", "file", "package", "split"), ("one", "one.png", "made 1.0", "train"), ("two", "-", "-", "test")]
    with manifest.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    found = read_samples([photos / "photos.csv", manifest], photos, photos / "cache", seed=0)
    assert len(found.kind) == 2 * len(samples.kind)
    assert listed_photos(manifest, photos) == [("one", photos / "one.png")]


@pytest.fixture(scope="module")
def in_styles(photos):
    return read_samples([], photos, photos / "cache", 0, [("one", photos / "one.png")])


def test_a_style_is_no_damage_but_a_distortion_on_top_is(in_styles):
    truth, known = targets(in_styles)
    assert list(in_styles.level[:1]) == [PLAIN]
    assert len(in_styles.kind) == 2 * (1 + STYLES_EACH)
    for row, (kind, level) in enumerate(zip(in_styles.kind, in_styles.level, strict=True)):
        expected = {ALSO_SLIGHT[style]: SEVERITY_OF_LEVEL[1] for style in level.split("+") if style in ALSO_SLIGHT}
        if kind != STYLED:
            damage, at = kind.split("+")[1], int(level.split("+")[1])
            expected |= {KINDS[damage].category: SEVERITY_OF_LEVEL[at]}
        assert {name: truth[name][row] for name in DETECTABLE if truth[name][row]} == expected
        assert all(known[name][row] for name in expected)


def test_only_heads_without_a_reference_are_trained_on_styles(samples, in_styles, monkeypatch):
    monkeypatch.setattr(small_networks, "EPOCHS", 1)
    both = distorted.Samples(
        *(np.concatenate([getattr(each, field.name) for each in (samples, in_styles)]) for field in fields(samples))
    )
    alone, together = train_detector.train(samples, 0), train_detector.train(both, 0)
    same = {name for name in alone if np.array_equal(alone[name], together[name])}
    assert same == {name for name in alone if name.startswith("compared")}
    table = train_detector.style_table(both, np.zeros((len(both.kind), len(DETECTABLE))))
    assert len(table) == 2 + 1 + STYLES_EACH + 2


def test_the_command_measures_held_out_contents_and_writes_weights(samples, monkeypatch, tmp_path, capsys):
    two = replace(samples, content=np.where(samples.frame % 2, "one", "two"))
    monkeypatch.setattr(train_detector, "read_samples", lambda *arguments: two)
    monkeypatch.setattr(train_detector, "listed_photos", lambda *arguments: [])
    monkeypatch.setattr(small_networks, "EPOCHS", 1)
    out = tmp_path / "made" / "detector.npz"
    assert main([str(tmp_path), str(tmp_path), "--cache", str(tmp_path), "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    with np.load(out) as weights:
        assert {name.split("_")[0] for name in weights.files} == set(HEADS)
    assert f"{out}: sha256 {sha256_of(out)}" in printed
    without, _ = train_detector.held_out(two, 0)
    share = np.array([NETWORK_SHARE[name] for name in DETECTABLE])
    both = (share * without + (1 - share) * two.without_reference)[two.kind == PRISTINE]
    below = np.quantile(both, 0.9, axis=0).round(2).tolist()
    assert f"90 % of pristine images have severities below {dict(zip(DETECTABLE, below, strict=True))}" in printed
    titles = [line for line in printed.splitlines() if line.startswith("## ")]
    assert titles == [
        f"## With{how} reference, {by}" for how in ("out a", " a") for by in ("networks", "curves", "both")
    ]
    on_one = train_detector.train(two[two.content == "one"], 0)
    held_out = train_detector.severities_of(on_one, two[two.content == "two"], ("texture", "tone"))
    assert without[two.content == "two"] == pytest.approx(held_out)


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


def made(kind: str, *, gray: bool = False) -> distorted.Samples:
    """Return a sample of level 3 without features."""
    nothing = np.zeros((1, 7))
    fields = (np.array(["one"]), np.array([0]), np.array([kind]), np.array(["3"]), np.array([gray]))
    return distorted.Samples(*fields, nothing, nothing, nothing, nothing)


def test_unknown_severities_of_a_sample_do_not_count():
    def unknown(samples):
        return {name for name, known in targets(samples)[1].items() if not known[0]}

    assert unknown(made("white_noise")) == set()
    assert unknown(made("fast_fading")) == {"Blurs", *SUBTYPES["Blurs"]}
    assert unknown(made("white_noise", gray=True)) == {"Color distortions", *SUBTYPES["Color distortions"]}


def test_small_networks_learn_severities_and_ignore_samples_of_weight_0():
    rng = np.random.default_rng(0)
    given = rng.normal(size=(1500, 6))
    truth = np.stack([np.clip(given[:, 0] + 1, 0, 4), np.clip(1 - given[:, 1], 0, 4)], axis=1)
    weight = np.ones_like(truth)
    truth[:500], weight[:500] = 4, 0
    weights = {f"any_{part}": values for part, values in fit_networks(given, truth, weight, 24, seed=0).items()}
    found = np.clip(head_outputs(weights, "any", given[500:]), 0, 4)
    assert np.mean(np.abs(found - truth[500:])) < 0.3
