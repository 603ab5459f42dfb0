"""Every stage that asks a model, and its offline counterpart, has the signature of its Protocol."""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any, Protocol, get_type_hints

import pytest

from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.offline import stages as offline
from agenticiqa.programs.stages import protocols
from agenticiqa.programs.stages.analyst import Analyst
from agenticiqa.programs.stages.answerer import Answerer
from agenticiqa.programs.stages.detector import Detector
from agenticiqa.programs.stages.executor import Executor
from agenticiqa.programs.stages.locator import Locator
from agenticiqa.programs.stages.planner import Planner
from agenticiqa.programs.stages.replan import Replan
from agenticiqa.programs.stages.scorer import Scorer
from agenticiqa.programs.stages.selector import Selector
from agenticiqa.programs.stages.side_by_side import StageModule
from agenticiqa.programs.stages.summarizer import Summarizer

IMPLEMENTED: dict[type, list[type]] = {
    protocols.PlannerStage: [Planner, offline.RulePlanner],
    protocols.ExecutorStage: [Executor],
    protocols.LocatorStage: [Locator, offline.SaliencyLocator],
    protocols.DetectorStage: [Detector, offline.MeasuredDetector],
    protocols.AnalystStage: [Analyst, offline.MeasuredAnalyst],
    protocols.SelectorStage: [Selector, offline.TableSelector],
    protocols.SummarizerStage: [Summarizer],
    protocols.ScorerStage: [Scorer, offline.MeasuredScorer],
    protocols.AnswererStage: [Answerer, offline.EvidenceAnswerer],
    protocols.ReplanStage: [Replan],
}
PAIRS = [(protocol, stage) for protocol, stages in IMPLEMENTED.items() for stage in stages]


def signature_of(function: Callable[..., Any]) -> tuple[list[tuple[Any, ...]], Any]:
    """Return each parameter's name, kind, default and annotation, and the type of the result."""
    hints = get_type_hints(function)
    parameters = [
        (name, parameter.kind, parameter.default, hints.get(name))
        for name, parameter in inspect.signature(function).parameters.items()
    ]
    return parameters, hints["return"]


def differs(protocol: type, stage: type) -> bool:
    """Return whether a stage's ``forward`` has another signature than the Protocol's call."""
    return signature_of(stage.forward) != signature_of(protocol.__call__)  # type: ignore[attr-defined]


@pytest.mark.parametrize(("protocol", "stage"), PAIRS)
def test_a_stage_is_called_as_its_protocol_says(protocol: type, stage: type) -> None:
    assert not differs(protocol, stage)


@pytest.mark.parametrize("method", ["needs_verdict", "verdict"])
def test_the_replan_verdict_has_the_signature_of_the_protocol(method: str) -> None:
    assert signature_of(getattr(Replan, method)) == signature_of(getattr(protocols.ReplanStage, method))


def test_every_protocol_has_its_stages_here() -> None:
    defined = {value for value in vars(protocols).values() if isinstance(value, type) and Protocol in value.__bases__}
    assert defined == {*IMPLEMENTED, protocols.StageResult}
    twins = {value for value in vars(offline).values() if isinstance(value, type) and issubclass(value, StageModule)}
    assert twins - {StageModule} == {stage for _, stage in PAIRS if stage.__module__ == offline.__name__}


@pytest.mark.parametrize("protocol", IMPLEMENTED)
def test_every_result_is_a_frozen_dataclass_with_rejected_answers(protocol: type) -> None:
    result = get_type_hints(protocol.__call__)["return"]
    assert dataclasses.is_dataclass(result)
    assert result.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert get_type_hints(result)["rejected_answers"] == protocols.RejectedAnswers


def test_no_stage_imports_its_offline_counterpart() -> None:
    """The program is composed in one place; a stage receives the offline parts that it needs."""
    stages = [stage for _, stage in PAIRS if ".stages." in stage.__module__ and "offline" not in stage.__module__]
    assert len(stages) == 10
    for stage in stages:
        assert ".offline" not in inspect.getsource(inspect.getmodule(stage))  # type: ignore[arg-type]


def test_the_shipped_program_has_stages_of_the_protocols() -> None:
    parts = {type(part) for _, part in AgenticIQA.offline().named_sub_modules()} - {AgenticIQA}
    assert parts <= {stage for _, stage in PAIRS}
    assert len(parts) == 10
