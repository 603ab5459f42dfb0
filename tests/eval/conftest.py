"""Make a small labeled set for tests."""

import csv
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from support.distortion_levels import jpeg, scene

MakeLabels = Callable[..., Path]


@pytest.fixture
def make_labels(tmp_path: Path) -> MakeLabels:
    """Make scenes with increasing JPEG compression, and return their labels.csv: MOS 90, 70, 50, ... by level."""

    def make(scenes: int = 2, levels: tuple[int, ...] = (0, 2, 4), *, references: bool = False) -> Path:
        folder = tmp_path / "data"
        folder.mkdir()
        rows = []
        for number in range(scenes):
            pristine = scene(64, 80, seed=number)
            Image.fromarray(pristine).save(folder / f"scene{number}.png")
            if references:  # an image identical to its reference scores 5 without a model
                pristine[0, 0] ^= 1
            for level in levels:
                name = f"scene{number}_{level}.png"
                Image.fromarray(jpeg(level, pristine)).save(folder / name)
                reference = f"scene{number}.png" if references else ""
                split = "dev" if number % 2 else "train"
                rows.append([name, reference, 90 - 20 * level + number / 10, "jpeg", level, split])
        with (folder / "labels.csv").open("w", newline="") as file:
            csv.writer(file).writerows([["image", "reference", "mos", "distortion", "level", "split"], *rows])
        return folder / "labels.csv"

    return make
