"""Fixtures for tests that run with each provider."""

import pytest

from support.providers import DIALECTS, Dialect


@pytest.fixture(params=DIALECTS, ids=lambda dialect: dialect.name)
def dialect(request: pytest.FixtureRequest) -> Dialect:
    """Return each provider in turn."""
    found: Dialect = request.param
    return found
