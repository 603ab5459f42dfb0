"""The program and its subpackages. The public names are exported here and loaded on first access (PEP 562)."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agenticiqa.configs import Config, load_config
    from agenticiqa.programs.assess import AgenticIQA, add_tool
    from agenticiqa.programs.backends.limits import LimitReached, Limits
    from agenticiqa.programs.batch.assess_many import assess_many
    from agenticiqa.programs.batch.job import Job
    from agenticiqa.programs.errors import AgenticIQAError, UserError
    from agenticiqa.programs.fusion.formula import ScoreFusion
    from agenticiqa.programs.graph import build_graph
    from agenticiqa.programs.pictures.draw import draw_assessment
    from agenticiqa.programs.result import Assessment
    from agenticiqa.programs.stages.inputs import ImageExample

_MODULES = {
    "AgenticIQA": "agenticiqa.programs.assess",
    "AgenticIQAError": "agenticiqa.programs.errors",
    "Assessment": "agenticiqa.programs.result",
    "Config": "agenticiqa.configs",
    "ImageExample": "agenticiqa.programs.stages.inputs",
    "Job": "agenticiqa.programs.batch.job",
    "LimitReached": "agenticiqa.programs.backends.limits",
    "Limits": "agenticiqa.programs.backends.limits",
    "ScoreFusion": "agenticiqa.programs.fusion.formula",
    "UserError": "agenticiqa.programs.errors",
    "add_tool": "agenticiqa.programs.assess",
    "build_graph": "agenticiqa.programs.graph",
    "draw_assessment": "agenticiqa.programs.pictures.draw",
    "assess_many": "agenticiqa.programs.batch.assess_many",
    "load_config": "agenticiqa.configs",
}

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
    "add_tool",
    "assess_many",
    "build_graph",
    "draw_assessment",
    "load_config",
]


if not TYPE_CHECKING:  # type checkers use the imports above, and so report names that do not exist

    def __getattr__(name):
        """Import the module that defines the name."""
        if name in _MODULES:
            return getattr(import_module(_MODULES[name]), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
