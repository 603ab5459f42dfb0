"""The curves from measurements to severities."""

from types import ModuleType

import pytest

from agenticiqa.programs.offline import full_reference, no_reference
from agenticiqa.programs.offline.findings import Curve, Finding, Prediction, combine


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


def test_each_kind_of_a_category_has_its_share_of_the_severity() -> None:
    predictions = {"Compression": Prediction(3.0, {"JPEG blocking": 0.5, "banding": 2.0})}
    found = combine("Compression", predictions, Finding(0.5, "JPEG blocking", "."), Finding(0.0, "banding", "."))
    assert found.subtype == "banding"
    assert found.kinds == {"JPEG blocking": 0.5, "banding": 1.0}
