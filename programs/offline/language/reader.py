"""Read a question: which part of the words asks, what it asks for, of which subject, and how sure that is."""

import re
from collections.abc import Collection, Mapping, Sequence

from agenticiqa.programs.offline.language import word_lists
from agenticiqa.programs.offline.language.choices import definite, is_yes_no
from agenticiqa.programs.offline.language.claims import Clause, parse_clause
from agenticiqa.programs.offline.language.comparisons import (
    is_comparison,
    names_reference,
    names_reference_alone,
    without_reference,
)
from agenticiqa.programs.offline.language.places import name_places
from agenticiqa.programs.offline.language.question import Asked, Question
from agenticiqa.programs.offline.language.scope import read_scope, without_idioms
from agenticiqa.programs.offline.language.spelling import corrected
from agenticiqa.programs.offline.language.tool_names import names_tools
from agenticiqa.programs.offline.language.word_lists import ONE
from agenticiqa.programs.questions.instructions import without_instructions
from agenticiqa.programs.questions.options import lists_options, question_part
from agenticiqa.programs.questions.query_type import rates_property
from agenticiqa.programs.questions.scale import stated_scale
from agenticiqa.signatures.lexicon import terms_in
from agenticiqa.signatures.types import unique

SHORT = 3  # words of a query that asks for a metric's value by its name alone
UNKNOWN_WORD = 0.2  # of confidence, for each word that no list has

_BLANKS = re.compile(r"[^\S\n]{2,}")  # the expressions below are slow on long ones
_WITHOUT = re.compile(
    r"\b(?:devoid of|clear of|clean of|rid of|unaffected by|untouched by|spared from|empty of|rul(?:e|ed|ing) out"
    r"|exclude)\b",
    re.I,
)
_SENTENCE = re.compile(r"(?<=[.?!;])\s+|\n+")
# What introduces the matter of a request: "let me know about ...", "I was told that ...".
_WHETHER = re.compile(
    r".*\b(?:if|whether|about|regarding|concerning|as to|check\b[^?.,]*\bfor"
    r"|(?:told|tell|thinks?|believe|says?|said|claims?|true|sure|certain|impression|suspect|fear|afraid)(?: \w+)? that)"
    r"\s+(?=\S)",
    re.I | re.S,
)
_OR_NOT = re.compile(r",?\s+or (?:not|no|nah)\b(?: \w+)?(?=\s*[?.!]|\s*$)", re.I)  # "is it sharp or not?"
_ASKS = re.compile(
    r"\?|^\W*(?:is|are|was|were|does|do|did|has|have|can|could|how|what|which|where|why|any|rate|score|grade|describe|list"
    r"|name|tell|say|check|find|identify|explain|give|assess|evaluate|judge|compare|true or false)\b",
    re.I,
)
# What comes before a pause and names no distortion is no part of the question.
_PAUSE = re.compile(r"[,;:]\s+(?!(?:and|or|but|nor)\b)", re.I)
_ASKS_AT_ONCE = re.compile(
    r"(?:is|are|was|were|does|do|did|has|have|can|could|would|how|what|which|where|why|any|it|this)\b", re.I
)
_FLAW = r"art[ei]fact|distort|damage|degrad|noise|blur|defect|problem|issue|flaw|compress"
# Words for what no measurement tells: a question with one is not answered.
_NOT_MEASURABLE = re.compile(
    rf"\b(?:(?!what (?:kind|type) of (?:{_FLAW})|how many (?:stars|points|marks))(?:{word_lists.AESTHETIC})"
    r"|^\W*(?:in )?(?:where|when|(?:what|which) \w+)\b[^?.]*\btaken"
    r"|(?:what|which) colou?rs?|whose|^\W*when|intention\w*|intended|deliberate\w*|on purpose"
    r"|camera\w*|lens|aperture|shutter|print\w*"
    r"|taken (?:with|by|using|at|on)|edited|photoshopped|filter\w*|software|app|fix(?:ed)?|remov\w+|repair\w*"
    r"|restor\w+|how (?:can|do|should|could|would) (?:i|we|one)|how to|avoid\w*|denois\w*|deblur\w*|because of"
    r"|caused by|due to|price|cost|buy|sell|worth)\b",
    re.I,
)
_PART = (
    r"(?:half|side|parts?|bit|corner|quarter|quadrant|areas?|regions?|third|section|portion|spot|patch|place|position"
    r"|zone|end)"
)
_END = r"(?:left|right|top|bottom|upper|lower|cent(?:er|re)|middle|edges|borders|corners)"
_WHERE = re.compile(
    rf"\bwhere(?:abouts)?\b(?! \d)|\b(?:locate|point (?:out|to|at|me to)|(?:location|position) of)\b"
    rf"|\b(?:which|what)\s+(?:\w+\s+){{0,4}}?{_PART}\b|\b(?:one|a|some) {_PART}\b.*\bwhich\b"
    rf"|\b(?:name|identify|find|show|mark|indicate|give|tell)(?: me)? the (?:\w+ ){{0,3}}{_PART}\b"
    rf"|\b{_END}(?: half| side| part)?(?:,? or |/)(?:in |on |at )?(?:the )?{_END}\b",
    re.I,
)
# That something is not everywhere does not deny it: "does not cover the entire frame".
_NOT_ALL = re.compile(
    r"\b(?:(?:does|do|is|are|has|have|did|was) )?not\b[^.?!,;]*\b(?:entire|whole|all|every\w*)\b[^.?!,;]*", re.I
)
_PICTURE = re.compile(r"\b(?:image|photo\w*|pic|picture|shot|frame|copy|version|scan|screenshot)\b", re.I)
_DEGREE = re.compile(
    r"\bhow\b|\b(?:level|amount|quantity|density|degree|extent|severity|strength|intensity)\b"
    r"|\b(?:slight|mild|weak|light|low|moderate|medium)\w*\b[^?]*\bor\b[^?]*\b(?:severe|strong|heavy|extreme|moderate)",
    re.I,
)
_LISTS = re.compile(
    r"\b(?:what(?:'s|s)?|which|why|explain|describe|list|name|identify|assess|evaluate|anything)\b", re.I
)
_WHICH_FAULT = re.compile(
    r"^\W*(?:what(?:'s| is| are)?|which|name|identify|list)"
    r"(?: (?:the|kind|type|of|its|single|main|most|worst|strongest|biggest|serious|severe|dominant|visible))*"
    r" (?:distortion|degradation|defect|fault|flaw|problem|artifact)s?\b",
    re.I,
)
_IS_IT = re.compile(
    r"(?:^|[,.;:!]\s*)(?:is|are|was|were|does|do|did|has|have|can|could|would|will|ain't|any|true or false)(?:n't)?\b"
    r"|^(?:there(?:'s| is| are)?|it(?:'s| is)?|this(?: is)?|the|got|see|too|no|not)\b",
    re.I,
)
_VALUE = re.compile(
    r"\b(?:whats?|how (?:high|low|much|large|big)|comput\w+|calculat\w+|run|scores?|values?|measure\w*|give|report|tell"
    r"|need|want|know|show|print|output|state|decibels?|db|rate|evaluate|get|say)\b",
    re.I,
)


def read_question(
    query: str, options: Mapping[str, str], *, tools: Collection[str] = (), regions: Sequence[str] = ()
) -> Question:
    """The question that a query asks.

    ``options`` are the answers offered, by letter. ``tools`` are the metrics that were measured by name, and
    ``regions`` the parts of the image that the plan names; without any they are read from the words.
    """
    plain = prepared(query, options)
    offered = {letter: _WITHOUT.sub("free of", corrected(text)) for letter, text in definite(options).items()}
    placed = name_places(offered)
    text = asking_part(_NOT_ALL.sub(" ", plain) if placed else plain)
    places, bare, claim = claim_of(text, regions)
    yes_no = is_yes_no(offered)
    asked = _asked(text, query, claim, {} if yes_no else offered, tools)
    confidence, doubt = _confidence(text, claim, asked)
    if placed and asked == "where" and claim.terms and not places and not not_measurable(text):
        confidence, doubt = 1.0, ""
    return Question(
        asked=asked,
        text=text,
        bare=bare,
        claim=claim,
        subject="reference" if _is_about_reference(text, claim) else "image",
        regions=places,
        options=offered,
        scale=stated_scale(plain),
        confidence=confidence,
        doubt=doubt,
    )


def claim_of(text: str, regions: Sequence[str] = ()) -> tuple[tuple[str, ...], str, Clause]:
    """The parts of the image that a text names, or those given, the text without their names, and what it claims."""
    named = regions or read_scope(text, {}).regions
    places, bare = tuple(unique(region for region in named if region)), text
    for region in sorted(places, key=len, reverse=True):
        bare = re.sub(rf"(?<!\w){re.escape(region)}(?:'s)?(?!\w)", " ", bare, flags=re.I)
    return places, bare, parse_clause(bare, word_lists.OPEN_QUESTION_FILLERS)


def prepared(query: str, options: Mapping[str, str]) -> str:
    """The question without its options, instructions and idioms, with its spelling corrected."""
    question = without_instructions(query)
    if options and lists_options(query, options):
        listing, question = question, question_part(query)
        if question == listing:  # "Choose from: A) ... B) ..." asks no question
            return ""
    question = corrected(_BLANKS.sub(" ", question.replace("’", "'")))
    return without_idioms(_WITHOUT.sub("free of", _OR_NOT.sub("", question))).strip()


def asking_part(text: str) -> str:
    """The part of a text that asks: its last asking sentence that names something, without what introduces that.

    >>> asking_part("I took this on a trip to Rome. Hey, could you tell me whether it is noisy?")
    'it is noisy?'
    """
    sentences = [sentence for sentence in _SENTENCE.split(text) if sentence.strip(" .?!")]
    asking = [sentence for sentence in sentences if _ASKS.search(sentence)]
    naming = [sentence for sentence in asking if terms_in(sentence)]
    chosen = (naming or [each for each in sentences if terms_in(each)] or asking or sentences or [""])[-1]
    if len({term.meaning.scale for sentence in naming for term in terms_in(sentence)}) > 1 and len(naming) > 1:
        return text
    last = asking[-1] if asking else chosen
    if last is not chosen and _WHERE.search(last) and not parse_clause(last).unknown_words:
        return f"{chosen} {last}"  # "A part is damaged. Where?"
    shorter = [_WHETHER.sub("", chosen), *(chosen[mark.end() :] for mark in _PAUSE.finditer(chosen))]
    for part in shorter:
        dropped = chosen[: len(chosen) - len(part)]
        asks = part is shorter[0] or _ASKS_AT_ONCE.match(part)
        if asks and len(terms_in(part)) == len(terms_in(chosen)) and not names_reference(dropped):
            chosen = part
    return chosen.strip() or chosen


def _asked(text: str, query: str, claim: Clause, options: Mapping[str, str], tools: Collection[str]) -> Asked:
    brief = len(query.split()) <= SHORT
    if names_tools(query, tools) and not options and (brief or _VALUE.search(query) or not claim.terms):
        return "metric"
    if not options and _lists_changes(text, claim):
        return "list"
    if options and name_places(options) and not names_reference_alone(text):
        return "where"  # before "lower" is taken for a comparison
    if is_comparison(text, options) and not (_WHERE.search(text) and not names_reference(text)):
        return "compare"
    if not options and (stated_scale(query) or rates_property(query)):
        return "rating"
    if _WHERE.search(text) or (options and name_places(options)):
        return "where"
    if options:
        return "choice"
    if _DEGREE.search(text):
        return "degree"
    if ONE.search(text) and claim.meanings and all(meaning.subject == "any" for meaning in claim.meanings):
        return "list"  # "the most serious defect"
    if _IS_IT.search(text) and not re.match(r"\W*(?:what|which|why)\b", text, re.I):
        return "presence"
    if _LISTS.search(text):
        return "list"
    return "presence" if claim.meanings else "list"


def _is_about_reference(text: str, claim: Clause) -> bool:
    of_both = _PICTURE.search(without_reference(text)) or is_comparison(text, {}) or _lists_changes(text, claim)
    return names_reference_alone(text) and not of_both


def not_measurable(text: str) -> re.Match[str] | None:
    """The first word for what no measurement tells, unless it is part of a distortion's name ("camera shake")."""
    terms = terms_in(text)
    found = _NOT_MEASURABLE.finditer(text)
    return next((each for each in found if not any(t.start < each.end() and each.start() < t.end for t in terms)), None)


def _lists_changes(text: str, claim: Clause) -> bool:
    """Whether it asks what was done to the reference: "What changed?"."""
    named = any(meaning.subject not in ("any", "quality") for meaning in claim.meanings)
    if named or not names_reference(text):
        return False
    return bool(_WHICH_FAULT.search(text)) and is_comparison(text, {})


def _confidence(text: str, claim: Clause, asked: Asked) -> tuple[float, str]:
    found = not_measurable(text)
    if found and not (asked == "rating" and found[0].lower() == "how many"):
        return 0.0, f"Measurements do not tell what the question asks with '{found[0]}'."
    unknown = claim.unknown_words
    if not unknown:
        return 1.0, ""
    words = ", ".join(f"'{word}'" for word in dict.fromkeys(unknown))
    return max(1.0 - UNKNOWN_WORD * len(unknown), 0.0), f"Measurements do not tell what is asked with {words}."
