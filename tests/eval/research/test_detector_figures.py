"""The figures of named distortions are counted as documented."""

import numpy as np
import pytest

from agenticiqa.eval.research.detector_figures import correct_shares, false_alarms, srcc_with_level, top_category
from agenticiqa.signatures.vocabulary import DETECTABLE


def severities(**of: float) -> np.ndarray:
    return np.array([of.get(name.split()[0].lower(), 0.0) for name in DETECTABLE])


def test_alarms_are_above_slight_and_named_distortions_are_visible():
    assert false_alarms(np.array([severities(noise=1.4), severities(noise=1.5)]))["Noise"] == 0.5
    assert top_category(severities(noise=0.49)) == "none"
    assert top_category(severities(noise=0.5)) == "Noise"


def test_shares_alarms_and_correlations_are_of_all_rows():
    rows = np.array([severities(blurs=2), severities(noise=2), severities(), severities(noise=1)])
    assert correct_shares(["defocus", "defocus", "defocus", "white_noise"], rows) == {
        "defocus": 1 / 3,
        "white_noise": 1,
    }
    alarms = false_alarms(rows)
    assert alarms["any"] == 0.5
    assert alarms["Noise"] == 0.25
    assert srcc_with_level("white_noise", [0, 1, 2], rows[[2, 3, 1]]) == pytest.approx(1)
    assert srcc_with_level("jpeg", [0, 1, 2], rows[[2, 3, 1]]) == 0
