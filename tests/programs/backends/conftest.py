"""Fixtures for tests that run with each provider."""

from pathlib import Path

import pytest

from support.providers import DIALECTS, Dialect


@pytest.fixture(params=DIALECTS, ids=lambda dialect: dialect.name)
def dialect(request: pytest.FixtureRequest) -> Dialect:
    """Return each provider in turn."""
    found: Dialect = request.param
    return found


@pytest.fixture(scope="session")
def examples(half_examples: Path) -> Path:
    """Smaller photos, because these tests look at requests and answers."""
    return half_examples
