"""The page and last lines of a tuning run say what was tried, why nothing was kept, and what is still saved."""

from pathlib import Path
from typing import Any

import pytest

from agenticiqa.eval.optimize.before_after import Tuned, compare, gain_of_profile
from agenticiqa.eval.optimize.items import Assessed, TuningQuestion
from agenticiqa.eval.optimize.report import about_profile, page
from agenticiqa.eval.optimize.search import Searched, Step
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.fusion.formula import ScoreFusion
from agenticiqa.programs.fusion.profile import FusionProfile
from support.profiles import TYPICAL

NAME, BEFORE, AFTER = "summarizer.score.ask.predict", "Rate it.", "Rate it. Look for blocks."
QUESTIONS = [TuningQuestion(Path(f"{i}.png"), "Rate it.", f"scene {i}", target=float(i)) for i in range(1, 6)]
RATED = {
    "model": "m",
    "tools": ("NIQE",),
    "tool": 3.0,
    "tool_error": 0.5,
    "probabilities": {str(level): float(level == 3) for level in range(1, 6)},
}
PROFILE = TYPICAL.model_copy(update={"backend": "m", "toolset": ("NIQE",)})


def rated(scores: list[float | None]) -> list[Assessed]:
    return [Assessed(fused=score, expectation=3.0, **RATED) for score in scores]


def tuned(found: Searched, kept: bool = False, profile: FusionProfile | None = None) -> Tuned:
    results = rated([1.0, 2.0, 3.0, 4.0, 5.0])
    figures = compare("scoring", QUESTIONS, results, results)
    if profile:
        figures["profile"] = {"n": 6, "before": 0.768, "after": 0.821, "probability": 0.9879}
    spent = {"seconds": 1, "assessed": 6, "calls": 6, "usd": 0.0}
    program = AgenticIQA.offline()
    return Tuned(program, "scoring", kept, "no change", figures, found, {NAME: BEFORE}, profile, spent=spent)


def searched(best: str = BEFORE, *steps: Step, **more: Any) -> Searched:
    return Searched({NAME: best}, [*steps], spent=40, ended="the budget was spent", **more)


def step(taken: bool) -> Step:
    return Step(1, 0, {NAME: AFTER}, NAME, 0.1, -0.2, taken, "not better", 20, "Look for blocks.")


OUTCOMES = {
    "nothing": (
        searched(),
        ["No instruction was proposed. The search ended: the budget was spent."],
        ["<svg", "<h2>Proposals", "What changed", "<th>#"],
    ),
    "refused": (
        searched(refused=["it quotes a file"] * 2),
        ["2 proposals were refused and 0 measured", "2: it quotes a file"],
        ["<svg", "What changed", "<th>#"],
    ),
    "measured": (
        searched(BEFORE, step(taken=False)),
        ["1 measured. 1 of these were measured again on other questions", "Look for blocks.", "<svg"],
        ["What changed", "<ins>", "Refused"],
    ),
    "not kept": (
        searched(AFTER, step(taken=True)),
        ["Best proposal (not kept)", "<ins>", "<svg", "Look for blocks."],
        ["What changed", "Why no instruction"],
    ),
}


@pytest.mark.parametrize(("found", "shown", "left_out"), OUTCOMES.values(), ids=OUTCOMES)
def test_without_an_outcome_the_page_shows_what_was_tried_and_no_empty_part(
    found: Searched, shown: list[str], left_out: list[str]
) -> None:
    html = page(tuned(found))
    assert [text for text in shown if text not in html] == []
    assert [text for text in left_out if text in html] == []


def test_a_profile_beside_the_original_prompts_is_named_with_what_it_does_to_the_score() -> None:
    text = about_profile(tuned(searched(), profile=PROFILE))
    assert text.startswith("fusion.yaml is a fusion profile fitted to your labels with the original prompts")
    assert text.endswith("them: SRCC 0.768 -> 0.821 on 6 held-out images; the probability of an improvement is 98.7 %")
    assert text.replace(">", "&gt;") in page(tuned(searched(), profile=PROFILE))
    assert "with the tuned prompts" in about_profile(tuned(searched(), kept=True, profile=PROFILE))
    assert about_profile(tuned(searched())) == ""


def test_the_gain_of_a_profile_is_measured_on_images_with_both_scores() -> None:
    gain = gain_of_profile(QUESTIONS, rated([1.0, 2.0, None, 4.0, 5.0]), ScoreFusion(profile=PROFILE))
    assert (gain["n"], gain["after"]) == (4, None)  # the profile gives these ratings one score
    assert gain["before"] == pytest.approx(1.0)
    assert 0 <= gain["probability"] < 0.5, "one score for all is worse than the right ones"
    assert gain_of_profile([], [], ScoreFusion(profile=PROFILE)) == {
        "n": 0,
        "before": None,
        "after": None,
        "probability": 0.0,
    }
