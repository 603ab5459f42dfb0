"""The figures of named distortions are counted as documented."""

import numpy as np
import pytest

from agenticiqa.eval.research.detector_figures import correct_shares, false_alarms, srcc_with_strength
from agenticiqa.signatures.vocabulary import DETECTABLE


def severities(**of: float) -> np.ndarray:
    return np.array([of.get(name.split()[0].lower(), 0.0) for name in DETECTABLE])


def test_shares_alarms_and_correlations_are_of_all_rows() -> None:
    rows = np.array([severities(blurs=2), severities(noise=2), severities(), severities(noise=1)])
    shares = correct_shares(["defocus", "defocus", "defocus", "white_noise"], rows)
    assert shares == {"defocus": 1 / 3, "white_noise": 1}
    assert {name: share for name, share in false_alarms(rows).items() if name in ("any", "Noise")} == {
        "any": 0.5,
        "Noise": 0.25,
    }
    assert srcc_with_strength("white_noise", [0, 1, 2], rows[[2, 3, 1]]) == pytest.approx(1)
