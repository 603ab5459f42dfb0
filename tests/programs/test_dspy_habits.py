"""Callbacks, copies and pickles of the program; what else DSPy's users do with it is in ``test_dspy_matrix.py``."""

import asyncio
import copy
import dataclasses
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.utils.callback import BaseCallback

from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.stages.executor import Executor
from agenticiqa.programs.stages.planner import Planner
from support.fake_server import by_stage, fake_server
from support.judging import SCRIPT, program_for


class Heard(BaseCallback):
    """Every module that was called, with its result."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.results: dict[str, Any] = {}

    def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        self.names[call_id] = type(instance).__name__

    def on_module_end(self, call_id: str, outputs: Any | None, exception: Exception | None = None) -> None:
        self.results[self.names[call_id]] = outputs


@pytest.fixture
def photo(examples: Path) -> Path:
    return examples / "coffee_jpeg.jpg"


@pytest.mark.parametrize("asynchronous", [False, True])
def test_callbacks_hear_of_every_stage_with_its_typed_result(photo: Path, asynchronous: bool) -> None:
    heard = Heard()
    with fake_server(by_stage(SCRIPT)) as server, dspy.context(callbacks=[heard]):
        program = program_for(server)
        result = asyncio.run(program.acall(photo)) if asynchronous else program(photo)
    assert heard.results.pop("AgenticIQA") is result
    assert isinstance(heard.results.pop("Predict"), dspy.Prediction)
    assert heard.results.keys() == {
        *("Planner", "Executor", "Detector", "Analyst", "Selector", "Summarizer", "Scorer", "Replan", "CheckedPredict")
    }
    assert all(map(dataclasses.is_dataclass, heard.results.values()))
    assert heard.results["Planner"].plan == result.plan
    assert heard.results["Executor"].evidence == result.executor_evidence


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda program: program.deepcopy(), lambda program: program.reset_copy()]
)
def test_a_copy_has_stages_of_its_own(copied: Callable[[AgenticIQA], AgenticIQA]) -> None:
    with fake_server(by_stage(SCRIPT)) as server:
        program = program_for(server, planner={"on_failure": "rules"})
        other = copied(program)
    assert [name for name, _ in other.named_predictors()] == [name for name, _ in program.named_predictors()]
    assert not {id(part) for _, part in other.named_predictors()} & {id(part) for _, part in program.named_predictors()}
    planner, executor = other.planner, other.executor
    assert isinstance(planner, Planner)
    assert isinstance(executor, Executor)
    assert planner.prefetch == executor.prefetch
    assert executor is not program.executor


def test_the_offline_program_survives_a_pickle(photo: Path) -> None:
    program = AgenticIQA.offline()
    assert pickle.loads(pickle.dumps(program))(photo).final_answer == program(photo).final_answer
