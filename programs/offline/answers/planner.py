"""Plan by rules over the words of the question (paper, arXiv 2509.26006, Appendix A.2).

The rules determine whether the question is about quality (``query_type_of``), and which regions, distortions and tools
it names. Places in the frame, the subject and the background are recognized by fixed words. For any other object, the
network of ``question_reader`` decides whether the question is about one; the words after "the" or "my" are its name.
The offline program cannot locate such an object, but the answer says so.
"""

import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Literal

from agenticiqa.programs.images.regions import OF_THE_FRAME, PICTURES, PLACE_NOUNS
from agenticiqa.programs.offline.answers.asked import extent_of
from agenticiqa.programs.offline.answers.question_reader import corrected
from agenticiqa.programs.questions.instructions import readable, without_instructions
from agenticiqa.programs.questions.options import lists_options, parse_options, question_part
from agenticiqa.programs.questions.query_type import detect_query_type
from agenticiqa.programs.stages.plan_rules import plan_by_rules
from agenticiqa.programs.tools.tool_names import requested_tools, tool_mentions, without_options, without_tools
from agenticiqa.signatures.categories import BRIGHTNESS, COLOR, CONTRAST
from agenticiqa.signatures.lexicon import distortions_in, terms_in
from agenticiqa.signatures.types import GLOBAL, Distortions, PlannerOutput, QueryType
from agenticiqa.signatures.vocabulary import Distortion

# Phrases in which a word for a distortion describes the answer, the subject or an attribute instead.
_IDIOMS = re.compile(
    r"\bend(?:s|ed)? up\b|\bin (?:more |great |full |further )?details?\b"
    r"|\bdetailed(?= (?:description|explanation|analysis|assessment|answer|report|feedback|review|evaluation))"
    r"|\bwhat colou?rs?\b|\b(?:main|primary|central) focus\b|\bfocus of attention\b"
    r"|(?:^|(?<=[.;,!?])|(?<=please)|(?<=and))\s*\bfocus on\b"
    r"|\b(?:in|by) contrast\b|\bclear (?=evidence|signs?\b|indication|that|whether|why)",
    re.I,
)
# Phrases that exclude something from a question: "apart from the noise".
_EXCLUDED = re.compile(
    r"\b(?:ignor(?:e|es|ing)|disregard(?:ing)?|apart from|aside from|other than|besides|except(?: for)?|regardless of"
    r"|not counting|leaving aside|never mind|(?:enough|suitable|usable|good|fit|ready) for(?= (?:the|an?|my) ))\b"
    r"(?:(?! (?:is|are|was|were|do|does|did|has|have|how|what|which)\b)[^.,;:?!])*",
    re.I,
)
_BLANKS = re.compile(r"[^\S\n]{2,}")
_SENTENCE = re.compile(r"(?<=[.?!;])\s+|\n+")
_ASKS = re.compile(
    r"\?|^\W*(?:is|are|was|were|does|do|did|has|have|can|could|how|what|which|where|why|any|rate|score|grade|describe|list"
    r"|name|tell|say|check|find|identify|explain|give|assess|evaluate|judge|compare|true or false)\b",
    re.I,
)
# Introductions of a request: "let me know about ...", "I believe that ...".
_WHETHER = re.compile(
    r"\A.*\b(?:if|whether|about|regarding|concerning|as to"
    r"|(?:told|tell|thinks?|believe|says?|said|claims?|true|sure|certain)(?: \w+)? that)\s+(?=\S)",
    re.I | re.S,
)

# Text before a pause that names no distortion is not part of the question.
_PAUSE = re.compile(
    r"[,;:]\s+(?=(?:is|are|was|does|do|did|has|have|can|would|how|what|which|where|why|any|it|this)\b)", re.I
)


def plan_question(
    query: str, *, reference_given: bool, known_tools: Collection[str], feedback: str = ""
) -> PlannerOutput:
    """Plan a question by rules.

    ``feedback`` is the reason why the evidence of an earlier plan was not sufficient. With feedback the plan is wider:
    analysis, selection and execution run, and detection unless the question names the distortions. Raises ToolError if
    the question asks for a tool that is not in ``known_tools``. Plans are cached, because a run often has one question.
    """
    return _planned(query, reference_given, tuple(known_tools), feedback).model_copy(deep=True)


@lru_cache(maxsize=256)
def _planned(query: str, reference_given: bool, known_tools: tuple[str, ...], feedback: str) -> PlannerOutput:
    mentions = tool_mentions(query, known_tools)
    words = without_options(query)
    tools = requested_tools(words, tool_mentions(words, known_tools), known_tools)
    query = without_tools(query, mentions)
    options = parse_options(query)
    question = prepared(query, options)
    sentence = asking_part(_EXCLUDED.sub(" ", question))
    regions = regions_named(sentence, options)
    distortions = distortions_by_region(sentence, options, regions or [GLOBAL])
    query_type: Literal["IQA", "Other"] = "IQA" if tools else query_type_of(question, list(options.values()))
    return plan_by_rules(
        query_type,
        regions or "Global",
        distortions,
        tools,
        is_explicit=bool(distortions),
        reference_given=reference_given,
        replanning=bool(feedback),
        rates=detect_query_type(query) is QueryType.SCORING,
    )


def prepared(query: str, options: Mapping[str, str]) -> str:
    """Return the question with corrected spelling, without options, instructions and idioms."""
    question = without_instructions(query)
    if options and lists_options(query, options):
        listing, question = question, question_part(query)
        if question == listing:  # "Choose from: A) ... B) ..." asks no question
            return ""
    return without_idioms(corrected(_BLANKS.sub(" ", readable(question).replace("\u2019", "'")))).strip()


def without_idioms(text: str) -> str:
    """Blank the phrases in which a distortion word means something else ("in detail")."""
    return _IDIOMS.sub(lambda match: " " * len(match[0]), text)


def distortions_by_region(question: str, options: Mapping[str, str], regions: Collection[str]) -> Distortions:
    """Return the distortions that a question and its options name, for each of the regions; ``{}`` for none."""
    texts = (question, *map(without_idioms, options.values()))
    categories = dict.fromkeys(category for text in texts for _, category in distortions_in(text))
    return {region: list(categories) for region in regions} if categories else {}


def asking_part(text: str) -> str:
    """Return the last sentence that asks about a distortion or the quality, without its introduction.

    >>> asking_part("I took this on a trip to Rome. Hey, could you tell me whether it is noisy?")
    'it is noisy?'
    """
    sentences = [sentence for sentence in _SENTENCE.split(text) if sentence.strip(" .?!")]
    asking = [sentence for sentence in sentences if _ASKS.search(sentence)]
    naming = [sentence for sentence in asking if terms_in(sentence)]
    if len({term.meaning.scale for sentence in naming for term in terms_in(sentence)}) > 1 and len(naming) > 1:
        return text
    chosen = (naming or [sentence for sentence in sentences if terms_in(sentence)] or asking or sentences or [""])[-1]
    for shorter in (_WHETHER.sub("", chosen), *(chosen[pause.end() :] for pause in _PAUSE.finditer(chosen))):
        if len(terms_in(shorter)) == len(terms_in(chosen)):
            chosen = shorter
    return chosen.strip()


# A question with one of these words is about more than technical quality ...
_AESTHETIC = re.compile(
    r"\b(?:emotion\w*|mood\w*|feel\w*|atmospher\w*|beaut\w*|pretty|aesthetic\w*|attractive\w*|appeal\w*|artistic\w*"
    r"|style\w*|stylish|genre|compos\w*|symmetr\w*|rule of thirds|perspective|framing|emphasi\w*|story|stories"
    r"|theme|message|meaning|creativ\w*|interesting|happy|sad|sadness|joy\w*|evoke\w*|convey\w*|express\w*"
    r"|elegan\w*|cute|romantic|nostalgi\w*|calm\w*|dramatic|lively|fresh\w*|harmon\w*|pleasing|cozy|cosy|funny"
    r"|vibe\w*|how many|who|doing|what (?:kind|type|breed|species|brand|make) of)\b",
    re.I,
)
# ... unless it also has one of these, which name technical quality explicitly.
_TECHNICAL = re.compile(
    r"(?<!aesthetic )(?<!artistic )"
    r"\b(?:quality|distort\w*|degrad\w*|defect\w*|flaw\w*|resolution|low-res|artifact\w*|artefact\w*|fidelity"
    r"|ghosting|vignett\w*|flare|watermark\w*|legib\w*|illegible|readab\w*|unreadable|be read"
    r"|(?:to|can|cannot) read|make out|discern\w*|recogni[sz]able|visibility|preserv\w*|over-?processed|hdr|iqa)\b",
    re.I,
)
# Words of assessment: a question with one of them is about quality if it has no aesthetic word.
_ASSESSMENT = re.compile(
    r"\b(?:rat(?:e|es|ed|ing|ings)|scor(?:e|es|ed|ing)|assess\w*|evaluat\w*|grade[ds]?|judg\w*|good|bad|poor|better"
    r"|best|worse|worst|wrong|issues?|problems?|improve\w*|usable|acceptable|natural|unnatural|realistic|great"
    r"|terrible|awful|excellent|perceptual|thoughts|opinion|how'?s (?:it|this)|how is (?:it|this)\b"
    r"|how does (?:it|this) look|looks? ok\w*|hold up|print\w*|ok|okay|suitable|affected)\b",
    re.I,
)
# Lighting, color and contrast can be a matter of style as well as flaws.
_AMBIGUOUS: frozenset[Distortion] = frozenset({BRIGHTNESS, COLOR, CONTRAST})


def query_type_of(question: str, options: Collection[str]) -> Literal["IQA", "Other"]:
    """Return ``"IQA"`` for a question about technical image quality, ``"Other"`` for one about anything else.

    Words of emotion, style or beauty make it ``"Other"``, unless it also names quality or a distortion.
    """
    if _AESTHETIC.search(question):
        faults = {category for _, category in distortions_in(question)} - _AMBIGUOUS
        return "IQA" if faults or _TECHNICAL.search(question) else "Other"
    everything = " ; ".join((question, *options))
    assessed = _TECHNICAL.search(everything) or _ASSESSMENT.search(everything) or distortions_in(everything)
    return "IQA" if assessed else "Other"


# Words that end a name: "the sky | in the", "the dog | doing".
_END = (
    r"(?:an?|the|teh|my|our|your|his|her|its|their|this|that|these|it|you|and|or|but|while|if|who|which|of|in|on|at|to"
    r"|from|for|with|without|than|as|by|near|behind|between|is|are|was|were|be|been|being|has|have|had|does|do|did|can"
    r"|could|would|not|no|so|too|very|more|less|most|least|any|all|looks?|appears?|seems?|shows?|suffers?|contains?|got"
    r"|lost|kept|good|bad|better|worse|free|full|enough|just|really|equally|like|doing|according)\b"
)
_WORDS = rf"(?!{_END})[^\W_][\w'-]{{0,40}}(?: (?!{_END}|\w{{3,40}}(?:ed|able|ible)\b)[^\W_][\w'-]{{0,40}})?"
# In these texts "|" stands for words of distortions, "#" for other words of quality, "," for places.
_NAME = re.compile(rf"\b(?:the|teh|my|our|your|his|her) ({_WORDS})\b(?! #)", re.I)
_BARE_NAME = re.compile(rf"\b({_WORDS})(?= \|)", re.I)
_SIDE = r"(?:upper|lower|top|bottom|left|right|cent(?:er|re|ral)|middle)(?:[ -]hand)?"
_PLACE = re.compile(
    rf"\b(?:(?:{_SIDE}[ -]){{1,3}}(?:{'|'.join(sorted(PLACE_NOUNS))})"
    r"|(?<=the )(?:(?:upper|lower|top|bottom)[ -])?(?:left|right(?! [|#])|top|bottom|middle|cent(?:er|re))"
    rf"(?=\s*(?:[^\w\s]|$)|\s+{_END})"
    r"|(?:main|primary|central|principal) (?:subject|object|figure)|subject|foreground|background|backdrop)\b",
    re.I,
)
# Names that are not objects in the image: the image itself, another image, or a property.
_NO_THING = re.compile(
    rf"(?:\w+ )?(?:{PICTURES}|reference|original|file|copy|version|one|camera|lens|metric|tool|score|level|half|part"
    r"|region|edge|contour|shadow|highlight|tone|colou?r|composition)s?(?: \w+)?",
    re.I,
)


def regions_named(question: str, options: Mapping[str, str]) -> list[str]:
    """Return the regions that a question without idioms and options names, in order; none for the whole image."""
    text = OF_THE_FRAME.sub(",", question)
    for term in terms_in(text):
        mark = "|" if term.meaning.is_about_distortions else "#"
        text = text[: term.start] + mark * (term.end - term.start) + text[term.end :]
    places = {place.start(): place[0].lower() for place in _PLACE.finditer(text)}
    rest = _PLACE.sub(lambda place: "," * len(place[0]), text)
    names = [*_NAME.finditer(rest)] or ([] if places else [*_BARE_NAME.finditer(rest)])
    things = {name.start(1): name[1] for name in names if not _NO_THING.fullmatch(name[1])}
    extent = extent_of(question, options) if places or things else ""  # otherwise the network is not loaded
    if extent == "whole":  # the question names no region after all
        return []
    regions = places | things if extent == "part" else places
    return list(dict.fromkeys(regions[start] for start in sorted(regions)))
