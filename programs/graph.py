"""The stages as LangGraph nodes, and the graph that connects them.

::

    graph = build_graph(AgenticIQA.offline())
    state = graph.invoke({"query": "Is it sharp?", "image_path": "photo.jpg"})
    state["summarizer_result"].final_answer

The nodes run the same modules as :class:`agenticiqa.programs.AgenticIQA`. They can be called without LangGraph. In a
graph of your own, a node uses the program in ``config["configurable"]["program"]``. Otherwise it builds one from
``config["configurable"]["config"]`` (a file, a shipped name or a ``Config``), or from the default configuration. The
state holds paths and pydantic models but no pixels, so checkpoints are small; each node loads the images again.

The specification increments ``iteration_count`` in the summarizer and then compares it with the limit. A graph
therefore replans at most ``max_replan_iterations - 1`` times, once less than ``AgenticIQA`` itself.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict

from agenticiqa.programs.assess import AgenticIQA, Round, asked_backend
from agenticiqa.programs.backends.run_context import recorded_usage
from agenticiqa.programs.errors import ImageError, NoScore, UserError
from agenticiqa.programs.events import assessing
from agenticiqa.programs.images import name_of
from agenticiqa.programs.offline.reference import with_check
from agenticiqa.programs.questions.options import read_options
from agenticiqa.programs.result import RunRecord
from agenticiqa.programs.stages import progress
from agenticiqa.programs.stages.protocols import Summarized
from agenticiqa.programs.stages.question import checked
from agenticiqa.programs.stages.replan import as_final
from agenticiqa.signatures.types import ExecutorOutput, PlannerOutput, QueryType, SummarizerOutput

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.graph.state import CompiledStateGraph
else:
    # LangGraph passes its configuration only to a parameter annotated with exactly this class.
    try:
        from langchain_core.runnables import RunnableConfig
    except ImportError:
        RunnableConfig = Mapping[str, Any]

MAX_REPLAN_ITERATIONS = 2
INSTALL = 'pip install "agenticiqa[langgraph]"'
MODELS = (PlannerOutput, ExecutorOutput, SummarizerOutput)  # the types in a checkpoint that are not plain JSON types
RESULTS = (
    *("plan", "executor_evidence", "summarizer_result"),
    *("rejected_answers", "earlier_plans", "kept_answers", "error"),
)


class KeptAnswer(TypedDict):
    """An answer before the replan decision, with the reasons of the model's decision, if it decided."""

    result: SummarizerOutput
    query_type: str
    options: dict[str, str]
    reasons: list[str] | None


class AgenticIQAState(TypedDict):
    """The state of the graph; only ``query`` and ``image_path`` are required at the start.

    A result that is ``None`` counts as missing.

    Attributes:
        query: The question.
        image_path: The path of the image.
        reference_path: The path of the pristine image.
        resize_reference: Whether to scale a reference of another size to the size of the image.
        options: The allowed answers: 2 to 26 texts, or a mapping of letters to texts.
        plan: What the planner returned.
        executor_evidence: What the executor returned.
        summarizer_result: What the summarizer returned.
        iteration_count: The number of replan requests.
        max_replan_iterations: The limit of ``iteration_count``; the graph replans at most one time less.
        replan_history: The reason for each replan request.
        rejected_answers: By stage, why answers of models were rejected; every node may add some.
        earlier_plans: The plans that were carried out before a replan.
        kept_answers: The answers that led to a replan, by a digest of their evidence; equal evidence is not summarized
            again.
        error: Why a node could not run.
    """

    query: str
    image_path: str
    reference_path: NotRequired[str | None]
    resize_reference: NotRequired[bool]
    options: NotRequired[list[str] | dict[str, str] | None]
    plan: NotRequired[PlannerOutput]
    executor_evidence: NotRequired[ExecutorOutput | None]
    summarizer_result: NotRequired[SummarizerOutput]
    iteration_count: NotRequired[int]
    max_replan_iterations: NotRequired[int]
    replan_history: NotRequired[list[str]]
    rejected_answers: NotRequired[dict[str, list[str]] | None]
    earlier_plans: NotRequired[list[PlannerOutput] | None]
    kept_answers: NotRequired[dict[str, KeptAnswer] | None]
    error: NotRequired[str]


def planner_node(state: AgenticIQAState, config: RunnableConfig | None = None) -> dict[str, Any]:
    """Plan the next iteration; after a replan request, the plan takes the summarizer's reason into account.

    Args:
        state: The state, with ``query`` and ``image_path``.
        config: LangGraph's configuration; ``program`` or ``config`` in ``configurable`` choose the program.

    Returns:
        The update of the state: ``plan``, with ``earlier_plans`` after a replan request, and ``rejected_answers`` if
        there are any. A new plan that does what an earlier one did does not replace the last plan.

    Raises:
        ImageNotFound: There is no such image (also a FileNotFoundError).
        UserError: The state or the configuration is invalid.
        Unanswered: No answer of the Planner's model was usable.
        dspy.LMError: The Planner's model could not be reached.
    """
    with _round(state, config) as current:
        current.make_plan()
    earlier = {"earlier_plans": current.earlier_plans} if current.earlier_plans else {}
    return {"plan": current.plan, **earlier, **_rejected(state, current)}


def executor_node(state: AgenticIQAState, config: RunnableConfig | None = None) -> dict[str, Any]:
    """Collect the evidence that the plan requests; return ``executor_evidence``, or ``error`` without a plan.

    A plan that was carried out before keeps its evidence, which is still in the state.
    """
    if state.get("plan") is None:
        return {"error": "executor: the state has no plan; run the planner first"}
    if is_repeated(state) and state.get("executor_evidence") is not None:
        return {"executor_evidence": state["executor_evidence"]}
    with _round(state, config) as current:
        current.execute()
    return {"executor_evidence": current.evidence, **_rejected(state, current)}


def summarizer_node(state: AgenticIQAState, config: RunnableConfig | None = None) -> dict[str, Any]:
    """Answer from the evidence, and decide whether to plan again.

    If the evidence is ``None`` or empty, the answer is based on the image alone. Returns ``summarizer_result``,
    ``iteration_count`` and ``replan_history``, with ``kept_answers`` if it requests a new plan. Returns ``error``
    instead if the state has no plan, if the executor did not run, if an image cannot be loaded, or if there is neither
    a tool score nor a model answer.
    """
    there = {"plan": state.get("plan") is not None, "executor_evidence": "executor_evidence" in state}
    if missing := [key for key, is_there in there.items() if not is_there]:
        return {"error": f"summarizer: the state has no {' and no '.join(missing)}; run the earlier nodes first"}
    try:
        with _round(state, config) as current:
            current.summarize()
            current.decide()
    except (ImageError, NoScore) as error:
        return {"error": f"summarizer: {error}"}
    return {
        "summarizer_result": with_check(current.result, current.pair.check),
        "iteration_count": current.iteration,
        "replan_history": current.history,
        **({"kept_answers": _kept_answers(current)} if current.result.need_replan else {}),
        **_rejected(state, current),
    }


def is_repeated(state: AgenticIQAState) -> bool:
    """Return whether the plan of a state was carried out before, because the planner had no other."""
    return state.get("plan") in (state.get("earlier_plans") or ())


def _kept_answers(current: Round) -> dict[str, KeptAnswer]:
    return {
        basis: {
            "result": answer.result,
            "query_type": answer.query_type.value,
            "options": dict(answer.options),
            "reasons": [*current.decided[basis]] if basis in current.decided else None,
        }
        for basis, answer in current.answered.items()
    }


def _rejected(state: AgenticIQAState, current: Round) -> dict[str, Any]:
    """Return the state update with all rejected answers so far; empty if this node rejected none."""
    rejected = current.record.rejected_answers
    return {} if rejected == (state.get("rejected_answers") or {}) else {"rejected_answers": rejected}


def decide_next_node(state: AgenticIQAState) -> Literal["planner", "__end__"]:
    """Return the node after the summarizer: the planner if a replan is requested and the limit is not reached.

    An ``error`` ends the graph. A request that the limit refuses is logged as a warning.
    """
    result, iteration = state.get("summarizer_result"), state.get("iteration_count", 0)
    limit = state.get("max_replan_iterations", MAX_REPLAN_ITERATIONS)
    if state.get("error") or result is None or not result.need_replan:
        return "__end__"
    if iteration >= limit:
        progress.replan(str(result.replan_reason), iteration, limit)
        return "__end__"
    return "planner"


def build_graph(
    program: AgenticIQA | None = None,
    *,
    max_replan_iterations: int | None = None,
    checkpointer: "BaseCheckpointSaver[Any] | bool | None" = None,
) -> "CompiledStateGraph[AgenticIQAState, None, AgenticIQAState, AgenticIQAState]":
    """Build the compiled LangGraph graph: plan, execute, summarize, and replan if the evidence is insufficient.

    Invoke it with ``{"query": ..., "image_path": ...}``; its state is an ``AgenticIQAState``. Each question starts with
    an empty plan and count, even if the thread's checkpoint holds an earlier question. A new plan that does what an
    earlier one did ends the graph, as it ends ``AgenticIQA``.

    Args:
        program: The program of all runs; by default that of the default configuration.
        max_replan_iterations: The iteration limit of states without one; by default the program's.
        checkpointer: As for LangGraph's ``compile``. With ``serde=JsonPlusSerializer(allowed_msgpack_modules=MODELS)``,
            LangGraph does not warn of the types in this state.

    Returns:
        The compiled graph.

    Raises:
        UserError: LangGraph is not installed (``pip install "agenticiqa[langgraph]"``), or an argument is wrong.
    """
    try:
        from langgraph.graph import END, START, StateGraph
    except ImportError as error:
        raise UserError(f"build_graph needs LangGraph ({error}); install it with {INSTALL}") from error
    if program is None:
        program = AgenticIQA.from_config()
    _refuse_other_types(program)
    _refuse_other_limits(max_replan_iterations)
    limit = program.max_replan_iterations if max_replan_iterations is None else max_replan_iterations
    own: RunnableConfig = {"configurable": {"program": program}}

    def limited(state: AgenticIQAState) -> AgenticIQAState:
        """Return the state with an iteration limit."""
        return state if state.get("max_replan_iterations") is not None else {**state, "max_replan_iterations": limit}

    def check_input(state: AgenticIQAState, config: RunnableConfig) -> dict[str, Any]:
        """Refuse invalid input before any request, and clear the results of an earlier question."""
        if not {"program", "config"}.isdisjoint(config.get("configurable", {})):
            raise UserError("configurable has a program or a config; give the program to build_graph")
        asked_backend(program)
        query, _ = query_and_path(state)
        read_options(state.get("options"))
        _refuse_other_limits(state.get("max_replan_iterations"))
        earlier = {key: None for key in RESULTS if state.get(key) is not None}
        return {"query": checked(query), **earlier, "iteration_count": 0, "replan_history": []}

    def plan(state: AgenticIQAState) -> dict[str, Any]:
        update = planner_node(state, own)
        result = state.get("summarizer_result")
        if result is not None and update["plan"] in update.get("earlier_plans", ()):
            progress.unchanged_plan(offline=not program.questions)
            update["summarizer_result"] = as_final(result)
        return update

    def after_plan(state: AgenticIQAState) -> Literal["executor", "__end__"]:
        result = state.get("summarizer_result")
        return "__end__" if result is not None and not result.need_replan else "executor"

    graph = StateGraph(AgenticIQAState)
    graph.add_node("check_input", check_input)
    graph.add_node("planner", plan)
    graph.add_node("executor", lambda state: executor_node(state, own))
    graph.add_node("summarizer", lambda state: summarizer_node(limited(state), own))
    graph.add_edge(START, "check_input")
    graph.add_edge("check_input", "planner")
    graph.add_conditional_edges("planner", after_plan, ["executor", END])
    graph.add_conditional_edges(
        "executor", lambda state: END if state.get("error") else "summarizer", ["summarizer", END]
    )
    graph.add_conditional_edges("summarizer", lambda state: decide_next_node(limited(state)), ["planner", END])
    return graph.compile(checkpointer=checkpointer, name="AgenticIQA")


def _program(config: RunnableConfig | None) -> AgenticIQA:
    settings: Mapping[str, Any] = (config or {}).get("configurable") or {}
    if "program" not in settings:
        return AgenticIQA.from_config(settings.get("config"))
    _refuse_other_types(settings["program"])
    return settings["program"]


def _refuse_other_types(program: object) -> None:
    if not isinstance(program, AgenticIQA):
        raise UserError(f"program is of type {type(program).__name__}; give an AgenticIQA such as AgenticIQA.offline()")


def _refuse_other_limits(limit: object) -> None:
    if limit is not None and not (isinstance(limit, int) and limit >= 0):
        raise UserError(f"max_replan_iterations is {limit!r}; give a whole number, 0 or more")


@contextmanager
def _round(state: AgenticIQAState, config: RunnableConfig | None) -> Iterator[Round]:
    """Yield the round that a state describes, with the logs and the DSPy history of a direct call of the program."""
    program, (query, path) = _program(config), query_and_path(state)
    iteration, rejected = state.get("iteration_count", 0), state.get("rejected_answers") or {}
    usage = recorded_usage(
        history=program.keep_history, only_questions=program.asks_only_questions, limits=program.limits
    )
    with assessing(name_of(path)) as assessed, usage:
        assessed.iteration = iteration
        current = Round(
            program,
            program.load_pair(path, state.get("reference_path"), state.get("resize_reference", False)),
            query,
            read_options(state.get("options")),
            state.get("max_replan_iterations", MAX_REPLAN_ITERATIONS),
            RunRecord(rejected_answers={stage: [*reasons] for stage, reasons in rejected.items()}),
            iteration,
            state.get("replan_history", []),
            earlier_plans=state.get("earlier_plans") or [],
        )
        for basis, kept in (state.get("kept_answers") or {}).items():
            answer = Summarized(kept["result"], QueryType(kept["query_type"]), options=kept["options"])
            current.answered[basis] = answer
            if kept["reasons"] is not None:
                current.decided[basis] = kept["reasons"]
        plan, result = state.get("plan"), state.get("summarizer_result")
        if plan is not None:
            current.plan, current.evidence = plan, state.get("executor_evidence") or ExecutorOutput()
            if result and result.need_replan:
                current.feedback = current.feedback_for(str(result.replan_reason))
        yield current


def query_and_path(state: AgenticIQAState) -> tuple[str, str]:
    """Return query and image path of a state. Raises UserError if one is missing, or is an image, not a path."""
    for key in ("query", "image_path"):
        if state.get(key) is None:
            raise UserError(f"the state has no {key}; give at least query and image_path")
    for key in ("image_path", "reference_path"):
        path = state.get(key)
        if not isinstance(path, str | os.PathLike | None):
            raise UserError(f"{key} is of type {type(path).__name__}; give the path of the image, not the image itself")
    return state["query"], state["image_path"]
