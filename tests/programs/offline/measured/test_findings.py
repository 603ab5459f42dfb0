"""The curves from measurements to severities."""

import re

import pytest

from agenticiqa.eval.research.distort import distort
from agenticiqa.programs.offline.measured import curves
from agenticiqa.programs.offline.measured.distortions import findings_of
from agenticiqa.programs.offline.measured.findings import (
    BY_NETWORK,
    Finding,
    LocalDamage,
    Prediction,
    combine,
    in_part,
    with_source,
)
from agenticiqa.signatures.categories import CATEGORIES, Curve
from support.images import coffee, loaded


def curves_of_file() -> dict[str, Curve]:
    """Return the curves that the file defines, by name."""
    return {
        name: value
        for name, value in vars(curves).items()
        if name.isupper() and isinstance(value, tuple) and isinstance(value[0], tuple)
    }


def curves_of_table() -> dict[str, Curve]:
    """Return the curves of the table of categories, by subtype."""
    subtypes = [subtype for row in CATEGORIES for subtype in row.subtypes]
    found = {(each.name, side): getattr(each, side) for each in subtypes for side in ("curve", "change")}
    return {f"{name} {side}": curve for (name, side), curve in found.items() if curve}


CURVES = [pytest.param(curve, id=name) for name, curve in (curves_of_file() | curves_of_table()).items()]


@pytest.mark.parametrize("curve", CURVES)
def test_a_curve_is_monotone_and_returns_severities(curve: Curve) -> None:
    values, severities = zip(*curve, strict=True)
    assert list(values) == sorted(set(values))
    assert list(severities) in (sorted(severities), sorted(severities, reverse=True))
    assert 0 == min(severities) < max(severities) <= 4


def test_all_curves_are_checked() -> None:
    assert len(CURVES) >= 20


def test_each_kind_of_a_category_has_its_share_of_the_severity() -> None:
    predictions = {"Compression": Prediction(3.0, {"JPEG blocking": 0.5, "banding": 2.0})}
    found = combine("Compression", predictions, Finding(0.5, "JPEG blocking", "."), Finding(0.0, "banding", "."))
    assert found.subtype == "banding"
    assert found.kinds == {"JPEG blocking": 0.5, "banding": 1.0}


def network_only() -> Finding:
    """Return a finding of noise that the network predicts but the measured value does not show."""
    return combine("Noise", {"Noise": Prediction(3.0, {})}, Finding(0.2, "Gaussian noise", "It fluctuates by 2.8."))


def test_a_finding_without_measured_evidence_names_the_network() -> None:
    assert with_source(network_only()).explanation == BY_NETWORK, "values within the usual are no evidence of it"
    shown = combine("Noise", {"Noise": Prediction(3.0, {})}, Finding(2.0, "Gaussian noise", "It fluctuates by 10."))
    unseen = combine("Noise", {"Noise": Prediction(0.1, {})}, Finding(0.2, "Gaussian noise", "It fluctuates by 2.8."))
    for finding in (shown, unseen, Finding(3.0, "lack of sharpness", "Edges are soft.")):
        assert with_source(finding) == finding


def test_the_explanation_of_local_damage_is_not_repeated() -> None:
    damage = LocalDamage(2.0, (0, 0, 64, 64), "top left corner", 0.1)
    of_part = combine("Noise", {"Noise": Prediction(0.1, {})}, Finding(0.2, "Gaussian noise", "It fluctuates by 2.8."))
    for part in (of_part, with_source(network_only())):
        assert in_part(network_only(), part, damage).explanation.count(BY_NETWORK) == 1


def test_usual_blockiness_is_not_a_reason_for_compression() -> None:
    by_network = 0
    for kind in ("jpeg", "webp", "jpeg2000"):
        for level in (1, 2, 5):
            found = findings_of(loaded(distort(coffee(), kind, level)))["Compression"]
            steps = re.search(r"are ([\d.]+) times as strong as elsewhere \(usually 1.0 to 1.8\)", found.explanation)
            if found.word != "none" and steps is not None:
                assert float(steps[1]) > 1.8
            by_network += found.word != "none" and found.explanation == BY_NETWORK
    assert by_network
