"""Measure and tune the program: labeled data sets, benchmark, calibration, prompts, training.

::

    from agenticiqa.eval import evaluate, read_labels

    labels = read_labels("labels.csv")
    evaluate(AgenticIQA.offline(), labels).summary

Prompts are tuned by ``agenticiqa.eval.optimize``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agenticiqa.eval.benchmark import Evaluation as Evaluation
    from agenticiqa.eval.benchmark import evaluate as evaluate
    from agenticiqa.eval.datasets import LabeledImage as LabeledImage
    from agenticiqa.eval.labels.own_data import read_labels as read_labels

_MODULES = {
    "Evaluation": "benchmark",
    "evaluate": "benchmark",
    "LabeledImage": "datasets",
    "read_labels": "labels.own_data",
}

__all__ = ["Evaluation", "LabeledImage", "evaluate", "read_labels"]


def __getattr__(name: str) -> Any:  # lazy imports, so that commands start quickly
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
