"""The graph with the real LangGraph: compiled, streamed, replanning, async, and the same answers as the program."""

import asyncio
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import dspy
import pytest

pytest.importorskip("langgraph", reason='LangGraph is not installed: pip install "agenticiqa[langgraph]"')
from langgraph.graph import END, START, StateGraph

from agenticiqa.configs import load_config
from agenticiqa.programs import AgenticIQA, build_graph
from agenticiqa.programs.errors import ImageNotFound, UserError
from agenticiqa.programs.graph import (
    AgenticIQAState,
    decide_next_node,
    executor_node,
    planner_node,
    summarizer_node,
)
from agenticiqa.programs.questions.options import read_options
from agenticiqa.programs.tools import toolbox
from agenticiqa.signatures.types import ExecutorOutput
from support import full_run
from support.engine import ScriptedEngine
from support.fake_server import Server, by_stage, fake_server, field_of, has_field, images_of, stage_of
from support.nodes import scripted
from support.scripted_answers import ANSWER, DOUBTFUL, LOOK_AGAIN, RATE, SCRIPT, plan
from support.snippets import snippets

pytestmark = pytest.mark.slow

DOCS = Path(__file__).resolve().parents[2] / "docs"
ROUND = ["planner", "executor", "summarizer"]


def given(photo: Path, query: str = RATE, **more: Any) -> Any:
    return {"query": query, "image_path": str(photo), **more}


def ran(graph: Any, state: Any, config: Any = None) -> list[str]:
    """Return the nodes in the order of completion."""
    return [node for update in graph.stream(state, config, stream_mode="updates") for node in update]


def unlike(seconds: ExecutorOutput) -> dict[str, Any]:
    """Return evidence without the times of its tools."""
    return seconds.model_dump(exclude={"tool_log": {"__all__": {"ms"}}})


def assert_same(state: Any, result: Any) -> None:
    assert state["summarizer_result"] == result.summarizer_result
    assert state["plan"] == result.plan
    assert unlike(state["executor_evidence"]) == unlike(result.executor_evidence)


def lm_of(server: Server, name: str) -> dspy.LM:
    return dspy.LM(f"openai/{name}", api_base=server.url, api_key="none", cache=False, max_tokens=900)


@pytest.fixture
def server() -> Iterator[Server]:
    with fake_server(by_stage(SCRIPT)) as running:
        yield running


def test_langgraph_gives_its_configuration_to_nodes_that_a_user_wires(photo: Path) -> None:
    """The program of the run is used, and LangGraph does not warn."""
    config, engine = scripted(SCRIPT)
    builder = StateGraph(AgenticIQAState)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name, node in zip(ROUND, (planner_node, executor_node, summarizer_node), strict=True):
            builder.add_node(name, node)
        builder.add_edge(START, "planner").add_edge("planner", "executor").add_edge("executor", "summarizer")
        builder.add_conditional_edges("summarizer", decide_next_node)
        graph = builder.compile()
    assert graph.invoke(given(photo), config)["summarizer_result"].probability_source == "quality_probs"
    assert {"plan", "detection", "assessment"} <= {stage_of(body) for body in engine.bodies}


@pytest.mark.parametrize(
    "query", [RATE, "Is it noisy?", "Which is the worst?\nA) Noise\nB) Blur\nC) Compression", "Why does it look so?"]
)
@pytest.mark.parametrize(("image", "reference"), [("coffee_jpeg.jpg", None), ("coffee_jpeg.jpg", "coffee.webp")])
def test_offline_the_graph_answers_like_the_program(
    examples: Path, image: str, reference: str | None, query: str | None
) -> None:
    program, path = AgenticIQA.offline(), reference and str(examples / reference)
    state = build_graph(program).invoke(given(examples / image, query or RATE, reference_path=path))
    assert_same(state, program(examples / image, query or RATE, path))


def test_with_a_model_the_graph_asks_and_answers_like_the_program(examples: Path, tmp_path: Path) -> None:
    """A run with a full server, rejected answers and a replan: the same requests, the same result."""
    taken, pristine = [], examples / "coffee.webp"
    for through_graph in (True, False):
        with fake_server(by_stage(full_run.SCRIPT)) as server:
            config = load_config(full_run.configuration(tmp_path, server.url))
            program = AgenticIQA.from_config(config.model_copy(update={"cache": False}))
            if through_graph:
                state = build_graph(program).invoke(given(pristine))
            else:
                result = program(pristine, RATE)
            # Stage by stage, because the executor asks two of its questions at the same time.
            taken.append({stage: [body["messages"] for body in server.of(stage)] for stage in server.stages()})
    assert len(taken[0]["plan"]) == 3  # one of them was refused by the full server
    assert taken[0] == taken[1]
    assert_same(state, result)
    assert (state["iteration_count"], state["replan_history"]) == (1, result.replan_history)


@pytest.mark.parametrize("options", [["Noise", "Blur", "Compression"], {"X": "Sharp", "Y": "Soft"}])
def test_options_in_the_state_are_asked_like_in_the_program(photo: Path, options: Any) -> None:
    taken = []
    for through_graph in (True, False):
        config, engine = scripted({**SCRIPT, "answer": {**ANSWER, "final_answer": [*as_letters(options)][-1]}})
        program = config["configurable"]["program"]
        query = "Which is it?"
        if through_graph:
            state = build_graph(program).invoke(given(photo, query, options=options))
        else:
            assert_same(state, program(photo, query, options=options))
        taken.append(sorted(str(body["messages"]) for body in engine.bodies))
    assert taken[0] == taken[1]
    assert state["summarizer_result"].final_answer == [*as_letters(options)][-1]


def as_letters(options: Any) -> dict[str, str]:
    return read_options(options) or {}


def test_updates_and_values_are_streamed(photo: Path) -> None:
    graph = build_graph(AgenticIQA.offline())
    modes: dict[str, list[Any]] = {"updates": [], "values": []}
    for mode, part in graph.stream(given(photo), stream_mode=["updates", "values"]):
        modes[mode].append(part)
    assert [list(update) for update in modes["updates"]] == [["check_input"], *([node] for node in ROUND)]
    assert list(modes["updates"][-1]["summarizer"]) == ["summarizer_result", "iteration_count", "replan_history"]
    assert modes["values"][-1] == graph.invoke(given(photo)) | {
        "executor_evidence": modes["values"][-1]["executor_evidence"]
    }


@pytest.mark.parametrize(
    ("in_state", "given_to_graph", "of_program", "plans"),
    [
        (None, None, 2, 2),
        (None, None, 3, 3),
        (None, None, 0, 1),
        (None, 4, 2, 4),
        (None, 0, 2, 1),
        (1, 4, 2, 1),
        (3, None, 2, 3),
    ],
)
def test_insufficient_evidence_is_replanned_until_the_limit(
    photo: Path,
    in_state: int | None,
    given_to_graph: int | None,
    of_program: int,
    plans: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Each new plan receives the reason; the limit is the state's, else the graph's, else the program's."""
    # A plan that changes each time, or it would not be carried out again; the question names each region.
    regions = ("cup", "table", "wall", "door")
    config, engine = scripted({**DOUBTFUL, "plan": [plan(region) for region in regions]})
    program = config["configurable"]["program"]
    program.max_replan_iterations = of_program
    graph = build_graph(program, max_replan_iterations=given_to_graph)
    more = {} if in_state is None else {"max_replan_iterations": in_state}
    query = f"Rate the perceptual quality of {', '.join(regions)}."
    assert ran(graph, given(photo, query, **more)) == ["check_input", *ROUND * plans]
    assert len([each for each in caplog.messages if "is reached; the evidence is still insufficient" in each]) == 1
    first, *later = [body for body in engine.bodies if stage_of(body) == "plan"]
    assert not has_field(first, "feedback")
    assert len(later) == plans - 1
    assert all(LOOK_AGAIN in field_of(body, "feedback") for body in later)


def test_the_limit_counts_all_replans_of_which_the_newest_ten_are_kept(photo: Path) -> None:
    """More than ten need an own count: a program that counted the kept reasons would plan without an end."""
    config, _ = scripted({**DOUBTFUL, "plan": [plan(f"cup {number}") for number in range(16)]})
    program = config["configurable"]["program"]
    program.max_replan_iterations = 12
    result = program(photo, f"Rate the perceptual quality of {', '.join(f'cup {number}' for number in range(16))}.")
    assert result.iteration_count == 12
    assert [reason.partition(":")[0] for reason in result.replan_history] == [f"iteration {n}" for n in range(3, 13)]


CUP = "Rate the perceptual quality of the cup."
INFERRED = plan(distortions=[{"region": "Global", "distortions": ["Noise"]}])  # they have no effect beside a detection
BLURS = plan(distortion_source="Explicit", distortions=[{"region": "Global", "distortions": ["Blurs"]}])


def without_further_tools(answers: Any) -> tuple[Any, ScriptedEngine]:
    """Return what ``scripted`` does, for a program that does not know that its new plans can add no tool."""
    config, engine = scripted(answers)
    program = config["configurable"]["program"]
    program.executor.toolbox = {"LEARNED-IQA": toolbox()["LEARNED-IQA"]}
    program.executor = partial(program.executor)
    return config, engine


@pytest.mark.parametrize(
    ("plans", "rounds", "summaries"),
    [
        ([plan(), plan()], 1, 1),
        ([plan(), INFERRED], 1, 1),
        ([plan(), plan("cup"), INFERRED], 2, 2),
        ([plan(), BLURS, INFERRED], 2, 1),  # the detection found blurs, so the second plan gives the same evidence
    ],
)
def test_a_plan_that_does_what_an_earlier_one_did_ends_the_graph(
    photo: Path, plans: list[Any], rounds: int, summaries: int
) -> None:
    config, engine = without_further_tools({**DOUBTFUL, "plan": plans})
    graph = build_graph(config["configurable"]["program"], max_replan_iterations=3)
    assert ran(graph, given(photo, CUP)) == ["check_input", *ROUND * rounds, "planner"]
    in_nodes = sorted(map(stage_of, engine.bodies))
    assert (in_nodes.count("plan"), in_nodes.count("assessment")) == (rounds + 1, summaries)
    assert in_nodes.count("decision") == summaries

    config, engine = without_further_tools({**DOUBTFUL, "plan": plans})
    result = config["configurable"]["program"](photo, CUP)
    assert sorted(map(stage_of, engine.bodies)) == in_nodes
    assert f"The evidence is still insufficient: {LOOK_AGAIN}" in result.quality_reasoning

    config, engine = without_further_tools({**DOUBTFUL, "plan": plans})
    state = build_graph(config["configurable"]["program"], max_replan_iterations=3).invoke(given(photo, CUP))
    assert_same(state, result)
    assert not state["summarizer_result"].need_replan


def test_nodes_wired_by_a_user_ask_only_for_a_plan_if_it_stays_the_same(photo: Path) -> None:
    """The executor's evidence and the answer are kept, so each further round costs the request for a plan."""
    config, engine = without_further_tools(DOUBTFUL)
    state: Any = given(photo, max_replan_iterations=3)
    for _ in range(3):
        for node in (planner_node, executor_node, summarizer_node):
            state = {**state, **node(state, config)}
    stages = [stage_of(body) for body in engine.bodies]
    once = ["detection", "analysis", "assessment", "decision"]
    assert [stages.count(stage) for stage in ("plan", *once)] == [3, 1, 1, 1, 1]
    assert decide_next_node(state) == END
    assert state["iteration_count"] == 3


def test_an_image_that_is_deleted_on_the_way_is_an_error_of_its_node(photo: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.jpg"
    copy.write_bytes(photo.read_bytes())
    graph = build_graph(AgenticIQA.offline())
    with pytest.raises(ImageNotFound, match=r"gone\.jpg"):
        graph.invoke(given(tmp_path / "gone.jpg"))
    updates = []
    for update in graph.stream(given(copy), stream_mode="updates"):
        updates.append(update)
        if "executor" in update:
            copy.unlink()
    assert updates[-1] == {"summarizer": {"error": updates[-1]["summarizer"]["error"]}}
    assert "copy.jpg" in updates[-1]["summarizer"]["error"]


@pytest.mark.parametrize("way", ["invoke", "stream", "ainvoke", "astream", "batch", "abatch"])
def test_the_model_of_the_callers_context_is_asked_in_every_node(photo: Path, server: Server, way: str) -> None:
    """Also in LangGraph's threads. The exact bytes of the image arrive; the global model is not asked."""
    graph, state = build_graph(AgenticIQA()), given(photo, "Why does it look so?")  # a model chooses the tools

    async def stream() -> list[Any]:
        return [part async for part in graph.astream(state, stream_mode="values")]

    ways: dict[str, Any] = {
        "invoke": lambda: graph.invoke(state),
        "stream": lambda: list(graph.stream(state, stream_mode="values"))[-1],
        "ainvoke": lambda: asyncio.run(graph.ainvoke(state)),
        "astream": lambda: asyncio.run(stream())[-1],
        "batch": lambda: graph.batch([state, state])[1],
        "abatch": lambda: asyncio.run(graph.abatch([state, state]))[1],
    }
    with dspy.context(lm=lm_of(server, "mine")):
        answered = ways[way]()
    assert {request["model"] for request in server.requests} == {"mine"}
    assert set(server.stages()) == {"plan", "detection", "analysis", "selection", "answer"}
    shown = [images for request in server.requests if (images := images_of(request))]
    assert all(images == [("image/jpeg", photo.read_bytes())] for images in shown)
    assert answered["summarizer_result"].final_answer == ANSWER["final_answer"]


def test_parallel_graphs_ask_their_own_models(photo: Path, server: Server) -> None:
    """Two tasks of one event loop have separate contexts."""
    graph = build_graph(AgenticIQA())

    async def ask(name: str) -> None:
        with dspy.context(lm=lm_of(server, name)):
            await graph.ainvoke(given(photo))

    async def both() -> None:
        await asyncio.gather(ask("one"), ask("two"))

    asyncio.run(both())
    asked = [(request["model"], stage_of(request)) for request in server.requests]
    assert sorted(stage for model, stage in asked if model == "one") == sorted(
        stage for model, stage in asked if model == "two"
    )
    assert {model for model, _ in asked} == {"one", "two"}


@pytest.mark.parametrize("settings", [{"program": AgenticIQA.offline()}, {"config": "model_backends"}])
def test_a_run_cannot_name_another_program(photo: Path, settings: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="give the program to build_graph"):
        build_graph(AgenticIQA.offline()).invoke(given(photo), {"configurable": {**settings, "user": 7}})


def test_without_a_program_the_default_configuration_is_used(photo: Path) -> None:
    state = build_graph().invoke(given(photo))
    assert state["summarizer_result"] == AgenticIQA.from_config()(photo, RATE).summarizer_result


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"program": dspy.Predict("question -> answer")}, "program is of type Predict; give an AgenticIQA such as"),
        ({"program": "model_backends"}, "program is of type str; give an AgenticIQA such as"),
        ({"max_replan_iterations": -1}, "max_replan_iterations is -1"),
        ({"checkpointer": "checkpoints.sqlite"}, "checkpointer"),
    ],
)
def test_wrong_arguments_are_refused_when_the_graph_is_built(arguments: Any, message: str) -> None:
    with pytest.raises(Exception, match=message) as raised:
        build_graph(**arguments)
    assert isinstance(raised.value, UserError | TypeError)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"image_path": "x.png"}, "the state has no query"),
        ({"query": "Is it sharp?"}, "the state has no image_path"),
        ({"query": " ", "image_path": "x.png"}, "the question is empty"),
        ({"query": "x" * 5000, "image_path": "x.png"}, "the question has 5000 characters"),
        ({"query": "Is it sharp?", "image_path": b"\xff\xd8"}, "image_path is of type bytes"),
        (
            {"query": "Is it sharp?", "image_path": "x.png", "reference_path": 3},
            "reference_path is of type int; give the path",
        ),
        ({"query": "Is it sharp?", "image_path": "x.png", "max_replan_iterations": "2"}, "iterations is '2'"),
        (
            {"query": "Which?", "image_path": "x.png", "options": "A. Blur"},
            "options must be a list or a mapping of letters to texts, not str",
        ),
    ],
)
def test_a_wrong_input_is_refused_before_anything_is_asked(state: Any, message: str) -> None:
    config, engine = scripted(SCRIPT)
    with pytest.raises(UserError, match=message):
        build_graph(config["configurable"]["program"]).invoke(state)
    assert engine.requests == []


def test_the_graph_is_drawn_with_its_edge_back_to_the_planner() -> None:
    drawn = build_graph(AgenticIQA.offline()).get_graph()
    assert set(drawn.nodes) == {START, "check_input", *ROUND, END}
    edges = {(edge.source, edge.target, edge.conditional) for edge in drawn.edges}
    assert ("summarizer", "planner", True) in edges
    (shown,) = [block.text for block in snippets(DOCS / "langgraph.md") if block.kind == "mermaid"]
    assert drawn.draw_mermaid(with_styles=False) == shown


def test_the_graph_works_as_a_node_of_a_larger_graph(photo: Path) -> None:
    """A compiled graph is a node; it exchanges the keys that both states share."""

    class Larger(AgenticIQAState):
        verdict: str

    outer = StateGraph(Larger)
    outer.add_node("judge", build_graph(AgenticIQA.offline()))
    outer.add_node("say", lambda state: {"verdict": f"{state['summarizer_result'].quality_score:.1f}"})
    outer.add_edge(START, "judge").add_edge("judge", "say")
    state = outer.compile().invoke(given(photo))
    assert state["verdict"] == f"{AgenticIQA.offline()(photo, RATE).quality_score:.1f}"
