"""The example photos: made by their script, small enough to ship, and degraded as their names state."""

import csv
import importlib.util
import io
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image

from agenticiqa.programs.images import find_images, load_pair

PAIRS = {
    "coffee_jpeg.jpg": "coffee.webp",
    "astronaut_blur.png": "astronaut.webp",
    "chelsea_noise.png": "chelsea.webp",
}


SHIPPED = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_examples", SHIPPED / "make.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


@pytest.mark.slow
def test_the_folder_has_the_files_of_its_script(script: ModuleType) -> None:
    made = {name: np.asarray(Image.open(io.BytesIO(data))) for name, data in script.pictures().items()}
    assert {path.relative_to(SHIPPED).as_posix() for path in find_images([SHIPPED])} == set(made)
    assert {name for name in made if "/" not in name} == set(PAIRS) | set(PAIRS.values())
    for name, pixels in made.items():
        shipped = np.asarray(Image.open(SHIPPED / name)).astype(int)
        if name in PAIRS.values():
            assert np.array_equal(shipped, pixels), name
        else:  # another release of an encoder or of the generator may round otherwise
            assert np.abs(shipped - pixels).mean() < 1, name


def test_the_labels_are_those_of_the_script(script: ModuleType) -> None:
    with (SHIPPED / "labels.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert rows == [{key: str(value) for key, value in row.items()} for row in script.labels()]
    named = {row["image"] for row in rows} | {row["reference"] for row in rows}
    assert named == {path.relative_to(SHIPPED).as_posix() for path in (SHIPPED / "copies").iterdir()}


def test_the_folder_stays_small() -> None:
    assert sum(path.stat().st_size for path in SHIPPED.rglob("*") if path.is_file()) < 2_300_000


@pytest.mark.parametrize(("degraded", "pristine"), PAIRS.items())
def test_each_degraded_copy_belongs_to_its_photo_and_is_plainly_worse(
    examples: Path, degraded: str, pristine: str
) -> None:
    image, reference = load_pair(examples / degraded, examples / pristine)
    assert reference is not None
    error = np.square(image.pixels.astype(float) - reference.pixels).mean()
    assert 18 < 10 * np.log10(255**2 / error) < 30
    assert np.corrcoef(image.pixels.ravel(), reference.pixels.ravel())[0, 1] > 0.8


def test_every_photo_has_its_licence_written_down() -> None:
    for text in ((SHIPPED / "README.md").read_text("utf-8"), (SHIPPED.parent / "NOTICE").read_text("utf-8")):
        for name in ("coffee", "astronaut", "chelsea", "rocket"):
            assert name in text
