"""Properties of the score of ScoreFusion; its parts are tested in ``tests/spec``."""

import logging
import math
from collections.abc import Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agenticiqa.programs.fusion.equations import softmax
from agenticiqa.programs.fusion.formula import UNDECIDED, ScoreFusion, level_name
from agenticiqa.programs.fusion.interval import fused_score
from agenticiqa.signatures.types import ExecutorOutput
from agenticiqa.signatures.vocabulary import LETTERS, LEVELS
from support.profiles import TYPICAL

FUSION = ScoreFusion()
UNIFORM = dict.fromkeys(range(1, 6), 0.2)

scores = st.floats(1, 5)
tool_scores = st.lists(scores, max_size=6)
logs = st.fixed_dictionaries({level: st.floats(-30, 0) for level in range(1, 6)})
etas = st.floats(0, 20)


def tilted(p: dict[int, float], strength: float) -> dict[int, float]:
    """Move the distribution towards the better levels, or below 0 towards the worse ones."""
    return softmax({level: math.log(share) + strength * level for level, share in p.items()})


@given(st.lists(scores, min_size=1, max_size=6), st.data(), logs, etas)
def test_the_score_never_falls_when_any_tool_score_rises(
    tools: list[float], data: st.DataObject, log_p: dict[int, float], eta: float
) -> None:
    at = data.draw(st.integers(0, len(tools) - 1))
    better = [*tools[:at], data.draw(st.floats(tools[at], 5)), *tools[at + 1 :]]
    fusion, p = ScoreFusion(eta), softmax(log_p)
    assert fusion.fuse_scores(better, p) >= fusion.fuse_scores(tools, p) - 1e-9


@given(tool_scores, logs, etas)
def test_the_refined_score_without_errors_is_the_score_of_the_paper(
    tools: list[float], log_p: dict[int, float], eta: float
) -> None:
    """Except that probabilities which differ by less than ``UNDECIDED`` are equal, on a scale of four levels."""
    fusion, p = ScoreFusion(eta), softmax(log_p)
    assert fusion.refined_score(tools, p) == pytest.approx(fusion.fuse_scores(tools, p), rel=0, abs=4 * UNDECIDED)


def test_levels_without_a_probability_do_not_count_however_large_eta_is() -> None:
    assert ScoreFusion(1e6).fuse_scores([1.0], {1: 0.0, 2: 0.0, 3: 0.0, 4: 1e-320, 5: 1.0}) == 5.0


@given(st.permutations([1.3, 2.9, 4.4]), logs)
def test_the_order_of_the_tools_does_not_matter(tools: list[float], log_p: dict[int, float]) -> None:
    p = softmax(log_p)
    assert FUSION.fuse_scores(tools, p) == pytest.approx(FUSION.fuse_scores([1.3, 2.9, 4.4], p), abs=1e-12)


@given(st.floats(2, 4), st.integers(1, 6))
def test_tools_that_agree_and_an_undecided_model_give_about_their_value(value: float, count: int) -> None:
    """The difference is at most 0.07 between 2 and 4, where the scale has levels on both sides."""
    assert FUSION.fuse_scores([value] * count, UNIFORM) == pytest.approx(value, abs=0.07)


@pytest.mark.parametrize(("mean", "fused"), [(2.9871, 2.987), (3, 3.0), (5, 4.71), (1, 1.29)])
def test_scores_shrink_at_the_ends_of_the_scale_but_not_in_the_middle(mean: float, fused: float) -> None:
    """Beyond 1 and 5 there are no levels, so the mean over levels is closer to the middle than the tools."""
    assert FUSION.fuse_scores([mean], UNIFORM) == pytest.approx(fused, abs=0.005)


def test_without_tools_the_score_is_the_models_expectation() -> None:
    p = {1: 0.1, 2: 0.2, 3: 0.3, 4: 0.3, 5: 0.1}
    assert FUSION.compute_perceptual_weights([]) == UNIFORM
    assert FUSION.fuse_scores([], p) == pytest.approx(sum(level * share for level, share in p.items()))
    assert ScoreFusion(model_error=3).fuse_scores([], p) == FUSION.fuse_scores([], p)


def test_with_eta_zero_the_tools_have_no_influence() -> None:
    p = {1: 0.1, 2: 0.2, 3: 0.3, 4: 0.3, 5: 0.1}
    assert ScoreFusion(0).fuse_scores([5.0], p) == pytest.approx(ScoreFusion(0).fuse_scores([], p))


@pytest.mark.parametrize("eta", [1.0, 100.0, 1e6])
def test_a_certain_model_determines_the_score(eta: float) -> None:
    assert ScoreFusion(eta).fuse_scores([1.0], {1: 0, 2: 0, 3: 0, 4: 0, 5: 1.0}) == pytest.approx(5)


def test_a_nearly_undecided_model_reproduces_the_papers_example() -> None:
    """Fig. 6: two tools at 2.9871, result 2.9542; a tilt of 6.6 % per level towards the worse ones suffices."""
    low, high = -1.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if FUSION.fuse_scores([2.9871] * 2, tilted(UNIFORM, middle)) < 2.9542 else (low, middle)
        )
    assert FUSION.fuse_scores([2.9871] * 2, tilted(UNIFORM, low)) == pytest.approx(2.9542, abs=1e-6)
    assert low == pytest.approx(-0.066, abs=0.001)


@given(logs)
def test_the_papers_example_requires_the_denominator(log_p: dict[int, float]) -> None:
    """The sum of alpha p c is at most 1.69 for a mean of 2.9871, for any model."""
    weights, p = FUSION.compute_perceptual_weights([2.9871] * 2), softmax(log_p)
    unnormalised = sum(weights[level] * p[level] * level for level in p)
    assert unnormalised <= max(weights[level] * level for level in p) + 1e-12 < 1.70


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 0.99, 5.01])
def test_an_invalid_tool_score_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match=r"a tool score must lie in \[1, 5\]"):
        FUSION.fuse_scores([3.0, bad], UNIFORM)


@pytest.mark.parametrize(
    "bad",
    [
        {1: 1.0},
        {**UNIFORM, 6: 0.0},
        dict.fromkeys(range(1, 6), 0.3),
        {**UNIFORM, 1: math.nan},
        {1: -0.2, 2: 0.6, 3: 0.2, 4: 0.2, 5: 0.2},
        {},
    ],
)
def test_probabilities_that_are_no_distribution_are_refused(bad: dict[int, float]) -> None:
    with pytest.raises(ValueError, match="probabilities"):
        FUSION.fuse_scores([3.0], bad)


errors = st.floats(0, 20)


@given(tool_scores, logs, etas, errors)
def test_for_any_model_error_the_score_is_on_the_scale(
    tools: list[float], log_p: dict[int, float], eta: float, error: float
) -> None:
    assert 1 <= ScoreFusion(eta, model_error=error).fuse_scores(tools, softmax(log_p)) <= 5


@given(tool_scores, logs, st.floats(0, 5), st.just(0.0) | st.floats(0.01, 20))
def test_for_any_model_error_the_score_rises_with_the_models_expectation(
    tools: list[float], log_p: dict[int, float], strength: float, error: float
) -> None:
    fusion, p = ScoreFusion(model_error=error), softmax(log_p)
    assume(error == 0 or max(p.values()) - min(p.values()) > 1e-6)  # equal probabilities have no influence
    assert fusion.fuse_scores(tools, tilted(p, strength)) >= fusion.fuse_scores(tools, p) - 1e-9


@given(scores, logs)
def test_a_zero_model_error_is_the_papers_formula_and_a_large_one_ignores_the_model(
    tool: float, log_p: dict[int, float]
) -> None:
    p = softmax(log_p)
    assert ScoreFusion(model_error=0).fuse_scores([tool], p) == FUSION.fuse_scores([tool], p)
    alone = FUSION.fuse_scores([tool], UNIFORM)
    assert ScoreFusion(model_error=1e3).fuse_scores([tool], p) == pytest.approx(alone, abs=1e-4)


@given(scores, logs, st.floats(0.3, 20))
def test_with_an_error_only_the_models_expectation_counts(tool: float, log_p: dict[int, float], error: float) -> None:
    p = softmax(log_p)
    expectation = sum(level * share for level, share in p.items())
    low = min(math.floor(expectation), 4)
    narrow = {**dict.fromkeys(UNIFORM, 0.0), low: low + 1 - expectation, low + 1: expectation - low}
    if max(p.values()) - min(p.values()) > 1e-6:
        fusion = ScoreFusion(model_error=error)
        assert fusion.fuse_scores([tool], narrow) == pytest.approx(fusion.fuse_scores([tool], p), abs=1e-6)


@given(scores, errors)
def test_an_undecided_model_has_no_influence(tool: float, error: float) -> None:
    alone = FUSION.fuse_scores([tool], UNIFORM)
    assert ScoreFusion(model_error=error).fuse_scores([tool], UNIFORM) == pytest.approx(alone)


def test_a_larger_model_error_reduces_the_models_influence() -> None:
    sure = {1: 1.0, 2: 0, 3: 0, 4: 0, 5: 0}
    pulled = [ScoreFusion(2, model_error=error).fuse_scores([4.0], sure) for error in (0, 0.5, 1, 2, 3, 6, 100)]
    assert pulled[0] == pytest.approx(1)
    assert pulled == sorted(pulled)
    assert 3.7 < pulled[4] < 4 == pytest.approx(pulled[-1], abs=0.01)


@pytest.mark.parametrize("name", ["eta", "model_error"])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -0.1])
def test_a_parameter_that_is_negative_or_not_finite_is_refused(name: str, bad: float) -> None:
    with pytest.raises(ValueError, match=name):
        ScoreFusion(**{name: bad})


@pytest.mark.parametrize(
    "bad", [{"1": 0.0}, {"1": 0, "2": 0, "3": 0, "4": 0, "5": math.nan}, dict.fromkeys("12345", -math.inf)]
)
def test_invalid_log_probabilities_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"quality_probs|log-probabilities"):
        FUSION.extract_vlm_probabilities({"quality_probs": bad})


def test_with_probabilities_nothing_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        FUSION.extract_vlm_probabilities({"quality_probs": dict.fromkeys("12345", -1.6), "quality_reasoning": "Poor"})
    assert caplog.text == ""


@given(scores, scores)
def test_a_better_score_never_has_a_worse_level(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert LEVELS[level_name(low)] <= LEVELS[level_name(high)]
    assert LETTERS[level_name(low)] >= LETTERS[level_name(high)]


@pytest.mark.parametrize("score", [0.99, 5.01, math.nan, math.inf])
def test_a_score_outside_the_scale_has_no_level(score: float) -> None:
    with pytest.raises(ValueError, match="a score must lie in"):
        level_name(score)


def test_a_subclass_of_the_fusion_keeps_its_class_with_any_profile() -> None:
    class ToolsAlone(ScoreFusion):
        def fuse_scores(self, tool_scores: Sequence[float], *args: object, **kwargs: object) -> float:
            return tool_scores[0]

    profile = TYPICAL.model_copy(update={"toolset": ("NIQE",)})
    evidence = ExecutorOutput(quality_scores={"Global": {"Overall": ("SSIM", 2.0)}})
    fusion = ToolsAlone().with_profile(profile)
    assert (type(fusion), fusion.profile) == (ToolsAlone, profile)
    p = {1: 0.0, 2: 0.0, 3: 0.0, 4: 0.1, 5: 0.9}
    assert fused_score(fusion, evidence, p, "logprobs").score == 2.0
    assert fusion.fuse([2.0], p) == 2.0, "the other name in the specification"
