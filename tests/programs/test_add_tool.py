"""Metrics of the user in a program: named in a question, selected by a model or by error, with and without a curve."""

import linecache
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agenticiqa import AgenticIQA, add_tool, assess_many
from agenticiqa.programs.errors import ToolError, UserError, WrongArgument
from agenticiqa.programs.fusion.configured import curves_digest
from agenticiqa.programs.tools.catalog import own_tool
from agenticiqa.programs.tools.tool_curves import ToolCurve
from support.fake_server import by_stage, fake_server, field_of
from support.scripted_answers import RATE, SCRIPT, pairs, plan, program_for

NAMED = "Rate the quality with MY-EDGES."


def edges(image: np.ndarray) -> float:
    """Mean difference of neighbors, in gray levels."""
    return float(np.abs(np.diff(image[..., 1].astype(float), axis=1)).mean())


def difference(image: np.ndarray, reference: np.ndarray) -> float:
    return float(np.abs(image.astype(float) - reference).mean())


def by_channel(image: np.ndarray, *, channel: int) -> float:
    return float(image[..., channel].mean())


def curve(raw: float) -> float:
    return float(np.interp(raw, [1, 12], [1, 5]))


@pytest.fixture
def photo(examples: Path) -> Path:
    return examples / "coffee_jpeg.jpg"


@pytest.fixture
def program() -> AgenticIQA:
    return AgenticIQA.offline()


def test_a_named_tool_with_a_curve_is_the_tool_score(program: AgenticIQA, photo: Path) -> None:
    add_tool(program, "MY-EDGES", edges, curve)
    result = program(photo, NAMED)
    call = result.executor_evidence.tool_log[0]
    assert (call.tool, call.weight, call.error) == ("MY-EDGES", 1.0, None)
    assert call.raw == edges(result.image.pixels)
    assert result.executor_evidence.overall_mean == call.calibrated == curve(call.raw)
    assert f"MY-EDGES {call.raw:.4g} ({call.calibrated:.2f} of 5)" in program(photo, "MY-EDGES?").final_answer


def test_a_curve_without_an_error_changes_no_plain_rating(program: AgenticIQA, photo: Path) -> None:
    before = program(photo)
    add_tool(program, "MY-EDGES", edges, curve)
    after = program(photo)
    assert after.quality_score == before.quality_score
    assert "MY-EDGES" not in [call.tool for call in after.executor_evidence.tool_log]


@pytest.mark.slow
@pytest.mark.parametrize("query", [NAMED, "Is it sharp by MY-EDGES? A. Yes B. No"])
def test_a_tool_without_a_curve_is_reported_on_its_own_scale_and_changes_no_score(
    program: AgenticIQA, photo: Path, query: str
) -> None:
    before = program(photo)
    add_tool(program, "MY-EDGES", edges)
    assert program(photo).executor_evidence.tool_log[0].tool == before.executor_evidence.tool_log[0].tool
    result = program(photo, query)
    call = result.executor_evidence.tool_log[0]
    assert (call.tool, call.raw, call.calibrated, call.error) == ("MY-EDGES", edges(result.image.pixels), None, None)
    assert result.executor_evidence.notes == [
        f"MY-EDGES gave {call.raw:.4g} on its own scale. It has no curve to 1..5, so it is not part of the score."
    ]
    assert result.iteration_count == 0, "the value is not missing"
    if query == NAMED:
        assert result.quality_score == before.quality_score


def test_a_tool_of_two_images_needs_a_reference(program: AgenticIQA, photo: Path, examples: Path) -> None:
    add_tool(program, "MY-DIFFERENCE", difference)
    with pytest.raises(ToolError, match="MY-DIFFERENCE needs a pristine reference"):
        program(photo, "Rate it with MY-DIFFERENCE.")
    result = program(photo, "Rate it with MY-DIFFERENCE.", reference=examples / "coffee.webp")
    assert result.reference is not None
    assert result.executor_evidence.tool_log[0].raw == difference(result.image.pixels, result.reference.pixels)


def test_a_model_sees_the_tool_and_can_select_it(photo: Path) -> None:
    def selection(request: dict[str, object]) -> dict[str, object]:
        return {"selected_tools": [{"region": r, "distortion": d, "tool": "MY-EDGES"} for r, d in pairs(request)]}

    script = {**SCRIPT, "plan": plan(), "selection": selection}
    with fake_server(by_stage(script)) as server:
        program = program_for(server, executor={"select": "model"})
        add_tool(program, "MY-EDGES", edges, curve)
        result = program(photo, RATE)
    assert "MY-EDGES (NR): Mean difference of neighbors, in gray levels." in field_of(
        server.of("selection")[0], "available_tools"
    )
    assert field_of(server.of("plan")[0], "available_tools") == "none", "the question names no tool"
    assert {call.tool for call in result.executor_evidence.tool_log} >= {"MY-EDGES"}
    assert result.executor_evidence.quality_scores is not None
    assert result.executor_evidence.quality_scores["Global"]["Blurs"][0] == "MY-EDGES"


def test_the_program_chooses_a_tool_for_a_rating_if_its_curve_states_a_smaller_error(
    program: AgenticIQA, photo: Path
) -> None:
    fitted = ToolCurve((0.0, 0.0, 0.0, 0.3, 1.0), (1.0, 12.0), "mine, n=400, 2026-11-20, SRCC 0.97", residual=0.2)
    add_tool(program, "MY-EDGES", edges, fitted)
    calls = program(photo).executor_evidence.tool_log
    assert next(call.weight for call in calls if call.tool == "MY-EDGES") > 0.5


def test_a_curve_outside_the_scale_is_the_error_of_the_tool(program: AgenticIQA, photo: Path) -> None:
    add_tool(program, "MY-EDGES", edges, lambda raw: 12.0)
    result = program(photo, NAMED)
    error = result.executor_evidence.tool_log[0].error
    assert error is not None
    assert error.startswith("the curve of MY-EDGES maps 4.64")
    assert error.endswith("to 12, but scores are from 1 to 5")
    assert result.quality_score is not None


def test_only_this_program_has_the_tool_and_its_copies_keep_it(program: AgenticIQA, photo: Path) -> None:
    copied = program.deepcopy()
    add_tool(program, "MY-EDGES", edges, curve)
    for again in (program.deepcopy(), pickle.loads(pickle.dumps(program))):
        assert again(photo, NAMED).executor_evidence.tool_log[0].tool == "MY-EDGES"
    for other in (copied, AgenticIQA.offline()):
        assert "MY-EDGES" not in other.executor.toolbox
    add_tool(copied, "MY-EDGES", lambda image: 3.0, lambda raw: raw)  # cannot be sent to another process
    ((_, outcome),) = assess_many(copied, photo)
    assert not isinstance(outcome, Exception)


@pytest.mark.parametrize(
    ("name", "function", "message"),
    [
        ("niqe", edges, "'niqe' is already the name of a tool (NIQE); choose another name"),
        ("my edges", edges, "'my edges' cannot name a tool: use letters, digits, '-' and '_', such as MY-METRIC"),
        ("MINE", lambda: 1.0, "MINE: expected a function of an image, or of an image and its reference"),
        ("MINE", max, "MINE: expected a function of an image, or of an image and its reference"),
        ("MINE", by_channel, "MINE: expected a function of an image, or of an image and its reference"),
        ("MINE", lambda a, b, c: 1.0, "MINE: expected a function of an image, or of an image and its reference"),
    ],
)
def test_a_tool_that_cannot_be_added_is_refused(
    program: AgenticIQA, name: str, function: Callable[..., float], message: str
) -> None:
    with pytest.raises(UserError) as raised:
        add_tool(program, name, function)
    assert str(raised.value) == message


def test_an_executor_without_tools_is_refused(program: AgenticIQA) -> None:
    program.executor = lambda image, query, plan, reference: None
    with pytest.raises(WrongArgument, match="has no tools"):
        add_tool(program, "MY-EDGES", edges)


@dataclass
class Brightness:
    """The mean of a channel, as an object without a hash."""

    channel: int

    def __call__(self, image: np.ndarray) -> float:
        return float(image[..., self.channel].mean())


@pytest.mark.parametrize("mapped", [np.poly1d([0.01, 1.5]), np.poly1d([3.0]), np.polynomial.Polynomial([1.5, 0.01])])
def test_an_object_without_a_hash_can_be_a_metric_or_a_curve(program: AgenticIQA, photo: Path, mapped: Any) -> None:
    add_tool(program, "MY-MEAN", Brightness(1), mapped)
    result = program(photo, "Rate the quality with MY-MEAN.")
    call = result.executor_evidence.tool_log[0]
    assert (call.error, call.raw) == (None, Brightness(1)(result.image.pixels))
    assert call.calibrated == mapped(call.raw)


def test_a_digest_of_the_curves_has_the_content_of_a_users_functions(program: AgenticIQA, tmp_path: Path) -> None:
    def digest_of(function: Callable[..., float], curve: Callable[[float], float] | None) -> str:
        tools = {"MY-EDGES": own_tool("MY-EDGES", function, curve, ())}
        return curves_digest(("MY-EDGES",), tools)

    def written(source: str) -> Callable[[np.ndarray], float]:
        file, space = tmp_path / "mine.py", {"__name__": "mine"}
        file.write_text(source)
        linecache.clearcache()
        exec(compile(source, file, "exec"), space)
        found: Callable[[np.ndarray], float] = space["mean"]  # type: ignore[assignment]
        return found

    first = digest_of(written("def mean(image): return image.mean()"), None)
    assert first == digest_of(written("def mean(image): return image.mean()"), None)
    assert first != digest_of(written("def mean(image): return image.min()"), None)
    curves = [None, curve, np.poly1d([1, 2]), np.poly1d([1, 3])]
    given = [*((edges, each) for each in curves), (Brightness(1), None), (Brightness(2), None)]
    digests = [digest_of(*each) for each in given]
    assert digests == [digest_of(*each) for each in given]
    assert len(set(digests)) == len(given)
