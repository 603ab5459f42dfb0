"""Recognition of pictures that are not photos: fitted weights are read back, and results are counted."""

import hashlib
import re

import numpy as np
import pytest
from PIL import Image

from agenticiqa.eval.research import outside_photos
from agenticiqa.eval.research.drawn_pictures import drawn
from agenticiqa.eval.research.outside_photos import (
    PictureSample,
    fit,
    main,
    predicted_look,
    report,
    write_weights,
)
from agenticiqa.programs.tools.numerics.weights import read_weights
from agenticiqa.programs.tools.outside_training import LOOKS

pytestmark = pytest.mark.slow

RANDOM = np.random.default_rng(4)


def samples(fitted: bool, count: int = 20) -> list[PictureSample]:
    """Return samples in which a high value in one of the first features marks the look."""
    made = []
    for index, look in enumerate(LOOKS):
        values = RANDOM.normal(0, 0.3, (count, 8))
        values[:, index] += 3
        made += [PictureSample(look, f"set: {look}", fitted, each) for each in values]
    return made


@pytest.mark.parametrize("kind", ["plot", "window", "page", "qr_code", "cells"])
def test_a_seed_gives_one_picture_and_another_seed_another(kind):
    first = drawn(kind, 0)
    assert first.dtype == np.uint8
    assert first.ndim == 3
    assert min(first.shape[:2]) >= 64
    assert np.array_equal(first, drawn(kind, 0))
    assert not np.array_equal(first, drawn(kind, 2))


def test_the_fitted_regression_recognizes_looks_and_is_read_back(tmp_path):
    weights = fit(samples(True))
    sha256 = write_weights(weights, tmp_path / "made.npz")
    assert hashlib.sha256((tmp_path / "made.npz").read_bytes()).hexdigest() == sha256
    back = read_weights(tmp_path / "made.npz", sha256)
    assert set(back) == set(weights)
    for sample in samples(False):
        assert predicted_look(back, sample) == predicted_look(weights, sample) == sample.look


def test_only_pictures_that_were_not_fitted_on_are_counted():
    weights = fit(samples(True))
    wrong = PictureSample("photo", "set: photo", False, samples(False)[-1].values)
    rows = report(weights, [*samples(True), *samples(False, 4), wrong])
    counted = {row.split(" | ")[0].strip("| "): row for row in rows[2:]}
    assert "| 5 | 20.0% [3.6%, 62.4%] |" in counted["set: photo"]
    assert "| 4 | 100.0% [51.0%, 100.0%] | 4 of 4 |" in counted["set: page"]
    assert "| 16 | 100.0%" in counted["all non-photos"]


def test_folders_and_photos_are_read_and_a_wrong_look_is_refused(tmp_path, monkeypatch, capsys):

    for name in ("a", "b"):
        Image.fromarray(drawn("window", ord(name))).save(tmp_path / f"{name}.png")
    Image.new("RGB", (20, 20)).save(tmp_path / "tiny.png")
    (tmp_path / "labels.csv").write_text("image,mos\na.png,3\nb.png,4\n")
    monkeypatch.setattr(outside_photos, "skimage_samples", lambda: iter(()))
    assert main([str(tmp_path / "labels.csv"), "--drawn", "0", "--test-on", "graphic", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert re.search(rf"\| graphic: {tmp_path.name} \| 2 \| 100.0%", printed)
    assert main(["--drawn", "0", "--test-on", "painting", str(tmp_path)]) == 2
    assert main([str(tmp_path / "missing.csv"), "--drawn", "0"]) == 2
