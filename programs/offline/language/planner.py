"""Plan by rules over the words of the question (those of the paper, arXiv 2509.26006, Appendix A.2)."""

import re
from collections.abc import Collection
from functools import lru_cache
from typing import Literal

from agenticiqa.programs.offline.language import word_lists
from agenticiqa.programs.offline.language.reader import asking_part, prepared
from agenticiqa.programs.offline.language.scope import read_scope
from agenticiqa.programs.offline.language.tool_names import requested_tools, tool_mentions
from agenticiqa.programs.questions.instructions import without_instructions
from agenticiqa.programs.questions.options import parse_options, question_part
from agenticiqa.programs.stages.plan_rules import expected_flags, widened
from agenticiqa.signatures.lexicon import distortions_in
from agenticiqa.signatures.types import PlannerOutput
from agenticiqa.signatures.vocabulary import Distortion

_AESTHETIC = re.compile(rf"\b(?:{word_lists.AESTHETIC})\b", re.I)
_TECHNICAL = re.compile(rf"(?<!aesthetic )(?<!artistic )\b(?:{word_lists.TECHNICAL})\b", re.I)
_JUDGMENT = re.compile(rf"\b(?:{word_lists.JUDGMENT})\b", re.I)
# Lighting, color and contrast can be part of an image's style as well as faults.
_AMBIGUOUS: frozenset[Distortion] = frozenset({"Brightness change", "Color distortions", "Contrast"})


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
    words = _without_options(query)
    tools = requested_tools(words, tool_mentions(words, known_tools), known_tools)
    for mention in (mention for mention in mentions if not distortions_in(mention.text)):
        query = query[: mention.start] + " " * len(mention.text) + query[mention.end :]
    options = parse_options(query)
    question = prepared(query, options)
    scope = read_scope(asking_part(question), options)
    query_type: Literal["IQA", "Other"] = "IQA" if tools else query_type_of(question, list(options.values()))
    flags = expected_flags(query_type, bool(scope.regions), bool(scope.distortions), bool(tools))
    if feedback:
        flags = widened(flags, bool(scope.distortions))
    return PlannerOutput(
        query_type=query_type,
        query_scope=scope.regions or "Global",
        distortion_source="Explicit" if scope.distortions else "Inferred",
        distortions=scope.distortions or None,
        reference_mode="Full-Reference" if reference_given else "No-Reference",
        required_tool=tools or None,
        plan=flags,
    )


def _without_options(query: str) -> str:
    """The words that may ask for a tool: a metric that an option names is an answer."""
    question = question_part(query)
    return "" if parse_options(query) and question == without_instructions(query) else question


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
