"""Fixtures for tests of the stages."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def examples(half_examples: Path) -> Path:
    """Smaller photos, because these tests look at requests and answers."""
    return half_examples
