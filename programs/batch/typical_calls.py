"""A typical call of each stage for a question and its plan, from which the cost of a run is estimated.

Inputs that the question decides are the actual ones: the question, its options, the plan, the tools. What only a run
finds out is assumed: two distortions in each region, where none was named (offline runs over 28 photos found 1.25 on
average), a sentence of 141 characters about each (in these runs the median was 137), and scores of the best tools for
each and for quality overall. The evidence of a rating then has 623 characters (in these runs 151 to 820).
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import dspy

from agenticiqa.programs.images.regions import account, boxes_for_prompt, place_in_frame
from agenticiqa.programs.questions.options import beside_options, parse_options, query_for_stages
from agenticiqa.programs.questions.query_type import detect_query_type
from agenticiqa.programs.stages.evidence import format_evidence
from agenticiqa.programs.stages.planner import nameable
from agenticiqa.programs.tools.tool import Tool, best_for
from agenticiqa.signatures.executor import AnalyzeDistortions, DetectDistortions, LocateRegions, SelectTools
from agenticiqa.signatures.planner import Plan
from agenticiqa.signatures.summarizer import AnswerQuestion, ScoreQuality
from agenticiqa.signatures.types import GLOBAL, OVERALL, Boxes, Distortions, ExecutorOutput, PlannerOutput, QueryType

FOUND: tuple[Any, ...] = ("Blurs", "Noise")
SIZE = (1024, 768)
BOX = (256, 192, 768, 576)
LOG_PROBS = {"1": -5.2, "2": -2.3, "3": -0.4, "4": -1.6, "5": -4.8}
EXPLANATION = (
    "The fine texture of the surfaces is smeared and their edges run soft over several pixels, which shows most in the "
    "middle and less at the rim."
)
REASON = (
    "The edges are soft and the fine texture is lost over most of the picture, which agrees with the tool scores of "
    "2.6 to 3.1; some noise is left in the dark parts, and hardly any other distortion shows."
)


@dataclass(frozen=True)
class ToolTexts:
    """The tools, and how prompts list them.

    ``names`` and ``lines`` are those of all tools. ``applicable`` and ``applicable_lines`` have, by whether a reference
    is given, the tools that compare with one, or those that need none.
    """

    names: tuple[str, ...]
    lines: str
    applicable: Mapping[bool, list[Tool]]
    applicable_lines: Mapping[bool, str]

    @classmethod
    def of(cls, tools: Mapping[str, Tool]) -> "ToolTexts":
        """The texts for a toolbox."""
        kinds = {True: "FR", False: "NR"}
        applicable = {given: [tool for tool in tools.values() if tool.kind == kinds[given]] for given in kinds}
        lines = {given: _lines(candidates) for given, candidates in applicable.items()}
        return cls(tuple(tools), nameable(tools), applicable, lines)


@dataclass(frozen=True)
class TypicalCall:
    """One call to a model: its ``signature``, the values of its text fields, and the JSON of a typical answer."""

    signature: type[dspy.Signature]
    inputs: Mapping[str, str]
    answer: str


def typical_calls(
    plan: PlannerOutput,
    query: str,
    tools: ToolTexts,
    *,
    reference: bool,
    options: Mapping[str, str] | None = None,
    planner: type[dspy.Signature] = Plan,
) -> dict[str, TypicalCall]:
    """A call for each stage that the plan runs, as if all of them asked a model; by stage, in the order of a run.

    ``options`` are those given beside the query. ``planner`` is the signature of the Planner, with or without images. A
    replan is not among them: it is asked only in case of doubt.
    """
    asked, offered, flags = query_for_stages(query, options), options or parse_options(query), plan.plan
    named = [region for region in plan.regions if region != GLOBAL] if flags.any() else []
    placed = {region: place_in_frame(region, SIZE) for region in named}
    unplaced = [region for region, box in placed.items() if box is None]
    boxes: Boxes = {region: box or BOX for region, box in placed.items()}
    wanted: Distortions = (
        {region: [*FOUND] for region in plan.regions} if flags.distortion_detection else plan.named_distortions
    )
    pairs = [(region, name) for region, names in wanted.items() for name in names]
    candidates = tools.applicable[reference]
    distortion_set = _json({region: names for region, names in wanted.items() if names})
    where = boxes_for_prompt(boxes, SIZE)
    calls = {
        "planner": TypicalCall(
            planner,
            {
                "available_tools": tools.lines,
                "reference_given": str(reference),
                "query": asked,
                "feedback": "none",
            },
            _json({"plan": _as_answer(plan)}),
        )
    }
    if unplaced:
        corners = [{"region": region, "box": [252, 131, 748, 806]} for region in unplaced]
        calls["localization"] = TypicalCall(
            LocateRegions, {"regions": _json(unplaced)}, _json({"location": {"regions": corners}})
        )
    if flags.distortion_detection:
        found = [{"region": region, "distortions": names} for region, names in wanted.items()]
        calls["distortion_detection"] = TypicalCall(
            DetectDistortions,
            {"query": asked, "query_scope": _json(plan.regions), "boxes": where},
            _json({"detection": {"distortion_set": found}}),
        )
    if flags.distortion_analysis and pairs:
        rows = [{"region": r, "type": name, **_severity()} for r, name in pairs]
        calls["distortion_analysis"] = TypicalCall(
            AnalyzeDistortions,
            {"query": asked, "distortion_set": distortion_set, "boxes": where},
            _json({"analysis": {"distortion_analysis": rows}}),
        )
    if flags.tool_selection and pairs and not (plan.tools and flags.tool_execution):
        chosen = [{"region": r, "distortion": name, "tool": _tool(name, candidates)} for r, name in pairs]
        calls["tool_selection"] = TypicalCall(
            SelectTools,
            {"available_tools": tools.applicable_lines[reference], "distortion_set": distortion_set},
            _json({"selection": {"selected_tools": chosen}}),
        )
    evidence = _evidence(plan, wanted, boxes, candidates)
    if not offered and detect_query_type(query, plan.query_type) is QueryType.SCORING:
        assessment = {"quality_level": "Fair", "quality_probs": LOG_PROBS, "quality_reasoning": REASON}
        calls["scoring"] = TypicalCall(
            ScoreQuality, {"query": query, "evidence": evidence}, _json({"assessment": assessment})
        )
    else:
        listed = "\n".join(f"{letter}. {text}" for letter, text in offered.items())
        answer = {"final_answer": "A" if offered else EXPLANATION, "quality_reasoning": REASON}
        calls["answering"] = TypicalCall(
            AnswerQuestion,
            {"query": beside_options(query, options), "options": listed or "none", "evidence": evidence},
            _json({"answer": answer}),
        )
    return calls


def _as_answer(plan: PlannerOutput) -> dict[str, Any]:
    """A plan as the Planner's model writes it."""
    return {
        **plan.model_dump(mode="json"),
        "query_scope": plan.regions,
        "distortions": [{"region": r, "distortions": names} for r, names in (plan.distortions or {}).items()],
        "required_tool": plan.tools,
    }


def _evidence(plan: PlannerOutput, wanted: Distortions, boxes: Boxes, candidates: list[Tool]) -> str:
    """The evidence as the Summarizer is shown it."""
    analysis = {region: [{"type": name, **_severity()} for name in names] for region, names in wanted.items()}
    scores: dict[str, dict[str, tuple[str, float]]] = {}
    for region, names in wanted.items() if plan.plan.tool_execution else ():
        if plan.tools:
            subjects: list[str] = [*names] or [OVERALL]
            scores[region] = {
                subject if tool == plan.tools[0] else f"{subject} ({tool})": (tool, 2.6182)
                for tool in plan.tools
                for subject in subjects
            }
        else:
            scores[region] = {name: (_tool(name, candidates), 2.6182) for name in (*names, OVERALL)}
    return format_evidence(
        ExecutorOutput.model_validate(
            {
                "distortion_analysis": analysis if plan.plan.distortion_analysis else None,
                "quality_scores": scores or None,
                "notes": account(boxes, SIZE),
            }
        )
    )


def _severity() -> dict[str, str]:
    return {"severity": "moderate", "explanation": EXPLANATION}


def _tool(distortion: str, candidates: list[Tool]) -> str:
    tool = best_for(distortion, candidates)
    return tool.name if tool else "none"


def _lines(candidates: Iterable[Tool]) -> str:
    return "\n".join(tool.line() for tool in candidates)


def _json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False)
