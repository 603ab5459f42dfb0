"""Image quality metrics as plain functions of pixels, and the tools built on them.

::

    from agenticiqa.programs.tools import niqe, ssim

    ssim(image, reference)  # uint8 arrays of shape (H, W, 3), RGB
    niqe(image)

Every file in ``metrics/`` exports the function of its name, loaded at its first use (PEP 562).
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agenticiqa.programs.tools.catalog import TOOLS as TOOLS
    from agenticiqa.programs.tools.catalog import toolbox as toolbox
    from agenticiqa.programs.tools.ranking import *  # noqa: F403 - every metric
    from agenticiqa.programs.tools.tool import Tool as Tool
    from agenticiqa.programs.tools.tool import find_tool as find_tool
    from agenticiqa.programs.tools.tool import get_tool as get_tool
    from agenticiqa.programs.tools.tool import run_tool as run_tool

_METRICS = [file.stem for file in Path(__file__).with_name("metrics").glob("*.py") if file.stem != "__init__"]
_MODULE_OF = {
    "TOOLS": "catalog",
    "toolbox": "catalog",
    "Tool": "tool",
    "find_tool": "tool",
    "get_tool": "tool",
    "run_tool": "tool",
    **{metric: f"metrics.{metric}" for metric in _METRICS},
}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
