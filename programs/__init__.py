"""How the stages work together. What a user needs is here, and loaded when it is first asked for (PEP 562)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agenticiqa.configs import load_config
    from agenticiqa.programs.assess import AgenticIQA
    from agenticiqa.programs.batch.job import Job
    from agenticiqa.programs.batch.judge_many import judge_many
    from agenticiqa.programs.pictures.draw import draw_assessment

_HOMES = {
    "AgenticIQA": "agenticiqa.programs.assess",
    "Job": "agenticiqa.programs.batch.job",
    "draw_assessment": "agenticiqa.programs.pictures.draw",
    "judge_many": "agenticiqa.programs.batch.judge_many",
    "load_config": "agenticiqa.configs",
}

__all__ = ["AgenticIQA", "Job", "draw_assessment", "judge_many", "load_config"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
