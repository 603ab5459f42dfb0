"""The architecture document has no scenarios; these tests check its interfaces, the graph's edge and ScoreFusion."""

import math
from pathlib import Path
from typing import Any

import pytest

from agenticiqa.programs.fusion.formula import ScoreFusion
from agenticiqa.programs.graph import AgenticIQAState, decide_next_node, executor_node, planner_node, summarizer_node
from agenticiqa.programs.stages.evidence import gaps
from agenticiqa.signatures.types import ExecutorOutput, SummarizerOutput
from support.fake_server import field_of, has_field, stage_of
from support.nodes import evidence, plan, scripted, state
from support.scripted_answers import LOOK_AGAIN, unsure
from support.specification import ASSESSMENT, LOG_PROBS, PLAN

LEVELS = range(1, 6)


@pytest.mark.parametrize(
    ("need_replan", "count", "limit", "goes_to"),
    [
        (None, 0, 2, "__end__"),
        (False, 0, 2, "__end__"),
        (True, None, None, "planner"),
        (True, 1, None, "planner"),
        (True, 2, None, "__end__"),
        (True, 3, None, "__end__"),
        (True, 2, 3, "planner"),
        (True, 0, 0, "__end__"),
    ],
)
def test_the_graph_replans_only_on_request_and_below_the_limit(
    photo: Path, need_replan: bool | None, count: int | None, limit: int | None, goes_to: str
) -> None:
    """The graph ends without a result, without a request for a new plan, or at the limit (two by default)."""
    given = state(photo)
    if need_replan is not None:
        given["summarizer_result"] = SummarizerOutput(
            final_answer="B", quality_reasoning="Soft.", need_replan=need_replan, replan_reason="The sky."
        )
    if count is not None:
        given["iteration_count"] = count
    if limit is not None:
        given["max_replan_iterations"] = limit
    assert decide_next_node(given) == goes_to


@pytest.mark.parametrize(("limit", "plans"), [(0, 1), (1, 1), (2, 2), (4, 4)])
def test_replanning_ends_at_the_limit_and_each_new_plan_gets_the_reason(photo: Path, limit: int, plans: int) -> None:
    """Insufficient evidence leads to new plans until the limit, and the planner receives the reason each time."""
    # A doubt in the analysis stays.
    decision = {"need_replan": True, "replan_reason": LOOK_AGAIN}
    script: dict[str, Any] = {"analysis": unsure, "decision": decision, "assessment": ASSESSMENT}
    regions = ("car", "sky", "sea", "cup")
    different = [{**PLAN, "query_scope": [region], "distortions": {region: ["Blurs"]}} for region in regions]
    config, engine = scripted({"plan": different, **script})
    query = "Rate the quality of this blurry snapshot."
    given: AgenticIQAState = {"query": query, "image_path": str(photo), "max_replan_iterations": limit}
    for _ in range(plans + 1):
        for node in (planner_node, executor_node, summarizer_node):
            merged: Any = {**given, **node(given, config)}
            given = merged
        if decide_next_node(given) == "__end__":
            break
    first, *later = [body for body in engine.bodies if stage_of(body) == "plan"]
    assert len(later) == plans - 1
    assert not has_field(first, "feedback")
    assert all(LOOK_AGAIN in field_of(body, "feedback") for body in later)
    assert given["iteration_count"] == len(given["replan_history"]) == min(limit, plans)
    assert 1 <= given["summarizer_result"].quality_score <= 5  # type: ignore[operator]


def test_evidence_that_was_not_planned_is_not_missing() -> None:
    """Regions without analysis and missing scores are gaps only if the plan asked for them."""
    everything = plan(scope=["sky", "sea"], distortions={"sky": ["Noise"]}, analyse=True, measure=True)
    assert [gap for gap in gaps(everything, ExecutorOutput()) if "analysis" in gap and "sky" in gap and "sea" in gap]
    assert [gap for gap in gaps(everything, ExecutorOutput()) if "scores" in gap and "sky: Noise" in gap]
    assert gaps(plan(scope=["sky", "sea"]), ExecutorOutput()) == []
    assert gaps(plan(analyse=True, measure=True), evidence()) == []


def test_fusion_has_eta_one_and_five_levels_by_default() -> None:
    """The defaults are those of the paper; both can be changed."""
    fusion = ScoreFusion()
    assert (fusion.eta, list(fusion.quality_levels)) == (1.0, [*LEVELS])
    assert list(ScoreFusion(eta=0.5, quality_levels=[1, 2, 3]).compute_perceptual_weights([2.0])) == [1, 2, 3]


@pytest.mark.parametrize("eta", [0.0, 0.5, 1.0, 4.0])
@pytest.mark.parametrize("scores", [[1.0], [2.6], [2.6, 4.2, 5.0]])
def test_perceptual_weights_are_a_normalized_bell_around_the_mean_of_the_tools(eta: float, scores: list[float]) -> None:
    """Each weight is exp(-eta (mean - c)^2) divided by the sum of all."""
    mean = sum(scores) / len(scores)
    bell = {c: math.exp(-eta * (mean - c) ** 2) for c in LEVELS}
    expected = {c: weight / sum(bell.values()) for c, weight in bell.items()}
    assert ScoreFusion(eta).compute_perceptual_weights(scores) == pytest.approx(expected)


@pytest.mark.parametrize(
    "said", [{"quality_probs": LOG_PROBS}, {"quality_reasoning": "Fair quality."}, "Fair quality.", "No idea.", {}]
)
def test_probabilities_are_a_distribution_for_any_answer(said: dict[str, Any] | str) -> None:
    """For numbers, a level in words or neither, there are five probabilities with the sum one."""
    p = ScoreFusion().extract_vlm_probabilities(said)
    assert list(p) == [*LEVELS]
    assert math.isclose(sum(p.values()), 1)
    assert (max(p, key=lambda level: p[level]) == 3) is ("Fair" in str(said) or "quality_probs" in said)


@pytest.mark.parametrize("scores", [[1.0], [2.9871, 2.9871], [1.5, 4.5], [5.0]])
def test_the_fused_score_is_the_weighted_mean_of_the_levels(scores: list[float]) -> None:
    """The levels are averaged with the normalized products of weight and probability; fuse gives the same."""
    fusion = ScoreFusion()
    p = fusion.extract_vlm_probabilities({"quality_probs": LOG_PROBS})
    weights = fusion.compute_perceptual_weights(scores)
    joint = {c: weights[c] * p[c] for c in LEVELS}
    expected = sum(c * share for c, share in joint.items()) / sum(joint.values())
    assert math.isclose(fusion.fuse_scores(scores, p), expected)
    assert fusion.fuse(scores, p) == fusion.fuse_scores(scores, p)


@pytest.mark.parametrize("level", LEVELS)
def test_a_certain_model_and_agreeing_tools_give_their_level_and_its_letter(level: int) -> None:
    """If tools and model agree on a level, the score is that level, with letters from E (1) to A (5)."""
    fusion = ScoreFusion()
    sure = {c: float(c == level) for c in LEVELS}
    assert fusion.fuse_scores([float(level)], sure) == level
    assert fusion.map_to_level(float(level)) == "EDCBA"[level - 1]


@pytest.mark.parametrize(
    ("score", "letter"), [(1.49, "E"), (1.5, "D"), (2.73, "C"), (3.49, "C"), (4.5, "A"), (5.0, "A")]
)
def test_a_score_has_the_letter_of_the_nearest_level(score: float, letter: str) -> None:
    """A score half-way between levels has the letter of the better one; a score off the scale has none."""
    assert ScoreFusion().map_to_level(score) == letter
    for off in (0.9, 5.1):
        with pytest.raises(ValueError, match="score must lie in"):
            ScoreFusion().map_to_level(off)
