"""Plan by rules over the words of the question (those of the paper, arXiv 2509.26006, Appendix A.2)."""

import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Literal

from agenticiqa.programs.offline.answers.asked import is_about_whole
from agenticiqa.programs.offline.answers.question_reader import corrected
from agenticiqa.programs.offline.plan import words
from agenticiqa.programs.offline.plan.regions import read_scope, without_idioms
from agenticiqa.programs.questions.instructions import readable, without_instructions
from agenticiqa.programs.questions.options import lists_options, parse_options, question_part
from agenticiqa.programs.questions.query_type import detect_query_type
from agenticiqa.programs.stages.plan_rules import plan_by_rules
from agenticiqa.programs.tools.tool_names import requested_tools, tool_mentions, without_options
from agenticiqa.signatures.lexicon import distortions_in, terms_in
from agenticiqa.signatures.types import PlannerOutput, QueryType
from agenticiqa.signatures.vocabulary import Distortion

_AESTHETIC = re.compile(rf"\b(?:{words.AESTHETIC})\b", re.I)
_TECHNICAL = re.compile(rf"(?<!aesthetic )(?<!artistic )\b(?:{words.TECHNICAL})\b", re.I)
_JUDGMENT = re.compile(rf"\b(?:{words.JUDGMENT})\b", re.I)
# Lighting, color and contrast can be part of an image's style as well as faults.
_AMBIGUOUS: frozenset[Distortion] = frozenset({"Brightness change", "Color distortions", "Contrast"})


_BLANKS = re.compile(r"[^\S\n]{2,}")  # the expressions for regions are slow on long ones
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
    scope = read_scope(asking_part(question), options)
    if scope.regions and is_about_whole(question, options):
        scope = scope.of_image  # the words that look like a region's name are none
    query_type: Literal["IQA", "Other"] = "IQA" if tools else query_type_of(question, list(options.values()))
    return plan_by_rules(
        query_type,
        scope.regions or "Global",
        scope.distortions,
        tools,
        is_explicit=bool(scope.distortions),
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


def query_type_of(question: str, options: Collection[str]) -> Literal["IQA", "Other"]:
    """``"IQA"`` if the question is about technical image quality, ``"Other"`` if it is about anything else.

    Words of emotion, style or beauty make it ``"Other"``, unless it also names quality or a distortion.
    """
    if _AESTHETIC.search(question):
        faults = {category for _, category in distortions_in(question)} - _AMBIGUOUS
        return "IQA" if faults or _TECHNICAL.search(question) else "Other"
    everything = " ; ".join((question, *options))
    judged = _TECHNICAL.search(everything) or _JUDGMENT.search(everything) or distortions_in(everything)
    return "IQA" if judged else "Other"
