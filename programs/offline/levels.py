"""From severities to a distribution over the five quality levels."""

import math
from collections.abc import Mapping

from agenticiqa.programs.offline.findings import Finding

SPREAD = 0.7


def level_probabilities(findings: Mapping[str, Finding]) -> dict[int, float]:
    """Provisional."""
    severities = sorted((finding.severity for finding in findings.values()), reverse=True)
    expected = min(5.0, max(1.0, 4.6 - 0.8 * severities[0] - 0.1 * sum(severities[1:])))
    shares = {level: math.exp(-((level - expected) ** 2) / (2 * SPREAD**2)) for level in range(1, 6)}
    total = sum(shares.values())
    return {level: share / total for level, share in shares.items()}
