"""The example photos: made by their script, small enough to ship, and degraded as their names state."""

import importlib.util
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from agenticiqa.programs.images import find_images, load_pair

PAIRS = {
    "coffee_jpeg.jpg": "coffee.webp",
    "astronaut_blur.png": "astronaut.webp",
    "chelsea_noise.png": "chelsea.webp",
}


@pytest.fixture(scope="module")
def made(examples: Path) -> dict[str, np.ndarray]:
    """Return the pixels that the script makes now."""
    spec = importlib.util.spec_from_file_location("make_examples", examples / "make.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return {name: np.asarray(Image.open(io.BytesIO(data))) for name, data in script.pictures().items()}


def test_the_folder_has_the_files_of_its_script(examples: Path, made: dict[str, np.ndarray]) -> None:
    assert {path.name for path in find_images([examples])} == set(made) == set(PAIRS) | set(PAIRS.values())
    for name, pixels in made.items():
        shipped = np.asarray(Image.open(examples / name)).astype(int)
        if name in PAIRS.values():
            assert np.array_equal(shipped, pixels), name
        else:  # another release of an encoder or of the generator may round otherwise
            assert np.abs(shipped - pixels).mean() < 1, name


def test_the_folder_stays_small(examples: Path) -> None:
    assert sum(path.stat().st_size for path in examples.iterdir() if path.is_file()) < 1_500_000


@pytest.mark.parametrize(("degraded", "pristine"), PAIRS.items())
def test_each_degraded_copy_belongs_to_its_photo_and_is_plainly_worse(
    examples: Path, degraded: str, pristine: str
) -> None:
    image, reference = load_pair(examples / degraded, examples / pristine)
    assert reference is not None
    error = np.square(image.pixels.astype(float) - reference.pixels).mean()
    assert 18 < 10 * np.log10(255**2 / error) < 30
    assert np.corrcoef(image.pixels.ravel(), reference.pixels.ravel())[0, 1] > 0.8


def test_every_photo_has_its_licence_written_down(examples: Path) -> None:
    for text in ((examples / "README.md").read_text("utf-8"), (examples.parent / "NOTICE").read_text("utf-8")):
        for name in ("coffee", "astronaut", "chelsea"):
            assert name in text
