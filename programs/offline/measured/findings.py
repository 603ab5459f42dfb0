"""The severity of one category of distortion: from a measured value, and combined with the networks' prediction."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from agenticiqa.signatures.categories import CATEGORIES, Category, Curve
from agenticiqa.signatures.vocabulary import SEVERITIES, DetectableDistortion, Severity

Measurements = Mapping[str, float]

NETWORK_SHARE: dict[DetectableDistortion, float] = {row.name: row.network_share for row in CATEGORIES if row.head}
SUBTYPE = {subtype.name: subtype for row in CATEGORIES for subtype in row.subtypes}
WORST_PART = 0.5  # how much of an image's severity its worst part has, whatever its size
NO_DISTORTION = SEVERITIES[0]
BY_NETWORK = "A trained network detects this distortion; no single measured value shows it."
# Subtypes of color distortions in a picture without color or with one hue, which are no distortion; severity 0.
GRAY, TONED = "gray picture", "toned picture"
# The direction of each hue on CIELAB's a* and b*.
HUES: dict[str, tuple[float, float]] = {
    "red cast": (1.0, 0.0),
    "green cast": (-1.0, 0.0),
    "blue cast": (0.0, -1.0),
    "yellow cast": (0.0, 1.0),
}


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

    Metrics that average lose about the square root of the share. People also rate by the worst part, which the other
    half models; no MOS of locally damaged photos were available to fit it.
    """
    return severity * (WORST_PART + (1 - WORST_PART) * share**0.5)


def with_source(finding: Finding, severity: float | None = None) -> Finding:
    """The finding; if it is visible, and its values alone would not be, its explanation names what found it instead.

    ``severity`` is that to go by, if it is not the finding's own.
    """
    claimed = finding.severity if severity is None else severity
    if finding.measured is None or severity_word(claimed) == NO_DISTORTION:
        return finding
    return finding if severity_word(finding.measured) != NO_DISTORTION else replace(finding, explanation=BY_NETWORK)


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


@dataclass(frozen=True)
class Measured:
    """What is measured of an image, and of its reference if there is one: by name, and the networks' predictions."""

    image: Measurements
    was: Measurements | None
    predictions: Predictions

    def finding(self, subtype: str, severity: float, *, by_value: float | None = None, **derived: float) -> Finding:
        """A finding of a subtype with its sentence, which may name values that are ``derived`` from the measured ones.

        ``by_value`` is the severity that the values of the sentence have alone, if it is another one.
        """
        row = SUBTYPE[subtype]
        sentence = row.alone if self.was is None else row.beside
        return Finding(severity, subtype, sentence.format(**self.image, **derived, was=self.was), measured=by_value)

    def by_value(self, subtype: str) -> float:
        """The severity of a subtype that one measurement decides."""
        row = SUBTYPE[subtype]
        value = self.image[row.measure]
        return (
            severity_at(value, row.curve)
            if self.was is None
            else severity_at(value - self.was[row.measure], row.change)
        )

    def plain(self, category: Category) -> Finding:
        """The finding for a category of which each subtype is decided by one measurement."""
        measured = [self.finding(each.name, self.by_value(each.name)) for each in category.subtypes]
        return self.combined(category.name, *measured)

    def each_category(self, special: Mapping[DetectableDistortion, Finding]) -> dict[DetectableDistortion, Finding]:
        """The findings in the order of ``DETECTABLE``: those that code makes, and the plain ones of all others."""
        rows = [row for row in CATEGORIES if row.is_detectable]
        return {row.name: special[row.name] if row.name in special else self.plain(row) for row in rows}

    def combined(self, category: DetectableDistortion, *measured: Finding) -> Finding:
        """``combine`` with the predictions."""
        return combine(category, self.predictions, *measured)


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
