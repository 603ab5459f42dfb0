"""The stages as graph nodes: state in, update out, for whoever wires them with a graph library.

Thin over the same modules as :class:`agenticiqa.programs.AgenticIQA`; no graph library is imported. A node finds its
program under ``config["configurable"]["program"]``, and otherwise composes the one that
``config["configurable"]["config"]`` (a file or shipped name) or the default configuration describes.

As in the requirement documents, ``iteration_count`` is incremented in the summarizer and then compared with the limit,
so a graph replans at most ``max_replan_iterations - 1`` times, once less than ``AgenticIQA`` itself.
"""

from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypedDict

import dspy

from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.errors import ImageError
from agenticiqa.programs.images import LoadedImage, load_pair
from agenticiqa.programs.stages.flow import call, run, together
from agenticiqa.programs.stages.planner import feedback_on
from agenticiqa.programs.stages.replan import remember
from agenticiqa.signatures.types import ExecutorOutput, PlannerOutput, SummarizerOutput

MAX_REPLAN_ITERATIONS = 2


class AgenticIQAState(TypedDict):
    """The state of the graph. Only ``query`` and ``image_path`` have to be there at the start."""

    query: str
    image_path: str
    reference_path: NotRequired[str | None]
    plan: NotRequired[PlannerOutput]
    executor_evidence: NotRequired[ExecutorOutput | None]
    summarizer_result: NotRequired[SummarizerOutput]
    iteration_count: NotRequired[int]
    max_replan_iterations: NotRequired[int]
    replan_history: NotRequired[list[str]]
    error: NotRequired[str]


def planner_node(state: AgenticIQAState, config: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Plan; when the summarizer asked for it, plan again with its reason. Returns ``plan``.

    Raises ImageNotFound (a FileNotFoundError) for a missing image, Unanswered and ``dspy.LMError`` as the Planner does.
    """
    result, plan = state.get("summarizer_result"), state.get("plan")
    feedback = feedback_on(plan, str(result.replan_reason)) if plan and result and result.need_replan else ""
    image, reference = _images(state)
    planned = _program(config).planner(image=image, query=state["query"], reference=reference, feedback=feedback)
    return {"plan": planned.plan}


def executor_node(state: AgenticIQAState, config: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Gather the evidence that the plan asks for. Returns ``executor_evidence``, or ``error`` without a plan."""
    if "plan" not in state:
        return {"error": "executor: the state has no plan; run the planner first"}
    image, reference = _images(state)
    executed = _program(config).executor(image=image, query=state["query"], plan=state["plan"], reference=reference)
    return {"executor_evidence": executed.evidence}


def summarizer_node(state: AgenticIQAState, config: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Answer from the evidence, and decide whether to plan again.

    Evidence that is ``None`` or empty leaves the image itself to answer from. Returns ``summarizer_result``,
    ``iteration_count`` and ``replan_history``; or ``error`` when the state has no plan, or no evidence at all since
    the executor did not run, or when an image cannot be loaded.
    """
    missing = [key for key in ("plan", "executor_evidence") if key not in state]
    if missing:
        return {"error": f"summarizer: the state has no {' and no '.join(missing)}; run the earlier nodes first"}
    try:
        image, reference = _images(state)
    except ImageError as error:
        return {"error": f"summarizer: {error}"}
    program, query = _program(config), state["query"]
    plan, evidence = state["plan"], state["executor_evidence"] or ExecutorOutput()
    iteration = state.get("iteration_count", 0)
    limit = state.get("max_replan_iterations", MAX_REPLAN_ITERATIONS)
    summarizing = call(program.summarizer, image=image, query=query, plan=plan, evidence=evidence, reference=reference)
    summarized, verdict = run(together(summarizing, program.replan.verdict(query, plan, evidence, iteration, limit)))
    decided = program.replan(
        plan=plan,
        evidence=evidence,
        result=summarized.result,
        verdict=verdict,
        iteration=iteration,
        max_iterations=limit,
    )
    result = decided.result
    history = state.get("replan_history", [])
    if result.need_replan:
        iteration += 1
        history = remember(history, iteration, str(result.replan_reason))
    return {"summarizer_result": result, "iteration_count": iteration, "replan_history": history}


def decide_next_node(state: AgenticIQAState) -> Literal["planner", "__end__"]:
    """The edge after the summarizer: back to the planner while it asks for it and the limit is not reached."""
    result = state.get("summarizer_result")
    limit = state.get("max_replan_iterations", MAX_REPLAN_ITERATIONS)
    if result is not None and result.need_replan and state.get("iteration_count", 0) < limit:
        return "planner"
    return "__end__"


def _program(config: Mapping[str, Any] | None) -> AgenticIQA:
    settings = (config or {}).get("configurable", {})
    program = settings.get("program")
    return program if isinstance(program, dspy.Module) else AgenticIQA.from_config(settings.get("config"))


def _images(state: AgenticIQAState) -> tuple[LoadedImage, LoadedImage | None]:
    return load_pair(state["image_path"], state.get("reference_path"))
