"""A small picture with its reference."""

from pathlib import Path

import pytest
from PIL import Image

from support.distortion_levels import blur, scene


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pristine picture."""
    path = tmp_path_factory.mktemp("pictures") / "pristine.png"
    Image.fromarray(scene()).save(path)
    return path


@pytest.fixture(scope="session")
def photo(reference: Path) -> Path:
    """The same picture, blurred."""
    path = reference.with_name("blurred.png")
    Image.fromarray(blur(3, scene())).save(path)
    return path
