"""The severity of one category of distortion: from a measured value, and combined with the networks' prediction."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from agenticiqa.programs.errors import ToolError
from agenticiqa.signatures.categories import CATEGORIES, Category, Curve, Subtype
from agenticiqa.signatures.vocabulary import SEVERITIES, DetectableDistortion, Severity

Measurements = Mapping[str, float]

NETWORK_SHARE: dict[DetectableDistortion, float] = {row.name: row.network_share for row in CATEGORIES if row.head}
SUBTYPE = {subtype.name: subtype for row in CATEGORIES for subtype in row.subtypes}
BY_NETWORK_ALONE: dict[DetectableDistortion, tuple[str, ...]] = {
    row.name: tuple(subtype.name for subtype in row.subtypes if subtype.by_network_alone) for row in CATEGORIES
}
WORST_PART = 0.5  # share of the severity of local damage that counts regardless of its size
NO_DISTORTION = SEVERITIES[0]
BY_NETWORK = "A trained network detects this distortion; no single measured value shows it."
# Subtypes of color distortions with severity 0: pictures without color or with one hue, which are not distorted.
GRAY, TONED = "gray picture", "toned picture"
# The direction of each hue on CIELAB's a* and b*.
HUES: dict[str, tuple[float, float]] = {
    words.kind: words.hue for row in CATEGORIES for words in row.words if words.hue is not None
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
    ``kinds`` has the share of the severity, 0 to 1, of every measured kind; it is 1 for the subtype. ``local`` is the
    part of the image that the finding is about, ``None`` for the whole image. ``measured`` is the severity from the
    values of the explanation alone, ``None`` if it is the severity. ``explanations`` has the explanation of every
    measured kind.
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
    """Return the word nearest to a severity in 0..4; halfway between two words, the more severe one."""
    return SEVERITIES[min(len(SEVERITIES) - 1, int(severity + 0.5))]


def severity_of_whole(severity: float, share: float) -> float:
    """Return the severity (0..4) for the whole image of damage with this severity in this share of its area.

    Metrics that average fall with about the square root of the share. Observers also rate by the worst part, which is
    the other half; no MOS of locally damaged photos were available to fit this.
    """
    return severity * (WORST_PART + (1 - WORST_PART) * share**0.5)


def with_source(finding: Finding, severity: float | None = None) -> Finding:
    """Return the finding; if it is visible but its values do not show it, the explanation names the network.

    ``severity`` replaces the finding's own severity for this decision.
    """
    claimed = finding.severity if severity is None else severity
    if finding.measured is None or severity_word(claimed) == NO_DISTORTION:
        return finding
    return finding if severity_word(finding.measured) != NO_DISTORTION else replace(finding, explanation=BY_NETWORK)


def in_part(whole: Finding, part: Finding, damage: LocalDamage) -> Finding:
    """Return the finding for an image with a damaged part, from the findings for the image and for the part."""
    severity = max(damage.severity, part.severity)
    part = with_source(part, severity)
    return replace(
        part,
        severity=max(whole.severity, severity_of_whole(severity, damage.share)),
        explanation=f"In the {damage.place}, box {list(damage.box)} (left, top, right, bottom): {part.explanation}",
        local=replace(damage, severity=severity),
    )


def severity_at(value: float, curve: Curve) -> float:
    """Return the severity of a value: linear between the points (value, severity) of the curve, constant outside.

    The values of the points must increase. The severities may decrease, for measurements that are low for bad images.
    """
    values, severities = zip(*curve, strict=True)
    return float(np.interp(value, values, severities))


def _row_of(subtype: str) -> Subtype:
    if subtype not in SUBTYPE:
        raise ToolError(
            f"signatures/categories.py has no kind '{subtype}', which programs/offline/measured/curves.py measures; "
            "restore the row or remove the code"
        )
    return SUBTYPE[subtype]


@dataclass(frozen=True)
class Measured:
    """The named measurements of an image and of its reference, if any, with the networks' predictions."""

    image: Measurements
    was: Measurements | None
    predictions: Predictions

    def finding(self, subtype: str, severity: float, *, by_value: float | None = None, **derived: float) -> Finding:
        """Return a finding of a subtype with its sentence, which may contain ``derived`` values.

        ``by_value`` is the severity from the values of the sentence alone, if it differs. Raises ToolError for a
        sentence with a value that nothing measures.
        """
        row = _row_of(subtype)
        sentence = row.alone if self.was is None else row.beside
        try:
            explanation = sentence.format(**self.image, **derived, was=self.was)
        except KeyError as error:
            raise ToolError(f"the sentence of the kind '{subtype}' names {error}, which nothing measures") from error
        return Finding(severity, subtype, explanation, measured=by_value)

    def by_value(self, subtype: str) -> float:
        """Return the severity of a subtype that one measurement determines."""
        row = _row_of(subtype)
        value = self.image[row.measure]
        return (
            severity_at(value, row.curve)
            if self.was is None
            else severity_at(value - self.was[row.measure], row.change)
        )

    def plain(self, category: Category) -> Finding:
        """Return the finding for a category with subtypes that are each determined by one measurement.

        Raises ToolError for a row without one.
        """
        measured = [subtype for subtype in category.subtypes if not subtype.by_network_alone]
        for subtype in measured:
            if subtype.measure not in self.image or not subtype.curve or not subtype.change:
                raise ToolError(
                    f"category '{category.name}': the kind '{subtype.name}' needs a measure of "
                    "programs/tools/features/by_name.py, with curve and change, or code in "
                    "programs/offline/measured/curves.py"
                )
        if not measured:
            raise ToolError(
                f"category '{category.name}': nothing measures it; add a subtype, or set is_detectable=False"
            )
        findings = [self.finding(subtype.name, self.by_value(subtype.name)) for subtype in measured]
        return self.combined(category.name, *findings)

    def each_category(self, special: Mapping[DetectableDistortion, Finding]) -> dict[DetectableDistortion, Finding]:
        """Return the findings in the order of ``DETECTABLE``: the special ones and the plain ones of all others."""
        rows = [row for row in CATEGORIES if row.is_detectable]
        return {row.name: special[row.name] if row.name in special else self.plain(row) for row in rows}

    def combined(self, category: DetectableDistortion, *measured: Finding) -> Finding:
        """Return ``combine`` with the predictions, and with the subtypes that only these show."""
        alone = [self.finding(name, 0.0) for name in BY_NETWORK_ALONE[category]] if self.predictions else []
        return combine(category, self.predictions, *measured, *alone)


def worst(*findings: Finding) -> Finding:
    """Return the finding with the highest severity, or the first one of several."""
    return max(findings, key=lambda finding: finding.severity)


def combine(category: DetectableDistortion, predictions: Predictions, *measured: Finding) -> Finding:
    """Return one finding for a category from those of its subtypes and the networks' prediction, if there is one.

    The subtype has the largest sum of measured and predicted severity. The severity is the mean of the highest measured
    severity and the predicted one, weighted by ``NETWORK_SHARE``.
    """
    highest = worst(*measured)
    prediction = predictions.get(category, Prediction(highest.severity, {}))
    totals = {finding.subtype: finding.severity + prediction.subtypes.get(finding.subtype, 0.0) for finding in measured}
    main = max(measured, key=lambda finding: totals[finding.subtype])
    most = max(totals[main.subtype], 1e-9)
    share = NETWORK_SHARE[category] if category in predictions else 0.0
    return replace(
        main,
        severity=(1 - share) * highest.severity + share * prediction.severity,
        measured=main.severity if main.measured is None else main.measured,
        kinds={kind: value / most for kind, value in totals.items()},
        explanations={finding.subtype: finding.explanation for finding in measured},
    )
