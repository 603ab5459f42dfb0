"""Answer what is wrong with an image: its visible distortions, the worst first, or the worst alone."""

import re

from agenticiqa.programs.offline.findings import GRAY, TONED, severity_word
from agenticiqa.programs.offline.language.comparisons import names_reference
from agenticiqa.programs.offline.language.measured_image import OBJECTIONABLE, MeasuredImage
from agenticiqa.programs.offline.language.question import Question
from agenticiqa.programs.offline.language.verdicts import (
    NOTHING_VISIBLE,
    REFERENCE_OR_MODEL,
    TIE,
    Verdict,
    not_measured,
    not_understood,
)
from agenticiqa.programs.offline.language.word_lists import ONE
from agenticiqa.signatures.vocabulary import DetectableDistortion

UNSURE = "Without a reference, nobody knows which colors the scene had."
BAD = re.compile(r"\b(?:bad|poor|terrible|awful|horrible|wrong|ugly|worse)\b", re.I)
_DESCRIBED = re.compile(
    r"\b(?:describe|explain|assess|evaluate)\s+(?:\w+\s+)?(?:image|photo|picture|pic|shot|it|this)\b", re.I
)
_CODING = re.compile(r"compress|jpe?g|webp|cod(?:ing|ec)|block|band|ring|posteri|mosquito", re.I)
_SEVERAL = re.compile(
    r"\b(?:all|any|list|distortions|artifacts|artefacts|defects|faults|flaws|problems|issues)\b", re.I
)


def list_distortions(question: Question, measured: MeasuredImage) -> Verdict:
    """The visible distortions, worst first: those that the question names, or all of them."""
    asked = question.claim
    named = [name for meaning in asked.meanings if meaning.subject != "any" for name in meaning.categories]
    faulted = bool(BAD.search(question.text)) or any(
        term.meaning.sense != "neutral" or term.meaning.subject == "quality" for term in asked.terms
    )
    if not (faulted or asked.terms or _DESCRIBED.search(question.text) or names_reference(question.text)):
        return not_understood(asked.unknown_words)
    if asked.names_unmeasured:
        return not_measured([term.text for term in asked.terms])
    if not _CODING.search(question.text):  # an artifact of any kind
        named = [name for name in named if name != "Compression"]
    shown = [name for name in measured.visible if name in named or not named]
    hidden, one = "" if named else _hidden(measured), ONE.search(question.text)
    if not shown and hidden:
        return Verdict(f"{NOTHING_VISIBLE}, but {hidden}", UNSURE)
    if not shown and not named and one:
        return Verdict(None, "No distortion is visible in the measurements, so that none is the worst.")
    is_slight = bool(shown) and measured.findings[shown[0]].severity < OBJECTIONABLE
    if is_slight and hidden and shown[0] != "Color distortions" and (one or not _SEVERAL.search(question.text)):
        reason = f"Only {measured.describe(shown[0])} was measured, and {hidden}."
        return Verdict(None, reason, shown[:1], needed=REFERENCE_OR_MODEL)
    if not shown:
        answer = f"No visible {' or '.join(dict.fromkeys(named))} was measured" if named else NOTHING_VISIBLE
        return Verdict(answer, "Every severity in question is below slight.")
    if one or (len(named) > 1 and re.search(r"\bor\b", question.text)):
        worst = measured.findings[shown[0]].severity
        shown = [name for name in shown if worst - measured.findings[name].severity < TIE]
        return Verdict(" and ".join(_entry(name, measured) for name in shown), "It has the worst measurement.", shown)
    answer = "; ".join(f"{_entry(name, measured)}: {explained(name, measured)}" for name in shown)
    return Verdict(answer, "These are the measured distortions that are slight or worse, the worst first.")


def _hidden(measured: MeasuredImage) -> str:
    """What may be wrong with the colors that no measurement tells; "" if nothing."""
    if measured.has_reference:
        return ""
    if measured.findings["Color distortions"].subtype in (GRAY, TONED):
        return f"whether {measured.describe('Color distortions')} is meant cannot be told"
    kinds = " or ".join(sorted(measured.unsure))
    return f"{kinds} cannot be told from the colors of the scene" if kinds else ""


def _entry(name: DetectableDistortion, measured: MeasuredImage) -> str:
    finding = measured.findings[name]
    return f"{name} ({', '.join(filter(None, (severity_word(finding.severity), finding.subtype)))})"


def explained(name: DetectableDistortion, measured: MeasuredImage) -> str:
    """The explanation of a finding, to stand inside a sentence."""
    return measured.findings[name].explanation.strip().rstrip(".")
