"""Worked examples for a simulated rater: right levels improve it, wrong ones mislead it."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from agenticiqa.eval.metrics import mean_absolute_error
from agenticiqa.eval.optimize import exemplars
from agenticiqa.eval.optimize.comparison import fitted, fused
from agenticiqa.eval.optimize.exemplars import example, with_exemplars
from agenticiqa.eval.optimize.items import Assessed, TuningQuestion
from agenticiqa.eval.optimize.measurements import Measurements
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.saving import SCORER
from agenticiqa.signatures.vocabulary import LEVELS
from support.simulated_judge import HARMFUL, HELPFUL, SEED, Photos, assessed_by, photos

POOL, UNSEEN = range(96), range(96, 296)


class Simulated(Measurements):
    """A judge that sees what observers see after examples with right levels, and is misled by wrong ones."""

    def __init__(self, given: Photos) -> None:
        super().__init__("scoring")
        self.given = given

    def assess(self, program: AgenticIQA, questions: Sequence[TuningQuestion]) -> list[Assessed]:
        demos = dict(program.named_predictors())[SCORER].demos
        errors = [LEVELS[json.loads(demo.assessment)["quality_level"]] - self.true(demo.evidence) for demo in demos]
        right = all(abs(error) <= 1 for error in errors)
        learned = " | ".join([SEED, *((HELPFUL if right else HARMFUL) if demos else ())])
        found = assessed_by(learned, self.given, [int(question.content) for question in questions])
        inputs = [{"query": "Rate it.", "reference": "None", "evidence": question.content} for question in questions]
        return [
            replace(one, calls={SCORER: {"inputs": each, "outputs": {}}})
            for one, each in zip(found, inputs, strict=True)
        ]

    def true(self, place: str) -> float:
        return float(self.given.truth[int(place)])


@pytest.mark.parametrize("seed", range(4))
def test_four_exemplars_are_kept_with_right_levels_and_lower_the_error_and_left_with_wrong_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    Image.new("RGB", (8, 8)).save(image := tmp_path / "photo.png")
    given = photos(UNSEEN.stop, seed)
    asked = [TuningQuestion(image, "Rate it.", str(n), target=float(mos)) for n, mos in enumerate(given.mos)]
    pool, unseen = asked[: POOL.stop], asked[UNSEEN.start :]
    program = AgenticIQA.from_config({"summarizer": {"backend": "vllm.x", "api_base": "http://127.0.0.1:9/v1"}})
    simulated = Simulated(given)

    def error(program: AgenticIQA) -> float:
        profile = fitted(pool, simulated.assess(program, pool))
        scores = [fused(one, profile) or 0.0 for one in simulated.assess(program, unseen)]
        return mean_absolute_error(scores, [question.target or 0.0 for question in unseen]) or 0.0

    shown, note = with_exemplars(program, pool, POOL, 4, simulated, seed)
    demos = dict(shown.named_predictors())[SCORER].demos
    assert note.startswith("kept: 4 exemplars")
    assert len({demo.evidence for demo in demos}) == 4
    assert all(demo.reference is None for demo in demos)
    levels = sorted(LEVELS[json.loads(demo.assessment)["quality_level"]] for demo in demos)
    assert levels[-1] - levels[0] >= 2, "they span the scale"
    assert error(shown) < error(program) - 0.05

    monkeypatch.setattr(exemplars, "example", lambda q, assessed: example(replace(q, target=6 - q.target), assessed))
    left, note = with_exemplars(program, pool, POOL, 4, simulated, seed)
    assert note.startswith("not kept: 4 exemplars")
    assert left is program
