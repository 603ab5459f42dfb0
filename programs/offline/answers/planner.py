"""Plan by rules over the words of the question (those of the paper, arXiv 2509.26006, Appendix A.2)."""

import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Literal

from agenticiqa.programs.offline.answers.query_type import query_type_of
from agenticiqa.programs.offline.answers.question_reader import corrected
from agenticiqa.programs.offline.answers.regions import regions_named
from agenticiqa.programs.questions.instructions import readable, without_instructions
from agenticiqa.programs.questions.options import lists_options, parse_options, question_part
from agenticiqa.programs.questions.query_type import detect_query_type
from agenticiqa.programs.stages.plan_rules import plan_by_rules
from agenticiqa.programs.tools.tool_names import requested_tools, tool_mentions, without_options
from agenticiqa.signatures.lexicon import distortions_in, terms_in
from agenticiqa.signatures.types import GLOBAL, Distortions, PlannerOutput, QueryType

# Phrases in which a distortion word does not name one, but describes the answer, the subject or an attribute.
_IDIOMS = re.compile(
    r"\bend(?:s|ed)? up\b|\bin (?:more |great |full |further )?details?\b"
    r"|\bdetailed(?= (?:description|explanation|analysis|assessment|answer|report|feedback|review|evaluation))"
    r"|\bwhat colou?rs?\b|\b(?:main|primary|central) focus\b|\bfocus of attention\b"
    r"|(?:^|(?<=[.;,!?])|(?<=please)|(?<=and))\s*\bfocus on\b"
    r"|\b(?:in|by) contrast\b|\bclear (?=evidence|signs?\b|indication|that|whether|why)",
    re.I,
)
# What a question leaves out: "apart from the noise".
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
# What introduces the matter of a request: "let me know about ...", "I was told that ...".
_WHETHER = re.compile(
    r"\A.*\b(?:if|whether|about|regarding|concerning|as to"
    r"|(?:told|tell|thinks?|believe|says?|said|claims?|true|sure|certain)(?: \w+)? that)\s+(?=\S)",
    re.I | re.S,
)

# What comes before a pause and names no distortion is no part of the question.
_PAUSE = re.compile(
    r"[,;:]\s+(?=(?:is|are|was|does|do|did|has|have|can|would|how|what|which|where|why|any|it|this)\b)", re.I
)


def plan_question(
    query: str, *, reference_given: bool, known_tools: Collection[str], feedback: str = ""
) -> PlannerOutput:
    """The plan for a question, by rules.

    ``feedback`` is the reason why the evidence of an earlier plan was not sufficient. With feedback the plan is wider:
    analysis, selection and execution run, and detection unless the question names the distortions. Raises ToolError if
    the question asks for a tool that is not in ``known_tools``. The same question is read once, as of a whole folder.
    """
    return _planned(query, reference_given, tuple(known_tools), feedback).model_copy(deep=True)


@lru_cache(maxsize=256)
def _planned(query: str, reference_given: bool, known_tools: tuple[str, ...], feedback: str) -> PlannerOutput:
    mentions = tool_mentions(query, known_tools)
    words = without_options(query)
    tools = requested_tools(words, tool_mentions(words, known_tools), known_tools)
    for mention in (mention for mention in mentions if not distortions_in(mention.text)):
        query = query[: mention.start] + " " * len(mention.text) + query[mention.end :]
    options = parse_options(query)
    question = prepared(query, options)
    asked = asking_part(_EXCLUDED.sub(" ", question))
    regions = regions_named(asked, options)
    distortions = distortions_by_region(asked, options, regions or [GLOBAL])
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
    """The question without its options, instructions and idioms, with its spelling corrected."""
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
    named = dict.fromkeys(category for text in texts for _, category in distortions_in(text))
    return {region: list(named) for region in regions} if named else {}


def asking_part(text: str) -> str:
    """The part of a text that asks: its last asking sentence that names something, without what introduces that.

    >>> asking_part("I took this on a trip to Rome. Hey, could you tell me whether it is noisy?")
    'it is noisy?'
    """
    sentences = [sentence for sentence in _SENTENCE.split(text) if sentence.strip(" .?!")]
    asking = [sentence for sentence in sentences if _ASKS.search(sentence)]
    naming = [sentence for sentence in asking if terms_in(sentence)]
    if len({term.meaning.scale for sentence in naming for term in terms_in(sentence)}) > 1 and len(naming) > 1:
        return text
    chosen = (naming or [each for each in sentences if terms_in(each)] or asking or sentences or [""])[-1]
    for shorter in (_WHETHER.sub("", chosen), *(chosen[pause.end() :] for pause in _PAUSE.finditer(chosen))):
        if len(terms_in(shorter)) == len(terms_in(chosen)):
            chosen = shorter
    return chosen.strip()
