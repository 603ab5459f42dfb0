"""The findings of an image, queried by the terms of a question."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import hypot

from agenticiqa.programs.offline.measured.findings import GRAY, HUES, TONED, Finding, severity_word
from agenticiqa.signatures.categories import COLOR, COLOR_CAST, DESATURATION, HIGH_CONTRAST, OVERSATURATION, YELLOW_CAST
from agenticiqa.signatures.lexicon import LOWER, UPPER, Meaning, Subject, terms_in
from agenticiqa.signatures.vocabulary import DetectableDistortion, everyday_name

VISIBLE = 0.5  # the severity from which "slight" is the nearest word
PRESENT = 1.0  # the severity from which a distortion other than noise and blur counts as present
OBJECTIONABLE = 1.5  # the severity from which "moderate" is the nearest word: the image counts as blurry, noisy, ...
UNDERESTIMATED = frozenset({COLOR_CAST, OVERSATURATION, DESATURATION, HIGH_CONTRAST})
"""Kinds with a severity that is too low without a reference, because a scene may have such colors and tones itself.

Of 60 images with a visible severity below ``CERTAIN``, 8 had the measured degree (study at commit 0a7818c).
"""
CERTAIN = 2.5  # the severity from which the measured degree of these kinds is reliable
NO_COLOR = 4.0  # the severity of missing color in a gray picture, if a question is about it
TONING = 2.0  # the severity of a tint in a sepia picture, if a question is about it

IMAGE = ""  # the whole image, compared with the reference if there is one
REFERENCE = "the reference"  # measured alone
REFERENCE_BESIDE_IMAGE = (
    "the reference beside the image"  # compared with the image: distortions that only the reference has
)

HUE_ANGLE = 0.5  # cosine of the largest angle between a tint and the hue that names it


@dataclass(frozen=True)
class MeasuredImage:
    """The measurements of one image or part: the findings by category and the estimated ``level`` (1..5).

    With ``has_reference``, the findings are differences from the reference. ``tint`` is the shift of neutral colors on
    CIELAB's a* (red) and b* (yellow), ``None`` if unknown. ``unsure`` are kinds of color distortion that may be present
    although no finding shows them: without a reference they cannot be distinguished from the colors of the scene.
    ``remark`` is a sentence about an image unlike the training images of the networks.
    """

    findings: Mapping[DetectableDistortion, Finding]
    level: float
    has_reference: bool = False
    tint: tuple[float, float] | None = None
    unsure: frozenset[str] = frozenset()
    remark: str = ""

    def severity(self, meaning: Meaning) -> float | None:
        """Return the severity, 0..4, of the flaw that ``meaning`` names; ``None`` if the measurements do not show it.

        The worst of its categories counts. A finding has the worst kind of its category, so the opposite kind has the
        severity 0. The severity of other kinds, or if the kind of the finding is unknown, is ``None``.
        """
        severities = [self._severity_in(category, meaning) for category in meaning.categories]
        known = [severity for severity in severities if severity is not None]
        enough = bool(known) if meaning.subject == "any" else len(known) == len(severities) > 0
        return max(known) if enough else None

    def may_hide(self, meaning: Meaning) -> bool:
        """Return whether the distortion that ``meaning`` names may be present although its severity is low."""
        kind = without_hue(meaning.kind)
        if meaning.categories != (COLOR,):
            return False
        return kind in self.unsure or (not kind and bool(self.unsure))

    def may_be_more(self, meaning: Meaning) -> bool:
        """Return whether the distortion that ``meaning`` names is visible but may be worse than measured."""
        about = self.about(meaning)
        if self.has_reference or not about or meaning.subject == "any" or self.findings[about[0]].local:
            return False
        kind = without_hue(meaning.kind) or self.kind_of(about[0])
        return kind in UNDERESTIMATED and VISIBLE <= (self.severity(meaning) or 0.0) < CERTAIN

    def signed_severity(self, subject: Subject) -> float | None:
        """Return the severity, positive for too much (light, saturation, contrast), negative for too little."""
        category = next(iter(Meaning(subject, "fault").categories), None)
        if category is None or category not in self.findings:
            return None
        finding = self.findings[category]
        if finding.subtype == GRAY:
            return -NO_COLOR
        if finding.severity < VISIBLE:
            return 0.0
        signs = {UPPER.get(subject): 1, LOWER.get(subject): -1}
        sign = signs.get(self.kind_of(category))
        return None if sign is None else sign * finding.severity

    def kind_of(self, category: DetectableDistortion) -> str:
        """Return the kind that a finding's subtype names, in the lexicon's spelling; empty unless it is exactly one."""
        kinds = kinds_in(self.findings[category].subtype)
        return next(iter(kinds)) if len(kinds) == 1 else ""

    @property
    def visible(self) -> list[DetectableDistortion]:
        """The categories with a severity of at least ``VISIBLE``, worst first."""
        visible = [name for name, finding in self.findings.items() if finding.severity >= VISIBLE]
        return sorted(visible, key=lambda name: -self.findings[name].severity)

    @property
    def worst_severity(self) -> float:
        """The highest severity of all findings; 0 without any."""
        return max((finding.severity for finding in self.findings.values()), default=0.0)

    def about(self, meaning: Meaning) -> list[DetectableDistortion]:
        """Return a list with the category of the worst finding that is meant; empty if none was measured."""
        measured = [name for name in meaning.categories if name in self.findings]
        return sorted(measured, key=lambda name: -self.findings[name].severity)[:1]

    def describe(self, category: DetectableDistortion) -> str:
        """Return the finding in words, such as "moderate motion blur" or "no visible noise"."""
        finding = self.findings[category]
        if finding.subtype in (GRAY, TONED):
            return f"a {finding.subtype}"
        if finding.severity < VISIBLE:
            return f"no visible {everyday_name(category)}"
        return f"{severity_word(finding.severity)} {finding.subtype or everyday_name(category)}"

    def described(self, categories: Iterable[DetectableDistortion]) -> str:
        """Return several findings in words."""
        return " and ".join(map(self.describe, categories))

    def named(self, category: DetectableDistortion) -> str:
        """Return the finding with its category, such as "Blurs (moderate, motion blur)"."""
        finding = self.findings[category]
        return f"{category} ({', '.join(filter(None, (severity_word(finding.severity), finding.subtype)))})"

    def explained(self, category: DetectableDistortion) -> str:
        """Return the explanation of a finding without its final period, for use inside a sentence."""
        return self.findings[category].explanation.strip().rstrip(".")

    def _severity_in(self, category: DetectableDistortion, meaning: Meaning) -> float | None:
        if category not in self.findings:
            return None
        severity, kind = self.findings[category].severity, self.kind_of(category)
        # A gray image has no color distortion, but the answer to "Is color missing?" is yes.
        if self.findings[category].subtype == GRAY and meaning.kind == DESATURATION:
            return NO_COLOR
        if self.findings[category].subtype == TONED and meaning.kind in (COLOR_CAST, YELLOW_CAST):
            return TONING
        if meaning.kind in HUES:
            cast = self._severity_in(category, replace(meaning, kind=COLOR_CAST))
            if cast is None or cast < VISIBLE or self.tint is None:
                return cast if self.tint or (cast or 0) < VISIBLE else None
            return cast if _hue_fits(self.tint, HUES[meaning.kind]) else 0.0
        if severity < VISIBLE or kind == meaning.kind:
            return severity
        shares = [share for name, share in self.findings[category].kinds.items() if meaning.kind in kinds_in(name)]
        if meaning.kind and shares:
            return severity * max(shares)
        if not meaning.kind:  # an oversharpened picture does not lack clarity
            return 0.0 if meaning.subject == "clarity" and kind == UPPER["clarity"] else severity
        return 0.0 if {kind, meaning.kind} == {UPPER.get(category), LOWER.get(category)} else None


Look = Callable[[str], MeasuredImage | None]
"""A function that returns the measurements of a name above or of a part of the image; ``None`` if there is none."""


def without_hue(kind: str) -> str:
    """Return the kind of distortion, or "color cast" for a cast of any hue."""
    return COLOR_CAST if kind in HUES else kind


def kinds_in(subtype: str) -> set[str]:
    """Return the kinds, in the lexicon's spelling, that the name of a subtype contains, or else the name itself."""
    return {term.meaning.kind for term in terms_in(subtype) if term.meaning.kind} or {subtype} - {""}


def _hue_fits(tint: tuple[float, float], hue: tuple[float, float]) -> bool:
    return (tint[0] * hue[0] + tint[1] * hue[1]) >= HUE_ANGLE * max(hypot(*tint), 1e-9)
