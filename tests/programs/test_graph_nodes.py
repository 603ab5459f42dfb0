"""The nodes as functions, with LangGraph and without it."""

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import dspy
import pytest
from PIL import Image

from agenticiqa.configs import Config
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.graph import (
    AgenticIQAState,
    decide_next_node,
    executor_node,
    planner_node,
    summarizer_node,
)
from agenticiqa.signatures.types import SummarizerOutput
from support.engine import scripted_lm
from support.fake_server import by_stage, images_of, stage_of
from support.nodes import evidence, plan, scripted, state
from support.scripted_answers import RATE, analyse

OFFLINE: Any = {"configurable": {"program": AgenticIQA.offline()}}
WITHOUT_LANGGRAPH = """
import sys
sys.modules["langgraph"] = sys.modules["langchain_core"] = None  # importing them raises ImportError
import typing
from agenticiqa import AgenticIQA, UserError, build_graph
from agenticiqa.programs import graph

state = {"query": "Rate the perceptual quality of this image.", "image_path": sys.argv[1]}
config = {"configurable": {"program": AgenticIQA.offline()}}
for node in (graph.planner_node, graph.executor_node, graph.summarizer_node):
    assert set(typing.get_type_hints(node)) == {"state", "config", "return"}
    state |= node(state, config)
print(state["summarizer_result"].final_answer, graph.decide_next_node(state))
try:
    build_graph(AgenticIQA.offline())
except UserError as error:
    print(error)
"""


@pytest.mark.slow
def test_without_langgraph_the_nodes_work_and_build_graph_says_how_to_install_it(photo: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT_LANGGRAPH, photo], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    answered, shown = ended.stdout.splitlines()
    score, goes_to = answered.split()
    assert float(score) == AgenticIQA.offline()(photo, RATE).quality_score
    assert goes_to == "__end__"
    assert shown.startswith("build_graph needs LangGraph")
    assert shown.endswith('pip install "agenticiqa[langgraph]"')


def test_an_error_ends_the_graph_despite_a_replan_request(photo: Path) -> None:
    given = state(photo, RATE, plan(analyse=True))
    asking: Any = {**given, **summarizer_node(given, OFFLINE)}
    assert decide_next_node(asking) == "planner"
    assert decide_next_node({**asking, "error": "executor: broken"}) == "__end__"


def test_after_a_replan_a_model_that_gave_no_boxes_is_not_asked_for_them(photo: Path) -> None:
    config, engine = scripted({"analysis": analyse("slight")})
    asked = state(photo, "Is the car blurry?", plan(scope=["car"], distortions={"car": ["Blurs"]}, analyse=True))
    again = SummarizerOutput(final_answer="Yes", quality_reasoning="Soft.", need_replan=True)
    earlier: Any = {**asked, **executor_node(asked, config), "summarizer_result": again}
    assert executor_node(earlier, config)["executor_evidence"].boxes == {"car": None}
    assert [stage_of(body) for body in engine.bodies] == ["location", "analysis", "analysis"]


@pytest.mark.parametrize(
    ("configurable", "message"),
    [
        ({"program": None}, "program is of type NoneType; give an AgenticIQA such as"),
        ({"program": "providers/openai"}, "program is of type str; give an AgenticIQA such as"),
        ({"program": dspy.Predict("question -> answer")}, "program is of type Predict; give an AgenticIQA such as"),
        ({"program": AgenticIQA}, "program is of type .*; give an AgenticIQA such as"),
        ({"config": "no-such-file.yaml"}, "no-such-file"),
    ],
    ids=lambda given: next(iter(given)) if isinstance(given, dict) else given,
)
def test_wrong_programs_and_configurations_are_refused(photo: Path, configurable: dict[str, Any], message: str) -> None:
    """The intended program answers, or there is an error."""
    with pytest.raises(ValueError, match=message):
        planner_node({"query": RATE, "image_path": str(photo)}, {"configurable": configurable})


def test_foreign_configurables_are_ignored(photo: Path) -> None:
    """The nodes ignore keys of LangGraph and of users."""
    given: AgenticIQAState = {"query": RATE, "image_path": str(photo)}
    others = {"thread_id": "1", "checkpoint_ns": "", "__pregel_task_id": "2", "user_id": 7, "provider": "x"}
    for configurable in (others, {**others, "program": AgenticIQA.offline(), "judge": dspy.Predict("a -> b")}):
        assert planner_node(given, {"configurable": configurable})["plan"].query_type == "IQA"


def test_images_are_sent_as_the_program_sends_them(photo: Path) -> None:
    """The program's ``max_side`` applies to the nodes."""
    lm, engine = scripted_lm(
        by_stage({"assessment": {"quality_level": "Fair", "quality_probs": None, "quality_reasoning": "x"}})
    )
    program = AgenticIQA(backend="dspy", config=Config(max_side=32))
    config = {"configurable": {"program": program}}
    with dspy.context(lm=lm):
        summarizer_node(state(photo, RATE, plan(), evidence()), config)
    ((_, data),) = images_of(engine.bodies[0])
    assert max(Image.open(io.BytesIO(data)).size) == 32


def test_a_reference_is_resized_if_the_state_has_resize_reference(photo: Path, tmp_path: Path) -> None:
    small = tmp_path / "small.png"
    Image.open(photo).resize((64, 64)).save(small)
    given = state(photo, RATE, plan(), evidence(), small)
    assert "resize_reference" in summarizer_node(given, OFFLINE)["error"]
    given["resize_reference"] = True
    assert "summarizer_result" in summarizer_node(given, OFFLINE)
