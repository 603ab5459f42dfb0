"""Planning without a model: rules over the question's words (the paper's, arXiv 2509.26006, Appendix A.2)."""

import re
from collections.abc import Collection
from typing import Literal

from agenticiqa.programs.offline.language import words
from agenticiqa.programs.offline.language.scope import read_scope, without_idioms
from agenticiqa.programs.offline.language.tool_names import requested_tools, tool_mentions
from agenticiqa.programs.stages.plan_rules import expected_flags, widened
from agenticiqa.programs.stages.question import parse_options, question_part
from agenticiqa.signatures.lexicon import distortions_in
from agenticiqa.signatures.types import PlannerOutput
from agenticiqa.signatures.vocabulary import Distortion

_AESTHETIC = re.compile(rf"\b(?:{words.AESTHETIC})\b", re.I)
_TECHNICAL = re.compile(rf"(?<!aesthetic )(?<!artistic )\b(?:{words.TECHNICAL})\b", re.I)
_JUDGEMENT = re.compile(rf"\b(?:{words.JUDGEMENT})\b", re.I)
# Lighting, colour and contrast belong to a picture's look as much as to its faults.
_AMBIGUOUS: frozenset[Distortion] = frozenset({"Brightness change", "Color distortions", "Contrast"})


def plan_question(
    query: str, *, reference_given: bool, known_tools: Collection[str], feedback: str = ""
) -> PlannerOutput:
    """The plan for a question, by rules.

    ``feedback`` is the reason why an earlier plan did not carry the answer; when there is one, the plan widens:
    analysis, selection and execution run, and detection unless the question names the distortions. Raises ToolError
    when the question asks for a tool that ``known_tools`` has not.
    """
    mentions = tool_mentions(query, known_tools)
    tools = requested_tools(query, mentions, known_tools)
    for mention in (mention for mention in mentions if not distortions_in(mention.text)):
        query = query[: mention.start] + " " * len(mention.text) + query[mention.end :]
    options = parse_options(query)
    question = without_idioms(question_part(query))
    scope = read_scope(question, options)
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


def query_type_of(question: str, options: Collection[str]) -> Literal["IQA", "Other"]:
    """``"IQA"`` when the question is about how well the picture is rendered, ``"Other"`` when about anything else.

    Words of emotion, style or beauty make it ``"Other"`` unless quality or a distortion is asked for by name.
    """
    if _AESTHETIC.search(question):
        faults = {category for _, category in distortions_in(question)} - _AMBIGUOUS
        return "IQA" if faults or _TECHNICAL.search(question) else "Other"
    everything = " ; ".join((question, *options))
    judged = _TECHNICAL.search(everything) or _JUDGEMENT.search(everything) or distortions_in(everything)
    return "IQA" if judged else "Other"
