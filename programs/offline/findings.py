"""What a finding is, and how a measured value becomes a severity."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agenticiqa.signatures.vocabulary import SEVERITIES, Severity

Curve = Sequence[tuple[float, float]]


def severity_word(severity: float) -> Severity:
    """The nearest word for a severity in 0..4, the worse one half-way."""
    return SEVERITIES[min(len(SEVERITIES) - 1, int(severity + 0.5))]


@dataclass(frozen=True)
class Finding:
    """How bad one category of distortion is, of which kind, and what was measured.

    ``severity`` runs continuously from 0 (none) to 4 (extreme). ``subtype`` is the kind that the measurements fit best,
    named also where the severity is 0. ``explanation`` is one sentence with the values and what they usually are.
    """

    severity: float
    subtype: str
    explanation: str

    @property
    def word(self) -> Severity:
        """The severity's nearest word."""
        return severity_word(self.severity)


def grade(value: float, curve: Curve) -> float:
    """The severity of a value: linear between the curve's points (value, severity), constant beyond its ends.

    The values of the points must rise; the severities may fall, for a measure whose low values are the bad ones.
    """
    values, severities = zip(*curve, strict=True)
    return float(np.interp(value, values, severities))


def worst(*findings: Finding) -> Finding:
    """The finding with the greatest severity; the first of them where several share it."""
    return max(findings, key=lambda finding: finding.severity)
