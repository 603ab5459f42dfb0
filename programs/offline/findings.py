"""What a finding is, and how a measured value becomes a severity."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from agenticiqa.programs.offline.detector import TRUST, Seen
from agenticiqa.signatures.vocabulary import SEVERITIES, DetectableDistortion, Severity

Curve = Sequence[tuple[float, float]]
Measures = Mapping[str, float]
AllSeen = Mapping[DetectableDistortion, Seen]


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


def settle(category: DetectableDistortion, seen: AllSeen, *measured: Finding) -> Finding:
    """The finding of a category from what was measured of its subtypes and, if anything, what the networks see of it.

    The subtype for which both together speak most is named. The severity is the greatest that was measured, less the
    share TRUST of it, plus that share of what is seen.
    """
    greatest = worst(*measured)
    if category not in seen:
        return greatest
    subtypes, trust = seen[category].subtypes, TRUST[category]
    named = max(measured, key=lambda finding: finding.severity + subtypes.get(finding.subtype, 0.0))
    return replace(named, severity=(1 - trust) * greatest.severity + trust * seen[category].severity)
