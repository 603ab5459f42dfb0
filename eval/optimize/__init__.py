"""Tune the prompts of one stage on labeled images, within a budget, and keep only what is shown to help.

::

    from agenticiqa.eval.optimize import TuningSettings, optimize

    tuned = optimize(program, labels, TuningSettings(budget=400), reflection=dspy.LM("openai/gpt-4o"))
    tuned.kept, tuned.why, tuned.program

``examples_of``, ``metric`` and ``freeze`` are for DSPy's optimizers without this search.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agenticiqa.eval.optimize.before_after import Tuned as Tuned
    from agenticiqa.eval.optimize.for_dspy import examples_of as examples_of
    from agenticiqa.eval.optimize.for_dspy import freeze as freeze
    from agenticiqa.eval.optimize.for_dspy import metric as metric
    from agenticiqa.eval.optimize.settings import TuningSettings as TuningSettings
    from agenticiqa.eval.optimize.tuning import optimize as optimize

_MODULES = {
    "Tuned": "before_after",
    "TuningSettings": "settings",
    "examples_of": "for_dspy",
    "freeze": "for_dspy",
    "metric": "for_dspy",
    "optimize": "tuning",
}

__all__ = ["Tuned", "TuningSettings", "examples_of", "freeze", "metric", "optimize"]


def __getattr__(name: str) -> Any:  # lazy imports, so that commands start quickly
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
