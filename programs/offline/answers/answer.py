"""Answer a question from the measurements or from its own words, without guessing."""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from agenticiqa.programs.offline.answers import choices, rules
from agenticiqa.programs.offline.answers.asked import Asked, read_question, side_named
from agenticiqa.programs.offline.answers.fixed_words import UserQuestion, fixed_answer
from agenticiqa.programs.offline.answers.halves import AGAINST, OPPOSITE, compared_halves
from agenticiqa.programs.offline.answers.measured_image import (
    IMAGE,
    REFERENCE,
    VISIBLE,
    Look,
    MeasuredImage,
    kinds_in,
    without_hue,
)
from agenticiqa.programs.offline.answers.places import compare_halves, name_places, where
from agenticiqa.programs.offline.answers.question_reader import LONGEST_TEXT
from agenticiqa.programs.offline.answers.rule_answer import (
    NO,
    NO_REFERENCE,
    NOT_UNDERSTOOD,
    YES,
    RuleAnswer,
    as_measured,
    definite,
    is_yes_no,
    scores_in_words,
    yes_no_letter,
)
from agenticiqa.programs.offline.measured.findings import Finding
from agenticiqa.programs.stages.protocols import Answered
from agenticiqa.programs.tools.tool_names import tool_mentions, without_tools
from agenticiqa.signatures.categories import COLOR_CAST
from agenticiqa.signatures.lexicon import terms_in
from agenticiqa.signatures.types import GLOBAL, UNABLE

_COMPARES = re.compile(rf"\b(?:{AGAINST}|equally|same)\b", re.I)
# "Is the center sharper than the edges?", which names a single part that can be measured.
_BESIDE = re.compile(rf"\b(?:{AGAINST}) (?:(?:in|on|at) )?(?:the|its)\b", re.I)
_ONLY = re.compile(r"\b(?:only|just|solely|exclusively|nothing but) (?:(?:in|on|at) )?(?:the|its|my)\b", re.I)
_COMPARED = re.compile(r"\b(?:better|worse|identical|reference|original)\b", re.I)  # words in an option
_BALANCE = re.compile(r"\b(?:white|colou?r)[- ]balance\b", re.I)  # a question about a color cast that does not name one


Rule = Callable[[Asked, MeasuredImage, Look], RuleAnswer]
ANSWERS: Mapping[str, Rule] = {
    "presence": rules.presence,
    "degree": rules.degree,
    "which": rules.which,
    "where": where,
    "half": where,
    "half-clean": where,
    "compare-presence": rules.compare,
    "compare-image": rules.compare,
    "compare-reference": rules.compare,
    "compare-category": rules.which,
    "rating": rules.rating,
    "metric": rules.no_value,
    "unanswerable": rules.not_measured,
    "": rules.not_measured,
}
"""The rule for each intent; see ``asked.Asked.what``."""


def answer_from_evidence(question: UserQuestion, look: Look) -> Answered:
    """Answer a question: by fixed words (``fixed_words``), else from the measurements.

    ``look`` returns the measurements of the whole image, of the reference, or of a part. The final answer is the letter
    of an option, a text, or ``UNABLE`` if no rule gives a single answer. The reasoning explains which rule and which
    measurements gave the answer, or what is missing.
    """
    if fixed := fixed_answer(question, look):
        return Answered(fixed.answer or UNABLE, fixed.in_words, needs_evidence=False)
    whole = look(IMAGE)
    if whole is None or not whole.findings:
        return Answered(UNABLE, RuleAnswer(None, "Nothing was measured.").in_words)
    evidence = question.evidence
    query = without_tools(question.query, tool_mentions(question.query, [call.tool for call in evidence.tool_log]))
    analyzed = [*(evidence.boxes or {}), *(evidence.distortion_analysis or {}), *(evidence.quality_scores or {})]
    regions = list(dict.fromkeys(name for name in analyzed if name != GLOBAL))
    offered = definite(question.options)
    parsed = read_question(query, offered, regions, listed=not is_yes_no(offered))
    answer, measured = _answer(parsed, look, whole)
    answer = _with_option(answer, question.options)
    measured = quoting(measured, query[:LONGEST_TEXT])
    details = [f"{measured.describe(name)} ({measured.explained(name)})" for name in answer.categories]
    if answer.answer is None:
        reasons = [answer.reason, *as_measured(details), answer.missing]  # they say what an answer needs
        return Answered(UNABLE, " ".join(reasons), needs_evidence=False)
    sentences = as_measured([*details, *scores_in_words(evidence)])
    return Answered(answer.answer, " ".join(filter(None, [answer.reason, *sentences, whole.remark])))


def _answer(question: Asked, look: Look, whole: MeasuredImage) -> tuple[RuleAnswer, MeasuredImage]:
    """Return the answer, and the measurements that it is based on."""
    if claim := rules.quality_claim(question, whole):
        return yes_no_letter(question.options, claim), whole
    has_other_options = question.options and not is_yes_no(question.options) and not name_places(question.options)
    if not has_other_options and (comparison := compared_halves(question.text)):
        return compare_halves(question, comparison, whole, look), whole
    if question.subject == "reference":
        reference = look(REFERENCE)
        if reference is None:
            return replace(NO_REFERENCE, reason="The question is about the reference, but none was given."), whole
        return answer_about(question, reference, look), reference
    if question.subject != "part" or name_places(question.options):
        return answer_about(question, whole, look), whole
    return _answer_parts(question, look, whole)


def _answer_parts(question: Asked, look: Look, whole: MeasuredImage) -> tuple[RuleAnswer, MeasuredImage]:
    """Return the answer about the parts that a question names, and the measurements that it is based on."""
    parts = {region: part for region in question.regions if (part := look(region))}
    if missing := [region for region in question.regions if region not in parts]:
        return RuleAnswer(None, f"The offline program cannot find {' and '.join(missing)} in the image."), whole
    several = len({meaning.scale for meaning in question.named}) > 1
    is_beside = len(parts) == 1 and _BESIDE.search(question.text) and not choices.names_reference(question.text)
    if is_beside or (len(parts) > 1 and (several or _COMPARES.search(question.text))):
        reason = "The question compares parts of the image, or makes a separate claim about each."
        return RuleAnswer(None, reason), whole
    if question.what == "presence" and len(parts) == 1 and _ONLY.search(question.text):
        ((region, part),) = parts.items()
        return _only_there(question, region, part, look), part
    answers = {region: answer_about(question, part, look) for region, part in parts.items()}
    first, *others = answers.values()
    if all(other.answer == first.answer for other in others):
        return first, next(iter(parts.values()))
    text = "; ".join(f"{region}: {answer.answer or UNABLE}" for region, answer in answers.items())
    reasons = " ".join(f"{region}: {answer.reason}" for region, answer in answers.items())
    return RuleAnswer(None if question.options else text, f"The answers for these parts differ. {reasons}"), whole


def _only_there(question: Asked, region: str, part: MeasuredImage, look: Look) -> RuleAnswer:
    """Answer whether only this part has, or lacks, the distortion; yes requires that the opposite half differs."""
    alone = replace(question, options={})
    here = answer_about(alone, part, look)
    if (here.answer or "").startswith(YES):
        opposite = OPPOSITE.get(side_named(f"the {region}"))
        rest = look(f"{opposite} half") if opposite else None
        there = answer_about(alone, rest, look) if rest else None
        if there is None or there.answer is None:
            return RuleAnswer(
                None, "The question is also about the rest of the image, which is not measured by itself."
            )
        if there.answer.startswith(YES):
            here = replace(there, answer=f"{NO}, also the {opposite} half")
    return yes_no_letter(question.options, here)


def answer_about(question: Asked, measured: MeasuredImage, look: Look) -> RuleAnswer:
    """Return the answer about one image or part: the rule for its intent, or the option that fits."""
    rule, options = ANSWERS[question.what], question.options
    compares = question.subject == "both" or choices.names_reference(question.text)
    if compares and question.subject != "reference" and look(REFERENCE) is None:
        return NO_REFERENCE
    if any(_COMPARED.search(text) for text in options.values()):
        return NOT_UNDERSTOOD
    if name_places(options) or (options and rule is where):
        return where(question, measured, look)
    if not options or is_yes_no(options):
        return yes_no_letter(options, rule(question, measured, look))
    if chosen := choices.choose_quality(question, measured) or choices.choose_absent(question, measured):
        return chosen
    if rule is rules.not_measured:
        return rule(question, measured, look)
    return choices.choose(question, measured)


def _with_option(answer: RuleAnswer, options: Mapping[str, str]) -> RuleAnswer:
    """Insert the text of the chosen option after its letter, because the question may not show it."""
    letter = answer.answer or ""
    if letter not in options:
        return answer
    text = f"{letter} ({options[letter]})"
    return replace(answer, reason=re.sub(rf"\b{letter}(?= (?:is|has|names)\b)", lambda _: text, answer.reason))


def quoting(measured: MeasuredImage, question: str) -> MeasuredImage:
    """Return the measurements with explanations of the kinds of distortion that a question names, if measured.

    A finding explains only the kind that fits best, for example the colorfulness of an image without a color cast. The
    explanation of the kind in question replaces it, or is added to it if the finding is visible.
    """
    kinds = {without_hue(term.meaning.kind) for term in terms_in(question)} - {""}
    if _BALANCE.search(question):
        kinds.add(COLOR_CAST)
    return replace(measured, findings={name: _quoting(finding, kinds) for name, finding in measured.findings.items()})


def _quoting(finding: Finding, kinds: Collection[str]) -> Finding:
    wanted = [
        text
        for kind, text in finding.explanations.items()
        if kinds_in(kind) & {*kinds} and text not in finding.explanation
    ]
    if not wanted or finding.local:
        return finding
    explanations = [finding.explanation] if finding.severity >= VISIBLE else []
    return replace(finding, explanation=" ".join([*explanations, *wanted]))
