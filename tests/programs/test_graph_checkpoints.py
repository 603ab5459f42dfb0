"""The graph's checkpoints: their content, their savers, and a run that continues after a kill."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dspy
import pytest

pytest.importorskip("langgraph", reason='LangGraph is not installed: pip install "agenticiqa[langgraph]"')
pytest.importorskip("langgraph.checkpoint.sqlite", reason="langgraph-checkpoint-sqlite is not installed")
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde import event_hooks
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from agenticiqa.configs import load_config
from agenticiqa.programs import AgenticIQA, build_graph
from agenticiqa.programs.graph import MODELS
from agenticiqa.signatures.types import SummarizerOutput
from support import graph_process
from support.fake_server import by_stage, fake_server, has_field, server_error, stage_of
from support.full_run import configuration
from support.nodes import scripted
from support.scripted_answers import DOUBTFUL, RATE, RATED, SCRIPT, program_for, unsure

pytestmark = pytest.mark.slow

ROUND = ["planner", "executor", "summarizer"]
THREAD: Any = {"configurable": {"thread_id": "one"}}
SERIALIZER = JsonPlusSerializer(allowed_msgpack_modules=MODELS)
LARGEST = 40_000  # bytes of all checkpoints of one run


def given(image: Path, query: str = RATE) -> Any:
    return {"query": query, "image_path": str(image)}


@pytest.fixture(params=["memory", "sqlite"])
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BaseCheckpointSaver[Any]]:
    if request.param == "memory":
        yield InMemorySaver(serde=SERIALIZER)
    else:
        with SqliteSaver.from_conn_string(str(tmp_path / "checkpoints.sqlite")) as opened:
            opened.serde = SERIALIZER
            yield opened


@pytest.fixture
def unregistered() -> Iterator[list[Any]]:
    """Return the serializer's result for unregistered types; LangGraph warns of each type once per process."""
    seen: list[Any] = []
    forget = event_hooks.register_serde_event_listener(seen.append)
    yield seen
    forget()


def test_a_checkpoint_restores_the_results_of_the_nodes(
    examples: Path, saver: BaseCheckpointSaver[Any], caplog: pytest.LogCaptureFixture, unregistered: list[Any]
) -> None:
    """They are equal and of the same types, without a warning."""
    graph = build_graph(AgenticIQA.offline(), checkpointer=saver)
    state = graph.invoke(
        given(examples / "coffee_jpeg.jpg") | {"reference_path": str(examples / "coffee.webp")}, THREAD
    )
    kept = graph.get_state(THREAD).values
    assert kept == state
    assert {key: type(value) for key, value in kept.items()} == {key: type(value) for key, value in state.items()}
    assert type(kept["executor_evidence"].tool_log[0]) is type(state["executor_evidence"].tool_log[0])
    assert len(list(graph.get_state_history(THREAD))) == 6  # the input, before each of four nodes, and the end
    assert unregistered == []
    assert [record.getMessage() for record in caplog.records if record.name.startswith("langgraph")] == []


def test_a_checkpoint_holds_no_pixels(examples: Path, tmp_path: Path) -> None:
    """All checkpoints of a run are smaller than the photo."""
    image, path = examples / "coffee_jpeg.jpg", tmp_path / "checkpoints.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        build_graph(AgenticIQA.offline(), checkpointer=saver).invoke(given(image), THREAD)
        rows = saver.conn.execute("SELECT sum(length(value)) FROM writes").fetchone()
        states = saver.conn.execute("SELECT max(length(checkpoint)) FROM checkpoints").fetchone()
    assert rows[0] < LARGEST
    assert states[0] < LARGEST


def test_langgraphs_strict_mode_gives_the_models_back(photo: Path) -> None:
    """LangGraph reads this mode at its import, and allows the types of the state by itself."""
    code = """
import sys
from langgraph.checkpoint.memory import InMemorySaver
from agenticiqa import AgenticIQA, build_graph
graph = build_graph(AgenticIQA.offline(), checkpointer=InMemorySaver())
config = {"configurable": {"thread_id": "one"}}
state = graph.invoke({"query": "Is it noisy?", "image_path": sys.argv[1]}, config)
assert graph.get_state(config).values == state, graph.get_state(config).values
"""
    environment = {**os.environ, "LANGGRAPH_STRICT_MSGPACK": "true"}
    ended = subprocess.run(
        [sys.executable, "-c", code, photo], capture_output=True, text=True, check=False, env=environment
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_an_async_saver_keeps_an_async_run(photo: Path, tmp_path: Path, unregistered: list[Any]) -> None:
    async def assessed() -> tuple[Any, Any]:
        async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "checkpoints.sqlite")) as saver:
            saver.serde = SERIALIZER
            graph = build_graph(AgenticIQA.offline(), checkpointer=saver)
            state = await graph.ainvoke(given(photo), THREAD)
            return state, (await graph.aget_state(THREAD)).values

    state, kept = asyncio.run(assessed())
    assert kept == state
    assert unregistered == []


def test_the_next_question_of_a_thread_starts_without_earlier_results(
    photo: Path, saver: BaseCheckpointSaver[Any]
) -> None:
    """Plan, count and result of the last question are cleared; the image may stay."""
    analysis = [unsure, unsure, SCRIPT["analysis"]]  # two rounds with a doubt
    plans = [{**SCRIPT["plan"], "query_scope": [scope]} for scope in ("sky", "sea", "sky")]
    config, engine = scripted({**DOUBTFUL, "plan": plans, "analysis": analysis})
    graph = build_graph(config["configurable"]["program"], checkpointer=saver)
    first = graph.invoke(given(photo, "Rate the quality of the sky and the sea."), THREAD)
    assert (first["iteration_count"], len(first["replan_history"])) == (2, 2)
    second = graph.invoke({"query": "Rate the quality again."}, THREAD)
    shown = [has_field(body, "feedback") for body in engine.bodies if stage_of(body) == "plan"]
    assert shown == [False, True, False]
    assert (second["iteration_count"], second["replan_history"]) == (0, [])
    assert second["earlier_plans"] is second["kept_answers"] is None


def test_an_error_is_cleared_before_the_next_question(photo: Path, tmp_path: Path) -> None:
    """The state has no answer of an earlier question, because the failed one has no result."""
    copy = tmp_path / "copy.jpg"
    copy.write_bytes(photo.read_bytes())
    graph = build_graph(AgenticIQA.offline(), checkpointer=InMemorySaver())
    assert graph.invoke(given(copy), THREAD)["summarizer_result"]
    for update in graph.stream(given(copy), THREAD, stream_mode="updates"):
        if "executor" in update:
            copy.unlink()
    failed = graph.get_state(THREAD).values
    assert "copy.jpg" in failed["error"]
    assert failed["summarizer_result"] is None
    answered = graph.invoke(given(photo), THREAD)
    assert answered["error"] is None
    assert answered["summarizer_result"]


def test_a_node_that_failed_is_run_again_but_no_earlier_one(photo: Path, saver: BaseCheckpointSaver[Any]) -> None:
    """After an outage at the executor's first request, the thread continues there, and the plan is kept."""
    with fake_server(by_stage({**SCRIPT, "detection": [server_error(), SCRIPT["detection"]]})) as server:
        graph = build_graph(program_for(server, cache=False), checkpointer=saver)
        with pytest.raises(dspy.LMError):
            graph.invoke(given(photo), THREAD)
        assert graph.get_state(THREAD).next == ("executor",)
        assert graph.invoke(None, THREAD)["summarizer_result"].quality_score
    assert [server.stages().count(stage) for stage in ("plan", "detection", "assessment")] == [1, 2, 1]


@pytest.mark.parametrize("stop_before", ["executor", "summarizer"])
def test_a_killed_process_is_resumed_from_its_checkpoint(photo: Path, tmp_path: Path, stop_before: str) -> None:
    """SIGKILL between two nodes: another process runs the rest, and finished requests are not sent again."""
    finished = {"executor": ["plan"], "summarizer": ["plan", "detection", "analysis"]}[stop_before]
    with fake_server(by_stage({**SCRIPT, "assessment": RATED})) as server:
        config, checkpoints = configuration(tmp_path, server.url), tmp_path / "checkpoints.sqlite"
        killed = started(config, checkpoints, photo, stop_before)
        assert killed.stdout is not None
        begun = [killed.stdout.readline().strip() for _ in range(2 + ROUND.index(stop_before))]
        killed.kill()
        killed.wait()
        assert begun == ["check_input", *ROUND[: ROUND.index(stop_before) + 1]]
        assert killed.returncode == -9
        assert sorted(server.stages()) == sorted(finished)
        resumed = started(config, checkpoints)
        shown, _ = resumed.communicate()
        *nodes, last = shown.splitlines()
        assert nodes == ROUND[ROUND.index(stop_before) :]
        assert sorted(server.stages()) == sorted(["plan", "detection", "analysis", "assessment"])
        program = AgenticIQA.from_config(load_config(config).model_copy(update={"cache": False}))
        resumed_result = SummarizerOutput.model_validate_json(last)
        assert resumed_result == program(photo, graph_process.QUERY).summarizer_result


def started(*arguments: Any) -> "subprocess.Popen[str]":
    """Start a process that runs the graph without a shared cache."""
    environment = {**os.environ, "DSPY_CACHEDIR": str(arguments[1].parent / "cache")}
    command = [sys.executable, graph_process.__file__, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
