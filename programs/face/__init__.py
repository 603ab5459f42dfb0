"""AgenticIQA: image quality assessment that plans, measures, looks and explains.

::

    from agenticiqa import AgenticIQA

    program = AgenticIQA.offline()
    result = program("photo.jpg", "Is it sharp?")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agenticiqa.programs import AgenticIQA, Job, draw_assessment, judge_many, load_config

__all__ = ["AgenticIQA", "Job", "__version__", "draw_assessment", "judge_many", "load_config"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("agenticiqa")
    if name in __all__:
        return getattr(import_module("agenticiqa.programs"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
