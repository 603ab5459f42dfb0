"""How often simulated prompts are kept, with fixed seeds; ``benchmarks/tuning.py`` prints the whole table."""

import pytest

from support.simulated_judge import SEED
from support.tuning_decisions import USEFUL, Tuning


@pytest.mark.slow
def test_of_100_prompts_without_an_effect_at_most_5_are_kept() -> None:
    runs = [Tuning(seed) for seed in range(20_000, 20_100)]
    assert sum(run.kept(f"{SEED} Wording {run.seed}.", run.first) for run in runs) <= 5


@pytest.mark.slow
def test_a_useful_prompt_is_nearly_always_kept() -> None:
    """Its SRCC is about .2 higher, for the model alone."""
    runs = [Tuning(seed) for seed in range(20_000, 20_025)]
    assert sum(run.kept(f"{USEFUL} {run.seed}", run.first) for run in runs) >= 22
