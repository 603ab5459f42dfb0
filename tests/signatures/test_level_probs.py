"""Numbers that are no distribution over the levels are refused with what is wrong."""

import pytest

from agenticiqa.signatures.level_probs import settled


@pytest.mark.parametrize("log", [-1e300, -1000.0, float("-inf"), 0.0])
def test_the_same_nothing_for_every_level_is_no_opinion(log: float) -> None:
    with pytest.raises(ValueError, match="no level has any probability"):
        settled({str(level): log for level in range(1, 6)})


def test_nothing_for_all_levels_but_one_is_certainty() -> None:
    found = settled({"1": -1e300, "2": -1e300, "3": -1e300, "4": 0.0, "5": -1e300})
    assert found == {"1": -1000.0, "2": -1000.0, "3": -1000.0, "4": 0.0, "5": -1000.0}
