"""Simulate a model that rates well only if its prompt has a phrase, and a model that finds this phrase."""

import hashlib
import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from PIL import Image

from agenticiqa.eval.labels.own_data import read_labels
from agenticiqa.programs.backends.models import image_tokens
from agenticiqa.programs.batch.cost import text_tokens
from support.fake_server import Answer, Server, by_stage, fake_server, field_of, images_of, text_of
from support.loopback import Reply
from support.scripted_answers import STAND, plan

SCORER = "summarizer.score.ask.predict"
PHRASE = "weigh blockiness"
DETECTION = {"distortion_set": [{"region": "Global", "distortions": ["Compression"]}]}
ANALYSIS = {
    "distortion_analysis": [
        {"region": "Global", "type": "Compression", "severity": "moderate", "explanation": "Blocks show in the sky."}
    ]
}


def selection(request: dict[str, Any]) -> dict[str, Any]:
    tool = field_of(request, "available_tools").split(" ")[0]
    return {"selected_tools": [{"region": "Global", "distortion": "Compression", "tool": tool}]}


def reflection(request: dict[str, Any]) -> str:
    """Add the phrase to the shown instruction if the feedback says that ratings were too high or too low."""
    prompt = text_of(request)
    current = field_of(request, "current_instruction")
    lesson = f"\nAlways {PHRASE}." if "too kind" in prompt or "too harsh" in prompt else ""
    return json.dumps({"new_instruction": current + lesson})


def simulation(labels: Path, **answers: Answer) -> Callable[[dict[str, Any]], Reply | str]:
    """Return the script of both models; ``answers`` replace some, by output field.

    With the phrase the scorer gives each image its true quality, without it the opposite.
    """
    quality = {
        hashlib.sha256(label.image.read_bytes()).digest(): round(1 + 4 * (label.mos - 10) / 80)
        for label in read_labels(labels)
    }

    def assessment(request: dict[str, Any]) -> dict[str, Any]:
        (_, image) = images_of(request)[-1]
        true = quality[hashlib.sha256(image).digest()]
        level = true if PHRASE in text_of(request["messages"][0]) else 6 - true
        log_p = {str(other): 0.0 if other == level else math.log(0.001) for other in range(1, 6)}
        names = ("Bad", "Poor", "Fair", "Good", "Excellent")
        return {"quality_level": names[level - 1], "quality_probs": log_p, "quality_reasoning": "By its blocks."}

    return by_stage(
        {
            "plan": plan(reference_mode="Full-Reference"),
            "detection": DETECTION,
            "analysis": ANALYSIS,
            "selection": selection,
            "assessment": assessment,
            "decision": STAND,
            "new_instruction": reflection,
            **answers,
        }
    )


def counted(working: Callable[[dict[str, Any]], Reply | str]) -> Callable[[dict[str, Any]], Reply]:
    """Return the answers with the tokens of prompt, images and answer as usage, counted as in an estimate."""

    def counting(request: dict[str, Any]) -> Reply:
        answer = str(working(request))
        sizes = [Image.open(BytesIO(data)).size for _, data in images_of(request)]
        shown = sum(image_tokens(f"vllm.{request['model']}", size) for size in sizes)
        return Reply(answer, usage=(text_tokens(text_of(request)) + shown, text_tokens(answer)))

    return counting


@contextmanager
def simulated_models(labels: Path, **answers: Answer) -> Iterator[Server]:
    """Run one server for both models; arguments as for ``simulation``."""
    with fake_server(simulation(labels, **answers)) as server:
        yield server


def model_at(server: Server) -> str:
    """Return a unique name for each server's model: DSPy's cache distinguishes models by name, not by address."""
    return f"vllm.simulated-{urlsplit(server.url).port}"
