"""States for the nodes of the graph, and programs with one scripted model or loopback server for all stages."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from agenticiqa import configs
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.choice import Backend
from agenticiqa.programs.graph import AgenticIQAState
from agenticiqa.programs.stages.analyst import Analyst
from agenticiqa.programs.stages.answerer import Answerer
from agenticiqa.programs.stages.detector import Detector
from agenticiqa.programs.stages.executor import Executor
from agenticiqa.programs.stages.locator import Locator
from agenticiqa.programs.stages.planner import Planner
from agenticiqa.programs.stages.replan import Replan, replan_judge
from agenticiqa.programs.stages.scorer import Scorer
from agenticiqa.programs.stages.selector import Selector
from agenticiqa.programs.stages.summarizer import Summarizer
from agenticiqa.programs.tools import Tool
from agenticiqa.signatures.types import ExecutorOutput, PlanFlags, PlannerOutput
from support.engine import ScriptedEngine, scripted_lm
from support.fake_server import Answer, by_stage, field_of
from support.loopback import Body

Config = dict[str, Any]

RATE = "Rate the perceptual quality of this snapshot."  # unlike the default question, it is planned by the model
WHY = "Why does this photo look soft?"
WORST = "Which distortion is the worst?\nA) Noise\nB) Blur\nC) Compression"


def plan(
    query_type: str = "IQA",
    scope: list[str] | str = "Global",
    distortions: dict[str, list[str]] | None = None,
    *,
    analyse: bool = False,
    measure: bool = False,
) -> PlannerOutput:
    """Return a plan that asks for no evidence by default."""
    return PlannerOutput.model_validate(
        {
            "query_type": query_type,
            "query_scope": scope,
            "distortion_source": "Explicit" if distortions else "Inferred",
            "distortions": distortions,
            "reference_mode": "No-Reference",
            "required_tool": None,
            "plan": PlanFlags(
                distortion_detection=False, distortion_analysis=analyse, tool_selection=measure, tool_execution=measure
            ),
        }
    )


def evidence(severity: str = "moderate", score: float = 2.6, region: str = "Global") -> ExecutorOutput:
    """Return an analysis of the blur of one region, with the score of one tool."""
    row = {"type": "Blurs", "severity": severity, "explanation": "Edges appear soft."}
    return ExecutorOutput.model_validate(
        {"distortion_analysis": {region: [row]}, "quality_scores": {region: {"Blurs": ["SSIM", score]}}}
    )


def state(
    image: Path,
    query: str = RATE,
    planned: PlannerOutput | None = None,
    found: ExecutorOutput | None = None,
    reference: Path | None = None,
) -> AgenticIQAState:
    """Return a state that the summarizer can start from."""
    return {
        "query": query,
        "image_path": str(image),
        "reference_path": str(reference) if reference else None,
        "plan": planned or plan(),
        "executor_evidence": found,
    }


def nowhere(request: Body) -> dict[str, Any]:
    """Answer that none of the requested regions is in the image."""
    return {"regions": [{"region": region, "box": None} for region in json.loads(field_of(request, "regions"))]}


def scripted(answers: Mapping[str, Answer | list[Answer]]) -> tuple[Config, ScriptedEngine]:
    """Return a configuration for the nodes with one scripted model for all stages, and the engine of the model.

    Unless ``answers`` say otherwise the model finds none of the regions it is asked for.
    """
    lm, engine = scripted_lm(by_stage({"location": nowhere, **answers}))
    return {"configurable": {"program": AgenticIQA(lm=lm)}}, engine


def all_asking(backend: Backend | None, tools: Mapping[str, Tool], max_replan_iterations: int = 2) -> AgenticIQA:
    """Return a program with one model for all stages, ``None`` for the model of DSPy, and a given toolbox."""
    executor = Executor(
        Detector(backend=backend), Analyst(backend=backend), Selector(backend=backend), tools, Locator(backend=backend)
    )
    return AgenticIQA(
        planner=Planner(tools, backend=backend, prefetch=executor.prefetch),
        executor=executor,
        summarizer=Summarizer(Scorer(backend=backend), Answerer(backend=backend)),
        replan=Replan(replan_judge(backend=backend)),
        config=configs.Config(max_replan_iterations=max_replan_iterations),
    )


def configured(folder: Path, settings: Mapping[str, Any]) -> Config:
    """Return a configuration for the nodes with a file of these settings; other stages are offline."""
    path = folder / "backends.yaml"
    path.write_text(yaml.safe_dump(dict(settings)), encoding="utf-8")
    return {"configurable": {"config": str(path)}}


def sections(body: Body) -> dict[str, Any]:
    """Return the evidence of a request, parsed, by the first words of each title; empty for "none"."""
    shown = field_of(body, "evidence")
    blocks = [] if shown == "none" else shown.split("\n\n")
    return {title.partition(" (")[0]: json.loads(content) for title, _, content in (b.partition(":\n") for b in blocks)}
