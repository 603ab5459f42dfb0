"""What was measured of a picture, asked in the terms of a question."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agenticiqa.programs.offline.findings import Finding, severity_word
from agenticiqa.signatures.lexicon import LOWER, UPPER, Meaning, Subject, terms_in
from agenticiqa.signatures.types import ExecutorOutput
from agenticiqa.signatures.vocabulary import DetectableDistortion

VISIBLE = 0.5  # the severity from which "slight" is the nearest word
OBJECTIONABLE = 1.5  # the severity from which "moderate" is: the picture is then called blurry, noisy, ...

NOUNS: dict[DetectableDistortion, str] = {
    "Blurs": "blur",
    "Color distortions": "color distortion",
    "Compression": "compression artifacts",
    "Noise": "noise",
    "Brightness change": "brightness change",
    "Sharpness": "sharpness defect",
    "Contrast": "contrast defect",
}


@dataclass(frozen=True)
class Verdict:
    """An answer that follows from the measurements, or ``None``, with the reason in one sentence.

    ``about`` are the categories that it rests on. ``missing`` is what would help where there is no answer.
    """

    answer: str | None
    why: str
    about: Sequence[DetectableDistortion] = ()
    missing: str = "a vision-language model (--backend)"


@dataclass(frozen=True)
class Measured:
    """The findings by category, the evidence collected, the estimated level (1..5), and whether a reference came."""

    findings: Mapping[DetectableDistortion, Finding]
    evidence: ExecutorOutput
    level: float
    compared: bool

    def severity(self, meaning: Meaning) -> float | None:
        """How bad, 0..4, what ``meaning`` speaks of is; ``None`` where that cannot be told.

        The worst of its categories counts. A finding is about the worst kind of its category: the opposite kind is
        then absent (0), but of any other kind, or where the kind itself is not known, nothing can be told.
        """
        severities = [self._one(category, meaning) for category in meaning.categories]
        known = [severity for severity in severities if severity is not None]
        enough = bool(known) if meaning.subject == "any" else len(known) == len(severities) > 0
        return max(known) if enough else None

    def signed(self, subject: Subject) -> float | None:
        """The severity with a sign: above 0 for too much (bright, saturated, contrast), below 0 for too little."""
        category = next(iter(Meaning(subject, "fault").categories), None)
        if category is None or category not in self.findings:
            return None
        finding = self.findings[category]
        if finding.severity < VISIBLE:
            return 0.0
        signs = {UPPER.get(subject): 1, LOWER.get(subject): -1}
        sign = signs.get(self.kind(category))
        return None if sign is None else sign * finding.severity

    def kind(self, category: DetectableDistortion) -> str:
        """The one kind that a finding's subtype names, in the lexicon's spelling; empty when it leaves it open."""
        named = terms_in(self.findings[category].subtype)
        kinds = {term.meaning.kind for term in named if category in term.meaning.categories and term.meaning.kind}
        return kinds.pop() if len(kinds) == 1 else ""

    @property
    def seen(self) -> list[DetectableDistortion]:
        """The categories with a visible finding, worst first."""
        visible = [name for name, finding in self.findings.items() if finding.severity >= VISIBLE]
        return sorted(visible, key=lambda name: -self.findings[name].severity)

    @property
    def worst(self) -> float:
        """The greatest severity of all findings."""
        return max((finding.severity for finding in self.findings.values()), default=0.0)

    def worst_of(self, categories: Sequence[DetectableDistortion]) -> DetectableDistortion | None:
        """The one of the categories whose finding is the worst, or ``None`` when none was measured."""
        measured = [name for name in categories if name in self.findings]
        return max(measured, key=lambda name: self.findings[name].severity, default=None)

    def words(self, category: DetectableDistortion) -> str:
        """The finding in words, "moderate motion blur" or "no visible noise"."""
        finding = self.findings[category]
        if finding.severity < VISIBLE:
            return f"no visible {NOUNS[category]}"
        return f"{severity_word(finding.severity)} {finding.subtype or NOUNS[category]}"

    def _one(self, category: DetectableDistortion, meaning: Meaning) -> float | None:
        if category not in self.findings:
            return None
        severity, kind = self.findings[category].severity, self.kind(category)
        if severity < VISIBLE or kind == meaning.kind:
            return severity
        if not meaning.kind:  # an over-sharpened picture is not an unclear one
            return 0.0 if meaning.subject == "clarity" and kind == UPPER["clarity"] else severity
        return 0.0 if {kind, meaning.kind} == {UPPER.get(category), LOWER.get(category)} else None
