"""Waits between attempts, noted in place of waited for."""

from collections.abc import Callable

import pytest
import tenacity

from agenticiqa.programs.models import retries


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that the engine would have waited before each further attempt; nothing waits."""
    noted: list[float] = []
    telling = retries.telling

    def without_waiting(name: str) -> Callable[[tenacity.RetryCallState], None]:
        tell = telling(name)

        def note(state: tenacity.RetryCallState) -> None:
            tell(state)
            noted.append(state.upcoming_sleep)
            state.upcoming_sleep = 0.0

        return note

    monkeypatch.setattr(retries, "telling", without_waiting)
    return noted
