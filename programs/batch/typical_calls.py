"""What each stage is typically asked and answers, for a question and its plan: the measure of what a run will cost.

The inputs are the real ones as far as the question decides them: the question and its options, the plan, the tools.
What only a run can tell is as in a run in which there is something to tell: where no distortion was named two in each
region (offline runs over 28 photos found 1.25), about each a sentence of 141 characters (theirs: 137, the median), and
scores of the tools of choice for each and for quality overall. The evidence of a rating has 623 characters so (theirs:
151 to 820).
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import dspy

from agenticiqa.programs.images.regions import account, boxes_for_prompt, place_in_frame
from agenticiqa.programs.stages.evidence import format_evidence
from agenticiqa.programs.stages.planner import nameable
from agenticiqa.programs.stages.question import detect_query_type, parse_options
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
class Shelf:
    """The tools as prompts show them: those that compare with a reference, those that do without, and all of them."""

    names: tuple[str, ...]
    lines: str
    fitting: Mapping[bool, list[Tool]]  # by whether a reference is given
    fitting_lines: Mapping[bool, str]

    @classmethod
    def of(cls, tools: Mapping[str, Tool]) -> "Shelf":
        """The shelf of a toolbox."""
        fitting = {given: [c for c in tools.values() if c.kind == ("FR" if given else "NR")] for given in (True, False)}
        lines = {given: _lines(cards) for given, cards in fitting.items()}
        return cls(tuple(tools), nameable(tools), fitting, lines)


@dataclass(frozen=True)
class Asking:
    """One question to a model: its ``signature``, what its text fields hold, and the JSON of a typical answer."""

    signature: type[dspy.Signature]
    inputs: Mapping[str, str]
    answer: str


def typical_askings(
    plan: PlannerOutput,
    query: str,
    shelf: Shelf,
    *,
    reference: bool,
    planner: type[dspy.Signature] = Plan,
) -> dict[str, Asking]:
    """What each stage that the plan runs asks a model, were all stages asking one; by stage, in the order of a run.

    ``planner`` is the signature of the Planner, with or without images. Without doubts, there is no question of replan.
    """
    flags = plan.plan
    named = [region for region in plan.regions if region != GLOBAL] if flags.any() else []
    placed = {region: place_in_frame(region, SIZE) for region in named}
    unplaced = [region for region, box in placed.items() if box is None]
    boxes: Boxes = {region: box or BOX for region, box in placed.items()}
    wanted: Distortions = (
        {region: [*FOUND] for region in plan.regions} if flags.distortion_detection else plan.named_distortions
    )
    pairs = [(region, name) for region, names in wanted.items() for name in names]
    cards = shelf.fitting[reference]
    asked = _json({region: names for region, names in wanted.items() if names})
    where = boxes_for_prompt(boxes, SIZE)
    asking = {
        "planner": Asking(
            planner,
            {
                "available_tools": shelf.lines,
                "reference_given": str(reference),
                "query": query,
                "feedback": "none",
            },
            _json({"plan": _as_answer(plan)}),
        )
    }
    if unplaced:
        corners = [{"region": region, "box": [252, 131, 748, 806]} for region in unplaced]
        asking["localization"] = Asking(
            LocateRegions, {"regions": _json(unplaced)}, _json({"location": {"regions": corners}})
        )
    if flags.distortion_detection:
        found = [{"region": region, "distortions": names} for region, names in wanted.items()]
        asking["distortion_detection"] = Asking(
            DetectDistortions,
            {"query": query, "query_scope": _json(plan.regions), "boxes": where},
            _json({"detection": {"distortion_set": found}}),
        )
    if flags.distortion_analysis and pairs:
        rows = [{"region": r, "type": name, **_seen()} for r, name in pairs]
        asking["distortion_analysis"] = Asking(
            AnalyzeDistortions,
            {"query": query, "distortion_set": asked, "boxes": where},
            _json({"analysis": {"distortion_analysis": rows}}),
        )
    if flags.tool_selection and pairs and not (plan.tools and flags.tool_execution):
        chosen = [{"region": r, "distortion": name, "tool": _tool(name, cards)} for r, name in pairs]
        asking["tool_selection"] = Asking(
            SelectTools,
            {"available_tools": shelf.fitting_lines[reference], "distortion_set": asked},
            _json({"selection": {"selected_tools": chosen}}),
        )
    evidence = _evidence(plan, wanted, boxes, cards)
    if detect_query_type(query, plan.query_type) is QueryType.SCORING:
        judged = {"quality_level": "Fair", "quality_probs": LOG_PROBS, "quality_reasoning": REASON}
        asking["scoring"] = Asking(ScoreQuality, {"query": query, "evidence": evidence}, _json({"assessment": judged}))
    else:
        options = parse_options(query)
        listed = "\n".join(f"{letter}. {text}" for letter, text in options.items())
        said = {"final_answer": "A" if options else EXPLANATION, "quality_reasoning": REASON}
        asking["answering"] = Asking(
            AnswerQuestion,
            {"query": query, "options": listed or "none", "evidence": evidence},
            _json({"answer": said}),
        )
    return asking


def _as_answer(plan: PlannerOutput) -> dict[str, Any]:
    """A plan as the Planner's model writes it."""
    return {
        **plan.model_dump(mode="json"),
        "query_scope": plan.regions,
        "distortions": [{"region": r, "distortions": names} for r, names in (plan.distortions or {}).items()],
        "required_tool": plan.tools,
    }


def _evidence(plan: PlannerOutput, wanted: Distortions, boxes: Boxes, cards: list[Tool]) -> str:
    """The evidence as the Summarizer is shown it."""
    analysis = {region: [{"type": name, **_seen()} for name in names] for region, names in wanted.items()}
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
            scores[region] = {name: (_tool(name, cards), 2.6182) for name in (*names, OVERALL)}
    return format_evidence(
        ExecutorOutput.model_validate(
            {
                "distortion_analysis": analysis if plan.plan.distortion_analysis else None,
                "quality_scores": scores or None,
                "notes": account(boxes, SIZE),
            }
        )
    )


def _seen() -> dict[str, str]:
    return {"severity": "moderate", "explanation": EXPLANATION}


def _tool(distortion: str, cards: list[Tool]) -> str:
    card = best_for(distortion, cards)
    return card.name if card else "none"


def _lines(cards: Iterable[Tool]) -> str:
    return "\n".join(card.line() for card in cards)


def _json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False)
