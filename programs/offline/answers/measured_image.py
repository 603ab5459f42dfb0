"""The findings about an image, queried in the terms of a question."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import hypot

from agenticiqa.programs.offline.measured.findings import GRAY, HUES, TONED, Finding, severity_word
from agenticiqa.signatures.lexicon import LOWER, UPPER, Meaning, Subject, terms_in
from agenticiqa.signatures.vocabulary import DetectableDistortion, everyday_name

VISIBLE = 0.5  # the severity from which "slight" is the nearest word
PRESENT = 1.0  # the severity from which a distortion other than noise and blur is said to be there
OBJECTIONABLE = 1.5  # the severity from which "moderate" is: from here an image counts as blurry, noisy, ...
UNDERESTIMATED = frozenset({"color cast", UPPER["Color distortions"], LOWER["Color distortions"], UPPER["Contrast"]})
"""Kinds whose severity is too low without a reference: a scene may have such colors and tones by itself.

Of 60 images with a visible severity below ``CERTAIN`` 8 had the degree that was measured (study at commit 0a7818c).
"""
CERTAIN = 2.5  # the severity from which these are as severe as measured
NO_COLOR = 4.0  # what a question about missing color is answered by in a gray picture
TONING = 2.0  # what a question about a tint is answered by in sepia

IMAGE = ""  # the whole image, against the reference if there is one
REFERENCE = "the reference"  # by itself
REFERENCE_BESIDE_IMAGE = "the reference beside the image"  # against the image: what only the reference has

HUE_ANGLE = 0.5  # cosine of the largest angle between a tint and the hue that names it


@dataclass(frozen=True)
class MeasuredImage:
    """What was measured of one image or part: the findings by category and the estimated ``level`` (1..5).

    ``has_reference``: the findings are of what differs from the reference. ``tint`` is the shift of what should be
    neutral on CIELAB's a* (red) and b* (yellow), ``None`` if unknown. ``unsure`` are kinds of color distortion that may
    be there although no finding says so: without a reference they cannot be told from the colors of the scene.
    ``remark`` is a sentence for an image that is outside of what the networks were trained on.
    """

    findings: Mapping[DetectableDistortion, Finding]
    level: float
    has_reference: bool = False
    tint: tuple[float, float] | None = None
    unsure: frozenset[str] = frozenset()
    remark: str = ""

    def severity(self, meaning: Meaning) -> float | None:
        """The severity, 0..4, of the fault that ``meaning`` names; ``None`` if the measurements cannot tell.

        The worst of its categories counts. A finding has the worst kind of its category: the severity of the opposite
        kind is then 0. That of any other kind, or with an unknown kind of the finding, is not known.
        """
        severities = [self._one(category, meaning) for category in meaning.categories]
        known = [severity for severity in severities if severity is not None]
        enough = bool(known) if meaning.subject == "any" else len(known) == len(severities) > 0
        return max(known) if enough else None

    def may_hide(self, meaning: Meaning) -> bool:
        """Whether what ``meaning`` names may be there although its severity is low."""
        kind = without_hue(meaning.kind)
        if meaning.categories != ("Color distortions",):
            return False
        return kind in self.unsure or (not kind and bool(self.unsure))

    def may_be_more(self, meaning: Meaning) -> bool:
        """Whether what ``meaning`` names is visible, but may be more severe than measured."""
        about = self.about(meaning)
        if self.has_reference or not about or meaning.subject == "any" or self.findings[about[0]].local:
            return False
        kind = without_hue(meaning.kind) or self.kind_of(about[0])
        return kind in UNDERESTIMATED and VISIBLE <= (self.severity(meaning) or 0.0) < CERTAIN

    def signed_severity(self, subject: Subject) -> float | None:
        """The severity with a sign: positive for too much (light, saturation, contrast), negative for too little."""
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
        """The kind that a finding's subtype names, as the lexicon spells it; empty if it does not name exactly one."""
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
        """The category with the worst finding of those that are meant, in a list; empty if none was measured."""
        measured = [name for name in meaning.categories if name in self.findings]
        return sorted(measured, key=lambda name: -self.findings[name].severity)[:1]

    def describe(self, category: DetectableDistortion) -> str:
        """The finding in words, "moderate motion blur" or "no visible noise"."""
        finding = self.findings[category]
        if finding.subtype in (GRAY, TONED):
            return f"a {finding.subtype}"
        if finding.severity < VISIBLE:
            return f"no visible {everyday_name(category)}"
        return f"{severity_word(finding.severity)} {finding.subtype or everyday_name(category)}"

    def described(self, categories: Iterable[DetectableDistortion]) -> str:
        """Several findings in words."""
        return " and ".join(map(self.describe, categories))

    def named(self, category: DetectableDistortion) -> str:
        """The finding by its category, "Blurs (moderate, motion blur)"."""
        finding = self.findings[category]
        return f"{category} ({', '.join(filter(None, (severity_word(finding.severity), finding.subtype)))})"

    def explained(self, category: DetectableDistortion) -> str:
        """The explanation of a finding, to stand inside a sentence."""
        return self.findings[category].explanation.strip().rstrip(".")

    def _one(self, category: DetectableDistortion, meaning: Meaning) -> float | None:
        if category not in self.findings:
            return None
        severity, kind = self.findings[category].severity, self.kind_of(category)
        # A gray image has no color distortion, but a question whether color is missing is answered with yes.
        if self.findings[category].subtype == GRAY and meaning.kind == LOWER["Color distortions"]:
            return NO_COLOR
        if self.findings[category].subtype == TONED and meaning.kind.endswith(("color cast", "yellow cast")):
            return TONING
        if meaning.kind in HUES:
            cast = self._one(category, replace(meaning, kind="color cast"))
            if cast is None or cast < VISIBLE or self.tint is None:
                return cast if self.tint or (cast or 0) < VISIBLE else None
            return cast if _hue_fits(self.tint, HUES[meaning.kind]) else 0.0
        if severity < VISIBLE or kind == meaning.kind:
            return severity
        shares = [share for name, share in self.findings[category].kinds.items() if meaning.kind in kinds_in(name)]
        if meaning.kind and shares:
            return severity * max(shares)
        if not meaning.kind:  # an over-sharpened picture is not an unclear one
            return 0.0 if meaning.subject == "clarity" and kind == UPPER["clarity"] else severity
        return 0.0 if {kind, meaning.kind} == {UPPER.get(category), LOWER.get(category)} else None


Look = Callable[[str], MeasuredImage | None]
"""What was measured under a name: one of those above, or a part of the image; ``None`` for what is not there."""


def without_hue(kind: str) -> str:
    """The kind of distortion; of a cast of any hue that it is a color cast."""
    return "color cast" if kind in HUES else kind


def kinds_in(subtype: str) -> set[str]:
    """The kinds, as the lexicon spells them, that the name of a finding's subtype has; without any, the name itself."""
    return {term.meaning.kind for term in terms_in(subtype) if term.meaning.kind} or {subtype} - {""}


def _hue_fits(tint: tuple[float, float], hue: tuple[float, float]) -> bool:
    return (tint[0] * hue[0] + tint[1] * hue[1]) >= HUE_ANGLE * max(hypot(*tint), 1e-9)
