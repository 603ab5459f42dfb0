"""A script for the loopback server with all that may happen to one image: a full server, a bad answer, a replan."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from support.fake_server import Answer, Body, bad_json, field_of, rate_limited

FLAGS = ("distortion_detection", "distortion_analysis", "tool_selection", "tool_execution")
WHY = "Soft edges along the rim."
DOUBT = "Severe blur is seen, but the tool scores are high: look at the blur again."
LOGS = {"1": -4.0, "2": -2.0, "3": -0.3, "4": -1.8, "5": -5.0}
STAGES = ("planner", "executor", "summarizer", "replan")


def plan(flags: tuple[str, ...] = FLAGS, **changes: Any) -> dict[str, Any]:
    """A plan for the whole image with these steps on."""
    return {
        "query_type": "IQA",
        "query_scope": ["Global"],
        "distortion_source": "Inferred",
        "distortions": [],
        "reference_mode": "No-Reference",
        "required_tool": [],
        "plan": {flag: flag in flags for flag in FLAGS},
        **changes,
    }


def pairs(request: Body) -> list[dict[str, Any]]:
    """What a request asks about: each distortion of each region."""
    asked = json.loads(field_of(request, "distortion_set"))
    return [{"region": region, "distortion": name} for region, names in asked.items() for name in names]


def analysis(severity: str) -> Callable[[Body], dict[str, Any]]:
    """Every distortion that is asked about is so severe."""

    def answer(request: Body) -> dict[str, Any]:
        rows = [{"region": p["region"], "type": p["distortion"], "severity": severity} for p in pairs(request)]
        return {"distortion_analysis": [{**row, "explanation": WHY} for row in rows]}

    return answer


def select(request: Body) -> dict[str, Any]:
    """The last tool of the list for everything."""
    tool = field_of(request, "available_tools").splitlines()[-1].partition(" ")[0]
    return {"selected_tools": [{**pair, "tool": tool} for pair in pairs(request)]}


# A pristine photo in which the model first sees severe blur: the tools disagree, and the judge has it looked at again.
SCRIPT: dict[str, Answer | list[Any]] = {
    "plan": [
        rate_limited(0.01),
        plan(),
        plan(
            FLAGS[1:],
            distortion_source="Explicit",
            distortions=[{"region": "Global", "distortions": ["Blurs"]}],
        ),
    ],
    "detection": {"distortion_set": [{"region": "Global", "distortions": ["Blurs", "Noise"]}]},
    "analysis": [bad_json(), analysis("severe"), analysis("slight")],
    "selection": select,
    "assessment": {"quality_level": "Fair", "quality_probs": LOGS, "quality_reasoning": WHY},
    "answer": {"final_answer": "The edges are soft.", "quality_reasoning": WHY},
    "decision": [
        {"need_replan": True, "replan_reason": DOUBT},
        {"need_replan": False, "replan_reason": ""},
    ],
}


def configuration(folder: Path, url: str, **changes: Any) -> Path:
    """A configuration file in which every stage asks the server, with a price."""
    stage = {"backend": "vllm.test", "api_base": url, "price": {"input": 1.0, "output": 2.0}, **changes}
    path = folder / "asking.yaml"
    path.write_text(yaml.safe_dump(dict.fromkeys(STAGES, stage)))
    return path
