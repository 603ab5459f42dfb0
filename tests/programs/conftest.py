"""A photo that most tests of the whole program judge."""

from pathlib import Path

import pytest
from PIL import Image

from support.distortion_levels import blur, scene


@pytest.fixture(scope="session")
def photo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A blurred scene as a JPEG."""
    path = tmp_path_factory.mktemp("images") / "photo.jpg"
    Image.fromarray(blur(3, scene())).save(path, quality=93)
    return path
