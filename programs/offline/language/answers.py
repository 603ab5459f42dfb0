"""Answer a question from measurements, or from its own words; what does not follow from them is not answered."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from agenticiqa.programs.fusion.formula import level_name
from agenticiqa.programs.offline.findings import severity_word
from agenticiqa.programs.offline.language.choices import choose, is_yes_no, yes_no_letter
from agenticiqa.programs.offline.language.claims import Clause
from agenticiqa.programs.offline.language.comparisons import (
    compare,
    compare_regions,
    names_reference,
    names_reference_alone,
)
from agenticiqa.programs.offline.language.distortion_list import BAD, explained, list_distortions
from agenticiqa.programs.offline.language.evidence_text import quoting, scores_in_words
from agenticiqa.programs.offline.language.free_options import choose_by_meaning
from agenticiqa.programs.offline.language.measured_image import VISIBLE, MeasuredImage
from agenticiqa.programs.offline.language.places import IMAGE, REFERENCE, Look, find_place, name_places
from agenticiqa.programs.offline.language.plain_question import asks_of_all
from agenticiqa.programs.offline.language.question import Question
from agenticiqa.programs.offline.language.question_reader import Reading, listing, question_alone, read_text
from agenticiqa.programs.offline.language.reader import (
    claim_of,
    not_measurable,
    read_question,
)
from agenticiqa.programs.offline.language.scope import names_thing
from agenticiqa.programs.offline.language.second_reading import (
    SURE,
    asked_instead,
    asks_of_each_part,
    asks_of_other,
    denied,
)
from agenticiqa.programs.offline.language.spelling import corrected
from agenticiqa.programs.offline.language.text_questions import answer_from_text
from agenticiqa.programs.offline.language.tool_names import names_tools
from agenticiqa.programs.offline.language.verdicts import (
    NO,
    NOTHING_VISIBLE,
    YES,
    Verdict,
    cannot_exclude,
    cannot_grade,
    cannot_tell,
    not_measured,
    not_understood,
)
from agenticiqa.programs.offline.language.yes_no import answer_yes_no, clauses_of, offers_opposites, verify
from agenticiqa.programs.questions.scale import RatingScale
from agenticiqa.programs.stages.protocols import Answered
from agenticiqa.programs.tools.tool import with_unit
from agenticiqa.signatures.lexicon import Meaning
from agenticiqa.signatures.types import GLOBAL, UNABLE, ExecutorOutput

FIVE = RatingScale(1, 5)


def answer_from_evidence(query: str, options: Mapping[str, str], look: Look, evidence: ExecutorOutput) -> Answered:
    """Answer a question from the measurements.

    ``options`` are the answers offered, by letter; without options the answer is in words. ``look`` gives what was
    measured of the whole image, of the reference, or of a part (see ``places.Look``). The final answer is a letter, or
    words, or ``UNABLE`` if no rule gives a single answer: nothing is guessed. The reasoning says in sentences which
    rule and which measurements gave the answer, or what is missing.
    """
    if told := answer_from_text(query, options):
        return Answered(told.answer or UNABLE, _reasoning(told, None, ExecutorOutput()))
    tools = [call.tool for call in evidence.tool_log]
    analyzed = [*(evidence.boxes or {}), *(evidence.distortion_analysis or {}), *(evidence.quality_scores or {})]
    question = read_question(query, options, tools=tools, regions=[name for name in analyzed if name != GLOBAL])
    measured = look(IMAGE)
    if question.asked == "metric":
        verdict = _metric_values(query, evidence)
    elif measured is None or not measured.findings:
        verdict = Verdict(None, "Nothing was measured.")
    elif not question.is_sure:
        verdict = Verdict(None, question.doubt)
    else:
        verdict, measured = _answer(question, look, measured)
    if measured and measured.findings and question.asked != "metric":
        verdict, measured = _second_reading(query, question, verdict, look, measured)
    quoted = quoting(measured, query) if measured else None
    return Answered(verdict.answer or UNABLE, _reasoning(_with_option(verdict, options), quoted, evidence))


def _with_option(verdict: Verdict, options: Mapping[str, str]) -> Verdict:
    """The verdict with the words of the chosen option beside its letter, which the question may not show."""
    letter = verdict.answer or ""
    if letter not in options:
        return verdict
    shown = f"{letter} ({options[letter]})"
    return replace(verdict, reason=re.sub(rf"\b{letter}(?= (?:is|has|names)\b)", lambda _: shown, verdict.reason))


def _second_reading(
    query: str, question: Question, verdict: Verdict, look: Look, measured: MeasuredImage
) -> tuple[Verdict, MeasuredImage]:
    """The verdict on a question as the network reads it, or that of the rules where theirs stands."""
    whole, asked = look(IMAGE), question_alone(query)
    if whole is None or (question.claim.names_unmeasured and not verdict.answer):
        return verdict, measured
    offered = {} if is_yes_no(question.options) else question.options
    reading = read_text(listing(corrected(asked), offered))
    if offered:
        is_open = not (verdict.answer or verdict.categories)
        chosen = _chosen_by_meaning(asked, question, reading, look, whole) if is_open else None
        return (chosen, whole) if chosen else (verdict, measured)
    of_fault = question.claim.terms and not any(each.subject == "quality" for each in question.claim.meanings)
    if verdict.answer and asks_of_other(reading) and of_fault and not question.regions:
        return Verdict(None, "No measurement tells what the question asks."), measured
    if not verdict.answer and not_measurable(question.text) and reading.intent.probability < SURE:
        return verdict, measured
    plain = asked_instead(asked, question, verdict, reading)
    of_each = asks_of_each_part(question, reading) and all(look(region) for region in question.regions)
    if plain is None or of_each or (plain.part and look(plain.part) is None):
        return verdict, measured
    parts = (plain.part,) if plain.part else ()
    found, about = _answer(read_question(plain.text, {}, regions=parts), look, whole)
    if found.answer is None and verdict.categories and not verdict.answer:
        return verdict, measured
    found = denied(found) if plain.is_denial else found
    if question.options:
        word = (found.answer or "").partition(",")[0]
        found = (yes_no_letter(question.options, replace(found, answer=word)) if word in (YES, NO) else None) or verdict
    return found, about


def _chosen_by_meaning(
    asked: str, question: Question, reading: Reading, look: Look, whole: MeasuredImage
) -> Verdict | None:
    """The option that fits by what the network reads; ``None`` where it may not be the image that is asked about."""
    of_reference = question.subject == "reference" or (names_reference_alone(asked) and look(REFERENCE) is None)
    of_part = question.regions and (any(map(names_thing, question.regions)) or not asks_of_all(reading))
    asks_which = reading.intent.name == "which" and reading.intent.probability >= SURE
    of_other = (not_measurable(asked) and not asks_which) or asks_of_other(reading)
    of_quality = question.claim.meanings and all(each.subject == "quality" for each in question.claim.meanings)
    if of_reference or of_part or of_other or of_quality or name_places(question.options):
        return None
    return choose_by_meaning(corrected(asked), question, whole)


def _answer(question: Question, look: Look, whole: MeasuredImage) -> tuple[Verdict, MeasuredImage]:
    """The verdict, and the measurements that it is about."""
    options = question.options
    changes = question.asked == "list" and names_reference(question.text)
    changes = changes or (question.asked == "choice" and names_reference_alone(question.text))
    if changes and look(REFERENCE) is None:
        return compare(question.text, (), whole, look), whole
    if question.subject == "reference":
        reference = look(REFERENCE)
        if reference is None:
            needed = "the reference picture (--reference)"
            return Verdict(None, "The question is about the reference, and none was given.", needed=needed), whole
        return _of_one(question, reference, options), reference
    if question.asked == "where":
        return find_place(question.text, question.claim, options, look), whole
    parts = {region: look(region) for region in question.regions}
    if missing := [region for region, part in parts.items() if part is None]:
        return Verdict(None, f"Nothing here finds {' and '.join(missing)} in the image."), whole
    found = {region: part for region, part in parts.items() if part}
    if question.asked == "compare" and len(found) < 2:
        measured = next(iter(found.values()), whole)
        offered = {} if is_yes_no(options) else options
        return _lettered(options, compare(question.text, question.regions, measured, look, offered), measured), measured
    if question.asked == "compare":
        one, other, *_ = found
        return _lettered(
            options, compare_regions(question.text, found[one], found[other], (one, other)), found[one]
        ), whole
    measured = next(iter(found.values()), whole)
    if claims := _claims_by_region(question):
        return _of_each(claims, found, options, " or " in question.text), measured
    verdicts = {region: _of_one(question, part, options) for region, part in (found or {IMAGE: whole}).items()}
    first, *others = verdicts.values()
    if all(other.answer == first.answer for other in others):
        return first, measured
    each = "; ".join(f"{region}: {verdict.answer or UNABLE}" for region, verdict in verdicts.items())
    reasons = " ".join(f"{region}: {verdict.reason}" for region, verdict in verdicts.items())
    return Verdict(None if options else each, f"The regions differ. {reasons}"), measured


def _claims_by_region(question: Question) -> dict[str, Clause]:
    """The claims of "Is the left half blurry and the right half noisy?" by region, if each is about another one."""
    claims: dict[str, Clause] = {}
    if question.asked != "presence" or len(question.regions) < 2:
        return claims
    for part in clauses_of(question.text):
        regions, _, claim = claim_of(part)
        if len(regions) == 1 and claim.terms and regions[0] not in claims:
            claims[regions[0]] = claim
        elif regions or not claim.is_empty:
            return {}
    return claims if set(claims) == set(question.regions) else {}


def _of_each(
    claims: Mapping[str, Clause], parts: Mapping[str, MeasuredImage], options: Mapping[str, str], either: bool
) -> Verdict:
    """Yes or no to several claims, each of its own part: all of them must hold, or ``either``."""
    verdicts = {region: verify(claim, parts[region]) for region, claim in claims.items()}
    answers, decisive = [verdict.answer for verdict in verdicts.values()], YES if either else NO
    reason = " ".join(f"{region}: {verdict.reason}" for region, verdict in verdicts.items())
    if decisive not in answers and None in answers:
        return Verdict(None, reason)
    answer = decisive if decisive in answers else answers[0]
    if options:
        return yes_no_letter(options, Verdict(answer, reason)) or Verdict(None, reason)
    shown = {region: " and ".join(map(parts[region].describe, each.categories)) for region, each in verdicts.items()}
    return Verdict(f"{answer} ({'; '.join(f'{region}: {text}' for region, text in shown.items())})", reason)


def _of_one(question: Question, measured: MeasuredImage, options: Mapping[str, str]) -> Verdict:
    """The answer about one image or part."""
    if options and question.asked == "choice":
        return choose(question.claim, options, measured, _words(question.regions))
    if options:
        return _lettered(options, answer_yes_no(question.bare, measured), measured)
    if question.asked == "rating":
        return _rate(question, measured)
    if question.asked == "presence" and not offers_opposites(question.bare):
        return _lettered({}, answer_yes_no(question.bare, measured), measured)
    if question.asked == "list":
        return list_distortions(question, measured)
    return _state(question, measured)


def _words(regions: Sequence[str]) -> list[str]:
    return [word for region in regions for word in region.split()]


def _lettered(options: Mapping[str, str], verdict: Verdict, measured: MeasuredImage) -> Verdict:
    """A yes or no as the letter that means it, or, without options, with what was measured."""
    if options:
        return yes_no_letter(options, verdict) or verdict
    if verdict.answer not in (YES, NO):
        return verdict
    shown = [measured.describe(name) for name in verdict.categories] or [f"about {measured.level:.1f} of 5"]
    return Verdict(f"{verdict.answer}, {' and '.join(shown)}", verdict.reason, verdict.categories)


def _state(question: Question, measured: MeasuredImage) -> Verdict:
    """The severity of the one thing that the question names."""
    asked = question.claim
    meanings = asked.meanings or (
        [Meaning("any", "fault")] if asked.comparison == "worse" or BAD.search(asked.text) else []
    )
    if len({meaning.scale for meaning in meanings}) != 1:
        return not_understood(asked.unknown_words)
    meaning = meanings[0]
    if meaning.subject == "quality":
        reason = f"The quality is estimated at {measured.level:.1f} on the scale of 1 to 5."
        return Verdict(f"{level_name(measured.level)}, about {measured.level:.1f} of 5", reason, measured.visible[:2])
    if meaning.subject == "unmeasured":
        return not_measured([term.text for term in asked.terms])
    fault = _fault_of(asked.meanings or meanings)
    severity, name = measured.severity(fault), measured.worst_of(fault.categories)
    if severity is None or name is None:
        return cannot_tell(fault, measured)
    visible = severity >= VISIBLE
    if not visible and measured.may_hide(fault):
        return cannot_exclude(fault, measured)
    if measured.may_be_more(fault):
        return cannot_grade(fault, measured)
    answer = measured.describe(name) if visible or not fault.kind else f"no visible {fault.kind}"
    if visible and fault.kind and fault.kind not in answer:
        answer = f"{severity_word(severity)} {fault.kind}"
    if fault.subject == "any" and not visible:
        answer = NOTHING_VISIBLE
    return Verdict(answer[0].upper() + answer[1:], f"The measured severity is {severity:.1f} of 4.", [name])


def _fault_of(meanings: Sequence[Meaning]) -> Meaning:
    """The fault that a degree is asked of: of one kind only if just that is named."""
    meaning = meanings[0]
    narrow = len(meanings) == 1 and meaning.sense == "fault"
    return Meaning(meaning.subject, "fault", meaning.kind if narrow else "")


def _rate(question: Question, measured: MeasuredImage) -> Verdict:
    """A number on the question's scale: of quality, or of one property."""
    asked, scale = question.claim, question.scale or FIVE
    meanings = [meaning for meaning in asked.meanings if meaning.subject not in ("quality", "any")]
    if not meanings:
        share = (measured.level - 1) / 4
        value = scale.at(1 - share if scale.best == "low" else share)
        reason = f"The quality is estimated at {measured.level:.1f} on the scale of 1 to 5."
        return Verdict(f"{scale.shown(value)} ({level_name(measured.level)} quality)", reason, measured.visible[:2])
    if len({meaning.scale for meaning in meanings}) != 1:
        return Verdict(None, "The question asks for one number for several properties.")
    fault = _fault_of(meanings)
    if fault.subject == "unmeasured":
        return not_measured([term.text for term in asked.terms])
    severity, name = measured.severity(fault), measured.worst_of(fault.categories)
    if severity is None or name is None:
        return cannot_tell(fault, measured)
    amount = meanings[0].sense == "fault"
    high_is_bad = scale.best == "low" or (scale.best is None and amount)
    value = scale.at(severity / 4 if high_is_bad else 1 - severity / 4)
    ends = f"{scale.high:g} is {'the most' if high_is_bad else 'the best'}"
    return Verdict(
        f"{scale.shown(value)} ({measured.describe(name)}; {ends})",
        f"The measured severity is {severity:.1f} of 4.",
        [name],
    )


def _metric_values(query: str, evidence: ExecutorOutput) -> Verdict:
    """What the metrics that the question names gave, in their own units, and mapped to 1..5."""
    named = names_tools(query, [call.tool for call in evidence.tool_log])
    values = [
        f"{call.tool} {with_unit(call.raw, call.unit)} ({call.calibrated:.2f} of 5{_in(call.region)})"
        for call in evidence.tool_log
        if call.tool in named and call.raw is not None and call.calibrated is not None
    ]
    if not values:
        return Verdict(None, "The metric gave no value.")
    return Verdict("; ".join(dict.fromkeys(values)), "The question asks for what the tool measured.")


def _in(region: str) -> str:
    return "" if region == GLOBAL else f", {region}"


def _reasoning(verdict: Verdict, measured: MeasuredImage | None, evidence: ExecutorOutput) -> str:
    about = [name for name in verdict.categories if measured and name in measured.findings]
    details = [f"{measured.describe(name)} ({explained(name, measured)})" for name in about] if measured else []
    scores = scores_in_words(evidence)
    parts = [verdict.reason]
    if details or (scores and verdict.answer):
        shown = [*details, *scores] if verdict.answer else details
        parts.append(f"Measured: {'; '.join(shown)}.")
    return " ".join(filter(None, [*parts, verdict.missing]))
