"""Which model is asked if several are given, or none; ``test_dspy_matrix.py`` has each way to give one."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dspy
import pytest

from agenticiqa.configs import Config, StageConfig
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.choice import NO_MODEL
from agenticiqa.programs.errors import BackendError
from agenticiqa.programs.offline.stages import MeasuredAnalyst, TableSelector
from agenticiqa.programs.stages.detector import Detector
from agenticiqa.programs.stages.executor import Executor
from agenticiqa.programs.tools import toolbox
from support.fake_server import Server, by_stage, fake_server
from support.scripted_answers import RATE, RATED, SCRIPT, program_for

MINE, OTHER = "mine", "other"


@pytest.fixture
def server() -> Iterator[Server]:
    with fake_server(by_stage({**SCRIPT, "assessment": RATED})) as running:
        yield running


def lm_of(server: Server, name: str = MINE) -> dspy.LM:
    """Return a model as a DSPy user creates it."""
    return dspy.LM(f"openai/{name}", api_base=server.url, api_key="none", cache=False, max_tokens=900)


def asked(server: Server) -> set[str]:
    return {request["model"] for request in server.requests}


@contextmanager
def configured(lm: dspy.LM) -> Iterator[None]:
    """Call ``dspy.configure``, and undo it at the end."""
    dspy.configure(lm=lm)
    try:
        yield
    finally:
        dspy.configure(lm=None)


@pytest.mark.parametrize("program", [AgenticIQA(), AgenticIQA.from_config(Config().with_backend("dspy"))])
def test_without_a_model_the_first_call_raises_with_instructions(program: AgenticIQA) -> None:
    with pytest.raises(BackendError) as raised:
        program("no-such-file.jpg")
    assert str(raised.value) == NO_MODEL
    assert "\n" not in NO_MODEL
    assert all(way in NO_MODEL for way in ("dspy.configure", "from_config", "offline()"))


def test_a_name_instead_of_a_model_is_reported() -> None:
    with dspy.context(lm="openai/gpt-4o"), pytest.raises(BackendError, match=r"pass dspy.LM\('openai/gpt-4o'\)"):
        AgenticIQA()("photo.jpg")


def test_the_order_is_own_then_context_then_configuration_then_configure(photo: Path, server: Server) -> None:
    program = program_for(server)
    with configured(lm_of(server, "process")):
        program(photo, RATE)
        assert asked(server) == {"test"}
        server.requests.clear()
        program.planner.ask.predict.lm = lm_of(server, "own")
        with dspy.context(lm=lm_of(server, "context")):
            result = program(photo, RATE)
    assert {server.stages()[at]: request["model"] for at, request in enumerate(server.requests)} == {
        "plan": "own", "detection": "context", "analysis": "context", "selection": "context", "assessment": "context",
    }  # fmt: skip
    assert result.backend == "openai/own, openai/context"
    assert result.answered_by["planner"] == ["openai/own"]


def test_one_stage_of_a_configuration_may_ask_the_model_of_dspy(photo: Path, server: Server) -> None:
    program = AgenticIQA.from_config(Config(summarizer=StageConfig(backend="dspy")))
    with dspy.context(lm=lm_of(server)):
        result = program(photo, RATE)
    assert server.stages() == ["assessment"]
    assert result.answered_by == {"scoring": [f"openai/{MINE}"]}


def test_settings_that_the_model_of_dspy_does_not_have_are_refused() -> None:
    with pytest.raises(BackendError, match="remove api_base"):
        AgenticIQA.from_config(Config(summarizer=StageConfig(backend="dspy", api_base="http://127.0.0.1:1/v1")))


def test_stages_that_are_not_given_ask_the_model_of_dspy(photo: Path, server: Server) -> None:
    offline = AgenticIQA.offline()
    tools = toolbox("default", [])
    program = AgenticIQA(offline.planner, Executor(Detector(), MeasuredAnalyst(), TableSelector(), tools))
    with dspy.context(lm=lm_of(server)):
        program(photo, RATE)
    assert server.stages() == ["detection", "assessment"]
