"""The report on named distortions: its counts, and the command on images of known kinds and levels."""

import csv
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from agenticiqa.eval.research.detector_report import (
    correct_shares,
    false_alarms,
    main,
    srcc_with_level,
    top_category,
)
from agenticiqa.programs.tools.distort import distort
from agenticiqa.signatures.vocabulary import DETECTABLE
from support.distortion_levels import scene

pytestmark = pytest.mark.slow


def severities(**of: float) -> np.ndarray:
    return np.array([of.get(name.split()[0].lower(), 0.0) for name in DETECTABLE])


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    rows = []
    for seed in range(2):
        pristine = scene(96, 128, seed)
        Image.fromarray(pristine).save(tmp_path / f"scene{seed}.png")
        for kind in ("white_noise", "gaussian_blur"):
            for level in (1, 3, 5):
                name = f"{kind}{seed}_{level}.png"
                Image.fromarray(distort(pristine, kind, level)).save(tmp_path / name)
                rows.append([name, f"scene{seed}.png", 100 - 10 * level, kind, level])
    rows.append(["scene0.png", "scene1.png", 90, "unheard of", 1])
    with (tmp_path / "labels.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["image", "reference", "mos", "distortion", "level"], *rows])
    return tmp_path / "labels.csv"


@pytest.mark.parametrize("more", [[], ["--reference"]])
def test_the_command_counts_every_image_of_a_known_kind(
    labels: Path, more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(labels), *more]) == 0
    out = capsys.readouterr().out
    rows = {
        line.split("|")[1].strip(): [cell.strip() for cell in line.split("|")[2:-1]]
        for line in out.splitlines()[:4]
        if "|" in line
    }
    assert list(rows) == ["kind", "---", "white_noise", "gaussian_blur"]
    for kind in ("white_noise", "gaussian_blur"):
        n, *counts, _, follows = rows[kind]
        assert int(n) == sum(int(count or 0) for count in counts) == 6
        assert float(follows) > 0.8
    correct = sum(round(6 * float(rows[kind][-2])) for kind in ("white_noise", "gaussian_blur"))
    assert f"correct: {correct} of 12" in out
    assert correct >= 6
    assert out.splitlines()[-1].startswith("| 2 | ")


def test_an_alarm_is_above_slight_and_a_name_at_least_visible():
    assert false_alarms(np.array([severities(noise=1.4), severities(noise=1.5)]))["Noise"] == 0.5
    assert top_category(severities(noise=0.49)) == "none"
    assert top_category(severities(noise=0.5)) == "Noise"


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
