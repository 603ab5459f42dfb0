"""A script with a plausible answer for every stage, and programs that use a loopback server."""

import json
import math
from collections.abc import Mapping
from typing import Any

from agenticiqa.configs import Config, ExecutorConfig, PlannerConfig, StageConfig
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.signatures.vocabulary import LEVELS
from support.chat_request import field_of, pairs
from support.fake_server import Answer, Server
from support.loopback import Body, Reply, spoken

RATE = "Rate the perceptual quality of this snapshot."  # unlike the default question, it is planned by the model
ALL = dict.fromkeys(("distortion_detection", "distortion_analysis", "tool_selection", "tool_execution"), True)
NONE = dict.fromkeys(ALL, False)
LOGS = {"1": -4.0, "2": -2.0, "3": -0.3, "4": -1.8, "5": -5.0}
ASSESSMENT = {"quality_level": "Fair", "quality_probs": LOGS, "quality_reasoning": "Soft edges everywhere."}
ANSWER = {"final_answer": "The edges are soft.", "quality_reasoning": "The analysis says so."}
# The same rating with its log-probabilities, for servers that report them if a request asks for them.
RATED = spoken(
    json.dumps({"assessment": ASSESSMENT}),
    {"Fair": {name: LOGS[str(level)] - 0.07 for name, level in LEVELS.items()}},  # probabilities that sum to 1
)
LEVEL_NAMES, LEVEL_LETTERS = tuple(sorted(LEVELS, key=lambda name: LEVELS[name])), ("E", "D", "C", "B", "A")


def rated_at(seen: float, *, by_letter: bool = False) -> Reply:
    """Return a rating with log-probabilities around a quality from 1 to 5, by the level's name or its letter."""
    names = LEVEL_LETTERS if by_letter else LEVEL_NAMES
    weights = [math.exp(-2 * (level - seen) ** 2) for level in range(1, 6)]
    logs = {name: math.log(weight / sum(weights)) for name, weight in zip(names, weights, strict=True)}
    best = max(logs, key=lambda name: logs[name])
    answer = {"final_answer" if by_letter else "quality_level": best, "quality_reasoning": "Rated."}
    return spoken(json.dumps({"assessment": answer}), {best: logs})


STAND = {"need_replan": False, "replan_reason": ""}
Script = Mapping[str, Answer | list[Any]]


def plan(scope: str = "Global", flags: Mapping[str, bool] = ALL, **changes: Any) -> dict[str, Any]:
    """Return a plan with these flags; ``changes`` are further fields."""
    return {
        "query_type": "IQA",
        "query_scope": [scope],
        "distortion_source": "Inferred",
        "distortions": [],
        "reference_mode": "No-Reference",
        "required_tool": [],
        "plan": dict(flags),
        **changes,
    }


def locate(request: Body) -> dict[str, Any]:
    """Return the same box for every requested region."""
    return {"regions": [{"region": r, "box": [250, 250, 750, 750]} for r in json.loads(field_of(request, "regions"))]}


def detect(request: Body) -> dict[str, Any]:
    """Return blur in every requested region."""
    scope = json.loads(field_of(request, "query_scope"))
    return {"distortion_set": [{"region": region, "distortions": ["Blurs"]} for region in scope]}


def analyse(severity: str) -> Any:
    """Return an analysis that gives every distortion the same severity."""

    def answer(request: Body) -> dict[str, Any]:
        return {
            "distortion_analysis": [
                {
                    "region": region,
                    "type": name,
                    "severity": severity,
                    "explanation": f"{name} in {region}.",
                    "uncertain": False,
                }
                for region, name in pairs(request)
            ]
        }

    return answer


def unsure(request: Body) -> dict[str, Any]:
    """Return an analysis with a doubt about every distortion."""
    return {
        "distortion_analysis": [
            {
                "region": region,
                "type": name,
                "severity": "slight",
                "explanation": f"{name} may be there.",
                "uncertain": True,
            }
            for region, name in pairs(request)
        ]
    }


def select(request: Body) -> dict[str, Any]:
    """Select the first tool of the list for every distortion."""
    first = field_of(request, "available_tools").partition(" ")[0]
    return {"selected_tools": [{"region": r, "distortion": d, "tool": first} for r, d in pairs(request)]}


SCRIPT: Script = {
    "plan": plan(),
    "location": locate,
    "detection": detect,
    "analysis": analyse("moderate"),
    "selection": select,
    "assessment": ASSESSMENT,
    "answer": ANSWER,
    "decision": STAND,
}

LOOK_AGAIN = "Look at the edges once more."
# The evidence is always in doubt, and the model always requests a new plan.
DOUBTFUL: Script = {**SCRIPT, "analysis": unsure, "decision": {"need_replan": True, "replan_reason": LOOK_AGAIN}}


def config_for(server: Server, **changes: Any) -> Config:
    """Return a configuration with all stages on the server, without retries; ``changes`` by stage."""
    known = {"structured_outputs": "json_schema", "logprobs": False}
    common = {"backend": "vllm.test", "api_base": server.url, "max_retries": 0, "timeout": 5.0, **known}
    stages: dict[str, Any] = {
        "planner": PlannerConfig(**{**common, **changes.pop("planner", {})}),
        "executor": ExecutorConfig(**{**common, "select": "model", **changes.pop("executor", {})}),
        **{name: StageConfig(**{**common, **changes.pop(name, {})}) for name in ("summarizer", "replan")},
    }
    return Config(**stages, **changes)


def program_for(server: Server, **changes: Any) -> AgenticIQA:
    """Return the program of that configuration."""
    return AgenticIQA.from_config(config_for(server, **changes))
