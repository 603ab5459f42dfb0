"""The curves from measurements to severities."""

from types import ModuleType

import pytest

from agenticiqa.programs.offline import full_reference, no_reference
from agenticiqa.programs.offline.findings import Curve


def curves_of(module: ModuleType) -> dict[str, Curve]:
    """The curves that a module defines, by name."""
    return {name: value for name, value in vars(module).items() if name.isupper() and isinstance(value, tuple)}


CURVES = [
    pytest.param(curve, id=f"{module.__name__.rpartition('.')[2]}.{name}")
    for module in (full_reference, no_reference)
    for name, curve in curves_of(module).items()
]


@pytest.mark.parametrize("curve", CURVES)
def test_a_curve_is_monotone_over_growing_values_and_gives_severities(curve: Curve) -> None:
    values, severities = zip(*curve, strict=True)
    assert list(values) == sorted(set(values))
    assert list(severities) in (sorted(severities), sorted(severities, reverse=True))
    assert 0 == min(severities) < max(severities) <= 4


def test_the_curves_are_all_looked_at() -> None:
    assert len(CURVES) >= 20
