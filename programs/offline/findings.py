"""The severity of one category of distortion: from a measured value, and combined with the networks' prediction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from agenticiqa.signatures.vocabulary import SEVERITIES, DetectableDistortion, Severity

Curve = Sequence[tuple[float, float]]
Measurements = Mapping[str, float]

# The share of a severity that comes from the networks; the rest comes from the curves over single measurements. On
# photos that were not in the training set the networks alone were best for blur and compression, both together for the
# other categories.
NETWORK_SHARE: dict[DetectableDistortion, float] = {
    "Blurs": 1.0,
    "Color distortions": 0.67,
    "Compression": 1.0,
    "Noise": 0.75,
    "Brightness change": 0.67,
    "Sharpness": 0.67,
    "Contrast": 0.67,
}
WORST_PART = 0.5  # how much of an image's severity its worst part has, whatever its size
NO_DISTORTION = SEVERITIES[0]
BY_NETWORK = "A trained network finds this, more than the values show"
# Subtypes of "Color distortions" in a picture without color or with one hue, which are no distortion; severity 0.
GRAY, TONED = "gray picture", "toned picture"


@dataclass(frozen=True)
class Prediction:
    """The networks' severities for one category, and for each of its subtypes by name; all 0 (none) to 4 (extreme)."""

    severity: float
    subtypes: Mapping[str, float]


Predictions = Mapping[DetectableDistortion, Prediction]


@dataclass(frozen=True)
class LocalDamage:
    """One distortion in one part of an image.

    ``severity`` is that of the part, 0 (none) to 4 (extreme); ``box`` is left, top, right, bottom in pixels; ``place``
    names it, "top left corner"; ``share`` is how much of the image's area is damaged, above 0 to 1.
    """

    severity: float
    box: tuple[int, int, int, int]
    place: str
    share: float


@dataclass(frozen=True)
class Finding:
    """The severity of one category of distortion, its kind, and the measured values.

    ``severity`` is continuous from 0 (none) to 4 (extreme). ``subtype`` is the kind that fits the measurements best; it
    is set even if the severity is 0. ``explanation`` is one sentence with the measured values and the usual ones.
    ``kinds`` has, for every kind that was measured, its share of the severity, 0 to 1; the subtype's is 1. ``local`` is
    the part of the image that the finding is about, ``None`` for all of it. ``measured`` is the severity that the
    values of the explanation have alone, ``None`` if that is the severity. ``explanations`` has that of every kind that
    was measured.
    """

    severity: float
    subtype: str
    explanation: str
    kinds: Mapping[str, float] = field(default_factory=dict)
    local: LocalDamage | None = None
    measured: float | None = None
    explanations: Mapping[str, str] = field(default_factory=dict)

    @property
    def word(self) -> Severity:
        """The word nearest to the severity."""
        return severity_word(self.severity)


def severity_word(severity: float) -> Severity:
    """The word nearest to a severity in 0..4; half-way between two words, the more severe one."""
    return SEVERITIES[min(len(SEVERITIES) - 1, int(severity + 0.5))]


def severity_of_whole(severity: float, share: float) -> float:
    """The severity for a whole image of damage of a severity (0 to 4) in a share (0 to 1) of its area: 0 to 4.

    Metrics that average lose about the square root of the share. People judge by the worst part as well, which the
    other half stands for; opinions of locally damaged photos to fit that half on were not at hand.
    """
    return severity * (WORST_PART + (1 - WORST_PART) * share**0.5)


def with_source(finding: Finding, severity: float | None = None) -> Finding:
    """The finding; if it is visible, and its values alone would not be, its explanation says what found it.

    ``severity`` is that to go by, if it is not the finding's own.
    """
    claimed = finding.severity if severity is None else severity
    if finding.measured is None or severity_word(claimed) == NO_DISTORTION:
        return finding
    if severity_word(finding.measured) != NO_DISTORTION or finding.explanation.startswith(BY_NETWORK):
        return finding
    return replace(finding, explanation=f"{BY_NETWORK}: {finding.explanation}")


def in_part(whole: Finding, part: Finding, damage: LocalDamage) -> Finding:
    """The finding for an image of which a part is damaged, from those for the whole image and for the part alone."""
    severity = max(damage.severity, part.severity)
    part = with_source(part, severity)
    return replace(
        part,
        severity=max(whole.severity, severity_of_whole(severity, damage.share)),
        explanation=f"In the {damage.place}, pixels {list(damage.box)}: {part.explanation}",
        local=replace(damage, severity=severity),
    )


def severity_at(value: float, curve: Curve) -> float:
    """The severity of a measured value: linear between the curve's points (value, severity), constant beyond its ends.

    The values of the points must increase. The severities may decrease, for measurements whose low values are bad.
    """
    values, severities = zip(*curve, strict=True)
    return float(np.interp(value, values, severities))


def worst(*findings: Finding) -> Finding:
    """The finding with the highest severity; the first of them if several have it."""
    return max(findings, key=lambda finding: finding.severity)


def combine(category: DetectableDistortion, predictions: Predictions, *measured: Finding) -> Finding:
    """One finding for a category from those measured for its subtypes and the networks' prediction, if there is one.

    The subtype has the largest sum of measured and predicted severity. The severity is the mean of the highest measured
    severity and the predicted one, weighted by ``NETWORK_SHARE``.
    """
    highest = worst(*measured)
    prediction = predictions.get(category, Prediction(highest.severity, {}))
    found = {finding.subtype: finding.severity + prediction.subtypes.get(finding.subtype, 0.0) for finding in measured}
    named = max(measured, key=lambda finding: found[finding.subtype])
    most = max(found[named.subtype], 1e-9)
    share = NETWORK_SHARE[category] if category in predictions else 0.0
    return replace(
        named,
        severity=(1 - share) * highest.severity + share * prediction.severity,
        measured=named.severity if named.measured is None else named.measured,
        kinds={kind: value / most for kind, value in found.items()},
        explanations={finding.subtype: finding.explanation for finding in measured},
    )
