"""Answer a question from the measurements or from its own words, without guessing."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from agenticiqa.programs.offline.answers import choices, places, rules
from agenticiqa.programs.offline.answers.asked import Asked, question_alone, read_question
from agenticiqa.programs.offline.answers.fixed_words import UserQuestion, fixed_answer
from agenticiqa.programs.offline.answers.measured_image import (
    IMAGE,
    REFERENCE,
    VISIBLE,
    Look,
    MeasuredImage,
    kinds_in,
    without_hue,
)
from agenticiqa.programs.offline.answers.question_reader import LONGEST_TEXT
from agenticiqa.programs.offline.answers.rule_answer import (
    NO,
    NO_REFERENCE,
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
from agenticiqa.signatures.lexicon import terms_in
from agenticiqa.signatures.types import GLOBAL, UNABLE

_BALANCE = re.compile(r"\b(?:white|colou?r)[- ]balance\b", re.I)  # a question about a color cast that does not name one
_COMPARES = re.compile(r"\b(?:than|equally|same)\b", re.I)
_JOINT = re.compile(r"\b(and|or)\b", re.I)
_VERB = re.compile(r"\W*\b(?:is|are|was|were|does|do|has|have)\b", re.I)


Rule = Callable[[Asked, MeasuredImage, Look], RuleAnswer]
ANSWERS: Mapping[str, Rule] = {
    "presence": rules.presence,
    "degree": rules.degree,
    "which": rules.which,
    "where": places.where,
    "half": places.half,
    "half-clean": places.half,
    "compare-presence": rules.compare,
    "compare-image": rules.compare,
    "compare-reference": rules.compare,
    "compare-category": rules.changes,
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
        return Answered(fixed.answer or UNABLE, fixed.in_words)
    whole = look(IMAGE)
    if whole is None or not whole.findings:
        return Answered(UNABLE, RuleAnswer(None, "Nothing was measured.").in_words)
    query, evidence = question.query, question.evidence
    analyzed = [*(evidence.boxes or {}), *(evidence.distortion_analysis or {}), *(evidence.quality_scores or {})]
    regions = list(dict.fromkeys(name for name in analyzed if name != GLOBAL))
    offered = definite(question.options)
    claims, joint = _claims_of_parts(query, offered, regions)
    if claims:
        each = {region: read_question(text, {}, [region], listed=False) for region, text in claims.items()}
        answer, measured = _answer_parts(each, joint, offered, look, whole)
    else:
        asked = read_question(query, offered, regions, listed=not is_yes_no(offered))
        answer, measured = _answer(asked, look, whole)
    answer = _with_option(answer, question.options)
    measured = quoting(measured, query[:LONGEST_TEXT])
    details = [f"{measured.describe(name)} ({measured.explained(name)})" for name in answer.categories]
    if answer.answer is None:
        return Answered(UNABLE, " ".join([answer.reason, *as_measured(details), answer.missing]))
    shown = as_measured([*details, *scores_in_words(evidence)])
    return Answered(answer.answer, " ".join(filter(None, [answer.reason, *shown, whole.remark])))


def _answer(asked: Asked, look: Look, whole: MeasuredImage) -> tuple[RuleAnswer, MeasuredImage]:
    """Return the answer, and the measurements that it is based on."""
    if claim := rules.quality_claim(asked, whole):
        return yes_no_letter(asked.options, claim), whole
    if asked.subject == "reference":
        reference = look(REFERENCE)
        if reference is None:
            return replace(NO_REFERENCE, reason="The question is about the reference, but none was given."), whole
        return answer_about(asked, reference, look), reference
    if asked.subject != "part" or places.name_places(asked.options):
        return answer_about(asked, whole, look), whole
    each = dict.fromkeys(sorted(asked.regions, key=asked.text.find), asked)
    return _answer_parts(each, "", asked.options, look, whole)


def _answer_parts(
    each: Mapping[str, Asked], joint: str, options: Mapping[str, str], look: Look, whole: MeasuredImage
) -> tuple[RuleAnswer, MeasuredImage]:
    """Return the answer about several parts, and the measurements that it is based on.

    ``each`` has the parsed question for each part. Separate claims about the parts are joined by ``joint``: with "and",
    one false claim gives "No"; with "or", one true claim gives "Yes".
    """
    found = {region: part for region in each if (part := look(region))}
    if missing := [region for region in each if region not in found]:
        return RuleAnswer(None, f"The offline program cannot find {' and '.join(missing)} in the image."), whole
    asked = next(iter(each.values()))
    if not joint and len(found) == 2 and _COMPARES.search(asked.text):
        return yes_no_letter(options, places.compared_parts(asked, found)), whole
    answers = {region: answer_about(asked, found[region], look) for region, asked in each.items()}
    first, *others = answers.values()
    if not joint and all(other.answer == first.answer for other in others):
        return first, next(iter(found.values()))
    by_region = {region: (answer.answer or UNABLE).partition(", ") for region, answer in answers.items()}
    words = {word for word, *_ in by_region.values()}
    reason = " ".join(f"{region}: {answer.reason}" for region, answer in answers.items())
    decisive = YES if joint == "or" else NO
    word = decisive if joint and decisive in words else words.pop() if len(words) == 1 else ""
    if word in (YES, NO):
        shown = "; ".join(f"{region}: {more or said}" for region, (said, _, more) in by_region.items())
        return yes_no_letter(options, RuleAnswer(word if options else f"{word} ({shown})", reason)), whole
    shown = "; ".join(f"{region}: {answer.answer or UNABLE}" for region, answer in answers.items())
    return RuleAnswer(
        None if joint or options else shown, reason if joint else f"The answers for these parts differ. {reason}"
    ), whole


def answer_about(asked: Asked, measured: MeasuredImage, look: Look) -> RuleAnswer:
    """Return the answer about one image or part: the rule for its intent, or the option that fits."""
    rule, options = ANSWERS[asked.what], asked.options
    compares = choices.names_reference(asked.text)
    if rule is rules.not_measured and compares and look(REFERENCE) is None:
        return NO_REFERENCE
    if not options or is_yes_no(options):
        return yes_no_letter(options, rule(asked, measured, look))
    if places.name_places(options) or asked.what in ("where", "half", "half-clean"):
        return places.place_offered(asked, look)
    if choices.pictures_in(options):
        return choices.choose_picture(asked, measured, look)
    if chosen := choices.choose_quality(asked, measured) or choices.choose_change(asked, measured, look):
        return chosen
    if asked.subject != "reference" and compares and not measured.has_reference:
        return NO_REFERENCE
    if rule is rules.not_measured and not choices.ABSENT.search(asked.text):
        return rule(asked, measured, look)
    return choices.choose(asked, measured)


def _claims_of_parts(query: str, options: Mapping[str, str], regions: Sequence[str]) -> tuple[dict[str, str], str]:
    """Return the claim of a yes-no question for each of two parts, and the "and" or "or" between separate claims.

    "Is the left half noisy and the right one sharp?" makes a separate claim about each part, "Are the left and the
    right half noisy?" the same claim about both; other questions make no claims about parts.
    """
    text = question_alone(query)[:LONGEST_TEXT]
    verb, named = _VERB.match(text), sorted((text.find(region), region) for region in regions if region in text)
    if verb is None or len(named) != 2 or _COMPARES.search(text) or (options and not is_yes_no(options)):
        return {}, ""
    (start, one), (next_start, other) = named
    joints = [*_JOINT.finditer(text[start + len(one) : next_start])]
    if not joints:
        return {}, ""
    begin, end = (start + len(one) + place for place in joints[-1].span())
    if not terms_in(text[:begin]) and joints[-1][1].lower() == "and":  # the same claim about both
        rest = text[next_start + len(other) :]
        return {region: f"{text[:start]}{region}{rest}" for region in (one, other)}, ""
    if not (terms_in(text[:begin]) and terms_in(text[end:])):
        return {}, ""
    said = text[end:].strip()
    claims = {one: f"{text[:begin].strip()}?", other: said if _VERB.match(said) else f"{verb[0]} {said}"}
    return claims, joints[-1][1].lower()


def _with_option(answer: RuleAnswer, options: Mapping[str, str]) -> RuleAnswer:
    """Insert the text of the chosen option after its letter, because the question may not show it."""
    letter = answer.answer or ""
    if letter not in options:
        return answer
    shown = f"{letter} ({options[letter]})"
    return replace(answer, reason=re.sub(rf"\b{letter}(?= (?:is|has|names)\b)", lambda _: shown, answer.reason))


def quoting(measured: MeasuredImage, question: str) -> MeasuredImage:
    """Return the measurements with explanations of the kinds of distortion that a question names, if measured.

    A finding explains only the kind that fits best, for example the colorfulness of an image without a color cast. The
    explanation of the kind in question replaces it, or is added to it if the finding is visible.
    """
    kinds = {without_hue(term.meaning.kind) for term in terms_in(question)} - {""}
    if _BALANCE.search(question):
        kinds.add("color cast")
    return replace(measured, findings={name: _quoting(each, kinds) for name, each in measured.findings.items()})


def _quoting(finding: Finding, asked: Collection[str]) -> Finding:
    wanted = [
        text
        for kind, text in finding.explanations.items()
        if kinds_in(kind) & {*asked} and text not in finding.explanation
    ]
    if not wanted or finding.local:
        return finding
    shown = [finding.explanation] if finding.severity >= VISIBLE else []
    return replace(finding, explanation=" ".join([*shown, *wanted]))
