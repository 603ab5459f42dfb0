"""Measure and tune the program: labeled data sets, benchmark, calibration, prompts, training.

::

    from agenticiqa.eval import evaluate

    evaluate(AgenticIQA.offline(), "labels.csv").summary
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agenticiqa.eval.benchmark import Evaluation as Evaluation
    from agenticiqa.eval.benchmark import evaluate as evaluate

__all__ = ["Evaluation", "evaluate"]


def __getattr__(name: str) -> Any:  # loaded when it is asked for, so that commands start quickly
    if name in __all__:
        return getattr(import_module(f"{__name__}.benchmark"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
