"""Image quality metrics, each a plain function of pixels, and the tools that a program makes of them.

::

    from agenticiqa.programs.tools import niqe, ssim

    ssim(image, reference)  # uint8 arrays of shape (H, W, 3), RGB
    niqe(image)

Every file in ``metrics/`` exports the function of its name. Whatever is asked for is loaded then (PEP 562).
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agenticiqa.programs.tools.catalog import TOOLS as TOOLS
    from agenticiqa.programs.tools.catalog import toolbox as toolbox
    from agenticiqa.programs.tools.metrics.blockiness import blockiness as blockiness
    from agenticiqa.programs.tools.metrics.blur_extent import blur_extent as blur_extent
    from agenticiqa.programs.tools.metrics.brisque import brisque as brisque
    from agenticiqa.programs.tools.metrics.colorfulness import colorfulness as colorfulness
    from agenticiqa.programs.tools.metrics.deep_sim import deep_sim as deep_sim
    from agenticiqa.programs.tools.metrics.edge_sharpness import edge_sharpness as edge_sharpness
    from agenticiqa.programs.tools.metrics.exposure_error import exposure_error as exposure_error
    from agenticiqa.programs.tools.metrics.fr_fusion import fr_fusion as fr_fusion
    from agenticiqa.programs.tools.metrics.fsim import fsim as fsim
    from agenticiqa.programs.tools.metrics.gmsd import gmsd as gmsd
    from agenticiqa.programs.tools.metrics.haarpsi import haarpsi as haarpsi
    from agenticiqa.programs.tools.metrics.learned_iqa import learned_iqa as learned_iqa
    from agenticiqa.programs.tools.metrics.mdsi import mdsi as mdsi
    from agenticiqa.programs.tools.metrics.ms_ssim import ms_ssim as ms_ssim
    from agenticiqa.programs.tools.metrics.niqe import niqe as niqe
    from agenticiqa.programs.tools.metrics.noise_sigma import noise_sigma as noise_sigma
    from agenticiqa.programs.tools.metrics.piqe import piqe as piqe
    from agenticiqa.programs.tools.metrics.psnr import psnr as psnr
    from agenticiqa.programs.tools.metrics.rms_contrast import rms_contrast as rms_contrast
    from agenticiqa.programs.tools.metrics.ssim import ssim as ssim
    from agenticiqa.programs.tools.metrics.ssimulacra2 import ssimulacra2 as ssimulacra2
    from agenticiqa.programs.tools.metrics.vif import vif as vif
    from agenticiqa.programs.tools.tool import Tool as Tool
    from agenticiqa.programs.tools.tool import find_tool as find_tool
    from agenticiqa.programs.tools.tool import get_tool as get_tool
    from agenticiqa.programs.tools.tool import run_tool as run_tool

_METRICS = [file.stem for file in Path(__file__).with_name("metrics").glob("*.py") if file.stem != "__init__"]
_HOMES = {
    "TOOLS": "catalog",
    "toolbox": "catalog",
    "Tool": "tool",
    "find_tool": "tool",
    "get_tool": "tool",
    "run_tool": "tool",
    **{metric: f"metrics.{metric}" for metric in _METRICS},
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
