"""AgenticIQA: assess image quality with an agent that plans, measures, inspects and explains.

::

    from agenticiqa import AgenticIQA

    program = AgenticIQA.offline()
    result = program("photo.jpg", "Is it sharp?")

Single metrics are functions: ``from agenticiqa.metrics import ssim``. ``agenticiqa.eval`` reads labels and measures the
agreement with them; ``agenticiqa.eval.optimize`` tunes prompts.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agenticiqa.programs import (
        AgenticIQA,
        AgenticIQAError,
        Assessment,
        Config,
        ImageExample,
        Job,
        LimitReached,
        Limits,
        ScoreFusion,
        UserError,
        add_tool,
        assess_many,
        build_graph,
        draw_assessment,
        load_config,
    )

    __version__: str

__all__ = [
    "AgenticIQA",
    "AgenticIQAError",
    "Assessment",
    "Config",
    "ImageExample",
    "Job",
    "LimitReached",
    "Limits",
    "ScoreFusion",
    "UserError",
    "__version__",
    "add_tool",
    "assess_many",
    "build_graph",
    "draw_assessment",
    "load_config",
]


if not TYPE_CHECKING:  # a type checker uses the imports above, and reports names that do not exist

    def __getattr__(name):
        """Load a name on first use (PEP 562), so that importing the package loads neither DSPy nor numpy."""
        if name == "__version__":
            return import_module("importlib.metadata").version("agenticiqa")
        if name in __all__:
            return getattr(import_module("agenticiqa.programs"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
