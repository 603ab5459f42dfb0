"""What a new plan may add to evidence that is not sufficient.

The reason for the plan decides: a region is analyzed that was left out; distortions of a region are looked at once
more; and for each of them a tool runs that did not run there before. A plan that can add nothing is not asked for.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agenticiqa.programs.stages.evidence import doubtful, missing
from agenticiqa.programs.tools.tool import RELIABLE, Tool, best_at
from agenticiqa.signatures.types import Distortions, ExecutorOutput, PlannerOutput, unique


@dataclass(frozen=True)
class Remedy:
    """What a new plan may add: distortions to look at by region, and tools, the best one for each of them."""

    distortions: Distortions = field(default_factory=dict)
    tools: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.distortions or self.tools)


def remedy_for(plan: PlannerOutput, evidence: ExecutorOutput, toolbox: Mapping[str, Tool]) -> Remedy:
    """Return what a new plan may add for the gaps in the evidence, or if there are none, for the doubts about it."""
    compared = any(call.tool in toolbox and toolbox[call.tool].kind == "FR" for call in evidence.tool_log)
    has_reference = compared or plan.reference_mode == "Full-Reference"
    tools = [tool for tool in toolbox.values() if tool.kind == ("FR" if has_reference else "NR") and tool.curve]
    distortions: Distortions = {}
    chosen: list[str] = []
    for point in missing(plan, evidence) or doubtful(evidence):
        new = [tool for name in point.distortions if (tool := _next_tool(point.region, name, tools, evidence))]
        if new or point.lacks_analysis:
            looked_at = [*distortions.get(point.region, []), *point.distortions]
            distortions[point.region] = unique(looked_at)
        chosen += [tool.name for tool in new]
    return Remedy(distortions, unique(chosen))


def _next_tool(region: str, distortion: str, tools: Iterable[Tool], evidence: ExecutorOutput) -> Tool | None:
    """Return the tool that follows a distortion best among those that did not run on the region; ``None`` for none."""
    ran = {call.tool for call in evidence.tool_log if call.region == region}
    return best_at(distortion, [tool for tool in tools if tool.name not in ran], RELIABLE)


def feedback_on(plan: PlannerOutput, reason: str, remedy: Remedy) -> str:
    """Return the ``feedback`` for the next plan as JSON: the last plan, why its evidence was insufficient, a remedy."""
    said: dict[str, Any] = {"previous_plan": plan.model_dump(), "why_not_sufficient": reason}
    if remedy:
        said["could_be_added"] = {"distortions": remedy.distortions, "tools": remedy.tools}
    return json.dumps(said, ensure_ascii=False)


def reason_in(feedback: str) -> str:
    """Return why the last evidence was not sufficient, or the whole feedback if it is in no form of this package."""
    try:
        return str(json.loads(feedback)["why_not_sufficient"])
    except (ValueError, KeyError, TypeError):
        return feedback


def remedy_in(feedback: str) -> Remedy:
    """Return the remedy that a feedback names; an empty one if it names none."""
    try:
        named = json.loads(feedback)["could_be_added"]
        return Remedy(named["distortions"], named["tools"])
    except (ValueError, KeyError, TypeError):
        return Remedy()
