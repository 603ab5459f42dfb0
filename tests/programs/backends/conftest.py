"""The providers, each in turn."""

import pytest

from support.providers import DIALECTS, Dialect


@pytest.fixture(params=DIALECTS, ids=lambda dialect: dialect.name)
def dialect(request: pytest.FixtureRequest) -> Dialect:
    """Each provider in turn."""
    found: Dialect = request.param
    return found
