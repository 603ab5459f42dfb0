"""Training of the detector."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from agenticiqa.eval.research.distorted import PRISTINE, read_samples
from agenticiqa.programs.images.files import sha256_of
from agenticiqa.programs.offline.measured.detector import HEADS
from agenticiqa.programs.offline.measured.findings import NETWORK_SHARE
from agenticiqa.signatures.vocabulary import DETECTABLE
from support.distortion_levels import scene

pytest.importorskip("torch", reason="training needs torch, of the extra train")
from agenticiqa.eval.research import small_networks, train_detector
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
