"""Examples of model answers from the specification."""

from typing import Any

LOG_PROBS = {"1": -3.2, "2": -0.5, "3": -0.1, "4": -2.1, "5": -4.5}
PLAN: dict[str, Any] = {
    "query_type": "IQA",
    "query_scope": ["vehicle"],
    "distortion_source": "Explicit",
    "distortions": {"vehicle": ["Blurs"]},
    "reference_mode": "No-Reference",
    "required_tool": None,
    "plan": {
        "distortion_detection": False,
        "distortion_analysis": True,
        "tool_selection": False,
        "tool_execution": False,
    },
}
ASSESSMENT: dict[str, Any] = {
    "quality_level": "Fair",
    "quality_probs": LOG_PROBS,
    "quality_reasoning": "The edges are soft, as the tool says.",
}
ANSWER: dict[str, Any] = {"final_answer": "B", "quality_reasoning": "The edges are soft."}
