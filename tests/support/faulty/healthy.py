"""The answers of a healthy server, which depend on the bytes of the image and on the question.

Two images have different answers to every question about them, and each answer names its image (``mark_of``), so that
a row shows when an answer was used for another image.
"""

import hashlib
import json
import math
import re
from typing import Any

from support.chat_request import field_of, images_of, output_field_of, pairs, stage_of, text_of
from support.loopback import Body, Reply, chat_completion, tokens

LEVELS = ("Bad", "Poor", "Fair", "Good", "Excellent")
CATEGORIES = ("Blurs", "Noise", "Compression", "Contrast", "Sharpness")
SEVERITIES = ("slight", "moderate", "severe")
MODEL = "faulty-test"


def mark_of(request: Body) -> str:
    """Return the mark of answers about the images of a request: ``img-`` and 8 digits of their hash."""
    digest = hashlib.sha256(b"".join(data for _, data in images_of(request))).hexdigest()
    return f"img-{digest[:8]}" if images_of(request) else "img-none"


def level_of(mark: str) -> int:
    """Return the level 1..5 of an image."""
    return 1 + _number(mark) % 5


def logs_of(mark: str) -> dict[int, float]:
    """Return the log-probability of each level 1..5: highest at the image's level, with digits of this image only."""
    sharpness = 1.5 + (_number(mark) // 5 % 1000) / 1000
    weights = {level: math.exp(-sharpness * abs(level - level_of(mark))) for level in range(1, 6)}
    return {level: round(math.log(weight / sum(weights.values())), 6) for level, weight in weights.items()}


def completion(request: Body) -> Body:
    """Return the whole answer to a request, with true usage, and with log-probabilities if it asks for them."""
    mark = mark_of(request)
    content = json.dumps({output_field_of(request): written(request)})
    entries = None
    if request.get("logprobs"):
        choices = {LEVELS[level_of(mark) - 1]: {LEVELS[n - 1]: log for n, log in logs_of(mark).items()}}
        most = int(request.get("top_logprobs") or 0)
        entries = [{**entry, "top_logprobs": entry["top_logprobs"][:most]} for entry in tokens(content, choices)]
    usage = (len(text_of(request)) // 4 + 300 * len(images_of(request)), len(content) // 4)
    answer: Body = json.loads(chat_completion(Reply(content, logprobs=entries, usage=usage), MODEL))
    return answer


def written(request: Body) -> Any:
    """Return the answer to the question of a stage, as the object under the stage's field."""
    mark = mark_of(request)
    match stage_of(request):
        case "plan":
            return {
                "query_type": "IQA",
                "query_scope": ["Global"],
                "distortion_source": "Inferred",
                "distortions": [],
                "reference_mode": "No-Reference",
                "required_tool": [],
                "plan": dict.fromkeys(
                    ("distortion_detection", "distortion_analysis", "tool_selection", "tool_execution"), True
                ),
            }
        case "location":
            box = [100 + _number(mark) % 100, 100, 900, 900]
            return {"regions": [{"region": name, "box": box} for name in json.loads(field_of(request, "regions"))]}
        case "detection":
            found = [CATEGORIES[_number(mark) // 7 % 5]]
            scope = json.loads(field_of(request, "query_scope"))
            return {"distortion_set": [{"region": name, "distortions": found} for name in scope]}
        case "analysis":
            severity = SEVERITIES[_number(mark) // 11 % 3]
            return {
                "distortion_analysis": [
                    {
                        "region": region,
                        "type": kind,
                        "severity": severity,
                        "explanation": f"{kind} in {mark}.",
                        "uncertain": False,
                    }
                    for region, kind in pairs(request)
                ]
            }
        case "selection":
            offered = re.findall(r"(?m)^([\w-]+)", field_of(request, "available_tools"))
            return {
                "selected_tools": [
                    {"region": region, "distortion": kind, "tool": offered[0]} for region, kind in pairs(request)
                ]
            }
        case "assessment":
            probs = {str(level): log for level, log in logs_of(mark).items()}
            reason = f"Seen in {mark}."
            return {"quality_level": LEVELS[level_of(mark) - 1], "quality_probs": probs, "quality_reasoning": reason}
        case "answer":
            return {"final_answer": f"It shows in {mark}.", "quality_reasoning": f"Seen in {mark}."}
        case "decision":
            return {"need_replan": False, "replan_reason": ""}
    return {}


def _number(mark: str) -> int:
    return int(mark.removeprefix("img-").replace("none", "0"), 16)
