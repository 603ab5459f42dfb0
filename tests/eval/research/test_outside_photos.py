"""The study of pictures that are no photos: what is fitted is read back, what is told is counted."""

import hashlib
import re

import numpy as np
import pytest
import skimage.data
from PIL import Image

from agenticiqa.eval.research import outside_photos
from agenticiqa.eval.research.drawn_pictures import KINDS, drawn
from agenticiqa.eval.research.outside_photos import (
    LOOK_OF,
    PARTS,
    Sample,
    fit,
    main,
    pair,
    part_cases,
    report,
    spread_for,
    spread_table,
    told_as,
    write_weights,
)
from agenticiqa.programs.tools.numerics.weights import read_weights
from agenticiqa.programs.tools.outside_training import LEAST_SPREAD, LOOKS

pytestmark = pytest.mark.slow

RANDOM = np.random.default_rng(4)


def samples(fitted: bool, count: int = 20) -> list[Sample]:
    """Samples whose look is told by which of the first features is high."""
    made = []
    for index, look in enumerate(LOOKS):
        values = RANDOM.normal(0, 0.3, (count, 8))
        values[:, index] += 3
        made += [Sample(look, f"set: {look}", fitted, each) for each in values]
    return made


@pytest.mark.parametrize("kind", ["plot", "window", "page", "qr_code", "cells"])
def test_a_seed_gives_one_picture_and_another_seed_another(kind):
    first = drawn(kind, 0)
    assert first.dtype == np.uint8
    assert first.ndim == 3
    assert min(first.shape[:2]) >= 64
    assert np.array_equal(first, drawn(kind, 0))
    assert not np.array_equal(first, drawn(kind, 2))


def test_every_drawn_kind_has_a_look():
    assert set(LOOK_OF) == set(KINDS)
    assert set(LOOK_OF.values()) == set(LOOKS) - {"photo"}


def test_the_fitted_regression_tells_the_looks_and_is_read_back(tmp_path):
    weights = fit(samples(True))
    sha256 = write_weights(weights, tmp_path / "made.npz")
    assert hashlib.sha256((tmp_path / "made.npz").read_bytes()).hexdigest() == sha256
    back = read_weights(tmp_path / "made.npz", sha256)
    assert set(back) == set(weights)
    for sample in samples(False):
        assert told_as(back, sample) == told_as(weights, sample) == sample.look


def test_only_pictures_that_were_not_fitted_on_are_counted():
    weights = fit(samples(True))
    wrong = Sample("photo", "set: photo", False, samples(False)[-1].values)
    rows = report(weights, [*samples(True), *samples(False, 4), wrong])
    counted = {row.split(" | ")[0].strip("| "): row for row in rows[2:]}
    assert "| 5 | 20.0% [3.6%, 62.4%] |" in counted["set: photo"]
    assert "| 4 | 100.0% [51.0%, 100.0%] | 4 of 4 |" in counted["set: page"]
    assert "| 16 | 100.0%" in counted["all that are no photos"]


def test_folders_and_photos_are_read_and_a_wrong_look_is_refused(tmp_path, monkeypatch, capsys):
    from PIL import Image

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


def test_a_clean_picture_is_excellent_and_a_damaged_one_is_not():
    (_, clean, best), (_, damaged, worse) = pair("photo", skimage.data.chelsea()[:128, :160].copy(), "chelsea")
    assert best == 5
    assert 1 <= worse < 4.8
    assert clean.shape == damaged.shape
    assert not np.array_equal(clean, damaged)


def test_parts_of_a_photo_have_its_opinion(tmp_path):
    Image.fromarray(skimage.data.astronaut()).save(tmp_path / "a.png")
    (tmp_path / "labels.csv").write_text("image,mos\na.png,2\nb.png,4.5\n")
    Image.fromarray(skimage.data.coffee()).save(tmp_path / "b.png")
    cases = list(part_cases(str(tmp_path / "labels.csv"), 2))
    assert {truth for *_, truth in cases} == {2, 4.5}
    sizes = {group: pixels.shape[:2] for group, pixels, _ in cases}
    assert {name: sizes[name] for name in PARTS if name in sizes} == {n: s for n, s in PARTS.items() if n in sizes}
    assert {"gray", "8 x 8", "40 x 400"} <= set(sizes)


def test_errors_are_counted_by_group():
    rows = spread_table([("8 x 8", 3.0, 5.0), ("8 x 8", 3.0, 1.0), ("whole", 2.0, 2.5)])
    assert rows[2] == f"| 8 x 8 | 2 | +0.00 | 2.00 | {LEAST_SPREAD['too small']} | 100% |"
    assert rows[3] == "| whole | 1 | -0.50 | 0.50 |  |  |"
    assert spread_for("40 x 400") == LEAST_SPREAD["thin"]
    assert spread_for("96 x 96") is None


@pytest.mark.parametrize("reason", LEAST_SPREAD)
def test_every_reason_has_a_group_or_a_part(reason):
    assert spread_for(reason) == LEAST_SPREAD[reason]
