"""A script for the loopback server with all events of one image: a busy server, an invalid answer, a replan."""

from pathlib import Path
from typing import Any

import yaml

from agenticiqa.configs import STAGES
from support.fake_server import Answer, bad_json, rate_limited
from support.loopback import Body
from support.scripted_answers import ALL, ANSWER, RATED, analyse, pairs, plan

DOUBT = "Severe blur is seen, but the tool scores are high: look at the blur again."


def select(request: Body) -> dict[str, Any]:
    """Select a tool that does not rate overall quality for every distortion."""
    return {"selected_tools": [{"region": r, "distortion": d, "tool": "BLUR-EXTENT"} for r, d in pairs(request)]}


# The model first finds severe blur in a pristine photo. The tools disagree, and the replan stage asks for a new plan.
SCRIPT: dict[str, Answer | list[Any]] = {
    "plan": [
        rate_limited(0.01),
        plan(),
        plan(
            flags={**ALL, "distortion_detection": False},
            distortion_source="Explicit",
            distortions=[{"region": "Global", "distortions": ["Blurs"]}],
        ),
    ],
    "detection": {"distortion_set": [{"region": "Global", "distortions": ["Blurs", "Noise"]}]},
    "analysis": [bad_json(), analyse("severe"), analyse("slight")],
    "selection": select,
    "assessment": RATED,
    "answer": ANSWER,
    "decision": [
        {"need_replan": True, "replan_reason": DOUBT},
        {"need_replan": False, "replan_reason": ""},
    ],
}


def configuration(folder: Path, url: str, **changes: Any) -> Path:
    """Return a configuration file in which every stage asks the server, with a price."""
    stage = {"backend": "vllm.test", "api_base": url, "price": {"input": 1.0, "output": 2.0}, **changes}
    path = folder / "asking.yaml"
    path.write_text(yaml.safe_dump(dict.fromkeys(STAGES, stage)))
    return path
