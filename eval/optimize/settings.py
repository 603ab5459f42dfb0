"""The settings of a tuning run."""

from dataclasses import dataclass
from typing import Any, Protocol

import dspy

from agenticiqa.eval.datasets import MosScale
from agenticiqa.eval.names import Optimizer, Stage


class DSPyOptimizer(Protocol):
    """An optimizer of DSPy, such as ``dspy.MIPROv2``."""

    def compile(self, student: dspy.Module, *, trainset: list[dspy.Example]) -> Any:
        """Return an optimized copy of the student."""


@dataclass(frozen=True)
class TuningSettings:
    """How ``optimize`` tunes.

    Attributes:
        stage: The stage to tune.
        budget: The most assessments of images, without those of the comparison. The search also ends at the limits of
            calls and USD.
        starts: How many first proposals "reflect" tries, continuing with the best.
        optimizer: "reflect", the search of this package, "gepa", DSPy's, or an optimizer of DSPy that you made, such as
            ``dspy.BootstrapFewShot(metric)``. Its examples are those of ``examples_of``; what its metric raises is
            raised.
        held_out: The share of the labels' scenes that is held out for the comparison.
        scale: The scale of the MOS; by default inferred from their range.
        seed: Determines the split and the search.
        workers: How many images are assessed at a time.
    """

    stage: Stage = "scoring"
    budget: int = 400
    starts: int = 3
    optimizer: Optimizer | DSPyOptimizer = "reflect"
    held_out: float = 0.4
    scale: MosScale | None = None
    seed: int = 0
    workers: int = 1
