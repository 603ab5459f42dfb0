"""Answer a question from measurements, or from its own words; what does not follow from them is not answered."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from agenticiqa.programs.offline.answers.asked import Asked, question_alone, read_question
from agenticiqa.programs.offline.answers.choices import (
    ABSENT,
    choose,
    choose_change,
    choose_picture,
    choose_quality,
    names_reference,
    pictures_in,
)
from agenticiqa.programs.offline.answers.evidence_text import quoting, scores_in_words
from agenticiqa.programs.offline.answers.measured_image import MeasuredImage
from agenticiqa.programs.offline.answers.own_words import answer_from_text
from agenticiqa.programs.offline.answers.question_reader import LONGEST_TEXT
from agenticiqa.programs.offline.answers.rule_answer import NO, YES, RuleAnswer, definite, is_yes_no, yes_no_letter
from agenticiqa.programs.offline.answers.table import (
    ANSWERS,
    IMAGE,
    NEEDS_REFERENCE,
    REFERENCE,
    Look,
    compared_parts,
    name_places,
    no_reference,
    place_offered,
    quality_claim,
    untold,
)
from agenticiqa.programs.stages.protocols import Answered
from agenticiqa.programs.tools.tool import with_unit
from agenticiqa.programs.tools.tool_names import asks_about_tools, names_tools
from agenticiqa.signatures.lexicon import terms_in
from agenticiqa.signatures.types import GLOBAL, UNABLE, ExecutorOutput

SHORT = 3  # words of a query that asks for a metric's value by its name alone
_COMPARES = re.compile(r"\b(?:than|equally|same)\b", re.I)
_JOINT = re.compile(r"\b(and|or)\b", re.I)
_VERB = re.compile(r"\W*\b(?:is|are|was|were|does|do|has|have)\b", re.I)
_VALUE = re.compile(
    r"\b(?:whats?|how (?:high|low|much|large|big)|comput\w+|calculat\w+|run|scores?|values?|measure\w*|give|report|tell"
    r"|need|want|know|show|print|output|state|decibels?|db|rate|evaluate|get|say)\b",
    re.I,
)


def answer_from_evidence(query: str, options: Mapping[str, str], look: Look, evidence: ExecutorOutput) -> Answered:
    """Answer a question from the measurements.

    ``options`` are the answers offered, by letter; without options the answer is in words. ``look`` gives what was
    measured of the whole image, of the reference, or of a part (see ``table.Look``). The final answer is a letter, or
    words, or ``UNABLE`` if no rule gives a single answer: nothing is guessed. The reasoning says in sentences which
    rule and which measurements gave the answer, or what is missing.
    """
    if told := answer_from_text(query, options):
        return Answered(told.answer or UNABLE, _reasoning(told, None, ExecutorOutput()))
    measured = look(IMAGE)
    if asks_about_tools(query) and (not options or is_yes_no(options)):
        answer = RuleAnswer(None, "The question is about the metrics themselves.")
    elif not options and (value := _metric_values(query, evidence)):
        answer = value
    elif measured is None or not measured.findings:
        answer = RuleAnswer(None, "Nothing was measured.")
    else:
        analyzed = [*(evidence.boxes or {}), *(evidence.distortion_analysis or {}), *(evidence.quality_scores or {})]
        regions = list(dict.fromkeys(name for name in analyzed if name != GLOBAL))
        offered = definite(options)
        claims, joint = _claims_of_parts(query, offered, regions)
        if claims:
            each = {region: read_question(text, {}, [region], listed=False) for region, text in claims.items()}
            answer, measured = _of_parts(each, joint, offered, look, measured)
        else:
            asked = read_question(query, offered, regions, listed=not is_yes_no(offered))
            answer, measured = _answer(asked, look, measured)
    quoted = quoting(measured, query[:LONGEST_TEXT]) if measured else None
    return Answered(answer.answer or UNABLE, _reasoning(_with_option(answer, options), quoted, evidence))


def _answer(asked: Asked, look: Look, whole: MeasuredImage) -> tuple[RuleAnswer, MeasuredImage]:
    """The answer, and the measurements that it is about."""
    if claim := quality_claim(asked, whole):
        return (yes_no_letter(asked.options, claim) if asked.options else claim), whole
    if asked.subject == "reference":
        reference = look(REFERENCE)
        if reference is None:
            return RuleAnswer(
                None, "The question is about the reference, and none was given.", (), NEEDS_REFERENCE
            ), whole
        return _of_one(asked, reference, look), reference
    if asked.subject != "part" or name_places(asked.options):
        return _of_one(asked, whole, look), whole
    each = dict.fromkeys(sorted(asked.regions, key=asked.text.find), asked)
    return _of_parts(each, "", asked.options, look, whole)


def _of_parts(
    each: Mapping[str, Asked], joint: str, options: Mapping[str, str], look: Look, whole: MeasuredImage
) -> tuple[RuleAnswer, MeasuredImage]:
    """The answer about several parts, and the measurements that it is about.

    ``each`` is what is asked of each part. Claims of their own are joined by "and" or "or": one that fails is enough
    for "No", with "or" one that holds for "Yes".
    """
    found = {region: part for region in each if (part := look(region))}
    if missing := [region for region in each if region not in found]:
        return RuleAnswer(None, f"Nothing here finds {' and '.join(missing)} in the image."), whole
    asked = next(iter(each.values()))
    if not joint and len(found) == 2 and _COMPARES.search(asked.text):
        return _lettered(asked, compared_parts(asked, found)), whole
    answers = {region: _of_one(asked, found[region], look) for region, asked in each.items()}
    first, *others = answers.values()
    if not joint and all(other.answer == first.answer for other in others):
        return first, next(iter(found.values()))
    told = {region: (answer.answer or UNABLE).partition(", ") for region, answer in answers.items()}
    words = {word for word, *_ in told.values()}
    reason = " ".join(f"{region}: {answer.reason}" for region, answer in answers.items())
    decisive = YES if joint == "or" else NO
    word = decisive if joint and decisive in words else words.pop() if len(words) == 1 else ""
    if word in (YES, NO):
        shown = "; ".join(f"{region}: {more or said}" for region, (said, _, more) in told.items())
        answer = RuleAnswer(f"{word} ({shown})", reason)
        return (yes_no_letter(options, replace(answer, answer=word)) if options else answer), whole
    shown = "; ".join(f"{region}: {answer.answer or UNABLE}" for region, answer in answers.items())
    return RuleAnswer(None if joint or options else shown, reason if joint else f"The regions differ. {reason}"), whole


def _claims_of_parts(query: str, options: Mapping[str, str], regions: Sequence[str]) -> tuple[dict[str, str], str]:
    """What a question for yes or no claims of each of two parts, and "and" or "or" between two claims of their own.

    "Is the left half noisy and the right one sharp?" claims one thing of each, "Are the left and the right half noisy?"
    the same of both; other questions claim nothing of them.
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
    if not terms_in(text[:begin]) and joints[-1][1].lower() == "and":  # the same of both
        rest = text[next_start + len(other) :]
        return {region: f"{text[:start]}{region}{rest}" for region in (one, other)}, ""
    if not (terms_in(text[:begin]) and terms_in(text[end:])):
        return {}, ""
    said = text[end:].strip()
    claims = {one: f"{text[:begin].strip()}?", other: said if _VERB.match(said) else f"{verb[0]} {said}"}
    return claims, joints[-1][1].lower()


def _of_one(asked: Asked, measured: MeasuredImage, look: Look) -> RuleAnswer:
    """The answer about one image or part."""
    rule = ANSWERS[asked.what]
    if rule is untold and names_reference(asked.text) and look(REFERENCE) is None:
        return no_reference()
    if not asked.options or is_yes_no(asked.options):
        return _lettered(asked, rule(asked, measured, look))
    if name_places(asked.options) or asked.what in ("where", "half", "half-clean"):
        return place_offered(asked, look)
    if pictures_in(asked.options):
        return choose_picture(asked, measured, look)
    if chosen := choose_quality(asked, measured) or choose_change(asked, measured, look):
        return chosen
    if asked.subject != "reference" and names_reference(asked.text) and not measured.has_reference:
        return no_reference()
    return rule(asked, measured, look) if rule is untold and not ABSENT.search(asked.text) else choose(asked, measured)


def _lettered(asked: Asked, answer: RuleAnswer) -> RuleAnswer:
    return yes_no_letter(asked.options, answer) if asked.options else answer


def _with_option(answer: RuleAnswer, options: Mapping[str, str]) -> RuleAnswer:
    """The answer with the words of the chosen option beside its letter, which the question may not show."""
    letter = answer.answer or ""
    if letter not in options:
        return answer
    shown = f"{letter} ({options[letter]})"
    return replace(answer, reason=re.sub(rf"\b{letter}(?= (?:is|has|names)\b)", lambda _: shown, answer.reason))


def _metric_values(query: str, evidence: ExecutorOutput) -> RuleAnswer | None:
    """What the metrics that the question names gave, in their own units, and mapped to 1..5; ``None`` without any."""
    named = names_tools(query, [call.tool for call in evidence.tool_log])
    if not named or not (len(query.split()) <= SHORT or _VALUE.search(query) or not terms_in(query)):
        return None
    values = [
        f"{call.tool} {with_unit(call.raw, call.unit)} ({call.calibrated:.2f} of 5"
        f"{'' if call.region == GLOBAL else f', {call.region}'})"
        for call in evidence.tool_log
        if call.tool in named and call.raw is not None and call.calibrated is not None
    ]
    if not values:
        return RuleAnswer(None, "The metric gave no value.")
    return RuleAnswer("; ".join(dict.fromkeys(values)), "The question asks for what the tool measured.")


def _reasoning(answer: RuleAnswer, measured: MeasuredImage | None, evidence: ExecutorOutput) -> str:
    about = [name for name in answer.categories if measured and name in measured.findings]
    details = [f"{measured.describe(name)} ({measured.explained(name)})" for name in about] if measured else []
    scores = scores_in_words(evidence)
    parts = [answer.reason]
    if details or (scores and answer.answer):
        shown = [*details, *scores] if answer.answer else details
        parts.append(f"Measured: {'; '.join(shown)}.")
    return " ".join(filter(None, [*parts, answer.missing]))
