"""Questions without options: a short answer in words."""

import re
from collections.abc import Collection

from agenticiqa.programs.offline.findings import severity_word
from agenticiqa.programs.offline.language.claims import cannot_tell, judge, not_understood, offers_opposites, quoted
from agenticiqa.programs.offline.language.comparisons import compare, is_comparison
from agenticiqa.programs.offline.language.measured import VISIBLE, Measured, Verdict
from agenticiqa.programs.offline.language.reading import Reading, read
from agenticiqa.programs.offline.language.scales import TIE
from agenticiqa.programs.stages.fusion import level_name
from agenticiqa.signatures.lexicon import Meaning
from agenticiqa.signatures.vocabulary import DetectableDistortion

NOTHING_SEEN = "No visible distortion was measured"
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
_LIKE = ("like", "describe", "state", "copy", "assess", "evaluate", "explain", "detail")


def explain(question: str, measured: Measured, regions: Collection[str] = ()) -> Verdict:
    """An answer in words: yes or no, how bad, what is wrong; ``None`` where none of it follows."""
    plain = _LEAD_IN.sub("", question)
    compares = is_comparison(question, {})
    asks = _YES_NO.search(_TAG.sub("", plain)) or _WHETHER.match(question[: len(question) - len(plain)])
    if asks and not offers_opposites(plain, regions):
        verdict = (compare if compares else judge)(plain, measured, regions)
        if verdict.answer is None:
            return verdict
        shown = [measured.words(name) for name in verdict.about] or [f"about {measured.level:.1f} of 5"]
        return Verdict(f"{verdict.answer}, {' and '.join(shown)}", verdict.why, verdict.about)
    if compares and not measured.compared:
        return compare(question, measured, regions)
    if _LISTS.search(question) and not _HOW.match(question):
        return _list(question, measured, regions)
    return _state(read(_TAG.sub("", question), [*regions, *_LIKE]), measured)


def _state(asked: Reading, measured: Measured) -> Verdict:
    """How bad the one thing is that the question names."""
    meanings = asked.meanings or ([Meaning("any", "fault")] if asked.comparison == "worse" else [])
    if asked.unread or len({meaning.scale for meaning in meanings}) != 1:
        return not_understood(asked.unread)
    meaning = meanings[0]
    if meaning.subject == "quality":
        why = f"The quality is estimated at {measured.level:.1f} on the scale of 1 to 5."
        return Verdict(f"{level_name(measured.level)}, about {measured.level:.1f} of 5", why, measured.seen[:2])
    narrow = len(meanings) == 1 and meaning.sense == "fault"
    fault = Meaning(meaning.subject, "fault", meaning.kind if narrow else "")
    severity = measured.severity(fault)
    name = measured.worst_of(fault.categories)
    if severity is None or name is None:
        return cannot_tell(fault, measured)
    seen = severity >= VISIBLE
    answer = measured.words(name) if seen or not fault.kind else f"no visible {fault.kind}"
    if fault.subject == "any" and not seen:
        answer = NOTHING_SEEN
    return Verdict(answer[0].upper() + answer[1:], f"The measured severity is {severity:.1f} of 4.", [name])


def _list(question: str, measured: Measured, regions: Collection[str]) -> Verdict:
    """The distortions that the question is about, worst first: those that it names, or all that are visible."""
    asked = read(question, [*regions, *_LIKE])
    named = [name for meaning in asked.meanings if meaning.subject != "any" for name in meaning.categories]
    faulted = bool(_BAD.search(question)) or any(
        term.meaning.sense != "neutral" or term.meaning.subject == "quality" for term in asked.terms
    )
    if not faulted and (asked.unread or not (asked.terms or _DESCRIBED.search(question))):
        return not_understood(asked.unread)
    if any(meaning.subject == "unmeasured" for meaning in asked.meanings):
        return Verdict(None, f"No tool here measures {quoted([term.text for term in asked.terms])}.")
    seen = [name for name in measured.seen if name in named or not named]
    if not seen:
        answer = f"No visible {' or '.join(dict.fromkeys(named))} was measured" if named else NOTHING_SEEN
        return Verdict(answer, "Every severity in question is below slight.")
    if _ONE.search(question):
        worst = measured.findings[seen[0]].severity
        seen = [name for name in seen if worst - measured.findings[name].severity < TIE]
        return Verdict(" and ".join(_entry(name, measured) for name in seen), "It has the worst measurement.", seen)
    answer = "; ".join(f"{_entry(name, measured)}: {_explained(name, measured)}" for name in seen)
    return Verdict(answer, "These are the measured distortions that are slight or worse, the worst first.")


def _entry(name: DetectableDistortion, measured: Measured) -> str:
    finding = measured.findings[name]
    return f"{name} ({', '.join(filter(None, (severity_word(finding.severity), finding.subtype)))})"


def _explained(name: DetectableDistortion, measured: Measured) -> str:
    return measured.findings[name].explanation.strip().rstrip(".")


def tool_scores(question: str, measured: Measured) -> Verdict | None:
    """The scores, on the scale of 1 to 5, of the tools that a question asks for by name; ``None`` when it does not."""
    scores = [
        f"{tool} {score:.2f} of 5 ({region}, {distortion})"
        for region, row in (measured.evidence.quality_scores or {}).items()
        for distortion, (tool, score) in row.items()
        if re.search(rf"(?<!\w){re.escape(tool).replace('_', '[-_ ]?')}(?!\w)", question, re.I)
    ]
    if not scores or not _ASKS_SCORE.search(question):
        return None
    return Verdict("; ".join(scores), "The question asks for what the tool measured.")
