"""Questions without options: a short answer in words."""

import re
from collections.abc import Collection

from agenticiqa.programs.offline.findings import severity_word
from agenticiqa.programs.offline.language.clauses import Clause, parse_clause
from agenticiqa.programs.offline.language.comparisons import compare, is_comparison
from agenticiqa.programs.offline.language.measured_image import VISIBLE, MeasuredImage
from agenticiqa.programs.offline.language.verdicts import TIE, Verdict, cannot_tell, not_measured, not_understood
from agenticiqa.programs.offline.language.word_lists import OPEN_QUESTION_FILLERS
from agenticiqa.programs.offline.language.yes_no import answer_yes_no, offers_opposites
from agenticiqa.programs.stages.fusion import level_name
from agenticiqa.signatures.lexicon import Meaning
from agenticiqa.signatures.vocabulary import DetectableDistortion

NOTHING_VISIBLE = "No visible distortion was measured"
_LEAD_IN = re.compile(
    r"^\W*(?:(?:please|hi|hello)\W+)*(?:in (?:this|the) \w+,\s*)?"
    r"(?:(?:(?:can|could) you )?(?:tell me|say|check|judge)\s+)?(?:(?:if|whether)\s+)?",
    re.I,
)
_YES_NO = re.compile(r"(?:^|[,.;:!]\s*)(?:is|are|was|were|does|do|did|has|have|can|could|would|will)(?:n't)?\b", re.I)
_WHETHER = re.compile(r".*\b(?:if|whether)\b", re.I)
_HOW = re.compile(r"\W*how\b", re.I)
_LISTS = re.compile(r"\b(?:what(?:'s)?|which|why|explain|describe|list|name|identify|assess|evaluate|tell)\b", re.I)
_ONE = re.compile(r"\b(?:main|major|primary|principal|dominant|most|worst|biggest|largest|greatest|strongest)\b", re.I)
_TAG = re.compile(r",?\s*(?:is|are|does|do|has)(?:n't)?\s+(?:it|there|they|this)\s*\?\s*$", re.I)
_DESCRIBED = re.compile(r"\b(?:describe|explain|assess|evaluate)\s+(?:\w+\s+)?(?:image|photo|picture)\b", re.I)
_BAD = re.compile(r"\b(?:bad|poor|terrible|awful|horrible|wrong)\b", re.I)
_ASKS_SCORE = re.compile(r"\b(?:what|how (?:high|low)|compute|calculate|run|scores?|value|measure)\b", re.I)


def answer_in_words(question: str, measured: MeasuredImage, regions: Collection[str] = ()) -> Verdict:
    """An answer in words: yes or no, a severity, or a list of distortions; ``None`` with the reason if none follows."""
    plain = _LEAD_IN.sub("", question)
    compares = is_comparison(question, {})
    asks = _YES_NO.search(_TAG.sub("", plain)) or _WHETHER.match(question[: len(question) - len(plain)])
    if asks and not offers_opposites(plain, regions):
        verdict = (compare if compares else answer_yes_no)(plain, measured, regions)
        if verdict.answer is None:
            return verdict
        shown = [measured.describe(name) for name in verdict.categories] or [f"about {measured.level:.1f} of 5"]
        return Verdict(f"{verdict.answer}, {' and '.join(shown)}", verdict.reason, verdict.categories)
    if compares and not measured.has_reference:
        return compare(question, measured, regions)
    if _LISTS.search(question) and not _HOW.match(question):
        return _list(question, measured, regions)
    return _state(parse_clause(_TAG.sub("", question), [*regions, *OPEN_QUESTION_FILLERS]), measured)


def _state(asked: Clause, measured: MeasuredImage) -> Verdict:
    """The severity of the one thing that the question names."""
    meanings = asked.meanings or ([Meaning("any", "fault")] if asked.comparison == "worse" else [])
    if asked.unknown_words or len({meaning.scale for meaning in meanings}) != 1:
        return not_understood(asked.unknown_words)
    meaning = meanings[0]
    if meaning.subject == "quality":
        reason = f"The quality is estimated at {measured.level:.1f} on the scale of 1 to 5."
        return Verdict(f"{level_name(measured.level)}, about {measured.level:.1f} of 5", reason, measured.visible[:2])
    narrow = len(meanings) == 1 and meaning.sense == "fault"
    fault = Meaning(meaning.subject, "fault", meaning.kind if narrow else "")
    severity = measured.severity(fault)
    name = measured.worst_of(fault.categories)
    if severity is None or name is None:
        return cannot_tell(fault, measured)
    is_visible = severity >= VISIBLE
    answer = measured.describe(name) if is_visible or not fault.kind else f"no visible {fault.kind}"
    if fault.subject == "any" and not is_visible:
        answer = NOTHING_VISIBLE
    return Verdict(answer[0].upper() + answer[1:], f"The measured severity is {severity:.1f} of 4.", [name])


def _list(question: str, measured: MeasuredImage, regions: Collection[str]) -> Verdict:
    """The visible distortions, worst first: those that the question names, or all of them."""
    asked = parse_clause(question, [*regions, *OPEN_QUESTION_FILLERS])
    named = [name for meaning in asked.meanings if meaning.subject != "any" for name in meaning.categories]
    faulted = bool(_BAD.search(question)) or any(
        term.meaning.sense != "neutral" or term.meaning.subject == "quality" for term in asked.terms
    )
    if not faulted and (asked.unknown_words or not (asked.terms or _DESCRIBED.search(question))):
        return not_understood(asked.unknown_words)
    if any(meaning.subject == "unmeasured" for meaning in asked.meanings):
        return not_measured([term.text for term in asked.terms])
    shown = [name for name in measured.visible if name in named or not named]
    if not shown:
        answer = f"No visible {' or '.join(dict.fromkeys(named))} was measured" if named else NOTHING_VISIBLE
        return Verdict(answer, "Every severity in question is below slight.")
    if _ONE.search(question):
        worst = measured.findings[shown[0]].severity
        shown = [name for name in shown if worst - measured.findings[name].severity < TIE]
        return Verdict(" and ".join(_entry(name, measured) for name in shown), "It has the worst measurement.", shown)
    answer = "; ".join(f"{_entry(name, measured)}: {_explained(name, measured)}" for name in shown)
    return Verdict(answer, "These are the measured distortions that are slight or worse, the worst first.")


def _entry(name: DetectableDistortion, measured: MeasuredImage) -> str:
    finding = measured.findings[name]
    return f"{name} ({', '.join(filter(None, (severity_word(finding.severity), finding.subtype)))})"


def _explained(name: DetectableDistortion, measured: MeasuredImage) -> str:
    return measured.findings[name].explanation.strip().rstrip(".")


def tool_scores(question: str, measured: MeasuredImage) -> Verdict | None:
    """The scores, 1..5, of the tools that a question asks for by name; ``None`` if it asks for none."""
    scores = [
        f"{tool} {score:.2f} of 5 ({region}, {distortion})"
        for region, row in (measured.evidence.quality_scores or {}).items()
        for distortion, (tool, score) in row.items()
        if re.search(rf"(?<!\w){re.escape(tool).replace('_', '[-_ ]?')}(?!\w)", question, re.I)
    ]
    if not scores or not _ASKS_SCORE.search(question):
        return None
    return Verdict("; ".join(scores), "The question asks for what the tool measured.")
