"""The objective of each stage, and the feedback for a reflection."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agenticiqa.eval.optimize.items import Assessed, TuningQuestion
from agenticiqa.eval.optimize.objectives import feedback, fused_error, losses, marks, value, worst_first
from support.simulated_judge import COPY_TOOLS, HARMFUL, HELPFUL, SEED, assessed_by, photos


def rated(target: float) -> TuningQuestion:
    return TuningQuestion(Path("a.png"), "Rate it.", "a", target=target)


def error_of(instruction: str, seed: int = 1) -> float:
    given = photos(400, seed)
    return fused_error(assessed_by(instruction, given, range(400)), list(given.mos))


def test_only_information_beyond_the_tools_improves_the_value() -> None:
    seed, parrot = error_of(SEED), error_of(f"{SEED} | {COPY_TOOLS[0]}")
    assert parrot == pytest.approx(seed, abs=0.01)
    assert error_of(" | ".join([SEED, *HELPFUL])) < seed - 0.1
    assert error_of(" | ".join([SEED, *HARMFUL])) > seed


def test_the_scale_of_the_answers_does_not_count() -> None:
    rng = np.random.default_rng(0)
    mos = rng.normal(3, 0.9, 300)
    tools = mos + rng.normal(0, 0.8, 300)
    ratings = mos + rng.normal(0, 0.6, 300)
    full, half = (
        fused_error(
            [Assessed(expectation=3 + s * (x - 3), tool=t) for x, t in zip(ratings, tools, strict=True)], list(mos)
        )
        for s in (1.0, 0.5)
    )
    assert full == pytest.approx(half, abs=0.02)


def test_a_missing_answer_is_worse_than_any_answer() -> None:
    questions = [rated(1 + i % 5) for i in range(20)]
    bad = [Assessed(expectation=3.0 + 0.1 * (i % 3), tool=3.0) for i in range(20)]
    assert value("scoring", [*bad[:-1], Assessed(failure="no JSON")], questions) < value("scoring", bad, questions)
    assert value("scoring", [Assessed(failure="no JSON")] * 20, questions) == -2


def test_the_loss_of_a_rating_is_its_error_after_a_line_and_a_missing_one_is_large() -> None:
    questions = [rated(target) for target in (1.0, 2.0, 3.0, 4.0, 5.0, 3.0)]
    halved = [Assessed(expectation=2 + x / 2) for x in (1.0, 2.0, 3.0, 4.0, 5.0)]
    assert losses("scoring", [*halved, Assessed(failure="no JSON")], questions) == pytest.approx([0] * 5 + [2])
    falling = [Assessed(expectation=6 - x) for x in (1.0, 2.0, 3.0, 4.0, 5.0, 3.0)]
    assert losses("scoring", falling, questions) == pytest.approx([2, 1, 0, 1, 2, 0]), "as constant ratings"
    assert losses("scoring", [Assessed(failure="no JSON")] * 6, questions).tolist() == [2] * 6


def test_marks_of_answers_and_detections() -> None:
    asked = TuningQuestion(Path("a.png"), "Which?", "a", answer="B")
    assert marks("answering", [Assessed(final_answer="B"), Assessed(final_answer="A"), Assessed()], [asked] * 3) == [
        1,
        0,
        0,
    ]
    noisy = TuningQuestion(Path("a.png"), "Rate it.", "a", distortion="Noise")
    found = [
        Assessed(found=("Noise",)),
        Assessed(found=("Noise", "Blurs", "Contrast")),
        Assessed(found=("Blurs",)),
        Assessed(),
    ]
    assert marks("detection", found, [noisy] * 4) == [1, 0.5, 0, 0]
    assert value("detection", found, [noisy] * 4) == 0.375
    assert worst_first("detection", found[:2], [noisy] * 2) == [1, 0]
    assert (
        "has Noise and nothing else; found was Noise, Blurs, Contrast" in feedback("detection", found, [noisy] * 4)[1]
    )


def shown(expectation: float | None, target: float = 4.0, tool: float | None = None, **more: Any) -> str:
    """The feedback on one rating beside two that are right."""
    others = [Assessed(expectation=x) for x in (2.0, 3.0, 4.0)]
    assessed = [Assessed(expectation=expectation, tool=tool, **more), *others]
    return feedback("scoring", assessed, [rated(target), *map(rated, (2.0, 3.0, 4.0))])[0]


def test_the_feedback_names_the_gap_its_direction_and_the_tools() -> None:
    assert "Observers rate it 4.0 of 5, the answer expects 2.0: " in shown(2.0)
    assert "too harsh" in shown(2.0)
    assert "too kind" in shown(4.5, target=2.0)
    assert "The tools (mean 2.5) are 1.5 too harsh." in shown(2.0, tool=2.5)
    assert "The tools (mean 4.1) agree with the observers." in shown(2.0, tool=4.1)
    assert (
        shown(None, failure="no JSON", evidence="Noise in sky.") == "There was no usable answer: no JSON Noise in sky."
    )
    assert "CUSTOM-TYPE-" not in shown(None, failure="<<CUSTOM-TYPE-START-IDENTIFIER>>")


def test_the_largest_gaps_come_first_whatever_the_scale_of_the_answers() -> None:
    questions = [rated(target) for target in (1.0, 2.0, 3.0, 4.0, 5.0)]
    assessed = [Assessed(expectation=x) for x in (2.8, 2.9, 3.0, 3.1, 2.7)]
    assert worst_first("scoring", assessed, questions)[0] == 4
