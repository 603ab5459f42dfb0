"""Answer a question about one image or part from its measurements, with a function for each intent."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from agenticiqa.programs.fusion.formula import level_name
from agenticiqa.programs.offline.answers.asked import Asked
from agenticiqa.programs.offline.answers.measured_image import (
    OBJECTIONABLE,
    PRESENT,
    REFERENCE_BESIDE_IMAGE,
    VISIBLE,
    Look,
    MeasuredImage,
)
from agenticiqa.programs.offline.answers.rule_answer import (
    NO,
    NOT_UNDERSTOOD,
    NOTHING_VISIBLE,
    REFERENCE_OR_MODEL,
    TIE,
    YES,
    RuleAnswer,
    cannot_exclude,
    cannot_grade,
    cannot_tell,
    is_yes_no,
    yes_or_no,
)
from agenticiqa.programs.offline.measured.findings import GRAY, TONED, severity_word
from agenticiqa.signatures.categories import BLURS, CATEGORIES, COLOR, NOISE
from agenticiqa.signatures.lexicon import Meaning, any_of, phrase_pattern, phrases_of

DOUBTFUL = 0.5  # range of severity below the limit for yes in which the measurements are too imprecise for a no
_ANY = any_of(["no", "without", "free of", "free from", "any", "some", "at all", "zero"])
_EXCESS = any_of(["too", "overly", "excessive*"])
# Words that name an exact degree, and those that name a minimum degree.
_EXACT = {1.0: any_of(["barely", "slight*", "mild*", "minor"]), 2.0: any_of(["moderate*", "medium"])}
_LEAST = {
    4.0: any_of(["extreme*", "very severe*", "very strong*"]),
    3.0: any_of(
        ["severe*", "strong*", "heavy", "heavily", "serious*", "very", "highly", "significant*", "bad", "badly"]
    ),
}
ONE = re.compile(
    r"\b(?:main|major|primary|principal|dominant|most|worst|worse|biggest|largest|greatest|strongest|dominates?)\b",
    re.I,
)
_SEVERAL = re.compile(r"\b(?:all|any|list|distortions|art[ei]facts|defects|faults|flaws|problems|issues)\b", re.I)
_NARROWED_BY = {
    row.name: re.compile("|".join(map(phrase_pattern, phrases_of(row.narrowed_by))), re.I)
    for row in CATEGORIES
    if row.narrowed_by
}
_OR = re.compile(r"\b(?:or|nor)\b", re.I)
_THAN = re.compile(r"\bthan\b", re.I)
# The words between two claims: "noisy but not blurry", "sharp, yet dark", "sharp and free of noise".
_FILLING = {"is", "it", "isn't", "the", "any", "too", "also", "still", "very"}
_JOINING = _FILLING | {"and", "but", "yet", "without", "not", "no", "never", "free"}
_CONTRARY = re.compile(r"\b(?:but|yet|without|not|no|never|free)\b", re.I)
_DENIES = re.compile(r"\b(?:not|no|without|free (?:of|from)|never)\b|n't\b", re.I)
AGAINST_REFERENCE = "Compared with the reference, a difference counts if it is slight or worse."
_OTHERS = re.compile(r"\b(?:last|previous|earlier) (?:image|picture|photo|one|version|copy|file|shot)\b", re.I)
# Quality levels, 1 to 5, by the words of options.
LEVEL_OF = {
    **dict.fromkeys(("excellent", "perfect", "superb", "outstanding"), 5.0),
    **dict.fromkeys(("good", "great", "high", "fine", "very good"), 4.0),
    **dict.fromkeys(("fair", "average", "medium", "moderate", "ok", "okay", "acceptable", "mediocre"), 3.0),
    **dict.fromkeys(("poor", "low"), 2.0),
    **dict.fromkeys(("bad", "terrible", "awful", "very poor", "unacceptable"), 1.0),
}
_PICTURE = r"(?:image|photo\w*|picture|pic|shot)"
_LEVELS = "|".join(sorted(LEVEL_OF, key=len, reverse=True))
_CLAIM = re.compile(
    rf"^\W*(?:is|are|was|does|has|would)\b(?:n't)?[^.?!]*(?:\b(?P<one>{_LEVELS})[- ](?:\w+ )?(?:quality|{_PICTURE})\b"
    rf"|\b(?:quality|{_PICTURE})\b(?: \w+){{0,3}}? (?P<two>{_LEVELS})\b)",
    re.I,
)


def presence(question: Asked, measured: MeasuredImage, look: Look) -> RuleAnswer:
    """Answer yes or no: whether the distortion is present in the named degree."""
    if claims := _separate_claims(question):
        return _all_of(claims, measured)
    faults = list(dict.fromkeys(term.meaning for term in question.terms if term.meaning.sense == "fault"))
    if len({fault.scale for fault in faults} - {"any"}) < 2 or question.senses != {"fault"}:
        return _presence(question, question.fault, measured) if question.fault else NOT_UNDERSTOOD
    # Of distortions joined by "or", one must be present, otherwise all of them. One decisive answer is enough; without
    # it, an unknown one leaves the question open.
    decisive = YES if bool(_OR.search(question.text)) != question.is_denial else NO
    answers = [_presence(question, fault, measured) for fault in faults]
    deciding = [answer for answer in answers if (answer.answer or "").startswith(decisive)]
    unknown = [answer for answer in answers if answer.answer is None]
    return (deciding or unknown or answers)[0]


def _separate_claims(question: Asked) -> list[Asked]:
    """Return a question for each claim that is joined to others by "and" or "but"; none if all find the same faults."""
    terms = [term for term in question.terms if term.meaning.sense in ("fault", "virtue")]
    between = [question.text[before.end : term.start] for before, term in pairwise(terms)]
    if len({term.meaning.scale for term in terms}) < len(terms) or not all(map(_joins, between)):
        return []
    if question.senses == {"fault"} and not any(map(_CONTRARY.search, between)):
        return []
    claims = []
    for start, term in zip([0, *(term.end for term in terms)], terms, strict=False):
        claim = question.text[start : term.end]
        is_denial = bool(_DENIES.search(claim)) != (term.meaning.sense == "virtue")
        claims.append(replace(question, fault=replace(term.meaning, sense="fault"), is_denial=is_denial, text=claim))
    return claims if len(claims) > 1 else []


def _joins(between: str) -> bool:
    words = re.sub(r"\bfree (?:of|from)\b", "free", between.lower()).replace(",", " ").split()
    return bool(words) and _JOINING.issuperset(words)


def _all_of(claims: Sequence[Asked], measured: MeasuredImage) -> RuleAnswer:
    """Answer whether every claim holds: by the first that does not, else by one without an answer."""
    answers = [_presence(claim, claim.fault, measured) for claim in claims if claim.fault]
    false = [answer for answer in answers if (answer.answer or "").startswith(NO)]
    return (false or [answer for answer in answers if answer.answer is None] or answers)[0]


def _presence(question: Asked, fault: Meaning, measured: MeasuredImage) -> RuleAnswer:
    severity = measured.severity(fault)
    if severity is None:
        return cannot_tell(fault, measured)
    rest = question.text
    for term in question.terms:
        rest = rest.replace(term.text, "\n")
    graded = "fault" in question.senses and not _EXCESS.search(question.text)
    exact = next((degree for degree, words in _EXACT.items() if graded and words.search(rest)), None)
    least = next((degree for degree, words in _LEAST.items() if graded and words.search(rest)), None)
    if exact is not None:
        word = severity_word(exact)
        holds = (severity_word(severity) == word) != question.is_denial
        return yes_or_no(holds, f"The question asks for {word} severity only.", fault, measured)
    usual = OBJECTIONABLE if {*fault.categories} & {NOISE, BLURS} else PRESENT
    limit = VISIBLE if _ANY.search(question.text) else usual if least is None else least - 0.5
    if severity < limit and measured.may_hide(fault):
        return cannot_exclude(fault, measured)
    unsure = not measured.has_reference and limit in (PRESENT, OBJECTIONABLE)
    if unsure and limit - DOUBTFUL <= severity < limit:
        reason = f"The measured severity is too close to the limit for an answer ({severity:.1f} of 4)."
        return RuleAnswer(None, reason, measured.about(fault))
    reason = f"A distortion counts here if it is {severity_word(limit)} or worse."
    return yes_or_no((severity >= limit) != question.is_denial, reason, fault, measured)


def degree(question: Asked, measured: MeasuredImage, look: Look) -> RuleAnswer:
    """Answer in a word how severe the distortion is."""
    fault = question.fault
    if fault is None:
        return NOT_UNDERSTOOD
    severity, about = measured.severity(fault), measured.about(fault)
    if severity is None or not about:
        return cannot_tell(fault, measured)
    visible = severity >= VISIBLE
    if not visible and measured.may_hide(fault):
        return cannot_exclude(fault, measured)
    if measured.may_be_more(fault):
        return cannot_grade(fault, measured)
    answer = measured.described(about) if visible or not fault.kind else f"no visible {fault.kind}"
    if visible and fault.kind and fault.kind not in answer:
        answer = f"{severity_word(severity)} {fault.kind}"
    if fault.subject == "any" and not visible:
        answer = NOTHING_VISIBLE
    return RuleAnswer(answer[0].upper() + answer[1:], f"The measured severity is {severity:.1f} of 4.", about)


def which(question: Asked, measured: MeasuredImage, look: Look) -> RuleAnswer:
    """List the visible distortions, of the named ones or of all: the worst first, or only the worst."""
    categories = [name for meaning in question.named for name in meaning.categories]
    # Without such a word, the question is about damage of any kind.
    categories = [name for name in categories if name not in _NARROWED_BY or _NARROWED_BY[name].search(question.text)]
    one, hidden = ONE.search(question.text), "" if categories else _hidden(measured)
    visible = [name for name in measured.visible if name in categories or not categories]
    if not visible and hidden:
        reason = "Without a reference, the original colors of the scene are unknown."
        return RuleAnswer(f"{NOTHING_VISIBLE}, but {hidden}", reason)
    if not visible and one and not categories:
        return RuleAnswer(None, "No distortion is visible in the measurements, so there is no worst one.")
    if not visible:
        answer = f"No visible {' or '.join(dict.fromkeys(categories))} was measured" if categories else NOTHING_VISIBLE
        return RuleAnswer(answer, "The measured severity of each distortion is below slight.")
    worst = measured.findings[visible[0]].severity
    if worst < OBJECTIONABLE and hidden and visible[0] != COLOR and (one or not _SEVERAL.search(question.text)):
        reason = f"The measurements show only {measured.describe(visible[0])}, but {hidden}."
        return RuleAnswer(None, reason, visible[:1], REFERENCE_OR_MODEL)
    if one or (len(categories) > 1 and re.search(r"\bor\b", question.text)):
        visible = [name for name in visible if worst - measured.findings[name].severity < TIE]
        return RuleAnswer(" and ".join(map(measured.named, visible)), "This is the highest measured severity.", visible)
    answer = "; ".join(f"{measured.named(name)}: {measured.explained(name)}" for name in visible)
    return RuleAnswer(answer, "The list has every distortion with a measured severity of slight or worse.")


def _hidden(measured: MeasuredImage) -> str:
    """Return possible color distortions that measurements cannot detect, or ""."""
    if measured.has_reference:
        return ""
    if measured.findings[COLOR].subtype in (GRAY, TONED):
        return f"it is unknown whether {measured.describe(COLOR)} is intended"
    kinds = " or ".join(sorted(measured.unsure))
    return f"{kinds} cannot be distinguished from the colors of the scene" if kinds else ""


def rating(question: Asked, measured: MeasuredImage, look: Look) -> RuleAnswer:
    """Return a number on the question's scale, for the quality or for one distortion."""
    scale, fault = question.scale, question.fault
    if scale is None or fault is None:
        return NOT_UNDERSTOOD
    if fault.subject == "any":
        share = (measured.level - 1) / 4
        value = scale.at(1 - share if scale.best == "low" else share)
        answer = f"{scale.shown(value)} ({level_name(measured.level)} quality)"
        return RuleAnswer(answer, quality_estimate(measured), measured.visible[:2])
    severity, about = measured.severity(fault), measured.about(fault)
    if severity is None or not about:
        return cannot_tell(fault, measured)
    is_amount = scale.best == "low"
    value = scale.at(severity / 4 if is_amount else 1 - severity / 4)
    ends = f"{scale.high:g} is {'the most' if is_amount else 'the best'}"
    answer = f"{scale.shown(value)} ({measured.described(about)}; {ends})"
    return RuleAnswer(answer, f"The measured severity is {severity:.1f} of 4.", about)


def quality_claim(question: Asked, measured: MeasuredImage) -> RuleAnswer | None:
    """Return yes or no for a claim about the quality level; ``None`` for any other question."""
    claim = _CLAIM.search(question.text)
    if not claim or question.named or re.search(r"\b(?:than|or)\b", question.text):
        return None
    if question.options and not is_yes_no(question.options):
        return None
    level, word = measured.level, (claim["one"] or claim["two"]).lower()
    wanted = LEVEL_OF["poor"] if word == "bad" else LEVEL_OF[word]  # "Is it a bad photo?" means no level of a scale
    if wanted == 3:
        holds = level >= 2.5 and (re.search(r"acceptable|ok", claim[0], re.I) is not None or level < 3.5)
    else:
        holds = level >= wanted - 0.5 if wanted > 3 else level < wanted + 0.5
    denied = bool(re.search(r"\bnot\b", question.text, re.I))
    answer = f"{YES if holds != denied else NO}, about {level:.1f} of 5"
    return RuleAnswer(answer, quality_estimate(measured), measured.visible[:2])


def quality_estimate(measured: MeasuredImage) -> str:
    """Return the estimated quality as a reason."""
    return f"The estimated quality is {measured.level:.1f} on a scale of 1 to 5."


def compare(question: Asked, measured: MeasuredImage, look: Look) -> RuleAnswer:
    """Answer whether the image has more of the distortion than the reference, or which of the two has more.

    ``measured`` is the image against the reference. Without a visible distortion in it, the reference is measured
    against the image, because it may be the one with more of the distortion.
    """
    fault = question.fault
    if fault is None or _OTHERS.search(question.text):
        return RuleAnswer(None, "The question compares several properties, or an image other than the reference.")
    more = measured.severity(fault)
    if more is None:
        more = measured.severity(Meaning(fault.subject, "fault"))
    if more is None:
        return cannot_tell(fault, measured)
    beside = look(REFERENCE_BESIDE_IMAGE) if more < VISIBLE else None
    less = (beside.severity(fault) if beside else None) or 0.0
    same, in_image = max(more, less) < VISIBLE, more >= VISIBLE
    if question.what == "compare-presence":
        praised = question.senses == {"virtue"} and _THAN.search(question.text)
        holds = in_image != question.is_denial and not (same and praised)
        return yes_or_no(holds, AGAINST_REFERENCE, fault, measured)
    answer = "The image" if in_image == (question.what == "compare-image") else "The reference"
    return RuleAnswer("They are about the same" if same else answer, AGAINST_REFERENCE, measured.about(fault))


def not_measured(question: Asked, measured: MeasuredImage, look: Look) -> RuleAnswer:
    """Return the result for a question that no measurement answers."""
    return RuleAnswer(None, "No measurement answers this question.")


def no_value(question: Asked, measured: MeasuredImage, look: Look) -> RuleAnswer:
    """Return the result for a metric without a value."""
    return RuleAnswer(None, "The metric returned no value.")
